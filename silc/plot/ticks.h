// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace silc::plot {

/// Values a person would mark on an axis from low to high: multiples of 1, 2 or 5 times a power of
/// ten, at most max_count of them, all inside [low, high].
std::vector<double> LinearTicks(double low, double high, int max_count);

/// The same on a logarithmic axis, 0 < low < high: powers of ten, with 2 and 5 between them when
/// there is room.
std::vector<double> LogTicks(double low, double high, int max_count);

/// The shortest text that tells a tick from its neighbours: "0.5", "200", "2e4".
std::string TickLabel(double value);

}  // namespace silc::plot
