// SPDX-License-Identifier: Apache-2.0
#include "silc/lqr/stand_policy.h"

#include <gtest/gtest.h>

#include "silc/base/error.h"

namespace silc {
namespace {

TEST(StandPolicy, DescribesItselfCompletely) {
  const RobotModel robot = RobotModel::Load("g1");
  const StandPolicy policy = DesignStandPolicy(robot);
  policy.layout.Validate("stand");
  EXPECT_EQ(ObservationWidth(policy.layout), policy.network.inputs);
  EXPECT_EQ(policy.network.outputs(), robot.num_joints());
}

// Left and right are nearly mirror images (the shoulders differ by 0.01 mm, the knees' inertias in
// the fourth digit), so the gains are too: pitch joints alike, roll and yaw joints alike in size.
TEST(StandPolicy, IsSymmetricLikeTheRobot) {
  const RobotModel robot = RobotModel::Load("g1");
  const MlpLayer layer = DesignStandPolicy(robot).network.branches[0][0];
  const auto weight = [&](const char* output, const char* input) {
    const RobotSpec& spec = robot.spec();
    return layer
        .weight[static_cast<std::size_t>(spec.Joint(output)) * layer.inputs + spec.Joint(input)];
  };
  for (const char* joint : {"hip_pitch_joint",
                            "knee_joint",
                            "ankle_pitch_joint",
                            "shoulder_pitch_joint",
                            "elbow_joint"}) {
    const std::string left = std::string("left_") + joint, right = std::string("right_") + joint;
    const float a = weight(left.c_str(), left.c_str()), b = weight(right.c_str(), right.c_str());
    EXPECT_NEAR(a, b, 0.02 * std::abs(a)) << joint;
  }
}

TEST(StandPolicy, UnknownPosesAndGainsAreNamed) {
  const RobotModel robot = RobotModel::Load("g1");
  EXPECT_THROW(DesignStandPolicy(robot, {.pose = "hom"}), ConfigError);
  EXPECT_THROW(DesignStandPolicy(robot, {.gains = "falcn"}), ConfigError);
}

}  // namespace
}  // namespace silc
