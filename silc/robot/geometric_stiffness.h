// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "silc/robot/robot_model.h"
#include "silc/stiffness/contact_jacobian.h"
#include "silc/stiffness/status.h"

namespace silc {

/// Stiffness that gravity and standing torques add to the joints' own, on the motions the contacts
/// leave.
///
///     H_z = ∂²V/∂z²,   V(z) = U(q(z)) − τ₀·q(z),   z ↦ q(z) the poses that keep the standing feet
///     in place
///
/// An upright robot falls: H_z has negative directions of about −m g h at the ankles, which is why
/// a measured stiffness is (K_s + H) seen through the contacts and not K_s alone (S11). In double
/// support the curvature of the closed chain is in H_z too, weighted by what the feet carry between
/// them. Second derivative by central differences of the exact gradient, with the feet put back
/// exactly at every probe.
///
/// @param data     state at which the robot stands; read only
/// @param tau_0    torques that hold it there                                    [N·m] num_joints
/// @param contact  (S5) at that state; its N sets the coordinates z
/// @param[out] H   num_joints × num_joints with Nᵀ H N = H_z: only that product has a meaning
/// [N·m/rad]
/// @return kOk; kNotFinite; kNoConvergence when the feet cannot be put back (a stretched leg). In
/// flight H
///         is zero: the base is taken as held.
StiffnessStatus ComputeGeometricStiffness(const RobotModel& robot,
                                          const mjData& data,
                                          const Eigen::VectorXd& tau_0,
                                          const ContactKinematics& contact,
                                          JointMatrix* H);

}  // namespace silc
