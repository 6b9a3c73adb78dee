// SPDX-License-Identifier: Apache-2.0
#include "silc/config/policy_budget.h"

#include <gtest/gtest.h>

#include "silc/base/error.h"

namespace silc {
namespace {

// What a policy carries is what it is judged by, whatever the file of that name says by now.
// The paper's method bounds K₁ by (S7a), and its policies are judged on K_s all the same: that is
// said, with the limit where the file has one. What was trained as it is judged needs no word.
TEST(TrainedOtherwise, SaysWhatWasBoundedInstead) {
  const BudgetSpec disc = ReadBudget("compliance").spec;
  const BudgetSpec two_sided = ReadBudget("compliance,condition=two-sided").spec;
  TrainingNotes notes;
  notes.method = "silc-paper";
  EXPECT_EQ(TrainedOtherwise(notes, disc), "trained by (S7a) on K₁");
  notes.bound = "4";
  EXPECT_EQ(TrainedOtherwise(notes, disc), "trained by (S7a) on K₁ at limit 4");
  notes.method = "silc";
  EXPECT_EQ(TrainedOtherwise(notes, disc), "");
  EXPECT_EQ(TrainedOtherwise(notes, two_sided), "trained by (S7c) on K_s at limit 4");
  notes.method = "alcp";
  EXPECT_EQ(TrainedOtherwise(notes, two_sided), "");
}

TEST(PolicyBudget, IsTheOneInsideTheFile) {
  UserBudget mine = ReadBudget("compliance,com=123,gravity=followed");
  mine.name = "compliance";
  TrainingNotes notes;
  notes.method = "silc";
  PutBudget(mine, &notes);
  Metadata metadata;
  WriteNotes(notes, &metadata);

  const PolicyBudget found = BudgetOfPolicy(TrainingNotesOf(metadata), "a.onnx");
  EXPECT_EQ(found.budget.spec, mine.spec);
  EXPECT_NE(found.budget.spec, ReadBudget("compliance").spec);
  EXPECT_EQ(found.budget.name, "compliance");
  EXPECT_TRUE(found.own);
  EXPECT_EQ(found.warning, "");
}

// A name silc does not know is a label and nothing else, once the numbers are there.
TEST(PolicyBudget, OfOnesOwnNeedsNoFile) {
  UserBudget mine = ReadBudget("soft");
  mine.name = "never-heard-of";
  TrainingNotes notes;
  PutBudget(mine, &notes);
  EXPECT_EQ(BudgetOfPolicy(notes, "a.onnx").budget.spec, mine.spec);
  EXPECT_EQ(BudgetOfPolicy(notes, "a.onnx").budget.name, "never-heard-of");
}

TEST(PolicyBudget, ANameAloneIsTakenWithAWarning) {
  const Metadata old = {{"silc_method", "silc"}, {"silc_mode", "high-stiff"}};
  Metadata old_held = old;
  old_held["silc_gravity"] = "held";
  for (const bool held : {false, true}) {
    const PolicyBudget found = BudgetOfPolicy(TrainingNotesOf(held ? old_held : old), "a.onnx");
    BudgetSpec expected = ReadBudget("high-stiff").spec;
    expected.gravity = held ? Channel::kHeld : Channel::kFollowed;
    EXPECT_EQ(found.budget.spec, expected);
    EXPECT_TRUE(found.own);
    EXPECT_EQ(found.warning,
              std::string("a.onnx: carries the name of its budget but not its numbers; judged by "
                          "'high-stiff' as silc has it now, gravity ") +
                  (held ? "held" : "followed") +
                  "\n  silc export IN.onnx OUT.onnx --mode MODE writes the numbers into a file.");
  }
}

TEST(PolicyBudget, IsTheDefaultWhereThereIsNone) {
  const PolicyBudget found =
      BudgetOfPolicy(TrainingNotesOf({{"silc_method", "lcp"}, {"silc_mode", "soft"}}), "a.onnx");
  EXPECT_EQ(found.budget.spec, ReadBudget(kDefaultMode).spec);
  EXPECT_EQ(found.budget.name, kDefaultMode);
  EXPECT_FALSE(found.own);
  EXPECT_EQ(found.warning, "");
}

TEST(PolicyBudget, WhatCannotBeReadIsNamed) {
  const auto message = [](const TrainingNotes& notes) {
    try {
      BudgetOfPolicy(notes, "a.onnx");
    } catch (const ConfigError& error) {
      return std::string(error.what());
    }
    return std::string("no error");
  };
  TrainingNotes unknown;
  unknown.mode = "my-own";
  EXPECT_EQ(message(unknown),
            "a.onnx: was trained under a budget 'my-own' that does not come with silc, and does "
            "not carry its numbers: give its file, or another budget, by --mode");
  TrainingNotes torn;
  torn.budget = "com: [1, 2\n";
  EXPECT_TRUE(message(torn).starts_with("a.onnx, silc_budget:")) << message(torn);
}

TrainingNotes CommandedNotes(const std::string& mode = "command") {
  TrainingNotes notes;
  notes.method = "silc";
  PutBudget(ReadBudget(mode), &notes);
  return notes;
}

// What a commanded policy is told and what it is judged by are one: the user's numbers, and the
// middle of the ranges where there are none. The name is one that --mode takes.
TEST(PolicyBudget, OfACommandedPolicyIsWhatItIsTold) {
  const auto expect = [](const std::optional<std::string>& asked,
                         const BudgetValues& values,
                         const std::string& name) {
    SCOPED_TRACE(name);
    const PolicyBudget found = BudgetOfPolicy(CommandedNotes(), "a.onnx", asked);
    ASSERT_TRUE(found.told);
    EXPECT_EQ(*found.told, values);
    EXPECT_EQ(found.command, ReadBudget("command").spec.command);
    EXPECT_EQ(found.budget.name, name);
    EXPECT_EQ(found.budget.spec, BudgetAt(ReadBudget("command").spec, values));
    EXPECT_EQ(ReadPlainBudget(name).spec, found.budget.spec);
  };
  expect({}, {775, 316, 77.5}, "command,com=775/775/20000,hands=316,null_space=77.5");
  expect("com=400,hands=200,null_space=100",
         {400, 200, 100},
         "command,com=400/400/20000,hands=200,null_space=100");
  expect("hands=1000", {775, 1000, 77.5}, "command,com=775/775/20000,hands=1000,null_space=77.5");
  expect("null_space=20,com=3000",
         {3000, 316, 20},
         "command,com=3000/3000/20000,hands=316,null_space=20");
  // a budget's numbers
  expect("hard-hand", {200, 1000, 50}, "command,com=200/200/20000,hands=1000,null_space=50");
  expect("high-stiff", {1000, 316, 100}, "command,com=1000/1000/20000,hands=316,null_space=100");
  // a range in which there is no number of three digits
  const PolicyBudget narrow =
      BudgetOfPolicy(CommandedNotes("compliance,com=1000.1..1000.4"), "a.onnx");
  EXPECT_NEAR((*narrow.told)[kCommandCom], 1000.25, 1e-3);
  // its name has the number in the range's place, and --mode takes it
  EXPECT_EQ(narrow.budget.name.find("com="), narrow.budget.name.rfind("com="))
      << narrow.budget.name;
  EXPECT_NO_THROW(ReadPlainBudget(narrow.budget.name));
  EXPECT_EQ(CommandText(BudgetOfPolicy(CommandedNotes(), "a.onnx", "com=400")),
            "com 400 N/m, hands 316 N/m, null space 77.5 N·m/rad");
}

TEST(PolicyBudget, ACommandThatCannotBeGivenIsRefused) {
  const auto message = [](const std::string& asked, const TrainingNotes& notes) -> std::string {
    try {
      BudgetOfPolicy(notes, "a.onnx", asked);
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "no error";
  };
  const TrainingNotes notes = CommandedNotes();
  EXPECT_EQ(message("com=5000", notes),
            "--budget com=5000: com: 5000 is outside [200, 3000], for which a.onnx was trained");
  EXPECT_EQ(message("hands=99.9", notes),
            "--budget hands=99.9: hands: 99.9 is outside [100, 1000], for which a.onnx was "
            "trained");
  EXPECT_EQ(message("hand=200", notes),
            "--budget hand=200: 'hand' is nothing that this policy is told; did you mean hands?");
  EXPECT_EQ(message("null=80", notes),
            "--budget null=80: 'null' is nothing that this policy is told; did you mean "
            "null_space?");
  EXPECT_EQ(message("com=400,com=300", notes), "--budget com=400,com=300: com: is given twice");
  EXPECT_EQ(message("com=2x", notes), "--budget com=2x: com: '2x' is no number");
  EXPECT_EQ(message("com=", notes), "--budget com=: com: '' is no number");
  EXPECT_EQ(message("hard-nullspace", notes),
            "--budget hard-nullspace: null_space: 500 is outside [20, 300], for which a.onnx was "
            "trained");
  // a number without a range is not told
  EXPECT_NE(message("hands=200", CommandedNotes("compliance,com=300..900"))
                .find("'hands' is nothing that this policy is told"),
            std::string::npos);
  TrainingNotes plain;
  PutBudget(ReadBudget("compliance"), &plain);
  for (const TrainingNotes& other : {plain, TrainingNotes()}) {
    EXPECT_EQ(message("com=400", other),
              "--budget com=400: a.onnx is not told its budget, which policies trained under "
              "--mode command are\n  To judge it by another budget, give that as --mode.");
  }
}

}  // namespace
}  // namespace silc
