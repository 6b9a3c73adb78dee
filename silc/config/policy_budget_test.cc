// SPDX-License-Identifier: Apache-2.0
#include "silc/config/policy_budget.h"

#include <gtest/gtest.h>

#include "silc/base/error.h"

namespace silc {
namespace {

// What a policy carries is what it is judged by, whatever the file of that name says by now.
TEST(PolicyBudget, IsTheOneInsideTheFile) {
  UserBudget mine = ReadBudget("compliance,com=123,gravity=followed");
  mine.name = "compliance";
  TrainingNotes notes;
  notes.method = "silc";
  PutBudget(mine, &notes);
  Metadata metadata;
  Put(notes, &metadata);

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

}  // namespace
}  // namespace silc
