// SPDX-License-Identifier: Apache-2.0
#include "silc/robot/geometric_stiffness.h"

#include <gtest/gtest.h>

#include <Eigen/Geometry>
#include <Eigen/LU>

#include "silc/robot/kinematics.h"
#include "silc/robot/pose.h"

namespace silc {
namespace {

using Eigen::MatrixXd;
using Eigen::VectorXd;

class GeometricStiffness : public ::testing::Test {
 protected:
  GeometricStiffness() : robot_(RobotModel::Load("g1")), data_(robot_.MakeData()) {
    StandInPose(robot_, robot_.spec().StandingPose(), data_.get());
  }

  ContactKinematics Contact(ContactMode mode) {
    BodyJacobians body;
    ComputeBodyJacobians(robot_, data_.get(), &body);
    ContactKinematics contact;
    EXPECT_EQ(ComputeContactKinematics(body, mode, nullptr, &contact), StiffnessStatus::kOk);
    return contact;
  }

  RobotModel robot_;
  MjDataPtr data_;
};

// The inverted pendulum everybody knows: swayed about the stance ankle alone, the body's weight
// pushes it further over with m g h per radian, h the height of what sways above the ankle.
TEST_F(GeometricStiffness, SwayAboutTheAnkleIsAnInvertedPendulum) {
  const int n = robot_.num_joints();
  const ContactKinematics contact = Contact(ContactMode::kLeftSupport);
  JointMatrix H;
  ASSERT_EQ(ComputeGeometricStiffness(robot_, *data_, VectorXd::Zero(n), contact, &H),
            StiffnessStatus::kOk);
  const int ankle = robot_.spec().Joint("left_ankle_pitch_joint");
  // all bodies but the foot and the ankle's own link hang on the joint
  const mjModel* model = robot_.model();
  const int foot = robot_.foot_body()[kLeft];
  const int joint = mj_name2id(model, mjOBJ_JOINT, "left_ankle_pitch_joint");
  const int below = model->jnt_bodyid[joint];
  double expected = 0;
  for (int body = 1; body < model->nbody; ++body) {
    if (body == foot || body == below) continue;
    const double height = data_->xipos[3 * body + 2] - data_->xanchor[3 * joint + 2];
    expected -= model->body_mass[body] * 9.81 * height;
  }
  EXPECT_LT(expected, -200);  // far more than the ankle's own spring of 20 N·m/rad
  EXPECT_NEAR(H(ankle, ankle), expected, 1e-4 * std::abs(expected));
}

// A Hessian is symmetric, and it is the curvature of the energy: second differences of V itself,
// along poses put together here by a plain Newton iteration on both feet.
TEST_F(GeometricStiffness, IsTheCurvatureOfTheEnergyInDoubleSupport) {
  const int n = robot_.num_joints();
  const ContactKinematics contact = Contact(ContactMode::kDoubleSupport);
  const VectorXd tau_0 = VectorXd::LinSpaced(n, -5, 5);
  JointMatrix H;
  ASSERT_EQ(ComputeGeometricStiffness(robot_, *data_, tau_0, contact, &H), StiffnessStatus::kOk);

  VectorXd q_0(n);
  GetJointPositions(robot_, *data_, q_0);
  const auto site_pose = [&](const mjData& data, int foot) {
    Eigen::Isometry3d X = Eigen::Isometry3d::Identity();
    const int site = robot_.foot_site()[foot];
    X.translation() = Eigen::Map<const Eigen::Vector3d>(data.site_xpos + 3 * site);
    X.linear() =
        Eigen::Map<const Eigen::Matrix<double, 3, 3, Eigen::RowMajor>>(data.site_xmat + 9 * site);
    return X;
  };
  const Eigen::Isometry3d left_0 = site_pose(*data_, kLeft), right_0 = site_pose(*data_, kRight);

  // V along q_0 + N z, both feet pulled back by damped-free Gauss–Newton over base and J_cᵀ
  // directions
  const auto energy = [&](const VectorXd& z) {
    const MjDataPtr moved = robot_.MakeData();
    mj_copyData(moved.get(), robot_.model(), data_.get());
    VectorXd q = q_0 + contact.N * z;
    for (int k = 0; k < 15; ++k) {
      SetJointPositions(robot_, q, moved.get());
      mj_kinematics(robot_.model(), moved.get());
      mj_comPos(robot_.model(), moved.get());
      FloatingJacobian6 left, right;
      ComputeSiteJacobian(robot_, *moved, robot_.foot_site()[kLeft], &left);
      ComputeSiteJacobian(robot_, *moved, robot_.foot_site()[kRight], &right);
      Eigen::Matrix<double, 12, 1> error;
      const auto twist = [](const Eigen::Isometry3d& from, const Eigen::Isometry3d& to) {
        const Eigen::AngleAxisd turn(to.linear() * from.linear().transpose());
        Eigen::Matrix<double, 6, 1> t;
        t << to.translation() - from.translation(), turn.angle() * turn.axis();
        return t;
      };
      error << twist(site_pose(*moved, kLeft), left_0), twist(site_pose(*moved, kRight), right_0);
      if (error.norm() < 1e-13) break;
      MatrixXd J(12, 12);  // base twist and the six joint directions of J_cᵀ
      const MatrixXd R = contact.J_c.transpose();
      J << left.leftCols(6), left.rightCols(n) * R, right.leftCols(6), right.rightCols(n) * R;
      const VectorXd step = J.partialPivLu().solve(error);
      q += R * step.tail(6);
      std::vector<mjtNum> velocity(robot_.model()->nv, 0);
      for (int i = 0; i < 6; ++i) velocity[robot_.base_dof_address() + i] = step[i];
      mj_integratePos(robot_.model(), moved->qpos, velocity.data(), 1);
    }
    return PotentialEnergy(robot_, *moved) - tau_0.dot(q - q_0);
  };

  const MatrixXd H_z = contact.N.transpose() * H * contact.N;
  const double scale = H_z.cwiseAbs().maxCoeff();
  const int nz = static_cast<int>(contact.N.cols());
  // h = 1e-3: truncation ~ h² of the fourth derivative, rounding ~ 1e-13 J / h², both near 1e-6 of
  // scale
  const double h = 1e-3;
  for (const auto& entry : {std::pair(0, 0), {3, 3}, {7, 12}, {nz - 1, nz - 1}, {2, 20}}) {
    const int i = entry.first, j = entry.second;
    const auto at = [&](double a, double b) {
      VectorXd z = VectorXd::Zero(nz);
      z[i] += a * h;
      z[j] += b * h;
      return energy(z);
    };
    const double curvature = (at(1, 1) - at(1, -1) - at(-1, 1) + at(-1, -1)) / (4 * h * h);
    EXPECT_NEAR(H_z(i, j), curvature, 1e-4 * scale) << i << ", " << j;
  }
}

TEST_F(GeometricStiffness, FlightHoldsTheBase) {
  const int n = robot_.num_joints();
  JointMatrix H;
  ASSERT_EQ(ComputeGeometricStiffness(
                robot_, *data_, VectorXd::Zero(n), Contact(ContactMode::kFlight), &H),
            StiffnessStatus::kOk);
  EXPECT_EQ(H.norm(), 0);
}

TEST_F(GeometricStiffness, ANanTorqueIsAStatus) {
  const int n = robot_.num_joints();
  JointMatrix H;
  EXPECT_EQ(ComputeGeometricStiffness(
                robot_, *data_, VectorXd::Constant(n, NAN), Contact(ContactMode::kLeftSupport), &H),
            StiffnessStatus::kNotFinite);
}

}  // namespace
}  // namespace silc
