// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace silc {

/// A 95 % confidence interval. NaN where there are fewer than two samples.
struct Interval {
  double low, high;
};

inline constexpr int kResamples = 2000;

/// Percentile bootstrap (Efron 1979) of any statistic of n independent units (episodes, trials):
/// units are drawn n times with replacement, `statistic` is given their indices, and the interval
/// is the middle 95 % of what it answers. Resamples in which it is NaN are left out; NaN when more
/// than one in ten are. The same seed gives the same interval.
Interval Bootstrap(int n,
                   const std::function<double(std::span<const int>)>& statistic,
                   std::uint64_t seed = 1,
                   int resamples = kResamples);

/// Of the mean.
Interval BootstrapMean(std::span<const double> samples, std::uint64_t seed = 1);

/// Of the mean of group means: groups (policies of different training seeds) are drawn with
/// replacement, and within each its samples.
Interval BootstrapGroups(const std::vector<std::vector<double>>& groups, std::uint64_t seed = 1);

/// Of a share, k of n: Wilson's score interval (1927). Resampling cannot tell 20 of 20 from
/// certainty, this can: [0.84, 1].
Interval WilsonInterval(double k, double n);

/// Of a share whose trials come in groups that have something in common: pushes from one start.
/// Groups are drawn with replacement. Where all have the same share there is nothing to draw from:
/// then Wilson's interval, a group counting as one trial. NaN without any.
/// @param shares  of each group, all of one size
Interval GroupedShareInterval(std::span<const double> shares, std::uint64_t seed = 1);

}  // namespace silc
