// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "silc/base/test_paths.h"

namespace silc::test {

/// The policy that tests of `silc deploy` put on the robot: one that ships, because that is what
/// users start. It stands, walks at 0.4 m/s and withstands 40 N for 0.1 s. Nothing else about it is
/// relied on: its gains, its stiffness and how it holds its arms may be others after the next
/// training.
inline std::string WalkerFile() { return SourcePath("policies/g1_loco_silc_compliance.onnx"); }

}  // namespace silc::test
