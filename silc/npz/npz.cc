// SPDX-License-Identifier: Apache-2.0
#include "silc/npz/npz.h"

#include <algorithm>
#include <utility>

#include "silc/base/error.h"
#include "silc/base/file.h"
#include "silc/base/nearest.h"
#include "silc/npz/zip.h"

namespace silc {
namespace {

constexpr std::string_view kSuffix = ".npy";

bool EndsWithSuffix(const std::string& name) {
  return name.size() > kSuffix.size() &&
         name.compare(name.size() - kSuffix.size(), kSuffix.size(), kSuffix) == 0;
}

std::string ArrayPlace(const std::string& file, const std::string& name) {
  return file + ": array '" + name + "'";
}

}  // namespace

std::vector<std::string> NpzFile::names() const {
  std::vector<std::string> names;
  for (const auto& [name, array] : arrays_) names.push_back(name);
  return names;
}

const NpyArray& NpzFile::operator[](const std::string& name) const {
  const auto found = arrays_.find(name);
  if (found == arrays_.end()) {
    throw ConfigError(file_ + ": no array '" + name + "'" + DidYouMean(name, names()));
  }
  return found->second;
}

NpzFile ParseNpz(std::string_view bytes, const std::string& file, const NpzLimits& limits) {
  if (bytes.substr(0, 6) == "\x93NUMPY") {
    throw ConfigError(file +
                      ": a single array (.npy); write it with numpy.savez(file, name=array)");
  }
  NpzFile npz;
  npz.file_ = file;
  std::size_t left = limits.max_total_bytes;
  for (const ZipMember& member : ListZip(bytes, file, limits.max_arrays)) {
    if (!EndsWithSuffix(member.name)) {
      throw ConfigError(file + ": member '" + member.name +
                        "' is no array: its name does not end in .npy");
    }
    const std::string name = member.name.substr(0, member.name.size() - kSuffix.size());
    const std::size_t max_bytes = std::min(left, limits.max_array_bytes);
    const std::string content = ReadZipMember(bytes, member, file, max_bytes);
    NpyArray array = ParseNpy(content, ArrayPlace(file, name), max_bytes);
    left -= array.AnswerBytes();
    npz.arrays_.emplace(name, std::move(array));
  }
  return npz;
}

NpzFile ReadNpz(const std::string& path, const NpzLimits& limits) {
  return ParseNpz(ReadFile(path, limits.max_file_bytes), path, limits);
}

NpyArray ReadNpy(const std::string& path, const NpzLimits& limits) {
  const std::string bytes = ReadFile(path, limits.max_file_bytes);
  if (bytes.substr(0, 2) == "PK") {
    throw ConfigError(path + ": several arrays (.npz), expected a single one (.npy)");
  }
  return ParseNpy(bytes, path, limits.max_array_bytes);
}

std::string EncodeNpz(const std::vector<NpzEntry>& entries) {
  std::vector<ZipContent> contents;
  contents.reserve(entries.size());
  for (const NpzEntry& entry : entries) {
    contents.push_back({entry.name + std::string(kSuffix),
                        EncodeNpy(entry.shape, entry.values, entry.single_precision)});
  }
  return WriteZip(contents);
}

void WriteNpz(const std::string& path, const std::vector<NpzEntry>& entries) {
  WriteFileAtomically(path, EncodeNpz(entries));
}

}  // namespace silc
