// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "silc/base/limits.h"

namespace silc {

/// The bytes of a file. Throws ConfigError when it is missing, no regular file, or longer than
/// max_bytes: a size limit before the first allocation is what keeps a wrong path from eating the
/// memory.
std::string ReadFile(const std::string& path, std::size_t max_bytes = kMaxFileBytes);

/// Writes beside the target and renames: a reader sees the old bytes or the new ones, never half of
/// them. Throws RunError and leaves no temporary file when the folder is missing, read-only or
/// full. Where the file system can hold a file without a name, a killed process leaves none either.
/// The temporary file is always made anew: a link that somebody put in its place is not followed.
void WriteFileAtomically(const std::string& path, std::string_view bytes);

/// The same for what does not fit the memory: written piece by piece, named once it is whole. A
/// file that is not committed leaves nothing. Every method throws RunError.
class AtomicFile {
 public:
  explicit AtomicFile(std::string path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void Write(std::string_view bytes);
  void Commit();
  const std::string& path() const { return path_; }

 private:
  void Flush();
  [[noreturn]] void Fail(int reason);

  std::string path_;
  int descriptor_ = -1;
  std::string temporary_;  // its name for now; "" while it has none
  std::string buffer_;
};

}  // namespace silc
