// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace silc {

/// Finds out before minutes of work whether a result can be put where `option` asks for it: in a
/// folder that is there, and not in the place of one. "" asks for nothing. Throws ConfigError.
void RequireWritable(const std::string& option, const std::string& path);

}  // namespace silc
