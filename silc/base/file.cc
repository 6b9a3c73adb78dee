// SPDX-License-Identifier: Apache-2.0
#include "silc/base/file.h"

#include <fcntl.h>
#include <sys/stat.h>
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

namespace {

// NAME.tmpPID, NAME.tmpPID.1, …: the first that `make` does not find taken. The process id keeps
// two runs that write the same target apart, the number passes what somebody else has put there.
template <typename Make>
bool MakeName(const std::string& path, const Make& make, std::string* name) {
  const std::string stem = path + ".tmp" + std::to_string(::getpid());
  for (int k = 0; k < 100; ++k) {
    *name = k == 0 ? stem : stem + "." + std::to_string(k);
    if (make(name->c_str())) return true;
    if (errno != EEXIST) break;
  }
  name->clear();
  return false;
}

bool WriteAll(int descriptor, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

constexpr std::size_t kBufferBytes = std::size_t{1} << 16;

}  // namespace

AtomicFile::AtomicFile(std::string path) : path_(std::move(path)) {
  // a device or a pipe would be replaced by a file of its name
  std::error_code error;
  const auto there = std::filesystem::status(path_, error);
  if (std::filesystem::exists(there) && !std::filesystem::is_regular_file(there)) {
    throw RunError(path_ + ": cannot be written: is there and is no regular file");
  }
  std::string folder = std::filesystem::path(path_).parent_path().string();
  if (folder.empty()) folder = ".";
  // a file without a name goes with the process, however that ends; it gets one through /proc
  const bool can_be_named = ::access("/proc/self/fd", X_OK) == 0;
  if (can_be_named) descriptor_ = ::open(folder.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666);
  if (descriptor_ >= 0) return;
  // file systems without such files answer with one of these
  if (can_be_named && errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL) Fail(errno);
  const auto make = [&](const char* name) {
    descriptor_ = ::open(name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
    return descriptor_ >= 0;
  };
  if (!MakeName(path_, make, &temporary_)) Fail(errno);
}

AtomicFile::~AtomicFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

void AtomicFile::Fail(int reason) {
  throw RunError(path_ + ": cannot be written: " + std::strerror(reason));
}

void AtomicFile::Flush() {
  if (!WriteAll(descriptor_, buffer_)) Fail(errno);
  buffer_.clear();
}

void AtomicFile::Write(std::string_view bytes) {
  if (buffer_.size() + bytes.size() > kBufferBytes) Flush();
  if (bytes.size() <= kBufferBytes) {
    buffer_ += bytes;
  } else if (!WriteAll(descriptor_, bytes)) {
    Fail(errno);
  }
}

void AtomicFile::Commit() {
  Flush();
  // the data reaches the disk before the name does, or a crash could leave an empty file behind it
  if (::fsync(descriptor_) != 0) Fail(errno);
  if (temporary_.empty()) {
    const std::string self = "/proc/self/fd/" + std::to_string(descriptor_);
    const auto make = [&](const char* name) {
      return ::linkat(AT_FDCWD, self.c_str(), AT_FDCWD, name, AT_SYMLINK_FOLLOW) == 0;
    };
    if (!MakeName(path_, make, &temporary_)) Fail(errno);
  }
  const int closed = ::close(descriptor_);
  descriptor_ = -1;
  if (closed != 0 || std::rename(temporary_.c_str(), path_.c_str()) != 0) Fail(errno);
  temporary_.clear();
}

void WriteFileAtomically(const std::string& path, std::string_view bytes) {
  AtomicFile file(path);
  file.Write(bytes);
  file.Commit();
}

}  // namespace silc
