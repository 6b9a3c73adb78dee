// SPDX-License-Identifier: Apache-2.0
#include "silc/robot/geometric_stiffness.h"

#include <Eigen/Geometry>
#include <Eigen/LU>

#include "silc/base/check.h"
#include "silc/robot/kinematics.h"
#include "silc/robot/pose.h"

namespace silc {
namespace {

using Eigen::Isometry3d;
using Eigen::MatrixXd;
using Eigen::Vector3d;
using Eigen::VectorXd;
using Vector6d = Eigen::Matrix<double, 6, 1>;

Isometry3d SitePose(const mjData& data, int site) {
  Isometry3d X = Isometry3d::Identity();
  X.translation() = Eigen::Map<const Vector3d>(data.site_xpos + 3 * site);
  X.linear() =
      Eigen::Map<const Eigen::Matrix<double, 3, 3, Eigen::RowMajor>>(data.site_xmat + 9 * site);
  return X;
}

// Twist, in W at the site's origin, that carries `from` to `to` in unit time, to second order.
Vector6d PoseError(const Isometry3d& from, const Isometry3d& to) {
  const Eigen::AngleAxisd turn(to.linear() * from.linear().transpose());
  Vector6d error;
  error << to.translation() - from.translation(), turn.angle() * turn.axis();
  return error;
}

// Poses near a standing one, one after the other, in a scratch mjData of its own.
class StandingManifold {
 public:
  StandingManifold(const RobotModel& robot, const mjData& at, const ContactKinematics& contact)
      : robot_(robot), contact_(contact), scratch_(robot.MakeData()), q_(robot.num_joints()) {
    mj_copyData(scratch_.get(), robot.model(), &at);
    mj_kinematics(robot.model(), scratch_.get());
    mj_comPos(robot.model(), scratch_.get());
    GetJointPositions(robot, *scratch_, q_);
    q_0_ = q_;
    for (const int foot : {kLeft, kRight})
      foot_0_[foot] = SitePose(*scratch_, robot.foot_site()[foot]);
    stance_ = contact.mode == ContactMode::kRightSupport ? kRight : kLeft;
    N_ = contact.closed ? MatrixXd(contact.N) : MatrixXd::Identity(q_.size(), q_.size());
    // any complement of N that the closing constraint can see serves to put the second foot back
    if (contact.closed) R_ = contact.J_c.transpose();
  }

  // Moves to q(z) and returns ∂V/∂z there; false when the second foot cannot be put back.
  bool Gradient(const VectorXd& z, const VectorXd& tau_0, VectorXd* gradient) {
    q_ = q_0_ + N_ * z;
    Place();
    if (contact_.closed) {
      constexpr double kClosed = 1e-12;  // [m, rad] far under what a probe of 1e-4 rad moves
      constexpr int kMaxNewton = 20;
      const int swing = 1 - stance_;
      for (int k = 0;; ++k) {
        const Vector6d error =
            PoseError(SitePose(*scratch_, robot_.foot_site()[swing]), foot_0_[swing]);
        if (error.norm() < kClosed) break;
        if (k == kMaxNewton || !error.allFinite()) return false;
        q_ += R_ * (moved_.J_c * R_).lu().solve(error);
        Place();
      }
    }
    // joint columns of ∂U/∂(base, joints), the base following the stance foot
    VectorXd full(6 + robot_.num_joints());
    ComputeGravityVector(robot_, scratch_.get(), full);
    VectorXd joints =
        full.tail(robot_.num_joints()) + moved_.B.transpose() * full.head<6>() - tau_0;
    // q(z) = q_0 + N z + R y(z) with the chain kept closed: ∂q/∂z = N − R (J_c R)⁻¹ J_c N
    MatrixXd tangent = N_;
    if (contact_.closed) tangent -= R_ * (moved_.J_c * R_).lu().solve(moved_.J_c * N_);
    *gradient = tangent.transpose() * joints;
    return gradient->allFinite();
  }

  const MatrixXd& N() const { return N_; }

 private:
  // Joints at q_, base such that the stance foot is where it was; kinematics and (S5) brought up to
  // date.
  void Place() {
    const mjModel* model = robot_.model();
    SetJointPositions(robot_, q_, scratch_.get());
    mj_kinematics(model, scratch_.get());
    const Isometry3d moved = SitePose(*scratch_, robot_.foot_site()[stance_]);
    const Isometry3d back = foot_0_[stance_] * moved.inverse();
    mjtNum* base = scratch_->qpos + robot_.base_qpos_address();
    const Vector3d p_WB = back * Vector3d(base[0], base[1], base[2]);
    const Eigen::Quaterniond R_WB =
        Eigen::Quaterniond(back.linear()) * Eigen::Quaterniond(base[3], base[4], base[5], base[6]);
    for (int i = 0; i < 3; ++i) base[i] = p_WB[i];
    base[3] = R_WB.w();
    base[4] = R_WB.x();
    base[5] = R_WB.y();
    base[6] = R_WB.z();
    mj_kinematics(model, scratch_.get());
    mj_comPos(model, scratch_.get());
    BodyJacobians body;
    ComputeBodyJacobians(robot_, scratch_.get(), &body);
    ComputeContactKinematics(body, contact_.mode, nullptr, &moved_);
  }

  const RobotModel& robot_;
  const ContactKinematics& contact_;
  MjDataPtr scratch_;
  VectorXd q_0_, q_;
  Isometry3d foot_0_[2];
  int stance_ = kLeft;
  MatrixXd N_;               // nv × nz, the motions the contacts leave
  MatrixXd R_;               // nv × 6
  ContactKinematics moved_;  // at the pose last placed
};

}  // namespace

StiffnessStatus ComputeGeometricStiffness(const RobotModel& robot,
                                          const mjData& data,
                                          const VectorXd& tau_0,
                                          const ContactKinematics& contact,
                                          JointMatrix* H) {
  const int n = robot.num_joints();
  SILC_CHECK(tau_0.size() == n && contact.B.cols() == n);
  if (!tau_0.allFinite()) return StiffnessStatus::kNotFinite;
  if (contact.mode == ContactMode::kFlight) {
    H->setZero(n, n);
    return StiffnessStatus::kOk;
  }

  // central differences: truncation ~ h² of the third derivative, rounding ~ 1e-15·m g/h, both near
  // 1e-8
  const double step = 1e-4;  // [rad] of the largest joint motion in a probe
  StandingManifold manifold(robot, data, contact);
  const MatrixXd& N = manifold.N();
  const int nz = static_cast<int>(N.cols());
  MatrixXd H_z(nz, nz);
  VectorXd up, down;
  for (int k = 0; k < nz; ++k) {
    const double h = step / N.col(k).cwiseAbs().maxCoeff();
    if (!manifold.Gradient(h * VectorXd::Unit(nz, k), tau_0, &up) ||
        !manifold.Gradient(-h * VectorXd::Unit(nz, k), tau_0, &down)) {
      return StiffnessStatus::kNoConvergence;
    }
    H_z.col(k) = (up - down) / (2 * h);
  }
  // spread back over the joints: N⁺ᵀ H_z N⁺ has Nᵀ H N = H_z
  const MatrixXd N_pinv = (N.transpose() * N).ldlt().solve(N.transpose());
  *H = N_pinv.transpose() * ((H_z + H_z.transpose()) / 2) * N_pinv;
  return StiffnessStatus::kOk;
}

}  // namespace silc
