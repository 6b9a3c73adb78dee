// SPDX-License-Identifier: Apache-2.0
#include "silc/plot/ticks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "silc/base/check.h"

namespace silc::plot {

std::vector<double> LinearTicks(double low, double high, int max_count) {
  SILC_CHECK(low < high && max_count >= 2);
  // the smallest round step that does not give too many; at most a few tries, each 2 or 2.5 times
  // wider
  double step = std::pow(10.0, std::floor(std::log10((high - low) / max_count)));
  const double factors[] = {1, 2, 5, 10, 20};
  for (const double factor : factors) {
    const double first = std::ceil(low / (step * factor) - 1e-9);
    const double last = std::floor(high / (step * factor) + 1e-9);
    if (last - first + 1 > max_count) continue;
    std::vector<double> ticks;
    for (int i = 0; i <= static_cast<int>(last - first); ++i) {
      const double k = first + i;
      // −0 would print as "-0"
      ticks.push_back(k == 0 ? 0.0 : k * step * factor);
    }
    return ticks;
  }
  return {low, high};
}

std::vector<double> LogTicks(double low, double high, int max_count) {
  SILC_CHECK(0 < low && low < high && max_count >= 2);
  const int first = static_cast<int>(std::floor(std::log10(low)));
  const int last = static_cast<int>(std::ceil(std::log10(high)));
  const auto collect = [&](const std::vector<double>& mantissas, int stride) {
    std::vector<double> ticks;
    for (int decade = first; decade <= last; decade += stride) {
      for (const double mantissa : mantissas) {
        const double value = mantissa * std::pow(10.0, decade);
        if (value >= low * (1 - 1e-9) && value <= high * (1 + 1e-9)) ticks.push_back(value);
      }
    }
    return ticks;
  };
  std::vector<double> ticks = collect({1, 2, 5}, 1);
  for (int stride = 1; static_cast<int>(ticks.size()) > max_count; ++stride) {
    ticks = collect({1}, stride);
  }
  return ticks;
}

std::string TickLabel(double value) {
  std::string text = fmt::format("{:.4g}", value);
  // 2e+04 reads better as 2e4
  const auto exponent = text.find('e');
  if (exponent != std::string::npos) {
    text = text.substr(0, exponent) + "e" + std::to_string(std::stoi(text.substr(exponent + 1)));
  }
  return text;
}

}  // namespace silc::plot
