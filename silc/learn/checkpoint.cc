// SPDX-License-Identifier: Apache-2.0
#include "silc/learn/checkpoint.h"

#include <fmt/format.h>
#include <sys/utsname.h>

#include <charconv>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "silc/base/check.h"
#include "silc/base/crc32c.h"
#include "silc/base/error.h"
#include "silc/base/file.h"
#include "silc/base/thread_pool.h"

namespace silc {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kMagic = "SILCCKP1";
constexpr std::string_view kPrefix = "checkpoint_", kSuffix = ".silc";

void Append(std::uint64_t value, std::string* out) {
  for (int i = 0; i < 8; ++i) out->push_back(static_cast<char>(value >> (8 * i)));
}

}  // namespace

std::string SerializeBlobs(const Blobs& blobs) {
  std::string bytes(kMagic);
  Append(blobs.size(), &bytes);
  for (const auto& [name, blob] : blobs) {
    Append(name.size(), &bytes);
    bytes += name;
    Append(blob.size(), &bytes);
    bytes += blob;
  }
  Append(Crc32c(bytes), &bytes);
  return bytes;
}

Blobs ParseBlobs(std::string_view bytes, const std::string& place) {
  if (!bytes.starts_with(kMagic)) throw ConfigError(place + ": is not a checkpoint of silc");
  if (bytes.size() < kMagic.size() + 16) throw ConfigError(place + ": is cut off");
  const std::string_view body = bytes.substr(0, bytes.size() - 8);
  std::size_t at = body.size();
  const auto number = [&](std::string_view from) {
    if (from.size() - at < 8) throw ConfigError(place + ": is cut off");
    std::uint64_t value = 0;
    for (int i = 0; i < 8; ++i) {
      value |= std::uint64_t{static_cast<unsigned char>(from[at + i])} << (8 * i);
    }
    at += 8;
    return value;
  };
  // the sum first: after it, lengths can be believed as far as an accident goes
  if (number(bytes) != Crc32c(body)) {
    throw ConfigError(place + ": its checksum does not agree: cut off, or changed on disk");
  }
  at = kMagic.size();
  const auto text = [&] {
    const std::uint64_t size = number(body);
    if (body.size() - at < size) throw ConfigError(place + ": is cut off");
    at += size;
    return std::string(body.substr(at - size, size));
  };
  Blobs blobs;
  const std::uint64_t count = number(body);
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::string name = text();
    blobs[name] = text();
  }
  return blobs;
}

Blobs ReadCheckpoint(const std::string& path, const std::string& place) {
  std::string bytes;
  try {
    bytes = ReadFile(path, kMaxCheckpointBytes);
  } catch (const ConfigError& error) {
    throw RunError(error.what());
  }
  return ParseBlobs(bytes, place);
}

CheckpointFolder::CheckpointFolder(std::string folder, int keep)
    : folder_(std::move(folder)), keep_(keep) {
  SILC_CHECK(keep >= 2);
}

std::map<int, std::string> CheckpointFolder::List() const {
  std::map<int, std::string> found;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder_, error)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(kPrefix) || !name.ends_with(kSuffix)) continue;
    const char* begin = name.data() + kPrefix.size();
    const char* end = name.data() + name.size() - kSuffix.size();
    int iteration = 0;
    const auto [stop, status] = std::from_chars(begin, end, iteration);
    if (status == std::errc() && stop == end) found[iteration] = entry.path().string();
  }
  return found;
}

void CheckpointFolder::Save(int iteration, const Blobs& blobs) {
  std::error_code error;
  fs::create_directories(folder_, error);
  WriteFileAtomically(fmt::format("{}/{}{:08}{}", folder_, kPrefix, iteration, kSuffix),
                      SerializeBlobs(blobs));
  std::map<int, std::string> files = List();
  while (static_cast<int>(files.size()) > keep_) {
    fs::remove(files.begin()->second, error);  // one that stays is no reason to end a training
    files.erase(files.begin());
  }
}

int CheckpointFolder::NewestIteration() const {
  const std::map<int, std::string> files = List();
  return files.empty() ? 0 : files.rbegin()->first;
}

bool CheckpointFolder::Empty() const { return List().empty(); }

std::optional<CheckpointFolder::Loaded> CheckpointFolder::LoadNewest(
    const std::function<void(const std::string&)>& warn) const {
  const std::map<int, std::string> files = List();
  std::vector<std::string> broken;
  for (auto file = files.rbegin(); file != files.rend(); ++file) {
    try {
      return Loaded{file->first, file->second, ReadCheckpoint(file->second, file->second), broken};
    } catch (const ConfigError& error) {
      const bool last = std::next(file) == files.rend();
      warn(std::string(error.what()) + (last ? "" : "; the one before it is used"));
      broken.push_back(file->second);
    }
  }
  return std::nullopt;
}

void WriteRunFolder(const std::string& folder,
                    const std::string& resolved_yaml,
                    unsigned long seed,
                    const std::string& more) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) throw RunError(folder + ": cannot be made: " + error.message());
  utsname host{};
  uname(&host);
  const auto line_of = [](const fs::path& file, const std::string& key) -> std::string {
    std::ifstream info(file);
    for (std::string line; std::getline(info, line);) {
      if (!line.starts_with(key)) continue;
      const std::size_t colon = line.find(':');
      const std::size_t text = line.find_first_not_of(" \t", colon + 1);
      if (colon != std::string::npos && text != std::string::npos) return line.substr(text);
    }
    return "unknown";
  };
  const std::string cpu = line_of("/proc/cpuinfo", "model name");
  std::string gpu = "none found";  // else the first, as NVIDIA's driver names it
  for (const auto& entry : fs::directory_iterator("/proc/driver/nvidia/gpus", error)) {
    gpu = line_of(entry.path() / "information", "Model");
    break;
  }
  WriteFileAtomically(
      folder + "/run.yaml",
      fmt::format("commit: {}\nseed: {}\nmachine: {{host: \"{}\", system: \"{} {}\", cpu: \"{}\", "
                  "gpu: \"{}\", threads: {}}}\n{}",
                  SILC_COMMIT,
                  seed,
                  host.nodename,
                  host.sysname,
                  host.release,
                  cpu,
                  gpu,
                  HardwareThreads(),
                  more));
  WriteFileAtomically(folder + "/config.yaml", resolved_yaml);
}

}  // namespace silc
