// SPDX-License-Identifier: Apache-2.0
#include "silc/cli/layout_option.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "silc/policy/layout_file.h"

namespace silc {

std::string LayoutHelp(const std::string& purpose, const std::string& otherwise) {
  return fmt::format("{}: {}, or a YAML file [{}]",
                     purpose,
                     fmt::join(LayoutNames(LayoutFolders()), ", "),
                     otherwise);
}

}  // namespace silc
