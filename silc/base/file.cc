// SPDX-License-Identifier: Apache-2.0
#include "silc/base/file.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "silc/base/error.h"

namespace silc {

std::string ReadFile(const std::string& path, std::size_t max_bytes) {
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (!std::filesystem::exists(status)) throw ConfigError(path + ": no such file");
  if (!std::filesystem::is_regular_file(status)) throw ConfigError(path + ": not a regular file");

  const auto size = std::filesystem::file_size(path, error);
  if (error) throw ConfigError(path + ": " + error.message());
  if (size > max_bytes) {
    throw ConfigError(path + ": " + std::to_string(size) + " bytes, more than the limit of " +
                      std::to_string(max_bytes));
  }

  std::ifstream stream(path, std::ios::binary);
  std::string bytes(size, '\0');
  stream.read(bytes.data(), static_cast<std::streamsize>(size));
  if (!stream || static_cast<std::size_t>(stream.gcount()) != size) {
    throw ConfigError(path + ": cannot be read");
  }
  return bytes;
}

void WriteFileAtomically(const std::string& path, std::string_view bytes) {
  // the process id keeps two runs that write the same target out of each other's temporary file
  const std::string temporary = path + ".tmp" + std::to_string(::getpid());
  std::FILE* file = std::fopen(temporary.c_str(), "wb");
  if (file == nullptr) throw RunError(path + ": cannot be written: " + std::strerror(errno));

  // the data reaches the disk before the name does, or a crash could leave an empty file behind it
  bool good = std::fwrite(bytes.data(), 1, bytes.size(), file) == bytes.size();
  good = good && std::fflush(file) == 0 && ::fsync(::fileno(file)) == 0;
  int reason = good ? 0 : errno;
  if (std::fclose(file) != 0 && good) {
    good = false;
    reason = errno;
  }
  if (good && std::rename(temporary.c_str(), path.c_str()) != 0) {
    good = false;
    reason = errno;
  }
  if (!good) {
    std::remove(temporary.c_str());
    throw RunError(path + ": cannot be written: " + std::strerror(reason));
  }
}

}  // namespace silc
