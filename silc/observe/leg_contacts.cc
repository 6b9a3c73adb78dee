// SPDX-License-Identifier: Apache-2.0
#include "silc/observe/leg_contacts.h"

#include <Eigen/Cholesky>

#include "silc/base/nan.h"
#include "silc/observe/closed_loop.h"
#include "silc/robot/kinematics.h"

namespace silc {

LegContacts::LegContacts(const RobotModel& robot)
    : robot_(&robot), tracker_(MakeContactTracker(robot)), gravity_(6 + robot.num_joints()) {
  const JointRoles& roles = robot.spec().roles;
  for (std::size_t side = 0; side < 2; ++side) {
    leg_[side] = {roles.hip_pitch[side],
                  roles.hip_roll[side],
                  roles.hip_yaw[side],
                  roles.knee[side],
                  roles.ankle_pitch[side],
                  roles.ankle_roll[side]};
  }
}

void LegContacts::Reset() { tracker_ = MakeContactTracker(*robot_); }

ContactMode LegContacts::Update(mjData* data,
                                const BodyJacobians& body,
                                const Eigen::VectorXd& tau,
                                double dt) {
  EstimateForces(data, body, tau);
  tracker_.Update(force_[0], force_[1], dt);
  return tracker_.mode();
}

// J_leg is square; the small λ keeps a stretched knee from exploding.
void LegContacts::EstimateForces(mjData* data,
                                 const BodyJacobians& body,
                                 const Eigen::VectorXd& tau) {
  constexpr double kLambda = 1e-3;  // [m]
  ComputeGravityVector(*robot_, data, gravity_);
  for (std::size_t side = 0; side < 2; ++side) {
    Eigen::Matrix<double, 6, 6> J;
    Eigen::Matrix<double, 6, 1> carried;
    for (int k = 0; k < 6; ++k) {
      const int joint = leg_[side][static_cast<std::size_t>(k)];
      if (joint < 0) {
        force_ = {kNan, kNan};  // the mode then stays as it is
        return;
      }
      J.col(k) = body.foot[side].col(6 + joint);
      carried[k] = gravity_[6 + joint] - tau[joint];
    }
    const Eigen::Matrix<double, 6, 6> JJt =
        J * J.transpose() + kLambda * kLambda * Eigen::Matrix<double, 6, 6>::Identity();
    force_[side] = JJt.ldlt().solve(J * carried)[2];
  }
}

}  // namespace silc
