// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace silc {

/// A size or an index that is not negative, for containers of the standard library, whose indices
/// have no sign.
inline std::size_t U(std::ptrdiff_t i) { return static_cast<std::size_t>(i); }

}  // namespace silc
