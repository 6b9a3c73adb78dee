// SPDX-License-Identifier: Apache-2.0
#include "silc/observe/load_policy.h"

#include <gtest/gtest.h>

#include "silc/base/error.h"
#include "silc/base/test_paths.h"

namespace silc {
namespace {

const std::string kShipped = SourcePath("policies/g1_loco_silc_compliance.onnx");

TEST(LoadPolicy, TakesLayoutAndNotesFromTheFileItself) {
  const RobotModel robot = RobotModel::Load("g1");
  TrainingNotes notes;
  const Policy policy = LoadPolicy(kShipped, "", robot, &notes);
  EXPECT_EQ(policy.robot().joints, robot.spec().joints);
  EXPECT_EQ(notes.method, "silc");
  EXPECT_EQ(notes.mode, "compliance");
}

TEST(LoadPolicy, NamesWhatDoesNotFit) {
  const RobotModel robot = RobotModel::Load("g1");
  EXPECT_THROW(LoadPolicy(kShipped, "falcn", robot), ConfigError);     // no such layout
  EXPECT_THROW(LoadPolicy(kShipped, "holosoma", robot), ConfigError);  // of another width
  EXPECT_THROW(LoadPolicy("/nowhere/at.onnx", "", robot), ConfigError);
}

}  // namespace
}  // namespace silc
