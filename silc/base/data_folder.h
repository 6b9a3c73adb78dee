// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace silc {

/// Where files that come with silc may lie, `kind` being their place in the source tree
/// ("configs/tasks"; "" for its root): below the working folder, in the source tree, beside the
/// running program where it was installed (../share/silc), and where installing puts them by
/// default. In the order to look; none need exist.
std::vector<std::string> DataFolders(const std::string& kind);

}  // namespace silc
