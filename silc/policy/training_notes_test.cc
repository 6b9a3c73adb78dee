// SPDX-License-Identifier: Apache-2.0
#include "silc/policy/training_notes.h"

#include <gtest/gtest.h>

namespace silc {
namespace {

TEST(TrainingNotes, SayWhatWasPut) {
  TrainingNotes notes;
  notes.task = "g1-loco";
  notes.method = "silc";
  notes.mode = "soft-hand";
  notes.budget = "com: [1, 2, 3]\n";
  notes.bound = "4";
  notes.noise = "gravity=0.01";
  notes.seed = "7";
  Metadata metadata = {{"silc_iterations", "300"}, {"silc_gravity", "held"}};
  WriteNotes(notes, &metadata);
  const TrainingNotes read = TrainingNotesOf(metadata);
  EXPECT_EQ(read.task, "g1-loco");
  EXPECT_EQ(read.method, "silc");
  EXPECT_EQ(read.bound, "4");
  EXPECT_EQ(read.noise, "gravity=0.01");
  EXPECT_EQ(read.mode, "soft-hand");
  EXPECT_EQ(read.seed, "7");
  EXPECT_EQ(read.iterations, "300") << "what is not said leaves what was there";
  EXPECT_EQ(read.budget, "com: [1, 2, 3]\n");
  EXPECT_FALSE(read.gravity_held) << "the numbers take the older note's place";
}

TEST(TrainingNotes, AMethodWithoutABudgetHasNoMode) {
  const TrainingNotes notes =
      TrainingNotesOf({{"silc_method", "lcp"}, {"silc_mode", "compliance"}});
  EXPECT_EQ(notes.method, "lcp");
  EXPECT_EQ(notes.mode, "");
  EXPECT_FALSE(notes.gravity_held);
  EXPECT_EQ(TrainingNotesOf({}).method, "");
}

// Somebody may want a policy of any method judged by a budget of his.
TEST(TrainingNotes, NumbersCountWhateverTheMethod) {
  const TrainingNotes notes =
      TrainingNotesOf({{"silc_method", "lcp"}, {"silc_mode", "mine"}, {"silc_budget", "text"}});
  EXPECT_EQ(notes.mode, "mine");
  EXPECT_EQ(notes.budget, "text");
}

TEST(TrainingNotes, OlderFilesSayOfGravityAlone) {
  EXPECT_TRUE(TrainingNotesOf({{"silc_gravity", "held"}}).gravity_held);
}

}  // namespace
}  // namespace silc
