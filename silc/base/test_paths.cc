// SPDX-License-Identifier: Apache-2.0
#include "silc/base/test_paths.h"

namespace silc {
namespace {

std::string Below(const char* folder, const std::string& name) {
  return name.empty() ? folder : std::string(folder) + "/" + name;
}

}  // namespace

std::string SourcePath(const std::string& name) { return Below(SILC_SOURCE_DIR, name); }
std::string ReferencePath(const std::string& name) { return Below(SILC_REFERENCE_DIR, name); }

}  // namespace silc
