// SPDX-License-Identifier: Apache-2.0
#include "silc/task/budget_draw.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "silc/base/error.h"
#include "silc/task/loco_env.h"
#include "silc/task/test_layouts.h"

namespace silc {
namespace {

constexpr float kDt = 0.02f;  // [s]

BudgetCommand TestRanges() {
  BudgetCommand command;
  command.range = {BudgetRange{200, 3000}, BudgetRange{100, 1000}, BudgetRange{20, 300}};
  return command;
}

BudgetLimits TestLimits(int change_steps) {
  BudgetLimits limits = {};
  limits.used = true;
  for (int i = 0; i < kNumCommanded; ++i) {
    limits.low[i] = std::log(static_cast<float>(TestRanges().range[i]->low));
    limits.high[i] = std::log(static_cast<float>(TestRanges().range[i]->high));
  }
  limits.change_steps = change_steps;
  return limits;
}

using Command = std::array<float, kNumCommanded>;
Command At(const TaskConfig::BudgetCommand& c, const BudgetLimits& limits, BudgetKey key, int k) {
  Command u;
  DrawBudget(c, limits, key, k, kDt, u.data());
  return u;
}

// (B4): each number is uniform in its logarithm, and the three do not know of each other.
TEST(DrawBudget, IsLogUniformAndIndependent) {
  const BudgetLimits limits = TestLimits(0);
  constexpr int kEpisodes = 20000;
  std::array<std::vector<double>, kNumCommanded> share;
  double product[kNumCommanded] = {};
  for (std::uint32_t episode = 0; episode < kEpisodes; ++episode) {
    const Command u = At({}, limits, {7, episode % 50, episode}, 11);
    double centred[kNumCommanded];
    for (int i = 0; i < kNumCommanded; ++i) {
      share[i].push_back((u[i] - limits.low[i]) / (limits.high[i] - limits.low[i]));
      centred[i] = share[i].back() - 0.5;
    }
    for (int i = 0; i < kNumCommanded; ++i) {
      product[i] += centred[i] * centred[(i + 1) % kNumCommanded] / kEpisodes;
    }
  }
  for (int i = 0; i < kNumCommanded; ++i) {
    std::sort(share[i].begin(), share[i].end());
    EXPECT_GE(share[i].front(), -1e-6);
    EXPECT_LE(share[i].back(), 1 + 1e-6);
    // Kolmogorov and Smirnov: 1.95/√n is passed by one sound sample in a thousand
    double distance = 0;
    for (int n = 0; n < kEpisodes; ++n) {
      distance = std::max(distance, std::abs(share[i][n] - (n + 0.5) / kEpisodes));
    }
    EXPECT_LT(distance, 1.95 / std::sqrt(kEpisodes));
    // a product of two has a deviation of 1/12
    EXPECT_NEAR(product[i], 0, 4.0 / 12 / std::sqrt(kEpisodes));
  }
}

// (B5): within a piece a command stands still, or moves along a line that ends there; pieces are
// equally long. Both jumps and ramps occur, in the shares that the config asks for.
TEST(DrawBudget, ChangesByJumpsAndByRamps) {
  TaskConfig::BudgetCommand c;
  c.ramp_prob = 0.3f;
  c.ramp_min = 0.5f;
  c.ramp_max = 1;
  constexpr int kPiece = 100;
  const BudgetLimits limits = TestLimits(kPiece);
  int jumps = 0, ramps = 0;
  for (std::uint32_t episode = 1; episode <= 60; ++episode) {
    const BudgetKey key = {3, 4, episode};
    std::vector<Command> u;
    for (int k = 0; k < 1000; ++k) u.push_back(At(c, limits, key, k));
    // where pieces begin: the first step in which a command is not that of the step before
    int first = 1;
    while (u[first] == u[0]) ++first;
    // a ramp stands at the old command in its first step
    for (int begin = first % kPiece; begin + kPiece < 1000; begin += kPiece) {
      int last = begin;  // the last step in which it moves
      for (int k = begin; k < begin + kPiece - 1; ++k) {
        if (u[k] != u[k - (k > 0)]) last = k;
      }
      if (last <= begin) {
        ++jumps;
        continue;
      }
      ++ramps;
      EXPECT_GE(last - begin, 0.5 / kDt - 2);
      EXPECT_LE(last - begin, 1.0 / kDt + 1);
      for (int i = 0; i < kNumCommanded; ++i) {
        const double slope = u[begin + 2][i] - u[begin + 1][i];
        for (int k = begin + 1; k + 1 < last; ++k) {
          EXPECT_NEAR(u[k + 1][i] - u[k][i], slope, 1e-5) << "not a line";
        }
      }
    }
  }
  EXPECT_NEAR(ramps / double(ramps + jumps), 0.3, 0.08) << ramps << " of " << ramps + jumps;
}

TEST(DrawBudget, StaysForAnEpisodeWithoutChanges) {
  const BudgetLimits limits = TestLimits(0);
  EXPECT_EQ(At({}, limits, {1, 2, 3}, 0), At({}, limits, {1, 2, 3}, 999));
  EXPECT_NE(At({}, limits, {1, 2, 3}, 0), At({}, limits, {1, 2, 4}, 0));
  EXPECT_NE(At({}, limits, {1, 2, 3}, 0), At({}, limits, {1, 5, 3}, 0));
}

ObservationLayout CommandedLayout() {
  ObservationLayout layout = ShippedLayout();
  AddBudgetTerms(TestRanges(), &layout);
  return layout;
}

// The newest frame says the command that DrawBudget() gives, scaled to ±1 (B3). All else that a
// robot sees and does is what it is without a command: its draws are its own.
TEST(BudgetTerms, ShowTheCommandAndChangeNothingElse) {
  constexpr int kRobots = 3, kFrame = 131, kFrames = 5;
  TaskConfig config;
  config.budget_command.change = 0.4f;
  config.budget_command.ramp_min = 0.1f;
  config.budget_command.ramp_max = 0.3f;
  LocoEnv with({.config = config,
                .layout = CommandedLayout(),
                .num_envs = kRobots,
                .seed = 5,
                .samples = true,
                .budget = TestRanges()});
  LocoEnv without({.config = config, .num_envs = kRobots, .seed = 5, .samples = true});
  ASSERT_EQ(with.obs_width(), kFrames * (kFrame + 3));
  ASSERT_EQ(without.obs_width(), kFrames * kFrame);
  const BudgetLimits limits = TestLimits(20);
  std::vector<float> actions(kRobots * with.robot().num_joints, 0.05f);
  int moved = 0, resets = 0;
  std::vector<Command> before(kRobots);
  std::vector<std::uint32_t> episode(kRobots, 0);
  for (std::uint32_t step = 1; step < 200; ++step) {
    // robots that lean on nothing fall: episodes end in this test
    for (float& a : actions) a = step % 60 > 30 ? 2.0f : 0.05f;
    const LocoStep a = with.Step(actions), b = without.Step(actions);
    ASSERT_TRUE(std::equal(a.reward.begin(), a.reward.end(), b.reward.begin()));
    ASSERT_TRUE(std::equal(a.jacobian.begin(), a.jacobian.end(), b.jacobian.begin()));
    for (int robot = 0; robot < kRobots; ++robot) {
      const float* own = &a.obs[robot * with.obs_width()];
      const float* plain = &b.obs[robot * without.obs_width()];
      for (int frame = 0; frame < kFrames; ++frame) {
        for (int i = 0; i < kFrame; ++i) {
          ASSERT_EQ(own[frame * (kFrame + 3) + i], plain[frame * kFrame + i]);
        }
      }
      if (a.flag[robot] != kRunning) {
        episode[robot] = step;
        ++resets;
      }
      const EnvState& state = with.state(robot);
      const Command u = At(config.budget_command,
                           limits,
                           {5, static_cast<std::uint32_t>(robot), episode[robot]},
                           state.k);
      const float* newest = own + (kFrames - 1) * (kFrame + 3) + kFrame;
      for (int i = 0; i < kNumCommanded; ++i) {
        const BudgetRange range = *TestRanges().range[i];
        const double middle = std::log(range.Middle()), half = std::log(range.high) - middle;
        EXPECT_NEAR(newest[i], (u[i] - middle) / half, 1e-5);
        EXPECT_LE(std::abs(newest[i]), 1 + 1e-5);
      }
      moved += u != before[robot];
      before[robot] = u;
    }
  }
  EXPECT_GT(resets, 0) << "no episode ended: the test would not see a new one's draws";
  EXPECT_GT(moved, 30) << "the commands stood still";
}

std::string SetupMessage(const ObservationLayout& layout, const BudgetCommand& command) {
  try {
    MakeLocoSetup({.layout = layout, .budget = command});
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no error";
}

TEST(BudgetTerms, AndRangesMustFit) {
  EXPECT_EQ(SetupMessage(CommandedLayout(), TestRanges()), "no error");
  EXPECT_NE(SetupMessage(CommandedLayout(), {})
                .find("terms.budget_com: the budget has no range "
                      "for 'com' to draw commands from"),
            std::string::npos);
  EXPECT_NE(SetupMessage(ShippedLayout(), TestRanges())
                .find("terms.budget_com: is missing: the budget has a range that the policy must "
                      "be told"),
            std::string::npos);
  ObservationLayout clipped = CommandedLayout();
  clipped.terms.back().clip = 0.5;
  EXPECT_NE(SetupMessage(clipped, TestRanges()).find("a clip would hide the ends of the range"),
            std::string::npos);
  ObservationLayout twice = CommandedLayout();
  twice.terms.push_back(twice.terms.back());
  twice.terms.back().name = "again";
  EXPECT_NE(SetupMessage(twice, TestRanges()).find("terms.again: this number of the budget is"),
            std::string::npos);
}

}  // namespace
}  // namespace silc
