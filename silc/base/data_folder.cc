// SPDX-License-Identifier: Apache-2.0
#include "silc/base/data_folder.h"

#include <filesystem>

namespace silc {

std::vector<std::string> DataFolders(const std::string& kind) {
  namespace fs = std::filesystem;
  std::vector<std::string> folders;
  const auto add = [&](const fs::path& root) {
    folders.push_back((root / kind).lexically_normal().string());
  };
  folders.push_back(kind.empty() ? "." : kind);
  add(SILC_SOURCE_DATA_DIR);
  std::error_code none;  // no /proc: the other places remain
  const fs::path program = fs::read_symlink("/proc/self/exe", none);
  if (!none) add(program.parent_path().parent_path() / "share/silc");
  add(SILC_INSTALLED_DATA_DIR);
  return folders;
}

}  // namespace silc
