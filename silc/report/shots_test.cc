// SPDX-License-Identifier: Apache-2.0
#include "silc/report/shots.h"

#include <gtest/gtest.h>

#include <set>

#include "silc/eval/experiment.h"

namespace silc {
namespace {

// A row is about an experiment that `silc eval` has, and there is one picture of each.
TEST(Shots, AreOfExperimentsThatThereAre) {
  std::set<std::string> seen;
  for (const Shot& shot : Shots()) {
    const std::string& name = shot.experiment.experiment();
    EXPECT_EQ(&FindExperiment(name).metrics, &shot.experiment) << name;
    EXPECT_TRUE(seen.insert(name).second) << name << " is there twice";
    EXPECT_EQ(FindShot(name), &shot) << name;
    EXPECT_FALSE(shot.caption.empty()) << name;
    // what a picture waits for begins at some moment and is to be seen a while later
    const bool waits = shot.moment == ShotMoment::kPushed || shot.moment == ShotMoment::kCaught;
    EXPECT_EQ(shot.after > 0, waits) << name;
  }
  EXPECT_EQ(FindShot("frequency"), nullptr);
}

}  // namespace
}  // namespace silc
