// SPDX-License-Identifier: Apache-2.0
#include "silc/robot/budget_gains.h"

#include <gtest/gtest.h>

#include <Eigen/LU>
#include <cmath>
#include <numbers>

#include "silc/base/error.h"
#include "silc/robot/kinematics.h"
#include "silc/robot/pose.h"
#include "silc/stiffness/observer.h"

namespace silc {
namespace {

BudgetSpec Compliance() {
  BudgetSpec budget;  // the paper's
  budget.com = Eigen::Vector3d(200, 200, 20000);
  budget.null_stiffness = 50;
  return budget;
}

GainsRequest Small() {
  GainsRequest request;
  request.budgets = {Compliance()};
  request.poses = {"falcon", "knees_bent"};
  request.samples = 1;
  return request;
}

// The observer's σ of a policy that does nothing is the servo's own; it knows nothing of (G1).
TEST(BudgetGains, ASilentPolicyOnTheseGainsIsWithinTheBudgetInEveryPoseAndMode) {
  const RobotModel robot = RobotModel::Load("g1");
  const BudgetGains gains = GainsFromBudget(robot, Small());
  const MjDataPtr data = robot.MakeData();
  for (const auto& [kp, inside] :
       {std::pair(gains.set.kp, true), std::pair(robot.spec().Gains("falcon").kp, false)}) {
    ObserverOptions options;
    options.servo.kp = kp;
    options.servo.kd = options.servo.alpha = Eigen::VectorXd::Ones(robot.num_joints());
    options.budget = Compliance();
    StiffnessObserver observer(options);
    for (const char* pose : {"falcon", "knees_bent"}) {
      StandInPose(robot, robot.spec().StandingPose(pose), data.get());
      BodyJacobians body;
      ComputeBodyJacobians(robot, data.get(), &body);
      for (const ContactMode mode :
           {ContactMode::kDoubleSupport, ContactMode::kLeftSupport, ContactMode::kRightSupport}) {
        const StiffnessReading& reading = observer.Observe({}, body, mode);
        ASSERT_EQ(reading.quasi_static.status, StiffnessStatus::kOk);
        if (inside) {
          EXPECT_LE(reading.quasi_static.worst, 1 + 1e-6) << pose << ", " << Name(mode);
          EXPECT_LE(reading.quasi_static.sigma, 1 + 1e-6);
        } else {
          EXPECT_GT(reading.quasi_static.worst, 2);
        }
      }
    }
  }
}

// A recorded moment counts as it was: the servo is inside the budget there, on the foot it stood
// on, and would not have been without it. One in flight is told apart.
TEST(BudgetGains, ARecordedStateCountsOnTheFeetItStandsOn) {
  const RobotModel robot = RobotModel::Load("g1");
  const MjDataPtr data = robot.MakeData();
  Pose pose = robot.spec().StandingPose("knees_bent");
  for (int j = 0; j < robot.num_joints(); ++j) {
    if (robot.spec().joints[j] == "right_knee_joint")
      pose.q[j] += 0.9;  // that foot leaves the floor
    if (robot.spec().joints[j] == "left_hip_roll_joint") pose.q[j] += 0.3;
  }
  StandInPose(robot, pose, data.get(), kRestingDepth);
  const int nq = robot.model()->nq;
  const Eigen::VectorXd stands = Eigen::Map<const Eigen::VectorXd>(data->qpos, nq);
  Eigen::VectorXd flies = stands;
  flies[2] += 0.1;
  EXPECT_EQ(ContactsOfPose(robot, *data), ContactMode::kLeftSupport);
  BodyJacobians body;
  ComputeBodyJacobians(robot, data.get(), &body);

  GainsRequest request;
  request.budgets = {Compliance()};
  request.poses = {"falcon"};
  const BudgetGains named = GainsFromBudget(robot, request);
  request.states = {stands, flies};
  const BudgetGains with_state = GainsFromBudget(robot, request);
  EXPECT_EQ(with_state.moments.size(), named.moments.size() + 1);
  EXPECT_EQ(with_state.moments.back().mode, ContactMode::kLeftSupport);
  EXPECT_EQ(with_state.in_flight, 1);
  const auto worst = [&](const BudgetGains& gains) {
    ObserverOptions options;
    options.servo.kp = gains.set.kp;
    options.servo.kd = options.servo.alpha = Eigen::VectorXd::Ones(robot.num_joints());
    options.budget = Compliance();
    StiffnessObserver observer(options);
    return observer.Observe({}, body, ContactMode::kLeftSupport).quasi_static.worst;
  };
  EXPECT_LE(worst(with_state), 1 + 1e-6);
  EXPECT_GT(worst(named), 1.01);
}

// Maximal: whichever gain grows alone leaves a budget or passes its motor's limit; and left and
// right are alike, though nothing asks for it.
TEST(BudgetGains, NoGainCanGrowAndBothSidesAreAlike) {
  const RobotModel robot = RobotModel::Load("g1");
  GainsRequest request = Small();
  request.samples = 0;
  const BudgetGains gains = GainsFromBudget(robot, request);
  EXPECT_EQ(gains.moments.size(), 6u);
  for (int j = 0; j < robot.num_joints(); ++j) {
    Eigen::VectorXd kp = gains.set.kp;
    kp[j] *= 1.001;
    double over = kp[j] / gains.limit[j];
    for (const ContactMode mode : request.modes) {
      over = std::max(over, WorstOfServo(gains.moments, mode, kp));
    }
    EXPECT_GT(over, 1) << robot.spec().joints[j];
  }
  for (int j = 0; j < robot.num_joints(); ++j) {
    std::string mirrored = robot.spec().joints[j];
    if (!mirrored.starts_with("left_")) continue;
    mirrored.replace(0, 4, "right");
    // the model's masses are alike to some 1e-3
    EXPECT_NEAR(gains.set.kp[j] / gains.set.kp[robot.spec().Joint(mirrored)], 1, 0.02) << mirrored;
  }
}

TEST(BudgetGains, DampingAndActionScaleFollowFromInertiaAndEffort) {
  const RobotModel robot = RobotModel::Load("g1");
  GainsRequest request = Small();
  request.damping_ratio = 0.7;
  request.effort_share = 0.3;
  const BudgetGains gains = GainsFromBudget(robot, request);
  for (int j = 0; j < robot.num_joints(); ++j) {
    const double armature = robot.model()->dof_armature[robot.dof_address()[j]];
    EXPECT_GT(gains.inertia[j], armature);
    EXPECT_NEAR(gains.limit[j], armature * std::pow(20 * std::numbers::pi, 2), 1e-6);
    // ζ = kd / (2 √(kp I))
    EXPECT_NEAR(gains.set.kd[j] / (2 * std::sqrt(gains.set.kp[j] * gains.inertia[j])), 0.7, 1e-9);
    EXPECT_NEAR(gains.set.kp[j] * gains.set.action_scale[j], 0.3 * robot.effort_limit()[j], 1e-9);
  }
}

// 1/(H⁻¹)_ii with H from MuJoCo column by column and Eigen's inverse of it: a servo that is alone
// in the air turns its joint against this and nothing else.
TEST(BudgetGains, InertiaIsWhatATorqueMeetsInTheAir) {
  const RobotModel robot = RobotModel::Load("g1");
  GainsRequest request = Small();
  request.poses = {"falcon"};
  request.samples = 0;
  const BudgetGains gains = GainsFromBudget(robot, request);
  const MjDataPtr data = robot.MakeData();
  StandInPose(robot, robot.spec().StandingPose("falcon"), data.get());
  const int nv = robot.model()->nv;
  Eigen::MatrixXd H(nv, nv);
  for (int i = 0; i < nv; ++i) {
    const Eigen::VectorXd unit = Eigen::VectorXd::Unit(nv, i);
    mj_mulM(robot.model(), data.get(), H.col(i).data(), unit.data());
  }
  const Eigen::MatrixXd inverse = H.inverse();
  for (int j = 0; j < robot.num_joints(); ++j) {
    const int dof = robot.dof_address()[j];
    EXPECT_NEAR(gains.inertia[j], 1 / inverse(dof, dof), 1e-9 * gains.inertia[j]);
  }
}

TEST(BudgetGains, WhatCannotBeIsTold) {
  const RobotModel robot = RobotModel::Load("g1");
  GainsRequest request = Small();
  request.poses = {"flacon"};
  EXPECT_THROW(GainsFromBudget(robot, request), ConfigError);
  request = Small();
  request.budgets[0].weight = NullWeight::kServo;
  EXPECT_THROW(GainsFromBudget(robot, request), ConfigError);
}

}  // namespace
}  // namespace silc
