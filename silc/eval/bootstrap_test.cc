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

// Eight pushes from one start that fare alike are one piece of evidence and not eight: counted as
// eight, they promise too much. Pushes that do not hang together lose little by it.
TEST(GroupedShareInterval, CoversWhereTrialsOfAGroupFareAlike) {
  constexpr int kRuns = 300, kGroups = 40, kEach = 8;
  for (const bool alike : {true, false}) {
    int covered = 0, covered_by_wilson = 0;
    for (int run = 0; run < kRuns; ++run) {
      Rng rng(12, run);
      constexpr double kShare = 0.4;
      std::vector<double> shares;
      int fallen = 0;
      for (int g = 0; g < kGroups; ++g) {
        const double fate = rng.Uniform();
        int of_group = 0;
        for (int k = 0; k < kEach; ++k) of_group += (alike ? fate : rng.Uniform()) < kShare;
        fallen += of_group;
        shares.push_back(double(of_group) / kEach);
      }
      const Interval grouped = GroupedShareInterval(shares, run);
      const Interval wilson = WilsonInterval(fallen, kGroups * kEach);
      covered += grouped.low <= kShare && kShare <= grouped.high;
      covered_by_wilson += wilson.low <= kShare && kShare <= wilson.high;
    }
    EXPECT_GT(covered, 0.90 * kRuns) << alike;
    EXPECT_LT(covered, 0.99 * kRuns) << alike;
    if (alike) {
      EXPECT_LT(covered_by_wilson, 0.7 * kRuns) << "why groups have to be drawn";
    }
  }
}

// Groups that are all the same leave nothing to resample, and are no certainty.
TEST(GroupedShareInterval, AllAlikeIsNotCertain) {
  const std::vector<double> none(20, 0.0), quarter(20, 0.25), one = {0.5};
  EXPECT_EQ(GroupedShareInterval(none).low, 0);
  EXPECT_NEAR(GroupedShareInterval(none).high, WilsonInterval(0, 20).high, 1e-12);
  EXPECT_NEAR(GroupedShareInterval(quarter).low, WilsonInterval(5, 20).low, 1e-12);
  EXPECT_NEAR(GroupedShareInterval(quarter).high, WilsonInterval(5, 20).high, 1e-12);
  EXPECT_LT(GroupedShareInterval(one).low, 0.2) << "one group says next to nothing";
  EXPECT_TRUE(std::isnan(GroupedShareInterval({}).low));
}

}  // namespace
}  // namespace silc
