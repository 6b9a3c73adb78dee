// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "silc/stiffness/status.h"
#include "silc/stiffness/types.h"

namespace silc {

/// What a task point feels like.
struct TaskStiffness {
  TaskMatrix K_x;  // m × m  (J K⁻¹ Jᵀ)⁻¹: force per displacement, the other axes held   [N/m]
  TaskMatrix C_x;       // m × m  displacement per force                                      [m/N]
  TaskVector one_axis;  // m      1/(C_x)_ii: what a push along one axis measures             [N/m]
};

/// Task stiffness and compliance of a joint stiffness K.
///
///     C_x = J K⁻¹ Jᵀ,   K_x = C_x⁻¹,   1/(C_x)_ii                                    (S11)
///     closed chain:  K⁻¹ → N (Nᵀ K N)⁻¹ Nᵀ
///
/// External force f on the point, δx = C_x f. K need not be symmetric; neither is K_x then.
///
/// @param J  m × nv contact-consistent Jacobian of (S5)           [m/rad]
/// @param K  nv × nv                                              [N·m/rad]
/// @param N  nv × nz, the motions the contacts leave; null when every joint motion is allowed
/// @param H  nv × nv stiffness added to K, null for none: the Hessian of potential energy on the
/// allowed
///           motions when a measurement on a loaded robot is to be predicted; only Nᵀ H N matters
/// @return kOk; kNotFinite; kSingularStiffness when Nᵀ(K+H)N has a reciprocal condition under
/// 1e-12;
///         kRankDeficientJacobian when J N has lost rank (RowsAreIndependent()). Does not allocate.
StiffnessStatus ComputeTaskStiffness(const ConstMatrix& J,
                                     const ConstMatrix& K,
                                     const ConstMatrix* N,
                                     const ConstMatrix* H,
                                     TaskStiffness* out);

inline constexpr double kStiffnessRcond = 1e-12;  // [1]

}  // namespace silc
