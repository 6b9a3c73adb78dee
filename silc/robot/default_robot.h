// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace silc {

/// The robot that is meant where none is named. A header of its own: kernels, which see no Eigen,
/// include it by way of the task's configuration.
inline constexpr const char* kDefaultRobot = "g1";

}  // namespace silc
