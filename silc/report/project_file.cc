// SPDX-License-Identifier: Apache-2.0
#include "silc/report/project_file.h"

#include <filesystem>

#include "silc/base/data_folder.h"
#include "silc/base/error.h"

namespace silc {

std::string FindProjectFile(const std::string& relative_path) {
  namespace fs = std::filesystem;
  for (const std::string& folder : DataFolders("")) {
    const fs::path path = fs::path(folder) / relative_path;
    if (fs::is_regular_file(path)) return path.lexically_normal().string();
  }
  throw ConfigError(relative_path +
                    ": not found in this folder, the source tree or the installation\n"
                    "  Run silc from the folder of its checkout.");
}

}  // namespace silc
