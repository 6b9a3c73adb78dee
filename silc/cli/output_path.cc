// SPDX-License-Identifier: Apache-2.0
#include "silc/cli/output_path.h"

#include <fmt/format.h>

#include <filesystem>

#include "silc/base/error.h"

namespace silc {

void RequireWritable(const std::string& option, const std::string& path) {
  if (path.empty()) return;
  const std::filesystem::path folder = std::filesystem::absolute(path).parent_path();
  std::error_code error;
  if (!std::filesystem::is_directory(folder, error)) {
    throw ConfigError(fmt::format("{} {}: there is no folder {}", option, path, folder.string()));
  }
  if (std::filesystem::is_directory(path, error)) {
    throw ConfigError(fmt::format("{} {}: is a folder, a file is wanted", option, path));
  }
}

}  // namespace silc
