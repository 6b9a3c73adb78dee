// SPDX-License-Identifier: Apache-2.0
#include "silc/eval/bootstrap.h"

#include <gtest/gtest.h>

#include <cmath>

#include "silc/base/rng.h"

namespace silc {
namespace {

// The promise of a 95 % interval: it covers the true mean in 95 of 100 experiments. Percentile
// intervals of 40 samples are known to fall a little short of it (93 to 94 % for the normal
// distribution, less for skewed ones); 300 experiments scatter by 1.4 %.
TEST(Bootstrap, CoversTheTrueMeanAsOftenAsItPromises) {
  constexpr int kRuns = 300, kSamples = 40;
  int normal = 0, skewed = 0;
  for (int run = 0; run < kRuns; ++run) {
    Rng rng(11, run);
    std::vector<double> a, b;
    for (int k = 0; k < kSamples; ++k) {
      a.push_back(5 + 2 * rng.Normal());
      b.push_back(-std::log(1 - rng.Uniform()));  // exponential, mean 1
    }
    const Interval ia = BootstrapMean(a, run), ib = BootstrapMean(b, run);
    normal += ia.low <= 5 && 5 <= ia.high;
    skewed += ib.low <= 1 && 1 <= ib.high;
  }
  EXPECT_GT(normal, 0.90 * kRuns);
  EXPECT_LT(normal, 0.98 * kRuns);
  EXPECT_GT(skewed, 0.86 * kRuns);
  EXPECT_LT(skewed, 0.98 * kRuns);
}

// Of normal samples the interval is the textbook's: mean ± 1.96 s/√n.
TEST(Bootstrap, AgreesWithTheTextbookOnNormalSamples) {
  Rng rng(5);
  std::vector<double> samples;
  double mean = 0, square = 0;
  constexpr int n = 400;
  for (int k = 0; k < n; ++k) samples.push_back(rng.Normal());
  for (const double s : samples) mean += s / n;
  for (const double s : samples) square += (s - mean) * (s - mean) / n;
  const double half = 1.96 * std::sqrt(square / n);
  const Interval interval = BootstrapMean(samples);
  // the 2.5 % quantile of 2000 resamples scatters by 6 % of the standard error
  EXPECT_NEAR(interval.low, mean - half, 0.1 * half);
  EXPECT_NEAR(interval.high, mean + half, 0.1 * half);
  const Interval again = BootstrapMean(samples);
  EXPECT_EQ(interval.low, again.low);
  EXPECT_EQ(interval.high, again.high);
}

TEST(Bootstrap, GroupsThatDifferWidenTheInterval) {
  Rng rng(6);
  std::vector<std::vector<double>> same(3), apart(3);
  for (int g = 0; g < 3; ++g) {
    for (int k = 0; k < 100; ++k) {
      const double x = rng.Normal();
      same[g].push_back(x);
      apart[g].push_back(x + 10 * g);
    }
  }
  const Interval narrow = BootstrapGroups(same), wide = BootstrapGroups(apart);
  EXPECT_LT(narrow.high - narrow.low, 0.6);  // six standard errors of 300 samples are 0.35
  // three of three groups alike happens in 1 of 9 resamples: both ends are groups' own means
  EXPECT_LT(wide.low, 1);
  EXPECT_GT(wide.high, 19);
}

TEST(Bootstrap, LeavesOutWhatIsNotFiniteAndSaysWhenTooMuchIs) {
  const std::vector<double> one = {1};
  EXPECT_TRUE(std::isnan(BootstrapMean(one).low));
  const std::vector<double> broken = {1, 2, NAN};
  EXPECT_TRUE(std::isnan(BootstrapMean(broken).high));
}

// Wilson 1927 by the textbook: 10 of 10 is [0.722, 1], 5 of 10 is [0.237, 0.763].
TEST(WilsonInterval, KnowsThatTenOfTenIsNotCertain) {
  EXPECT_NEAR(WilsonInterval(10, 10).low, 0.7225, 1e-4);
  EXPECT_EQ(WilsonInterval(10, 10).high, 1);
  EXPECT_NEAR(WilsonInterval(5, 10).low, 0.2366, 1e-4);
  EXPECT_NEAR(WilsonInterval(5, 10).high, 0.7634, 1e-4);
  EXPECT_EQ(WilsonInterval(0, 10).low, 0);
}

}  // namespace
}  // namespace silc
