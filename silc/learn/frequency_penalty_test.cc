// SPDX-License-Identifier: Apache-2.0
#include "silc/learn/frequency_penalty.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include "silc/learn/test_penalty.h"
#include "silc/stiffness/frequency_condition.h"

namespace silc::penalty_test {
namespace {

// (S12) and (S13) of a batch are those of silc/stiffness, sample by sample, in every contact mode,
// with and without a floor and a latency of more than a period.
TEST(PenaltyValue, FrequenciesAreTheTwinOfStiffness) {
  for (const double latency : {0.0, 0.005, 0.03}) {
    World world;
    if (latency > 0) world.SetFloor({0.1, 0, 0.3});
    const LoopTiming timing = {0.02, latency};
    const std::vector<double> hz = {0, 1, 3, 5};
    world.config.loop_gain_limit = 1e6;
    world.config.damping_weight = 0.7;
    const double at_rest = StaticPenalty(world.Run(), world.config).value.item<double>();
    world.SetFrequencies(hz, timing);
    const PenaltyResult result = StaticPenalty(world.Run(), world.config);
    double expected = 0;
    for (int i = 0; i < kBatch; ++i) {
      BudgetCoordinates coordinates;
      ASSERT_EQ(MakeBudgetCoordinates(world.spec, world.servo, world.contact[i], &coordinates),
                StiffnessStatus::kOk);
      double sigma = 0, driving = -1e9;
      for (const double f : {1.0, 3.0, 5.0}) {
        const double omega = 2 * std::numbers::pi * f;
        const FrequencyReading reading =
            ReadAtFrequency(world.Dynamic(i, timing, omega), world.servo, omega, coordinates);
        sigma = std::max(sigma, reading.sigma);
        driving = std::max(driving, reading.driving);
        expected += std::pow(std::max(0.0, reading.sigma - 1), 2) / 3 / kBatch;
        expected += 0.7 * std::pow(std::max(0.0, reading.driving), 2) / 3 / kBatch;
      }
      // by 1024 steps of the power method: a few digits where two values are close
      EXPECT_NEAR(result.frequency_sigma[i].item<double>(), sigma, 1e-4 * sigma)
          << latency << " " << i;
      // in a closed chain the forbidden directions count as 0
      const double shown = world.contact[i].closed ? std::max(driving, 0.0) : driving;
      EXPECT_NEAR(result.frequency_driving[i].item<double>(), shown, 1e-3 * (1 + std::abs(shown)))
          << latency << " " << i;
    }
    EXPECT_GT(expected, 1e-3);
    EXPECT_NEAR(result.value.item<double>() - at_rest, expected, 1e-3 * expected) << latency;
    // the static σ is what it was
    world.input.channels.frequencies.clear();
    EXPECT_TRUE(at::equal(result.sigma, StaticPenalty(world.Run(), world.config).sigma));
  }
}

TEST(PenaltyGradient, SilcAtFrequencies) {
  World world;
  world.config.damping_weight = 0.5;
  world.SetFrequencies({1, 5}, {0.02, 0.004});
  const double with = StaticPenalty(world.Run(), world.config).value.item<double>();
  world.config.damping_weight = 0;
  const double undamped = StaticPenalty(world.Run(), world.config).value.item<double>();
  ASSERT_GT(with - undamped, 1e-3);
  world.config.damping_weight = 0.5;
  CheckGradient(&world, [&](const PenaltyInput& in) {
    // the frequencies alone: what is left of the value without the static part and the loop
    PenaltyResult moving;
    moving.value = at::zeros({}, at::kDouble);
    moving.surrogate = at::zeros({}, at::kDouble);
    AddFrequencyPenalty(in, world.config, in.budget.ok, &moving);
    return moving;
  });
}

}  // namespace
}  // namespace silc::penalty_test
