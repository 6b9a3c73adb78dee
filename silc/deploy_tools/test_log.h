// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace silc::test {

/// An array of all chunks of a log, one after the other; chunks without it are passed over. `width`
/// of its rows; 0: they are numbers.
std::vector<double> FromLog(const std::string& log, const std::string& name, int width = 0);

}  // namespace silc::test
