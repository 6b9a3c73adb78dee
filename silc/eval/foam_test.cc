// SPDX-License-Identifier: Apache-2.0
#include "silc/eval/foam.h"

#include <gtest/gtest.h>

#include <cmath>

#include "silc/robot/pose.h"

namespace silc {
namespace {

class FoamTest : public testing::Test {
 protected:
  FoamTest() : robot_(RobotModel::Load("g1")), data_(robot_.MakeData()) {
    Pose pose;
    pose.q = robot_.spec().StandingPose().q;
    StandInPose(robot_, pose, data_.get());
    // flat soles: hip, knee and ankle pitch of the standing pose add up to zero
    base_ = data_->qpos + robot_.base_qpos_address();
    velocity_ = data_->qvel + robot_.base_dof_address();
  }
  // soles this far under the pad's top
  void Sink(double depth) {
    base_[2] += options_.thickness - depth;
    mj_forward(robot_.model(), data_.get());
  }
  Eigen::Vector3d ForceOnBase() const {
    const double* f = data_->qfrc_applied + robot_.base_dof_address();
    return {f[0], f[1], f[2]};  // a free joint's first three are the world's x, y, z
  }

  RobotModel robot_;
  MjDataPtr data_;
  FoamOptions options_;
  double *base_, *velocity_;
};

// A block of area A and thickness t under a flat plate gives E A/t.
TEST_F(FoamTest, IsAnElasticBlockUnderTheLeftFootAlone) {
  Foam foam(robot_, options_);
  Sink(0.004);
  foam.Apply(0.001, data_.get());
  const double expected = options_.modulus * options_.sole_area * 0.004 / options_.thickness;
  // the soles are level to 0.1 mm of 4
  EXPECT_NEAR(foam.normal()[kLeft], expected, 0.03 * expected);
  EXPECT_EQ(foam.normal()[kRight], 0);
  EXPECT_NEAR(ForceOnBase().z(), foam.normal()[kLeft], 1e-9);
  EXPECT_NEAR(ForceOnBase().head<2>().norm(), 0, 1e-9);
}

TEST_F(FoamTest, PushesHarderWhileItIsCompressedAndNeverPulls) {
  Foam foam(robot_, options_);
  Sink(0.004);
  foam.Apply(0.001, data_.get());
  const double still = foam.normal()[kLeft];
  velocity_[2] = -0.1;
  mj_forward(robot_.model(), data_.get());
  foam.Apply(0.001, data_.get());
  EXPECT_NEAR(foam.normal()[kLeft] - still, 4 * foam.damping() * 0.1, 1e-6);
  velocity_[2] = 10;
  mj_forward(robot_.model(), data_.get());
  foam.Apply(0.001, data_.get());
  EXPECT_EQ(foam.normal()[kLeft], 0);
  EXPECT_EQ(ForceOnBase().norm(), 0);
}

// Shear is a spring first and Coulomb's friction at last; letting go of the pad forgets it.
TEST_F(FoamTest, HoldsSidewaysUpToItsFriction) {
  Foam foam(robot_, options_);
  Sink(0.004);
  velocity_[0] = 0.01;
  mj_forward(robot_.model(), data_.get());
  foam.Apply(0.001, data_.get());
  const double spring =
      4 * options_.shear_share * (foam.stiffness() * 1e-5 + foam.damping() * 0.01);
  EXPECT_NEAR(ForceOnBase().x(), -spring, 1e-6);
  velocity_[0] = 1;
  mj_forward(robot_.model(), data_.get());
  for (int k = 0; k < 100; ++k) foam.Apply(0.001, data_.get());
  EXPECT_NEAR(ForceOnBase().x(), -options_.friction * foam.normal()[kLeft], 1e-6);
  velocity_[0] = 0;
  base_[2] += 0.1;
  mj_forward(robot_.model(), data_.get());
  foam.Apply(0.001, data_.get());
  base_[2] -= 0.1;
  mj_forward(robot_.model(), data_.get());
  foam.Apply(0.001, data_.get());
  EXPECT_NEAR(ForceOnBase().x(), 0, 1e-9);
}

}  // namespace
}  // namespace silc
