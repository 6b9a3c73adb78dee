// SPDX-License-Identifier: Apache-2.0
// The shipped robots beside the G1, against whole-body numbers of their published descriptions. The
// numbers were computed from those descriptions by a program of its own, in their frames, which are
// not the frames of robots/*/*.xml.
#include <gtest/gtest.h>

#include <Eigen/Dense>
#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "silc/base/error.h"
#include "silc/robot/pose.h"
#include "silc/robot/robot_model.h"

namespace silc {
namespace {

struct Published {
  std::string robot;
  double mass;                       // [kg]
  Eigen::Vector3d com;               // [m] against the base, in the pose below
  Eigen::Matrix3d inertia;           // [kg·m²] about the centre of mass, in W
  std::string point;                 // a site
  Eigen::Vector3d at;                // [m] where it is
  std::array<double, 2> thresholds;  // share of the weight: feet.force.enter, leave
};

Eigen::Matrix3d Symmetric(double xx, double yy, double zz, double xy, double xz, double yz) {
  Eigen::Matrix3d I;
  I << xx, xy, xz, xy, yy, yz, xz, yz, zz;
  return I;
}

std::vector<Published> All() {
  return {{"t1",
           34.512469,
           {0.033121680096, 0.015680102187, -0.034771879033},
           Symmetric(3.913417440288,
                     2.671883102143,
                     1.513466213207,
                     0.089896785438,
                     -0.421281146503,
                     0.093472929520),
           "right_foot",
           {-0.139676100216, 0.027888912553, -0.621376853034},
           {0.12, 0.05}},
          {"berkeley",
           16.0567651,
           {-0.010589996215, -0.000858598213, -0.085598103126},
           Symmetric(0.814785925654,
                     0.678037995285,
                     0.247605611404,
                     0.004222593814,
                     -0.082279011712,
                     -0.010031790129),
           "left_foot",
           {-0.130961323886, 0.133214734809, -0.541528780073},
           {0.12, 0.05}}};
}

// The pose of the published numbers: joint k of the MJCF at 0.1 + 0.05 (k mod 5) rad, the base at
// the origin. It is no pose to stand in; it turns every axis.
void TurnEveryJoint(const RobotModel& robot, mjData* data) {
  const mjModel& m = *robot.model();
  mj_resetData(&m, data);
  mjtNum* base = data->qpos + robot.base_qpos_address();
  for (int k = 0; k < 7; ++k) base[k] = k == 3;
  int hinge = 0;
  for (int j = 0; j < m.njnt; ++j) {
    if (m.jnt_type[j] != mjJNT_HINGE) continue;
    data->qpos[m.jnt_qposadr[j]] = 0.1 + 0.05 * (hinge++ % 5);
  }
  mj_forward(&m, data);
}

class Robots : public ::testing::TestWithParam<Published> {};

TEST_P(Robots, HaveThePublishedMassesWhereTheyAre) {
  const RobotModel robot = RobotModel::Load(GetParam().robot);
  const mjModel& m = *robot.model();
  const MjDataPtr data = robot.MakeData();
  TurnEveryJoint(robot, data.get());
  EXPECT_NEAR(mj_getTotalmass(&m), GetParam().mass, 1e-6);
  const Eigen::Map<const Eigen::Vector3d> com(data->subtree_com + 3 * robot.base_body());
  // positions and inertias are written with seven digits
  EXPECT_LT((com - GetParam().com).norm(), 1e-6);
  Eigen::Matrix3d inertia = Eigen::Matrix3d::Zero();
  for (int b = 1; b < m.nbody; ++b) {
    using Rows = Eigen::Matrix<double, 3, 3, Eigen::RowMajor>;
    const Eigen::Map<const Rows> R(data->ximat + 9 * b);
    const Eigen::Map<const Eigen::Vector3d> diagonal(m.body_inertia + 3 * b);
    const Eigen::Vector3d d = Eigen::Map<const Eigen::Vector3d>(data->xipos + 3 * b) - com;
    inertia += R * diagonal.asDiagonal() * R.transpose() +
               m.body_mass[b] * (d.squaredNorm() * Eigen::Matrix3d::Identity() - d * d.transpose());
  }
  EXPECT_LT((inertia - GetParam().inertia).norm(), 1e-5 * GetParam().inertia.norm());
  const int site = mj_name2id(&m, mjOBJ_SITE, GetParam().point.c_str());
  ASSERT_GE(site, 0);
  EXPECT_LT((Eigen::Map<const Eigen::Vector3d>(data->site_xpos + 3 * site) - GetParam().at).norm(),
            2e-6);
}

TEST_P(Robots, StandInTheirPosesWithoutTouchingThemselves) {
  const RobotModel robot = RobotModel::Load(GetParam().robot);
  const mjModel& m = *robot.model();
  const MjDataPtr data = robot.MakeData();
  for (const Pose& pose : robot.spec().poses) {
    StandInPose(robot, pose, data.get());
    EXPECT_NEAR(data->qpos[robot.base_qpos_address() + 2], pose.base_height, 5e-5) << pose.name;
    for (int j = 0; j < robot.num_joints(); ++j) {
      EXPECT_GE(pose.q[j], robot.q_min()[j]) << pose.name << " " << robot.spec().joints[j];
      EXPECT_LE(pose.q[j], robot.q_max()[j]) << pose.name << " " << robot.spec().joints[j];
    }
    for (int i = 0; i < data->ncon; ++i) {
      const mjContact& c = data->contact[i];
      EXPECT_TRUE(c.geom[0] == robot.floor_geom() || c.geom[1] == robot.floor_geom())
          << pose.name << ": " << mj_id2name(&m, mjOBJ_GEOM, c.geom[0]) << " touches "
          << mj_id2name(&m, mjOBJ_GEOM, c.geom[1]);
    }
  }
  // the default pose stands: its centre of mass is over the soles
  StandInPose(robot, robot.spec().StandingPose(), data.get());
  const double x = data->subtree_com[3 * robot.base_body()];
  double heel = 1, toe = -1;
  for (const std::vector<int>& foot : robot.foot_geoms()) {
    for (const int geom : foot) {
      heel = std::min(heel, data->geom_xpos[3 * geom]);
      toe = std::max(toe, data->geom_xpos[3 * geom]);
    }
  }
  EXPECT_GT(x, heel);
  EXPECT_LT(x, toe);
}

TEST_P(Robots, CountAsStandingAtAShareOfTheirWeight) {
  const RobotModel robot = RobotModel::Load(GetParam().robot);
  const double weight = GetParam().mass * 9.81;
  EXPECT_NEAR(robot.spec().foot_force.enter / weight, GetParam().thresholds[0], 0.005);
  EXPECT_NEAR(robot.spec().foot_force.leave / weight, GetParam().thresholds[1], 0.005);
}

// Both sides are mirror images in where their joints are; masses differ by grams.
TEST_P(Robots, HaveTwoSidesAlike) {
  const RobotModel robot = RobotModel::Load(GetParam().robot);
  const mjModel& m = *robot.model();
  const MjDataPtr data = robot.MakeData();
  mj_resetData(&m, data.get());
  for (int k = 0; k < 7; ++k) data->qpos[robot.base_qpos_address() + k] = k == 3;
  mj_kinematics(&m, data.get());
  const JointRoles& roles = robot.spec().roles;
  ASSERT_TRUE(robot.spec().has_roles);
  for (const std::array<int, 2>& pair : {roles.hip_pitch,
                                         roles.hip_roll,
                                         roles.hip_yaw,
                                         roles.knee,
                                         roles.ankle_pitch,
                                         roles.ankle_roll}) {
    ASSERT_GE(pair[0], 0);
    const auto anchor = [&](int side) {
      const int joint = m.dof_jntid[robot.dof_address()[pair[side]]];
      return Eigen::Vector3d(data->xanchor + 3 * joint);
    };
    const Eigen::Vector3d left = anchor(0), right = anchor(1);
    EXPECT_GT(left.y(), 0);
    EXPECT_LT((left - Eigen::Vector3d(right.x(), -right.y(), right.z())).norm(), 1e-6);
  }
}

INSTANTIATE_TEST_SUITE_P(Shipped, Robots, ::testing::ValuesIn(All()), [](const auto& p) {
  return p.param.robot;
});

}  // namespace
}  // namespace silc
