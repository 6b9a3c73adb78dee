// SPDX-License-Identifier: Apache-2.0
#include "silc/cli/output_path.h"

#include <fmt/format.h>

#include <filesystem>

#include "silc/base/error.h"

namespace silc {
namespace {

namespace fs = std::filesystem;

// The same file, or the same name where there is none yet.
bool IsSame(const std::string& a, const std::string& b) {
  std::error_code error;
  if (fs::equivalent(a, b, error)) return true;
  return fs::absolute(a).lexically_normal() == fs::absolute(b).lexically_normal();
}

void RequirePlace(const OutputPath& output) {
  const auto& [option, path] = output;
  const fs::path folder = fs::absolute(path).parent_path();
  std::error_code error;
  if (!fs::is_directory(folder, error)) {
    throw ConfigError(fmt::format("{} {}: there is no folder {}", option, path, folder.string()));
  }
  if (fs::is_directory(path, error)) {
    throw ConfigError(fmt::format("{} {}: is a folder, a file is wanted", option, path));
  }
}

}  // namespace

void RequireWritable(const std::vector<OutputPath>& outputs,
                     const std::vector<std::string>& inputs) {
  for (auto output = outputs.begin(); output != outputs.end(); ++output) {
    if (output->path.empty()) continue;
    RequirePlace(*output);
    for (const std::string& input : inputs) {
      if (input.empty() || !IsSame(input, output->path)) continue;
      throw ConfigError(fmt::format(
          "{} {}: is a file that is read here; name another", output->option, output->path));
    }
    for (auto other = outputs.begin(); other != output; ++other) {
      if (other->path.empty() || !IsSame(other->path, output->path)) continue;
      throw ConfigError(fmt::format("{} {}: is where {} is written; name another",
                                    output->option,
                                    output->path,
                                    other->option));
    }
  }
}

}  // namespace silc
