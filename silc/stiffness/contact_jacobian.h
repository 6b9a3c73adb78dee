// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <Eigen/Core>

#include "silc/stiffness/contact_mode.h"
#include "silc/stiffness/status.h"
#include "silc/stiffness/types.h"

namespace silc {

/// Rows as mj_jac…() writes them: row-major. Columns: base linear velocity in W (3), base angular
/// velocity in B (3), the joints in the robot's order; that is qvel of a model whose first joint is
/// free.
using FloatingJacobian3 =
    Eigen::Matrix<double, 3, Eigen::Dynamic, Eigen::RowMajor, 3, kMaxDofs + 6>;
using FloatingJacobian6 =
    Eigen::Matrix<double, 6, Eigen::Dynamic, Eigen::RowMajor, 6, kMaxDofs + 6>;

/// What a simulator or a kinematics library knows about one moment, all in W. Index 0 is left, 1
/// right.
struct BodyJacobians {
  FloatingJacobian6 foot[2];                        // 6 × (6 + nv)  linear rows, then angular rows
  FloatingJacobian3 com;                            // 3 × (6 + nv)
  FloatingJacobian3 hand[2];                        // 3 × (6 + nv)
  Eigen::Vector3d g_B = -Eigen::Vector3d::UnitZ();  // [1] unit gravity vector in B
};

/// Motions that the contacts leave.
///
///     base velocity = B q̇,  B = −J_fb⁻¹ J_fj            f the foot that stands
///     J = J_xj + J_xb B = J_xj − J_xb J_fb⁻¹ J_fj                                    (S5)
///     double support:  J_c q̇ = 0,  J_c = J_2j + J_2b B,  q̇ = N ż
///     E = ∂g_B/∂q = [g_B]× B_rot
///
/// A foot that stands neither slips nor tilts. In double support B is the one of either foot made
/// zero on the motions that the closed chain forbids, B (I − J_c⁺ J_c): the same whichever foot it
/// began with, and unchanged where it matters, on N. In flight B = 0: the base is taken as
/// inertially fixed, so the hands' Jacobians are relative to it, and the centre of mass has no
/// static stiffness.
struct ContactKinematics {
  ContactMode mode = ContactMode::kFlight;
  bool closed = false;  ///< double support: N is in use
  Jacobian6 B;          // 6 × nv   base linear velocity in W, base angular velocity in B, per q̇
  Jacobian3 E;          // 3 × nv   [1/rad]
  Jacobian3 com;        // 3 × nv   [m/rad]
  Jacobian3 hand_in_world[2];  // 3 × nv   [m/rad] through the legs
  Jacobian3 hand_on_base[2];   // 3 × nv   [m/rad] with the base at rest, whatever the feet do
  Jacobian6 J_c;               // 6 × nv   closing constraint; zero unless closed
  JointMatrix N;               // nv × (nv − 6), Nᵀ W N = I; nv × 0 unless closed
  JointVector N_scale;         // nv       W^{−1/2} of that W, ones for W = I
};

/// (S5) of a point: J_xj + J_xb B. @pre `J_x` has the columns of `contact.B` and six before them.
/// Does not allocate, does not throw.
void ThroughBase(const ContactKinematics& contact, const FloatingJacobian3& J_x, Jacobian3* J);

/// Fills (S5) for `mode`. The batched twin is FillSample() in silc/task/stiffness_sample.h, out of
/// the physics' stance and frame Jacobians (silc/physics/fields.h).
///
/// @param weight  W of the metric that N is orthonormal in, diagonal; null for W = I. Whoever calls
///                FactorBudgetAt() gives the budget's W here; the other functions take any.
/// @return kOk; kNotFinite; kSingularBaseBlock when J_fb has a reciprocal condition under 1e-10;
///         kRankDeficientJacobian when the closing constraint has fewer than six independent rows,
///         each scaled to length one (RowsAreIndependent()). Does not allocate, does not throw.
StiffnessStatus ComputeContactKinematics(const BodyJacobians& body,
                                         ContactMode mode,
                                         const JointVector* weight,
                                         ContactKinematics* out);

}  // namespace silc
