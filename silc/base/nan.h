// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <limits>

namespace silc {

/// A number that is not known.
inline constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

}  // namespace silc
