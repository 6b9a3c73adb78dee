// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <Eigen/Core>

#include "silc/stiffness/budget.h"
#include "silc/stiffness/contact_jacobian.h"
#include "silc/stiffness/status.h"
#include "silc/stiffness/types.h"

namespace silc {

/// The coordinates in which a budget is the identity: F = L⁻¹ Pᵀ, q̇ = P ż the motions that the
/// contacts allow, L Lᵀ = M − m (S6). A stiffness K is held as F K Fᵀ − m̃.
struct BudgetCoordinates {
  Eigen::MatrixXd F;      // nz × nv   [(rad/N·m)^½]
  Eigen::MatrixXd floor;  // nz × nz   m̃ = L⁻¹ m L⁻ᵀ of the band; zero without a floor
};
/// Right for any N of `contact`, whatever it is orthonormal in. Allocates.
/// @return kOk or the status of FactorBudget()
StiffnessStatus MakeBudgetCoordinates(const BudgetSpec& spec,
                                      const Servo& servo,
                                      const ContactKinematics& contact,
                                      BudgetCoordinates* out);

/// A dynamic stiffness held against a budget at one frequency.
struct FrequencyReading {
  /// [1] σ(ω) = ‖2 (F (K − jω Kd) Fᵀ − m̃) − I‖                                             (S12)
  /// ≤ 1: the elastic part of K is between 0 (m) and M, whatever the servo's own damping.
  double sigma = 0;
  /// [1] λ_max(−2 F S Fᵀ), S = (K − Kᴴ)/(2j) = ω D_H                                       (S13)
  /// ≤ 0: no motion at ω that the contacts allow takes energy out of the loop.
  double driving = 0;
};

/// (S12) and (S13) of K(jω) (S4). @pre ω ≥ 0; K is nv × nv. NaN where K is not finite. Allocates.
FrequencyReading ReadAtFrequency(const Eigen::MatrixXcd& K,
                                 const Servo& servo,
                                 double omega,
                                 const BudgetCoordinates& coordinates);

}  // namespace silc
