// SPDX-License-Identifier: Apache-2.0
#include "silc/policy/training_notes.h"

#include <gtest/gtest.h>

namespace silc {
namespace {

TEST(TrainingNotes, SayWhatWasPut) {
  TrainingNotes notes{"g1-loco", "silc", "soft-hand", "7", "", true};
  Metadata metadata = {{"silc_iterations", "300"}};
  Put(notes, &metadata);
  const TrainingNotes read = TrainingNotesOf(metadata);
  EXPECT_EQ(read.task, "g1-loco");
  EXPECT_EQ(read.method, "silc");
  EXPECT_EQ(read.mode, "soft-hand");
  EXPECT_EQ(read.seed, "7");
  EXPECT_EQ(read.iterations, "300") << "what is not said leaves what was there";
  EXPECT_TRUE(read.gravity_held);
}

TEST(TrainingNotes, AMethodWithoutABudgetHasNoMode) {
  const TrainingNotes notes =
      TrainingNotesOf({{"silc_method", "lcp"}, {"silc_mode", "compliance"}});
  EXPECT_EQ(notes.method, "lcp");
  EXPECT_EQ(notes.mode, "");
  EXPECT_FALSE(notes.gravity_held);
  EXPECT_EQ(TrainingNotesOf({}).method, "");
}

}  // namespace
}  // namespace silc
