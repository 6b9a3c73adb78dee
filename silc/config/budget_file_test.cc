// SPDX-License-Identifier: Apache-2.0
#include "silc/config/budget_file.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "silc/base/error.h"
#include "silc/base/file.h"
#include "silc/config/budget_json.h"
#include "silc/stiffness/test_support.h"

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

TEST(BudgetFile, AFileLargerThanAnyBudgetIsRefusedUnread) {
  const std::string path = (std::filesystem::path(::testing::TempDir()) / "large.yaml").string();
  WriteFileAtomically(path, "");
  std::filesystem::resize_file(path, kMaxYamlBytes + 1);
  try {
    ReadBudget(path);
    ADD_FAILURE() << "was read";
  } catch (const ConfigError& error) {
    EXPECT_EQ(error.what(), path + ": 16777217 bytes, more than the limit of 16777216");
  }
  std::filesystem::remove(path);
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

// Table I and the hands of the paper, typed in from it once, beside the mathematics, whose tests
// read no files. The bands and what a mode does with gravity are ours and not in there.
TEST(BudgetFile, KnowsThePapersModes) {
  for (const test::NamedBudget& mode : test::PaperModes()) {
    BudgetSpec spec = ReadBudget(mode.name).spec;
    spec.hand_floor = mode.spec.hand_floor;
    spec.gravity = mode.spec.gravity;
    EXPECT_EQ(spec, mode.spec) << mode.name;
  }
}

// What the modes were trained with, and what the user's example shows: all that is felt.
TEST(BudgetFile, TheModesHoldGravityAndTheExampleFollowsIt) {
  for (const char* name :
       {"high-stiff", "compliance", "hard-nullspace", "soft-hand", "hard-hand", "firm"}) {
    const UserBudget budget = ReadBudget(name);
    EXPECT_EQ(budget.name, name);
    EXPECT_EQ(budget.spec.gravity, Channel::kHeld) << name;
    EXPECT_EQ(budget.spec.torque, Channel::kFollowed) << name;
    EXPECT_EQ(budget.spec.condition, Condition::kDisc) << name;
    const bool hands = budget.spec.hand[0].has_value();
    EXPECT_EQ(budget.spec.hand_floor, Eigen::Vector3d(0, 0, hands ? 0.75 : 0)) << name;
  }
  EXPECT_EQ(ReadBudget("soft").spec.gravity, Channel::kFollowed);
}

TEST(BudgetMode, ChangesOneThingAndSaysSoInItsName) {
  BudgetSpec expected = ReadBudget("compliance").spec;
  expected.gravity = Channel::kFollowed;
  const UserBudget followed = ReadBudget("compliance,gravity=followed");
  EXPECT_EQ(followed.spec, expected);
  EXPECT_EQ(followed.name, "compliance,gravity=followed");
  EXPECT_EQ(ReadBudget(followed.name).spec, followed.spec) << "a name is a mode again";

  const BudgetSpec many =
      ReadBudget(
          "compliance,com=400,left_hand=1/2/3,right_hand=4,hand_floor=0/0/0.75,null_space=80,"
          "torque=held")
          .spec;
  EXPECT_EQ(*many.com, Eigen::Vector3d::Constant(400));
  EXPECT_EQ(*many.hand[0], Eigen::Vector3d(1, 2, 3));
  EXPECT_EQ(*many.hand[1], Eigen::Vector3d::Constant(4));
  EXPECT_EQ(many.hand_floor, Eigen::Vector3d(0, 0, 0.75));
  EXPECT_EQ(many.null_stiffness, 80);
  EXPECT_EQ(many.torque, Channel::kHeld);
  EXPECT_EQ(many.gravity, Channel::kHeld) << "what is not named stays";
  EXPECT_EQ(ReadBudget("compliance,hands=5,condition=two-sided").spec.condition,
            Condition::kTwoSided);
}

TEST(BudgetMode, ChangesAFile) {
  const std::string path = ::testing::TempDir() + "/mine.yaml";
  WriteFileAtomically(path, "null_space: {weight: gains, stiffness: 1}\n");
  const UserBudget budget = ReadBudget(path + ",null_space=0.5");
  EXPECT_EQ(budget.name, "mine,null_space=0.5");
  EXPECT_EQ(budget.spec.null_stiffness, 0.5);
  EXPECT_EQ(budget.spec.weight, NullWeight::kServo);
}

TEST(BudgetMode, MessagesSayWhatIsWrongAndWhatWasMeant) {
  const auto message = [](const std::string& mode) {
    try {
      ReadBudget(mode);
    } catch (const ConfigError& error) {
      return std::string(error.what());
    }
    return std::string("no error");
  };
  EXPECT_EQ(message(""),
            "--mode '': name a budget, as in --mode compliance, or give a file, as in --mode "
            "./soft.yaml");
  EXPECT_TRUE(message("complaince")
                  .starts_with("--mode complaince: no such budget; did you mean compliance?\n"));
  EXPECT_TRUE(message("complaince,gravity=held")
                  .starts_with("--mode complaince,gravity=held: no such budget; did you mean"));
  EXPECT_EQ(
      message("compliance,gravty=held"),
      "--mode compliance,gravty=held: 'gravty' is nothing of a budget; did you mean gravity?");
  EXPECT_EQ(message("compliance,gravity=hold"),
            "--mode compliance,gravity=hold: gravity: 'hold' is not a choice here; did you mean "
            "held?");
  EXPECT_EQ(message("compliance,condition=twosided"),
            "--mode compliance,condition=twosided: condition: 'twosided' is not a choice here; did "
            "you mean two-sided?");
  EXPECT_EQ(message("compliance,gravity"),
            "--mode compliance,gravity: gravity: has no value; a change is written gravity=VALUE");
  EXPECT_EQ(message("compliance,com=1/2"),
            "--mode compliance,com=1/2: com: takes one number for all axes, or three along x/y/z");
  EXPECT_EQ(message("compliance,com=1/2/x"), "--mode compliance,com=1/2/x: com: 'x' is no number");
  EXPECT_EQ(message("compliance,null_space=-1"),
            "--mode compliance,null_space=-1: null_space: -1 is outside [0.001, 1e+09]");
  EXPECT_EQ(message("compliance,hand_floor=0.5"),
            "--mode compliance,hand_floor=0.5: hand_floor: this budget names no hand");
  EXPECT_EQ(message("soft-hand,condition=two-sided"),
            "--mode soft-hand,condition=two-sided: hand_floor: only the disc condition (S7c) has a "
            "band with a floor");
  EXPECT_EQ(message("compliance,"),
            "--mode compliance,: '' is nothing of a budget; known: com, "
            "hands, left_hand, right_hand, hand_floor, null_space, torque, "
            "gravity, condition");
}

TEST(BudgetMode, IsToldInWords) {
  EXPECT_EQ(BudgetNumbers(ReadBudget("compliance").spec),
            "CoM 200/200/20000 N/m, null space 50 N·m/rad");
  EXPECT_EQ(BudgetTerms(ReadBudget("compliance").spec),
            "gravity held, torque followed, disc; hands' floor none");
  EXPECT_EQ(BudgetNumbers(ReadBudget("soft,right_hand=7").spec),
            "CoM 200/200/20000 N/m, left hand 200/200/200 N/m, right hand 7/7/7 N/m, null space "
            "0.5 × Kp");
  EXPECT_EQ(BudgetTerms(ReadBudget("soft-hand,torque=held,gravity=followed").spec),
            "gravity followed, torque held, disc; hands' floor 0/0/0.75");
}

TEST(BudgetFile, WrittenAndReadBack) {
  BudgetSpec spec;
  spec.com = Eigen::Vector3d(200.125, 1.0 / 3, 2e4);
  spec.hand[1] = Eigen::Vector3d(1, 2, 3e5);
  spec.weight = NullWeight::kServo;
  spec.null_stiffness = 0.7;
  spec.hand_floor = Eigen::Vector3d(0.1, 1.0 / 3, 0);
  spec.gravity = Channel::kHeld;
  const auto expect_same = [&] {
    EXPECT_EQ(ParseBudget(BudgetYaml(spec), "x.yaml").spec, spec);
    EXPECT_EQ(ParseBudget(BudgetJson(spec).dump(), "x.json").spec, spec);
  };
  expect_same();
  spec = {};
  spec.torque = Channel::kHeld;
  spec.condition = Condition::kOneSided;
  expect_same();
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
}

// Ranges in the place of numbers: the budget of a policy that is told its budget.
TEST(BudgetRanges, AreReadAndWrittenBack) {
  const UserBudget budget = ReadBudget("command");
  const auto& range = budget.spec.command.range;
  ASSERT_TRUE(budget.spec.IsCommanded() && range[kCommandCom] && range[kCommandHands]);
  EXPECT_EQ(*range[kCommandCom], (BudgetRange{200, 3000}));
  EXPECT_EQ(*range[kCommandHands], (BudgetRange{100, 1000}));
  EXPECT_EQ(*range[kCommandNull], (BudgetRange{20, 300}));
  EXPECT_EQ((*budget.spec.com)[2], 20000);
  EXPECT_EQ(budget.spec.gravity, Channel::kHeld);
  // numbers stand at the middle
  EXPECT_EQ(BudgetAt(budget.spec, MiddleOf(budget.spec.command)).com, budget.spec.com);
  EXPECT_EQ(ParseBudget(BudgetYaml(budget.spec), "x.yaml").spec, budget.spec);
  EXPECT_EQ(ParseBudget(BudgetJson(budget.spec).dump(), "x.json").spec, budget.spec);
  EXPECT_EQ(BudgetNumbers(budget.spec),
            "CoM 200..3000/200..3000/20000 N/m, hands 100..1000 N/m, null space 20..300 N·m/rad");
  // some of them alone
  const BudgetSpec some = ParseBudget(
                              "com: [200, 200, 20000]\nleft_hand: [1, 2, 3]\n"
                              "null_space: {weight: gains, from: 0.2, to: 2}\n",
                              "x.yaml")
                              .spec;
  EXPECT_FALSE(some.command.range[kCommandCom] || some.command.range[kCommandHands]);
  EXPECT_EQ(*some.command.range[kCommandNull], (BudgetRange{0.2, 2}));
  EXPECT_EQ(ParseBudget(BudgetYaml(some), "x.yaml").spec, some);
  EXPECT_EQ(BudgetNumbers(some),
            "CoM 200/200/20000 N/m, left hand 1/2/3 N/m, null space 0.2..2 × Kp");
}

TEST(BudgetRanges, AreChangedByTheMode) {
  const UserBudget felt = ReadBudget("command,com=600..3000,gravity=followed");
  EXPECT_EQ(felt.name, "command,com=600..3000,gravity=followed");
  EXPECT_EQ(*felt.spec.command.range[kCommandCom], (BudgetRange{600, 3000}));
  EXPECT_EQ(felt.spec.gravity, Channel::kFollowed);
  EXPECT_NEAR((*felt.spec.com)[0], std::sqrt(600 * 3000.0), 1e-9);
  // a number takes the place of a range, a range that of a number
  const BudgetSpec plain = ReadBudget("command,com=400/400/20000,hands=200,null_space=50").spec;
  EXPECT_FALSE(plain.IsCommanded());
  EXPECT_EQ(*plain.hand[1], Eigen::Vector3d::Constant(200));
  const BudgetSpec ranged = ReadBudget("compliance,hands=100..400").spec;
  EXPECT_EQ(*ranged.command.range[kCommandHands], (BudgetRange{100, 400}));
  EXPECT_EQ(*ranged.com, Eigen::Vector3d(200, 200, 20000));
}

TEST(BudgetRanges, MistakesSayWhereAndWhy) {
  EXPECT_NE(Message("com: {from: 200, to: 3000}\nnull_space: {weight: identity, stiffness: 5}\n")
                .find('z'),
            std::string::npos);
  EXPECT_NE(Message("hands: {from: 300, to: 30}\nnull_space: {weight: identity, stiffness: 5}\n")
                .find("hands: from: 300 is above to: 30; swap them"),
            std::string::npos);
  EXPECT_NE(Message("null_space: {weight: identity, from: 300}\n").find("to"), std::string::npos);
  const auto message = [](const std::string& mode) -> std::string {
    try {
      ReadPlainBudget(mode);
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "no error";
  };
  EXPECT_EQ(message("compliance"), "no error");
  EXPECT_EQ(message("command"),
            "--mode command: gives ranges, for a policy that is told its budget, and here one "
            "number each is needed\n  Say which, as in --mode "
            "command,com=775/775/20000,hands=316,null_space=77.");
  EXPECT_EQ(message("command,com=775/775/20000,hands=316,null_space=77"), "no error");
  // a number takes the place of a range; of two numbers, or two ranges, one is a slip
  EXPECT_EQ(message("command,com=200..900,com=400,hands=100,null_space=50"), "no error");
  EXPECT_EQ(message("compliance,com=400,com=300"),
            "--mode compliance,com=400,com=300: com: is there twice");
  EXPECT_EQ(message("compliance,com=1..2,gravity=held,com=1..3"),
            "--mode compliance,com=1..2,gravity=held,com=1..3: com: is there twice");
  EXPECT_EQ(message("compliance,com=400,com=1..3"),
            "--mode compliance,com=400,com=1..3: com: is there twice");
  EXPECT_EQ(message("command,com=9..3"), "--mode command,com=9..3: com: '9..3' is upside down");
  EXPECT_EQ(message("command,gravity=1..2"),
            "--mode command,gravity=1..2: gravity: takes no range; com, hands and null_space do");
  EXPECT_EQ(message("command,hands=1..b"), "--mode command,hands=1..b: hands: 'b' is no number");
}

}  // namespace
}  // namespace silc
