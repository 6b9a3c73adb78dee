// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "silc/stiffness/task_stiffness.h"

/// A task stiffness against its bound, and the derivatives of (S11). For tests.
namespace silc {

/// λ_max(L_x⁻¹ sym(K_x) L_x⁻ᵀ), K_x^max = L_x L_xᵀ: at most 1 when the task bound holds.
StiffnessStatus WorstTaskEigenvalue(const ConstMatrix& K_x,
                                    const ConstMatrix& K_x_max,
                                    double* lambda);

/// Derivatives with respect to K, each of the form d(·) = leftᵀ dK right. Chain them to the policy
/// with StaticDirection() of penalty_reference.h. @pre the arguments gave kOk in
/// ComputeTaskStiffness().
///
///     d(1/C_ii)  = (K⁻ᵀ j_i / C_ii)ᵀ dK (K⁻¹ j_i / C_ii),      j_i the i-th row of J as a column
///     d(K_x)_ij  = (K⁻ᵀ Jᵀ K_xᵀ e_i)ᵀ dK (K⁻¹ Jᵀ K_x e_j)
void OneAxisGradient(const ConstMatrix& J,
                     const ConstMatrix& K,
                     const ConstMatrix* N,
                     const ConstMatrix* H,
                     int axis,
                     JointVector* left,
                     JointVector* right);
void TaskStiffnessGradient(const ConstMatrix& J,
                           const ConstMatrix& K,
                           const ConstMatrix* N,
                           const ConstMatrix* H,
                           int row,
                           int col,
                           JointVector* left,
                           JointVector* right);

}  // namespace silc
