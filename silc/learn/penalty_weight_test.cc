// SPDX-License-Identifier: Apache-2.0
#include "silc/learn/penalty.h"

#include <gtest/gtest.h>

#include <cmath>

#include "silc/learn/test_penalty.h"

namespace silc::penalty_test {
namespace {

TEST(PenaltyWeight, FollowsItsSchedule) {
  PenaltyConfig config;
  config.lambda = 2;
  config.start = 10;
  EXPECT_EQ(PenaltyWeight(config).Lambda(9), 0);
  EXPECT_EQ(PenaltyWeight(config).Lambda(10), 2);
  config.schedule = "ramp";
  config.ramp = 4;
  EXPECT_EQ(PenaltyWeight(config).Lambda(10), 0.5);
  EXPECT_EQ(PenaltyWeight(config).Lambda(99), 2);
}

TEST(PenaltyWeight, MultiplierRisesWhileViolatedAndFallsWhenTheTaskSuffers) {
  PenaltyConfig config;
  config.schedule = "multiplier";
  config.lambda = 0.1;
  config.score_reference = 10;
  PenaltyWeight weight(config);
  for (int i = 0; i < 50; ++i) weight.Follow(1.0, 9.5);
  const double risen = weight.Lambda(0);
  EXPECT_NEAR(risen, 0.1 * std::exp(50 * 0.02), 1e-9);  // never faster than its rate
  for (int i = 0; i < 100; ++i) weight.Follow(1.0, 2.0);
  EXPECT_LT(weight.Lambda(0), risen / 2);
  const double low = weight.Lambda(0);
  for (int i = 0; i < 200; ++i) weight.Follow(0.0, 9.5);
  EXPECT_LT(weight.Lambda(0), low);  // in budget: the weight is not needed
  weight.Follow(NAN, 1);
  EXPECT_TRUE(std::isfinite(weight.Lambda(0)));
}

TEST(PenaltyWeight, TheBoundClosesInWhileTheTaskIsFulfilledAndWaitsWhileItIsNot) {
  PenaltyConfig config;
  config.score_reference = 10;
  EXPECT_EQ(PenaltyWeight(config).Bound(), 1);
  config.bound_start = 20;
  config.bound_end = 0.9;
  config.bound_rate = 0.1;
  PenaltyWeight weight(config);
  for (int i = 0; i < 10; ++i) weight.Follow(0.01, 9.5);
  EXPECT_NEAR(weight.Bound(), 20 * std::exp(-1.0), 1e-9);
  for (int i = 0; i < 20; ++i) weight.Follow(0.01, 2.0);  // a few before the smoothed score is low
  const double open = weight.Bound();
  EXPECT_GT(open, 20 * std::exp(-1.0));
  EXPECT_LE(open, 20);
  // back in its task, and far behind its bound
  for (int i = 0; i < 100; ++i) weight.Follow(1.0, 9.5);
  EXPECT_LE(weight.Bound(), 20);
  EXPECT_GE(weight.Bound(), open) << "does not close in on a policy that does not follow";
  for (int i = 0; i < 100; ++i) weight.Follow(0.0, 9.5);
  EXPECT_NEAR(weight.Bound(), 0.9, 1e-9);
  EXPECT_EQ(weight.Lambda(0), config.lambda) << "a fixed λ does not listen";
}

}  // namespace
}  // namespace silc::penalty_test
