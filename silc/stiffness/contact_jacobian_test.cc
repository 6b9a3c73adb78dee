// SPDX-License-Identifier: Apache-2.0
#include "silc/stiffness/contact_jacobian.h"

#include <gtest/gtest.h>

#include <limits>

#include "silc/stiffness/test_support.h"

namespace silc {
namespace {

using namespace test::eager;
using test::MatrixXd;
using test::StickHumanoid;
using test::VectorXd;
using Pose = StickHumanoid::Pose;

constexpr int kJoints = StickHumanoid::kJoints;

// The robot with joints q and one foot where it was: the base follows by forward kinematics alone.
Pose OnFoot(const Pose& pose, int side, const VectorXd& q) {
  Pose moved = pose;
  moved.q = q;
  const Eigen::Isometry3d T_WF = StickHumanoid::Forward(pose).foot[side];
  const Eigen::Isometry3d T_BF = moved.T_WB.inverse() * StickHumanoid::Forward(moved).foot[side];
  moved.T_WB = T_WF * T_BF.inverse();
  return moved;
}

// (S5), single support: J, B and E are derivatives of a robot whose foot does not move. Jacobians
// and references are both central differences (1e-9), hence 1e-7.
TEST(ContactKinematics, SingleSupportIsTheRobotWithThatFootFixed) {
  Rng rng(1);
  for (int trial = 0; trial < 6; ++trial) {
    const int side = trial % 2;
    const Pose pose = StickHumanoid::Stance(&rng);
    const BodyJacobians body = StickHumanoid::Jacobians(pose);
    ContactKinematics contact;
    ASSERT_EQ(
        ComputeContactKinematics(body,
                                 side == 0 ? ContactMode::kLeftSupport : ContactMode::kRightSupport,
                                 nullptr,
                                 &contact),
        StiffnessStatus::kOk);
    EXPECT_FALSE(contact.closed);
    constexpr double h = 1e-5;
    for (int k = 0; k < kJoints; ++k) {
      const VectorXd e = h * VectorXd::Unit(kJoints, k);
      const Pose up = OnFoot(pose, side, pose.q + e), down = OnFoot(pose, side, pose.q - e);
      const auto f_up = StickHumanoid::Forward(up), f_down = StickHumanoid::Forward(down);
      const auto near = [&](const Eigen::Vector3d& got, const Eigen::Vector3d& want) {
        EXPECT_LT((got - want).norm(), 1e-7) << "joint " << k;
      };
      near(contact.com.col(k), (f_up.com - f_down.com) / (2 * h));
      for (int s = 0; s < 2; ++s) {
        near(contact.hand_in_world[s].col(k),
             (f_up.hand[s].translation() - f_down.hand[s].translation()) / (2 * h));
      }
      near(contact.B.col(k).head<3>(), (up.T_WB.translation() - down.T_WB.translation()) / (2 * h));
      near(contact.B.col(k).tail<3>(),
           StickHumanoid::RotationVector(down.T_WB.linear().transpose() * up.T_WB.linear()) /
               (2 * h));
      const Eigen::Vector3d g_W = -Eigen::Vector3d::UnitZ();
      near(contact.E.col(k),
           (up.T_WB.linear().transpose() * g_W - down.T_WB.linear().transpose() * g_W) / (2 * h));
    }
    // only the stance leg moves the base
    EXPECT_LT(contact.E.middleCols(6 * (1 - side), 6).norm(), 1e-9);
    EXPECT_LT(contact.E.rightCols(8).norm(), 1e-9);
  }
}

// Double support: along N both feet stay, N has all such motions, and Nᵀ W N = I.
TEST(ContactKinematics, DoubleSupportKeepsBothFeet) {
  Rng rng(2);
  for (int trial = 0; trial < 4; ++trial) {
    const Pose pose = StickHumanoid::Stance(&rng);
    const BodyJacobians body = StickHumanoid::Jacobians(pose);
    const JointVector weight = test::RandomServo(kJoints, &rng).kp;
    ContactKinematics contact;
    ASSERT_EQ(ComputeContactKinematics(body, ContactMode::kDoubleSupport, &weight, &contact),
              StiffnessStatus::kOk);
    ASSERT_TRUE(contact.closed);
    ASSERT_EQ(contact.N.cols(), kJoints - 6);
    const MatrixXd gram = contact.N.transpose() * weight.asDiagonal() * contact.N;
    EXPECT_TRUE(gram.isIdentity(1e-12));
    constexpr double h = 1e-5;
    for (int k = 0; k < contact.N.cols(); ++k) {
      const VectorXd dq = contact.N.col(k).normalized();
      VectorXd v(kJoints + 6);
      v << contact.B * dq, dq;
      const auto up = StickHumanoid::Forward(StickHumanoid::Moved(pose, h * v));
      const auto down = StickHumanoid::Forward(StickHumanoid::Moved(pose, -h * v));
      for (int s = 0; s < 2; ++s) {
        EXPECT_LT((up.foot[s].translation() - down.foot[s].translation()).norm() / (2 * h), 1e-7);
        EXPECT_LT((up.foot[s].linear() - down.foot[s].linear()).norm() / (2 * h), 1e-7);
      }
      EXPECT_LT(((up.com - down.com) / (2 * h) - contact.com * dq).norm(), 1e-7);
      EXPECT_LT(((up.hand[0].translation() - down.hand[0].translation()) / (2 * h) -
                 contact.hand_in_world[0] * dq)
                    .norm(),
                1e-7);
    }
  }
}

// Nothing reported depends on which foot the base was carried by.
TEST(ContactKinematics, DoubleSupportDoesNotKnowWhichFootCameFirst) {
  Rng rng(3);
  const BodyJacobians body = StickHumanoid::Jacobians(StickHumanoid::Stance(&rng));
  BodyJacobians swapped = body;
  std::swap(swapped.foot[0], swapped.foot[1]);
  ContactKinematics a, b;
  ASSERT_EQ(ComputeContactKinematics(body, ContactMode::kDoubleSupport, nullptr, &a),
            StiffnessStatus::kOk);
  ASSERT_EQ(ComputeContactKinematics(swapped, ContactMode::kDoubleSupport, nullptr, &b),
            StiffnessStatus::kOk);
  // Jacobians carry 1e-9 of noise from differences, magnified by the closure's condition
  EXPECT_LT((a.B - b.B).norm(), 1e-6 * a.B.norm());
  EXPECT_LT((a.E - b.E).norm(), 1e-6 * a.E.norm());
  EXPECT_LT((a.com - b.com).norm(), 1e-6 * a.com.norm());
  EXPECT_LT((a.N * a.N.transpose() - b.N * b.N.transpose()).norm(), 1e-6);
}

// In flight the hands are relative to the base, and gravity does not turn.
TEST(ContactKinematics, FlightIsRelativeToTheBase) {
  Rng rng(4);
  const Pose pose = StickHumanoid::Stance(&rng);
  const BodyJacobians body = StickHumanoid::Jacobians(pose);
  ContactKinematics contact;
  ASSERT_EQ(ComputeContactKinematics(body, ContactMode::kFlight, nullptr, &contact),
            StiffnessStatus::kOk);
  EXPECT_EQ(contact.B.norm(), 0);
  EXPECT_EQ(contact.E.norm(), 0);
  constexpr double h = 1e-5;
  for (int k = 12; k < kJoints; ++k) {
    VectorXd v = VectorXd::Zero(kJoints + 6);
    v[6 + k] = h;
    const auto up = StickHumanoid::Forward(StickHumanoid::Moved(pose, v));
    const auto down = StickHumanoid::Forward(StickHumanoid::Moved(pose, -v));
    EXPECT_LT(((up.hand[1].translation() - down.hand[1].translation()) / (2 * h) -
               contact.hand_in_world[1].col(k))
                  .norm(),
              1e-8);
  }
}

// C9: in flight a force on the centre of mass finds no equilibrium. The generalised force J_comᵀ f
// has a part on the base, and whatever the joints do, blockdiag(0, K) has none: of the base part
// nothing at all can be balanced, the residual is all of it.
TEST(ContactKinematics, InFlightNoStiffnessHoldsTheCenterOfMass) {
  Rng rng(5);
  const BodyJacobians body = StickHumanoid::Jacobians(StickHumanoid::Stance(&rng));
  MatrixXd K = MatrixXd::Zero(kJoints + 6, kJoints + 6);
  K.bottomRightCorner(kJoints, kJoints) =
      test::RandomMatrix(kJoints, kJoints, &rng, 20) + 100 * MatrixXd::Identity(kJoints, kJoints);
  const VectorXd force = MatrixXd(body.com).transpose() * Eigen::Vector3d(3, -1, 2);
  const VectorXd dq = test::PseudoInverse(K) * force;
  EXPECT_NEAR((force - K * dq).norm() / force.head<6>().norm(), 1, 1e-9);
}

// A straight leg cannot bring its foot nearer to the hip. Two straight legs side by side still
// close the chain in six ways, since their lines differ; with one leg locked as well there are
// five, and that is told.
TEST(ContactKinematics, AChainThatClosesInFiveWaysIsTold) {
  Rng rng(6);
  Pose pose = StickHumanoid::Stance(&rng);
  pose.q.head<12>().setZero();
  BodyJacobians body = StickHumanoid::Jacobians(pose);
  ContactKinematics contact;
  EXPECT_EQ(ComputeContactKinematics(body, ContactMode::kDoubleSupport, nullptr, &contact),
            StiffnessStatus::kOk);
  body.foot[1].rightCols(kJoints).setZero();
  EXPECT_EQ(ComputeContactKinematics(body, ContactMode::kDoubleSupport, nullptr, &contact),
            StiffnessStatus::kRankDeficientJacobian);
  pose.q[3] = 0.3;
  body = StickHumanoid::Jacobians(pose);
  body.foot[1].rightCols(kJoints).setZero();
  EXPECT_EQ(ComputeContactKinematics(body, ContactMode::kDoubleSupport, nullptr, &contact),
            StiffnessStatus::kOk);
}

TEST(ContactKinematics, SingularBaseBlockAndNanAreTold) {
  Rng rng(7);
  const BodyJacobians good = StickHumanoid::Jacobians(StickHumanoid::Stance(&rng));
  BodyJacobians bad = good;
  bad.foot[0].row(2) = bad.foot[0].row(1);
  ContactKinematics contact;
  EXPECT_EQ(ComputeContactKinematics(bad, ContactMode::kLeftSupport, nullptr, &contact),
            StiffnessStatus::kSingularBaseBlock);
  EXPECT_EQ(ComputeContactKinematics(bad, ContactMode::kDoubleSupport, nullptr, &contact),
            StiffnessStatus::kSingularBaseBlock);
  EXPECT_EQ(ComputeContactKinematics(bad, ContactMode::kRightSupport, nullptr, &contact),
            StiffnessStatus::kOk);
  bad = good;
  bad.hand[1](2, 9) = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(ComputeContactKinematics(bad, ContactMode::kLeftSupport, nullptr, &contact),
            StiffnessStatus::kNotFinite);
}

}  // namespace
}  // namespace silc
