// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace silc {

/// The path of a file that comes with silc ("configs/paper.yaml"): in this folder, the source tree
/// or the installation, in this order. Throws ConfigError when it is in none.
std::string FindProjectFile(const std::string& relative_path);

}  // namespace silc
