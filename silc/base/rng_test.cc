// SPDX-License-Identifier: Apache-2.0
#include "silc/base/rng.h"

#include <gtest/gtest.h>

#include <cmath>

namespace silc {
namespace {

TEST(Rng, StreamsAndStepsDiffer) {
  Rng a(1, 0, 0), same(1, 0, 0), stream(1, 1, 0), step(1, 0, 1), seed(2, 0, 0);
  const std::uint32_t bits = a.Bits();
  EXPECT_EQ(bits, same.Bits());
  EXPECT_NE(bits, stream.Bits());
  EXPECT_NE(bits, step.Bits());
  EXPECT_NE(bits, seed.Bits());
}

TEST(Rng, NormalHasItsMoments) {
  Rng rng(7);
  constexpr int kDraws = 200000;
  double m1 = 0, m2 = 0, m4 = 0;
  for (int i = 0; i < kDraws; ++i) {
    const double x = rng.Normal();
    ASSERT_TRUE(std::isfinite(x));
    m1 += x / kDraws;
    m2 += x * x / kDraws;
    m4 += x * x * x * x / kDraws;
  }
  // five standard errors: 1/√n, √(2/n), √(96/n)
  EXPECT_NEAR(m1, 0, 5 / std::sqrt(kDraws));
  EXPECT_NEAR(m2, 1, 5 * std::sqrt(2.0 / kDraws));
  EXPECT_NEAR(m4, 3, 5 * std::sqrt(96.0 / kDraws));
}

}  // namespace
}  // namespace silc
