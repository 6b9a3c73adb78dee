// SPDX-License-Identifier: Apache-2.0
#include "silc/task/commands.h"

#include <gtest/gtest.h>

#include <cmath>

#include "silc/base/rng.h"

namespace silc {
namespace {

TEST(Draw, GivesTheWordsOfTheLibrarysGenerator) {
  Rng reference(0x123456789abcdefULL, 7, 42);
  Draw draw(0x123456789abcdefULL, 7, 42, DrawPurpose::kStartup);
  for (int i = 0; i < 11; ++i) EXPECT_EQ(draw.Bits(), reference.Bits()) << i;
}

TEST(Draw, PurposesRobotsStepsAndSeedsAreApart) {
  const auto first = [](std::uint64_t seed, std::uint32_t env, std::uint32_t step, DrawPurpose p) {
    return Draw(seed, env, step, p).Bits();
  };
  const auto a = first(1, 2, 3, DrawPurpose::kReset);
  EXPECT_EQ(a, first(1, 2, 3, DrawPurpose::kReset));
  EXPECT_NE(a, first(1, 2, 3, DrawPurpose::kNoise));
  EXPECT_NE(a, first(1, 2, 4, DrawPurpose::kReset));
  EXPECT_NE(a, first(1, 3, 3, DrawPurpose::kReset));
  EXPECT_NE(a, first(2, 2, 3, DrawPurpose::kReset));
}

TEST(Draw, StaysInsideItsRanges) {
  Draw draw(3, 0, 0, DrawPurpose::kReset);
  double mean = 0, exponential = 0;
  int counts[5] = {};
  constexpr int kDraws = 20000;
  for (int i = 0; i < kDraws; ++i) {
    const float u = draw.Uniform();
    ASSERT_GE(u, 0);
    ASSERT_LT(u, 1);
    mean += u;
    ++counts[draw.Index(5)];
    const float e = draw.Exponential();
    ASSERT_TRUE(std::isfinite(e) && e >= 0);
    exponential += e;
  }
  // standard errors: 0.29/√20000 = 0.002, 1/√20000 = 0.007, √(20000·0.16) = 57; five of each
  EXPECT_NEAR(mean / kDraws, 0.5, 0.01);
  EXPECT_NEAR(exponential / kDraws, 1, 0.035);
  for (const int c : counts) EXPECT_NEAR(c, kDraws / 5.0, 285);
}

TEST(Commands, HaveTheSharesAndRangesAskedFor) {
  TaskConfig::Commands c;
  constexpr int kDraws = 20000;
  int walks = 0, slow = 0, turned = 0;
  for (int i = 0; i < kDraws; ++i) {
    Draw draw(1, static_cast<std::uint32_t>(i), 0, DrawPurpose::kCommand);
    TaskCommand out;
    SampleCommand(c, 0.4f, draw, &out);
    const float speed = std::hypot(out.vx, out.vy);
    ASSERT_TRUE(speed == 0 || speed > 0.2f);
    ASSERT_LE(std::fabs(out.heading), 3.14f);
    ASSERT_EQ(out.waist[1], 0);
    ASSERT_EQ(out.waist[2], 0);
    if (out.walk == 1) {
      ++walks;
      slow += speed == 0;
      ASSERT_EQ(out.height, 0.75f);
      ASSERT_EQ(out.waist[0], 0);
    } else {
      ASSERT_EQ(speed, 0);
      turned += out.waist[0] != 0;
      ASSERT_LE(out.height, 0.75f);
      ASSERT_GE(out.height, 0.65f);  // 0.4 of the drop of 0.25
    }
  }
  // standard errors √(p(1 − p)/n): 0.0035, 0.0016, 0.0034; five of each
  EXPECT_NEAR(walks / double(kDraws), 0.6, 0.018);
  EXPECT_NEAR(slow / double(walks), 3.14159 * 0.04 / 4, 0.008);  // a disc of 0.2 in a square of 2
  EXPECT_NEAR(turned / double(kDraws - walks), 0.9, 0.017);
}

TEST(Commands, YawRateFollowsTheShorterWay) {
  TaskConfig::Commands c;
  TaskCommand command = {};
  command.walk = 1;
  command.heading = 3;
  UpdateYawRate(c, -3, &command);  // 6 rad to the left or 0.283 to the right
  EXPECT_NEAR(command.yaw_rate, -0.5f * 0.2831853f, 1e-6);
  UpdateYawRate(c, 0, &command);
  EXPECT_EQ(command.yaw_rate, 1);  // 1.5 clipped
  command.walk = 0;
  UpdateYawRate(c, 0, &command);
  EXPECT_EQ(command.yaw_rate, 0);
}

TEST(GaitClock, FeetTakeTurnsAndStandStillWhenStanding) {
  TaskConfig::Gait c;  // stance 0.55
  c.period = 0.8f;
  float phase = 0;
  int left = 0, right = 0, none = 0, both = 0;
  constexpr int kPeriods = 5, kSteps = 40;  // 0.8 s / 0.02 s
  for (int i = 0; i < kPeriods * kSteps; ++i) {
    const bool l = ExpectedContact(c, phase, 1, 0), r = ExpectedContact(c, phase, 1, 1);
    left += l;
    right += r;
    both += l && r;
    none += !l && !r;
    // half a period later the feet have changed places
    const float half = phase + 0.5f - std::floor(phase + 0.5f);
    if (std::fabs(half - 0.55f) > 1e-3 && std::fabs(phase - 0.55f) > 1e-3 && half > 1e-3) {
      EXPECT_EQ(ExpectedContact(c, half, 1, 0), r) << phase;
    }
    phase = AdvanceGait(c, phase, 1, 0.02f);
    ASSERT_GE(phase, 0);
    ASSERT_LT(phase, 1);
  }
  EXPECT_EQ(none, 0);
  EXPECT_NEAR(left, 0.55 * kPeriods * kSteps, kPeriods);
  EXPECT_NEAR(right, 0.55 * kPeriods * kSteps, kPeriods);
  EXPECT_NEAR(both, 0.10 * kPeriods * kSteps, 2 * kPeriods);
  EXPECT_EQ(AdvanceGait(c, 0.3f, 0, 0.02f), 0);
  EXPECT_TRUE(ExpectedContact(c, 0.7f, 0, 0) && ExpectedContact(c, 0.7f, 0, 1));
}

}  // namespace
}  // namespace silc
