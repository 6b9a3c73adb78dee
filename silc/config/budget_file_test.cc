// SPDX-License-Identifier: Apache-2.0
#include "silc/config/budget_file.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "silc/base/error.h"
#include "silc/base/test_paths.h"

namespace silc {
namespace {

std::string Message(const std::string& text) {
  try {
    ParseBudget(text, "soft.yaml");
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no error";
}

TEST(BudgetFile, ReadsEveryKey) {
  const UserBudget budget = ParseBudget(
      "com: [200, 300, 2e4]\nhands: [1, 2, 3]\nhand_floor: [0, 0.5, 0.75]\n"
      "null_space: {weight: gains, stiffness: 0.5}\nchannels: {torque: held, gravity: held}\n"
      "condition: disc\n",
      "configs/soft.yaml");
  EXPECT_EQ(budget.name, "soft");
  EXPECT_EQ(*budget.spec.com, Eigen::Vector3d(200, 300, 2e4));
  EXPECT_EQ(*budget.spec.hand[0], Eigen::Vector3d(1, 2, 3));
  EXPECT_EQ(*budget.spec.hand[1], Eigen::Vector3d(1, 2, 3));
  EXPECT_EQ(budget.spec.weight, NullWeight::kServo);
  EXPECT_EQ(budget.spec.null_stiffness, 0.5);
  EXPECT_EQ(budget.spec.hand_floor, Eigen::Vector3d(0, 0.5, 0.75));
  EXPECT_EQ(budget.spec.torque, Channel::kHeld);
  EXPECT_EQ(budget.spec.gravity, Channel::kHeld);
  EXPECT_EQ(budget.spec.condition, Condition::kDisc);
}

// What a file does not say: everything that is sensed is followed, no floor, the sound condition.
TEST(BudgetFile, KeysLeftOutHaveDefaults) {
  const BudgetSpec spec =
      ParseBudget("null_space: {weight: identity, stiffness: 50}\n", "x.yaml").spec;
  EXPECT_EQ(spec.torque, Channel::kFollowed);
  EXPECT_EQ(spec.gravity, Channel::kFollowed);
  EXPECT_EQ(spec.condition, Condition::kDisc);
  EXPECT_FALSE(spec.HasFloor());
}

TEST(BudgetFile, OneHandAlone) {
  const UserBudget budget = ParseBudget(
      "left_hand: [1, 2, 3]\nnull_space: {weight: identity, stiffness: 50}\n", "x.yaml");
  EXPECT_FALSE(budget.spec.com);
  EXPECT_TRUE(budget.spec.hand[0]);
  EXPECT_FALSE(budget.spec.hand[1]);
}

// Table I of the paper, typed in from it.
TEST(BudgetFile, KnowsThePapersModes) {
  const auto expect = [](const char* name, double horizontal, double null_stiffness, double hand) {
    const BudgetSpec spec = ReadBudget(name).spec;
    EXPECT_EQ(*spec.com, Eigen::Vector3d(horizontal, horizontal, 20000)) << name;
    EXPECT_EQ(spec.null_stiffness, null_stiffness) << name;
    EXPECT_EQ(spec.weight, NullWeight::kIdentity) << name;
    EXPECT_EQ(spec.hand[0].has_value(), hand > 0) << name;
    if (hand > 0) {
      EXPECT_EQ(*spec.hand[0], Eigen::Vector3d::Constant(hand)) << name;
    }
  };
  expect("high-stiff", 1000, 100, 0);
  expect("compliance", 200, 50, 0);
  expect("hard-nullspace", 200, 500, 0);
  expect("soft-hand", 200, 50, 200);
  expect("hard-hand", 200, 50, 1000);
}

// The files a user looks at and copies say what the program has built in.
TEST(BudgetFile, EveryModeShipsAsAFile) {
  for (const NamedBudget& mode : PaperModes()) {
    std::string stem = mode.name;
    std::replace(stem.begin(), stem.end(), '-', '_');
    const BudgetSpec spec = ReadBudget(SourcePath("configs/budgets/") + stem + ".yaml").spec;
    EXPECT_EQ(spec.com, mode.spec.com) << mode.name;
    EXPECT_EQ(spec.hand, mode.spec.hand) << mode.name;
    EXPECT_EQ(spec.weight, mode.spec.weight) << mode.name;
    EXPECT_EQ(spec.null_stiffness, mode.spec.null_stiffness) << mode.name;
    EXPECT_EQ(ReadBudget(mode.name).name, mode.name);
  }
}

TEST(BudgetFile, WrittenAndReadBack) {
  BudgetSpec spec;
  spec.com = Eigen::Vector3d(200.125, 1.0 / 3, 2e4);
  spec.hand[1] = Eigen::Vector3d(1, 2, 3e5);
  spec.weight = NullWeight::kServo;
  spec.null_stiffness = 0.7;
  spec.hand_floor = Eigen::Vector3d(0.1, 1.0 / 3, 0);
  spec.gravity = Channel::kHeld;
  EXPECT_EQ(ParseBudget(BudgetYaml(spec), "x.yaml").spec, spec);
  spec = {};
  spec.torque = Channel::kHeld;
  spec.condition = Condition::kOneSided;
  EXPECT_EQ(ParseBudget(BudgetYaml(spec), "x.yaml").spec, spec);
}

TEST(BudgetFile, MessagesSayWhereAndWhy) {
  EXPECT_EQ(Message("com: [1, 2]\nnull_space: {weight: gains, stiffness: 1}\n"),
            "soft.yaml:1: com: must be three numbers, N/m along x, y, z");
  EXPECT_EQ(Message("com: [1, 2, -3]\nnull_space: {weight: gains, stiffness: 1}\n"),
            "soft.yaml:1: com[2]: -3 is outside [0.001, 1e+09]");
  EXPECT_EQ(Message("com: [1, 2, 3]\n"), "soft.yaml:1: 'null_space' is missing");
  EXPECT_EQ(Message("comm: [1, 2, 3]\nnull_space: {weight: gains, stiffness: 1}\n"),
            "soft.yaml:1: comm: unknown key; did you mean com?");
  EXPECT_EQ(
      Message(
          "hands: [1, 2, 3]\nleft_hand: [1, 2, 3]\nnull_space: {weight: gains, stiffness: 1}\n"),
      "soft.yaml:1: hands: is for both hands; drop it, or left_hand and right_hand");
  const std::string rest = "null_space: {weight: gains, stiffness: 1}\n";
  EXPECT_EQ(Message("channels: {gravity: hold}\n" + rest),
            "soft.yaml:1: channels.gravity: 'hold' is not a choice here; did you mean held?");
  EXPECT_EQ(Message("hands: [1, 2, 3]\nhand_floor: [0, 0, 1]\n" + rest),
            "soft.yaml:2: hand_floor[2]: 1 is outside [0, 0.99]");
  EXPECT_EQ(Message("hand_floor: [0, 0, 0.5]\n" + rest),
            "soft.yaml:1: hand_floor: this budget names no hand");
  EXPECT_EQ(Message("hands: [1, 2, 3]\nhand_floor: [0, 0, 0.5]\ncondition: two-sided\n" + rest),
            "soft.yaml:1: hand_floor: only the disc condition (S7c) has a band with a floor");
  try {
    ReadBudget("complaince");
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_TRUE(std::string(error.what())
                    .starts_with("--mode complaince: no such budget; did you mean compliance?"));
  }
}

}  // namespace
}  // namespace silc
