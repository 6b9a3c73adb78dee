// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace silc {

/// The budget where neither the user nor the policy names one: a file of configs/budgets. A header
/// of its own: what knows no files names it, too, as a way out.
inline constexpr const char* kDefaultMode = "compliance";

}  // namespace silc
