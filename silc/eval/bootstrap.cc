// SPDX-License-Identifier: Apache-2.0
#include "silc/eval/bootstrap.h"

#include <algorithm>
#include <cmath>

#include "silc/base/check.h"
#include "silc/base/nan.h"
#include "silc/base/rng.h"

namespace silc {
namespace {

int DrawIndex(Rng* rng, int n) { return std::min(n - 1, static_cast<int>(rng->Uniform() * n)); }

// Order statistics, not interpolation: a settling time may be infinite.
Interval Middle(std::vector<double> values, int wanted) {
  std::erase_if(values, [](double v) { return std::isnan(v); });
  if (values.size() < 0.9 * wanted) return {kNan, kNan};
  std::sort(values.begin(), values.end());
  const auto at = [&](double p) {
    return values[std::lround(p * static_cast<double>(values.size() - 1))];
  };
  return {at(0.025), at(0.975)};
}

}  // namespace

Interval Bootstrap(int n,
                   const std::function<double(std::span<const int>)>& statistic,
                   std::uint64_t seed,
                   int resamples) {
  if (n < 2) return {kNan, kNan};
  std::vector<int> index(n);
  std::vector<double> values;
  values.reserve(resamples);
  for (int k = 0; k < resamples; ++k) {
    Rng rng(seed, 0x626f6f74, k);
    for (int& i : index) i = DrawIndex(&rng, n);
    values.push_back(statistic(index));
  }
  return Middle(std::move(values), resamples);
}

Interval BootstrapMean(std::span<const double> samples, std::uint64_t seed) {
  return Bootstrap(
      static_cast<int>(samples.size()),
      [&](std::span<const int> index) {
        double sum = 0;
        for (const int i : index) sum += samples[i];
        return sum / static_cast<double>(index.size());
      },
      seed);
}

Interval BootstrapGroups(const std::vector<std::vector<double>>& groups, std::uint64_t seed) {
  const int g = static_cast<int>(groups.size());
  if (g < 2) return g == 1 ? BootstrapMean(groups[0], seed) : Interval{kNan, kNan};
  std::vector<double> values;
  for (int k = 0; k < kResamples; ++k) {
    Rng rng(seed, 0x67726f75, k);
    double total = 0;
    for (int i = 0; i < g; ++i) {
      const std::vector<double>& group = groups[DrawIndex(&rng, g)];
      SILC_CHECK(!group.empty());
      double sum = 0;
      for (std::size_t j = 0; j < group.size(); ++j) {
        sum += group[DrawIndex(&rng, static_cast<int>(group.size()))];
      }
      total += sum / static_cast<double>(group.size());
    }
    values.push_back(total / g);
  }
  return Middle(std::move(values), kResamples);
}

Interval WilsonInterval(double k, double n) {
  SILC_CHECK(0 <= k && k <= n);
  if (n == 0) return {kNan, kNan};
  constexpr double z = 1.959964;  // the normal distribution's 97.5 %
  const double p = k / n, zz = z * z / n;
  const double centre = (p + zz / 2) / (1 + zz);
  const double half = z * std::sqrt(p * (1 - p) / n + zz / (4 * n)) / (1 + zz);
  return {k == 0 ? 0 : centre - half, k == n ? 1 : centre + half};
}

Interval GroupedShareInterval(std::span<const double> shares, std::uint64_t seed) {
  if (shares.empty()) return {kNan, kNan};
  const auto [least, most] = std::minmax_element(shares.begin(), shares.end());
  const auto n = static_cast<double>(shares.size());
  return *least == *most ? WilsonInterval(*least * n, n) : BootstrapMean(shares, seed);
}

}  // namespace silc
