// SPDX-License-Identifier: Apache-2.0
#include "silc/robot/kinematics.h"

#include <gtest/gtest.h>

#include <Eigen/Geometry>
#include <cmath>
#include <random>

#include "silc/base/test_paths.h"
#include "silc/robot/pose.h"
#include "silc/robot/tiny_biped.h"

namespace silc {
namespace {

// Base anywhere with any rotation, joints inside their ranges.
void SetRandomPose(const RobotModel& robot, std::mt19937* rng, mjData* data) {
  std::uniform_real_distribution<double> unit(-1, 1);
  mjtNum* base = data->qpos + robot.base_qpos_address();
  for (int k = 0; k < 3; ++k) base[k] = unit(*rng) + (k == 2 ? 5 : 0);
  for (int k = 3; k < 7; ++k) base[k] = unit(*rng);
  mju_normalize4(base + 3);
  for (int i = 0; i < robot.num_joints(); ++i) {
    const double middle = (robot.q_max()[i] + robot.q_min()[i]) / 2;
    const double half = (robot.q_max()[i] - robot.q_min()[i]) / 2;
    data->qpos[robot.qpos_address()[i]] = middle + half * unit(*rng);
  }
  mj_forward(robot.model(), data);
}

// `data` moved by h along generalised velocity column c of [base | joints].
MjDataPtr Moved(const RobotModel& robot, const mjData& data, int c, double h) {
  MjDataPtr moved = robot.MakeData();
  mj_copyData(moved.get(), robot.model(), &data);
  Eigen::VectorXd v = Eigen::VectorXd::Zero(robot.model()->nv);
  v[c < 6 ? robot.base_dof_address() + c : robot.dof_address()[c - 6]] = 1;
  mj_integratePos(robot.model(), moved->qpos, v.data(), h);
  mj_forward(robot.model(), moved.get());
  return moved;
}

Eigen::Vector3d SitePosition(const mjData& data, int site) {
  return Eigen::Map<const Eigen::Vector3d>(data.site_xpos + 3 * site);
}

Eigen::Matrix3d SiteRotation(const mjData& data, int site) {
  return Eigen::Map<const Eigen::Matrix<double, 3, 3, Eigen::RowMajor>>(data.site_xmat + 9 * site);
}

class KinematicsOf : public ::testing::TestWithParam<const char*> {
 protected:
  const TinyBipedFolder files_;
  const RobotModel robot_ = RobotModel::Load(
      GetParam() == std::string("tiny") ? files_.folder() : SourcePath("robots/g1"));
  const MjDataPtr data_ = robot_.MakeData();
  std::mt19937 rng_{3};
  // central differences: truncation ~h², rounding ~ε/h: both below 1e-8 at metres and h = 1e-5
  static constexpr double kStep = 1e-5;
  static constexpr double kTolerance = 1e-8;
};

TEST_P(KinematicsOf, JacobiansAreDerivativesOfPositionsInRobotOrder) {
  for (int trial = 0; trial < 3; ++trial) {
    SetRandomPose(robot_, &rng_, data_.get());
    BodyJacobians body;
    ComputeBodyJacobians(robot_, data_.get(), &body);
    const int n = 6 + robot_.num_joints();
    ASSERT_EQ(body.com.cols(), n);
    for (int c = 0; c < n; ++c) {
      const MjDataPtr plus = Moved(robot_, *data_, c, kStep);
      const MjDataPtr minus = Moved(robot_, *data_, c, -kStep);
      const auto slope = [&](const auto& of) {
        return ((of(*plus) - of(*minus)) / (2 * kStep)).eval();
      };

      const Eigen::Vector3d com = slope([&](const mjData& d) { return ComPosition(robot_, d); });
      EXPECT_LT((body.com.col(c) - com).norm(), kTolerance) << "com column " << c;
      // g_B turns against the base: ∂g_B = −ω × g_B, ω the base's angular velocity in B
      const Eigen::Vector3d g = slope([&](const mjData& d) { return GravityInBase(robot_, d); });
      const Eigen::Vector3d w_B =
          c >= 3 && c < 6 ? Eigen::Vector3d::Unit(c - 3).eval() : Eigen::Vector3d::Zero().eval();
      EXPECT_LT((g + w_B.cross(body.g_B)).norm(), kTolerance) << "gravity column " << c;

      for (int side : {kLeft, kRight}) {
        const int foot = robot_.foot_site()[side];
        const Eigen::Vector3d v = slope([&](const mjData& d) { return SitePosition(d, foot); });
        EXPECT_LT((body.foot[side].col(c).head<3>() - v).norm(), kTolerance) << "foot column " << c;
        // Ṙ Rᵀ = [ω]×
        const Eigen::Matrix3d spin = slope([&](const mjData& d) { return SiteRotation(d, foot); }) *
                                     SiteRotation(*data_, foot).transpose();
        const Eigen::Vector3d w(spin(2, 1), spin(0, 2), spin(1, 0));
        EXPECT_LT((body.foot[side].col(c).tail<3>() - w).norm(), kTolerance) << "foot column " << c;
        if (!robot_.has_hands()) {
          EXPECT_TRUE(body.hand[side].isZero());
          continue;
        }
        const int hand = robot_.hand_site()[side];
        const Eigen::Vector3d u = slope([&](const mjData& d) { return SitePosition(d, hand); });
        EXPECT_LT((body.hand[side].col(c) - u).norm(), kTolerance) << "hand column " << c;
      }
    }
  }
}

TEST_P(KinematicsOf, GravityVectorIsTheSlopeOfTheEnergyAndMujocosBiasAtRest) {
  SetRandomPose(robot_, &rng_, data_.get());
  Eigen::VectorXd gravity(6 + robot_.num_joints());
  ComputeGravityVector(robot_, data_.get(), gravity);
  // a crate that does not move is in no dof; the bias at rest is gravity alone
  for (int k = 0; k < 6; ++k) {
    EXPECT_NEAR(gravity[k], data_->qfrc_bias[robot_.base_dof_address() + k], 1e-9);
  }
  for (int i = 0; i < robot_.num_joints(); ++i) {
    EXPECT_NEAR(gravity[6 + i], data_->qfrc_bias[robot_.dof_address()[i]], 1e-9);
  }
  for (int c = 0; c < gravity.size(); ++c) {
    const MjDataPtr plus = Moved(robot_, *data_, c, kStep);
    const MjDataPtr minus = Moved(robot_, *data_, c, -kStep);
    const double slope =
        (PotentialEnergy(robot_, *plus) - PotentialEnergy(robot_, *minus)) / (2 * kStep);
    // energies are some 1e3 J, so rounding is ~1e3 ε/h = 2e-8
    EXPECT_NEAR(gravity[c], slope, 1e-6) << c;
  }
}

// Newton: what the floor does to the feet, and gravity, is all that accelerates the centre of mass.
// At rest its acceleration is J_WC q̈.
TEST_P(KinematicsOf, FootForcesAndWeightAccelerateTheCentreOfMass) {
  for (double tilt : {0.0, 0.05, -0.1}) {
    StandInPose(robot_, robot_.spec().StandingPose(), data_.get());
    mjtNum* base = data_->qpos + robot_.base_qpos_address();
    base[2] -= 0.003;  // [m] pressed into the floor
    base[3] = std::cos(tilt / 2);
    base[4] = std::sin(tilt / 2);
    mj_forward(robot_.model(), data_.get());
    ASSERT_GT(data_->ncon, 0);
    const std::array<FootForce, 2> feet = ComputeFootForces(robot_, *data_);

    FloatingJacobian3 J_WC;
    ComputeComJacobian(robot_, data_.get(), &J_WC);
    Eigen::VectorXd qdd(6 + robot_.num_joints());
    for (int k = 0; k < 6; ++k) qdd[k] = data_->qacc[robot_.base_dof_address() + k];
    for (int i = 0; i < robot_.num_joints(); ++i) qdd[6 + i] = data_->qacc[robot_.dof_address()[i]];
    const Eigen::Vector3d a_WC = J_WC * qdd;
    const Eigen::Vector3d weight(0, 0, -9.81 * robot_.mass());
    const Eigen::Vector3d force = feet[kLeft].force + feet[kRight].force;
    // MuJoCo's Newton solver stops at 1e-8 relative
    EXPECT_LT((force + weight - robot_.mass() * a_WC).norm(), 1e-5 * force.norm()) << tilt;

    // the floor is level, so normals are vertical; feet are pushed, never pulled
    for (int side : {kLeft, kRight}) {
      EXPECT_NEAR(feet[side].normal, feet[side].force.z(), 1e-9 * force.norm());
      EXPECT_GE(feet[side].normal, 0);
    }
    // tilting about +x lifts the left foot
    if (tilt != 0) {
      EXPECT_GT(tilt * (feet[kRight].normal - feet[kLeft].normal), 0);
    }
  }
}

// The debug preset builds library and test with Eigen's heap guard; elsewhere there is nothing to
// see.
TEST_P(KinematicsOf, NothingAllocates) {
#ifdef EIGEN_RUNTIME_NO_MALLOC
  StandInPose(robot_, robot_.spec().StandingPose(), data_.get());
  BodyJacobians body;
  Eigen::VectorXd gravity(6 + robot_.num_joints()), q(robot_.num_joints());
  Eigen::internal::set_is_malloc_allowed(false);
  ComputeBodyJacobians(robot_, data_.get(), &body);
  ComputeGravityVector(robot_, data_.get(), gravity);
  ComputeFootForces(robot_, *data_);
  GetJointPositions(robot_, *data_, q);
  SetJointTorques(robot_, q, data_.get());
  Eigen::internal::set_is_malloc_allowed(true);
  EXPECT_GT(PotentialEnergy(robot_, *data_), 0);
#else
  GTEST_SKIP() << "built without EIGEN_RUNTIME_NO_MALLOC: use the debug preset";
#endif
}

INSTANTIATE_TEST_SUITE_P(Robots,
                         KinematicsOf,
                         ::testing::Values("g1", "tiny"),
                         [](const auto& param_info) { return std::string(param_info.param); });

// Held still by stiff servos until nothing moves, the feet carry the weight.
TEST(FootForces, OfAStandingRobotSumToItsWeight) {
  const RobotModel robot = RobotModel::Load(SourcePath("robots/g1"));
  const MjDataPtr data = robot.MakeData();
  const Pose& pose = robot.spec().StandingPose("home");
  StandInPose(robot, pose, data.get());
  GainSet gains = robot.spec().Gains();
  for (int i : robot.spec().Group("legs").joints) {
    // m g h = 225 N·m/rad topples the robot; two ankles of 300 hold it
    if (robot.spec().joints[i].find("ankle") != std::string::npos) {
      gains.kp[i] = 300;
      gains.kd[i] = 2;
    }
  }
  Eigen::VectorXd q(robot.num_joints()), qd(robot.num_joints());
  for (int step = 0; step < 2000; ++step) {  // 10 s
    GetJointPositions(robot, *data, q);
    GetJointVelocities(robot, *data, qd);
    SetJointTorques(
        robot, gains.kp.cwiseProduct(pose.q - q) - gains.kd.cwiseProduct(qd), data.get());
    mj_step(robot.model(), data.get());
  }
  const std::array<FootForce, 2> feet = ComputeFootForces(robot, *data);
  const double weight = 9.81 * robot.mass();
  // 1e-3: what is left of the sway after 10 s
  EXPECT_NEAR(feet[kLeft].normal + feet[kRight].normal, weight, 1e-3 * weight);
  EXPECT_NEAR(feet[kLeft].normal, feet[kRight].normal, 0.05 * weight);
  EXPECT_GT(GravityInBase(robot, *data).dot(-Eigen::Vector3d::UnitZ()), 0.99);
}

// Steps count as floor. Against a box MuJoCo names the capsule first, against the plane second: the
// force must be the one on the robot both times.
TEST(FootForces, OnABoxPushUpAsOnThePlane) {
  const std::string mjcf = Changed(
      kTinyBipedMjcf, "type=\"box\" size=\"0.1 0.1 0.1\"", "type=\"box\" size=\"0.5 0.5 0.1\"");
  const TinyBipedFolder files(kTinyBipedYaml, mjcf);
  const RobotModel robot = RobotModel::Load(files.folder());
  const MjDataPtr data = robot.MakeData();
  const auto force_at = [&](double x, double z) {
    data->qpos[0] = x;
    data->qpos[2] = z;
    mj_forward(robot.model(), data.get());
    return ComputeFootForces(robot, *data);
  };
  const auto plane = force_at(0, 0.9 - 0.002);
  const auto box = force_at(3, 0.9 + 0.2 - 0.002);  // the crate's top is 0.2 m up
  for (int side : {kLeft, kRight}) {
    EXPECT_GT(plane[side].force.z(), 10);
    EXPECT_NEAR(box[side].normal, plane[side].normal, 1e-6 * plane[side].normal);
    EXPECT_LT((box[side].force - plane[side].force).norm(), 1e-6 * plane[side].normal);
  }
}

// A foot that rests on the other foot stands on nothing.
TEST(FootForces, CountTheFloorAlone) {
  // wider soles, legs brought together: the soles press on each other, far above the floor
  std::string mjcf = Changed(kTinyBipedMjcf, "pos=\"0 -0.1 -0.2\"", "pos=\"0 0.07 -0.2\"");
  const TinyBipedFolder files(kTinyBipedYaml, mjcf);
  const RobotModel robot = RobotModel::Load(files.folder());
  const MjDataPtr data = robot.MakeData();
  data->qpos[2] = 3;
  mj_forward(robot.model(), data.get());
  ASSERT_GT(data->ncon, 0);
  for (const FootForce& foot : ComputeFootForces(robot, *data)) {
    EXPECT_EQ(foot.normal, 0);
    EXPECT_EQ(foot.force.norm(), 0);
  }
}

}  // namespace
}  // namespace silc
