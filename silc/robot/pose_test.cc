// SPDX-License-Identifier: Apache-2.0
#include "silc/robot/pose.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "silc/base/test_paths.h"
#include "silc/robot/tiny_biped.h"

namespace silc {
namespace {

TEST(Pose, G1StandsOnItsSpheresAtTheHeightItsFileSays) {
  const RobotModel robot = RobotModel::Load(SourcePath("robots/g1"));
  const MjDataPtr data = robot.MakeData();
  for (const Pose& pose : robot.spec().poses) {
    data->qvel[3] = 1;  // left over from before
    StandInPose(robot, pose, data.get());
    EXPECT_EQ(data->qvel[3], 0);
    // the spheres' lowest point, worked out without MuJoCo's distance function
    double lowest = std::numeric_limits<double>::infinity();
    for (const std::vector<int>& geoms : robot.foot_geoms()) {
      for (int geom : geoms) {
        lowest =
            std::min(lowest, data->geom_xpos[3 * geom + 2] - robot.model()->geom_size[3 * geom]);
      }
    }
    EXPECT_NEAR(lowest, 0, 1e-9) << pose.name;
    EXPECT_NEAR(SoleClearance(robot, data.get()), 0, 1e-9) << pose.name;
    // the file gives five digits
    EXPECT_NEAR(data->qpos[2], pose.base_height, 1e-5) << pose.name;
    // nothing but the soles touches, and nothing touches itself
    for (int c = 0; c < data->ncon; ++c) {
      EXPECT_TRUE(data->contact[c].geom[0] == robot.floor_geom() &&
                  robot.FootOfGeom(data->contact[c].geom[1]) >= 0)
          << pose.name;
    }
    for (int i = 0; i < robot.num_joints(); ++i) {
      EXPECT_GE(pose.q[i], robot.q_min()[i]) << robot.spec().joints[i];
      EXPECT_LE(pose.q[i], robot.q_max()[i]) << robot.spec().joints[i];
    }
  }
}

// The box shares the spheres' plane, so with a level foot the robot stands as high on either.
TEST(Pose, BoxFeetStandAsHighAsSpheres) {
  const RobotModel robot = RobotModel::Load(SourcePath("robots/g1"), {.foot_collision = "box"});
  const MjDataPtr data = robot.MakeData();
  StandInPose(robot, robot.spec().StandingPose("home"), data.get());
  EXPECT_NEAR(data->qpos[2], 0.7842, 1e-5);
  EXPECT_EQ(robot.foot_geoms()[kLeft].size(), 1u);
}

TEST(Pose, OtherRobotsStandToo) {
  const TinyBipedFolder files;
  const RobotModel robot = RobotModel::Load(files.folder());
  const MjDataPtr data = robot.MakeData();
  StandInPose(robot, robot.spec().StandingPose(), data.get());
  // hip −0.3, knee 0.6: thigh and shin lean 0.3 rad to either side, the toe end of the sole is
  // lowest: 0.2 + 0.35 cos 0.3 + 0.33 cos 0.3 + 0.1 sin 0.3 + 0.02
  const double height = 0.2 + 0.68 * std::cos(0.3) + 0.1 * std::sin(0.3) + 0.02;
  EXPECT_NEAR(data->qpos[2], height, 1e-9);
}

TEST(Pose, StateGoesThroughInRobotOrder) {
  const TinyBipedFolder files;
  const RobotModel robot = RobotModel::Load(files.folder());
  const MjDataPtr data = robot.MakeData();
  const Eigen::Vector4d q(0.1, 0.2, 0.3, 0.4);
  SetJointPositions(robot, q, data.get());
  EXPECT_EQ(data->qpos[10], 0.1);  // r_knee, the model's last
  Eigen::VectorXd back(4);
  GetJointPositions(robot, *data, back);
  EXPECT_EQ(back, q);
  data->qvel[9] = 7;
  GetJointVelocities(robot, *data, back);
  EXPECT_EQ(back, Eigen::Vector4d(7, 0, 0, 0));
  // clamped to 40, 40, 60, 60
  SetJointTorques(robot, Eigen::Vector4d(100, -100, 5, -5), data.get());
  mj_forward(robot.model(), data.get());
  EXPECT_EQ(data->qfrc_actuator[9], 40);
  EXPECT_EQ(data->qfrc_actuator[7], -40);
  EXPECT_EQ(data->qfrc_actuator[8], 5);
  EXPECT_EQ(data->qfrc_actuator[6], -5);
}

}  // namespace
}  // namespace silc
