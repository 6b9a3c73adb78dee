// SPDX-License-Identifier: Apache-2.0
#include "silc/physics/lanes.h"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

namespace silc::portable {
namespace {

using Real = Lanes<4>;

TEST(Lanes, SineAndCosineAreRightToFloatPrecision) {
  double worst = 0;
  for (int i = -200000; i <= 200000; ++i) {
    const float x = 0.005f * static_cast<float>(i) + 1e-4f;  // ±1000 rad
    Real s, c;
    SinCos(Real(x), &s, &c);
    worst = std::max(worst, std::abs(s.lane(2) - std::sin(static_cast<double>(x))));
    worst = std::max(worst, std::abs(c.lane(1) - std::cos(static_cast<double>(x))));
  }
  // two units in the last place of a number just below one
  EXPECT_LT(worst, 1.2e-7);
}

TEST(Lanes, CompareAndSelectLaneByLane) {
  Real a(1.0f), b(2.0f);
  a.set_lane(2, 5.0f);
  const LaneMask<4> less = a < b;
  const Real picked = Select(less, Real(10.0f), Real(20.0f));
  const float expected[4] = {10, 10, 20, 10};
  for (int l = 0; l < 4; ++l) EXPECT_EQ(picked.lane(l), expected[l]);
  EXPECT_TRUE(Any(less));
  EXPECT_FALSE(All(less));
  EXPECT_TRUE(All(less | Not(less)));
  EXPECT_FALSE(Any(less != less));
  EXPECT_EQ(Abs(Real(-3.0f)).lane(0), 3.0f);
  EXPECT_EQ(Sqrt(Real(9.0f)).lane(3), 3.0f);
}

// a NaN must reach the fault check and not turn into a limit on the way
TEST(Lanes, ClampKeepsNaN) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_TRUE(std::isnan(Clamp(Real(nan), Real(-1.0f), Real(1.0f)).lane(0)));
  EXPECT_TRUE(std::isnan(Clamp(nan, -1.0f, 1.0f)));
  EXPECT_EQ(Clamp(Real(3.0f), Real(-1.0f), Real(1.0f)).lane(0), 1.0f);
  EXPECT_EQ(Clamp(-3.0, -1.0, 1.0), -1.0);
}

}  // namespace
}  // namespace silc::portable
