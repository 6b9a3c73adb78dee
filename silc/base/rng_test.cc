// SPDX-License-Identifier: Apache-2.0
#include "silc/base/rng.h"

#include <gtest/gtest.h>

#include <cmath>

namespace silc {
namespace {

// Known answers published with the generator (Random123, kat_vectors: philox4x32-10).
TEST(Philox, MatchesThePublishedAnswers) {
  using Words = std::array<std::uint32_t, 4>;
  EXPECT_EQ(Philox({0, 0, 0, 0}, {0, 0}), (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(Philox({~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}),
            (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(Philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

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
