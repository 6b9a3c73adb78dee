// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace silc {

/// Where an option asks for a file; "" asks for nothing.
struct OutputPath {
  std::string option, path;
};

/// Finds out before minutes of work whether results can be put where options ask for them: each in
/// a folder that is there, not in the place of one, of another result, or of a file that was read.
/// Throws ConfigError.
/// @param inputs  files that the command reads; names that are none may be among them
void RequireWritable(const std::vector<OutputPath>& outputs,
                     const std::vector<std::string>& inputs = {});

}  // namespace silc
