// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace silc {

/// The help of --layout, the same in every verb: the layouts that go by name are those of the
/// folders. `purpose` begins it, `otherwise` says what holds where the option is left out.
std::string LayoutHelp(const std::string& purpose, const std::string& otherwise);

}  // namespace silc
