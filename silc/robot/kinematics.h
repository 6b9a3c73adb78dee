// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <Eigen/Core>
#include <array>

#include "silc/robot/robot_model.h"
#include "silc/stiffness/contact_jacobian.h"

namespace silc {

// Everything here reads an mjData whose positions are up to date (mj_forward, mj_step1 or
// mj_kinematics + mj_comPos; forces need the contact solver too, mj_forward or mj_step), is
// expressed in the world frame W, and orders joints as the robot does. Nothing allocates.

/// (S5) needs these: CoM, feet and hands [J_b | J_j], and gravity in the base frame B. Columns are
/// base linear velocity in W, base angular velocity in B, joints. Feet and hands are taken at their
/// sites. A robot without hands gets zero rows for them.
void ComputeBodyJacobians(const RobotModel& robot, mjData* data, BodyJacobians* out);

/// Linear, then angular velocity of a site per generalised velocity, columns as above.
void ComputeSiteJacobian(const RobotModel& robot,
                         const mjData& data,
                         int site,
                         FloatingJacobian6* J_WS);

/// ∂p_WC/∂(base, joints) of the centre of mass, columns as above.
void ComputeComJacobian(const RobotModel& robot, mjData* data, FloatingJacobian3* J_WC);

Eigen::Vector3d ComPosition(const RobotModel& robot, const mjData& data);   ///< p_WC [m]
Eigen::Matrix3d BaseRotation(const RobotModel& robot, const mjData& data);  ///< R_WB
/// Unit vector along gravity, in B: (0, 0, −1) when upright. In a world without gravity, −z of W.
Eigen::Vector3d GravityInBase(const RobotModel& robot, const mjData& data);

/// V = −m g·p_WC [J], zero at the height of W's origin.
double PotentialEnergy(const RobotModel& robot, const mjData& data);

/// ∂V/∂(base, joints) = −m gᵀ J_WC [N, N·m]: what must act to hold the robot still, 6 + num_joints
/// entries. @pre `out` has that size.
void ComputeGravityVector(const RobotModel& robot, mjData* data, Eigen::Ref<Eigen::VectorXd> out);

/// What the world does to one sole.
struct FootForce {
  double normal = 0;  // [N] along the contact normals, pushing positive
  Eigen::Vector3d force = Eigen::Vector3d::Zero();  // [N] in W, on the robot
};

/// Sums the contacts between each foot's geoms and bodies that do not move (floor, steps). A foot
/// on the other foot stands on nothing. Index kLeft, kRight.
std::array<FootForce, 2> ComputeFootForces(const RobotModel& robot, const mjData& data);

/// The feet that touch such a body: what is known of the contacts of a recorded pose, without the
/// torques that went with it.
ContactMode ContactsOfPose(const RobotModel& robot, const mjData& data);

}  // namespace silc
