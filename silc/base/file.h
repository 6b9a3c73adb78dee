// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace silc {

/// The bytes of a file. Throws ConfigError when it is missing, no regular file, or longer than
/// max_bytes: a size limit before the first allocation is what keeps a wrong path from eating the
/// memory.
std::string ReadFile(const std::string& path, std::size_t max_bytes = std::size_t{1} << 30);

/// Writes beside the target and renames: a reader sees the old bytes or the new ones, never half of
/// them. Throws RunError and leaves no temporary file when the folder is missing, read-only or
/// full.
void WriteFileAtomically(const std::string& path, std::string_view bytes);

}  // namespace silc
