// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "silc/stiffness/status.h"
#include "silc/stiffness/types.h"

namespace silc {

/// How a stiffness K is held against a budget M = L Lᵀ. Each is met when its σ ≤ 1.
enum class Condition {
  kOneSided,  ///< (S7a) ‖L⁻¹ K‖₂, as printed in the paper: bounds K by √M, depends on the unit of
              ///< torque
  kTwoSided,  ///< (S7b) ‖L⁻¹ K L⁻ᵀ‖₂: −M ≤ sym K ≤ M, but no task bound when K is not symmetric
  kDisc,  ///< (S7c) ‖2 L⁻¹ K L⁻ᵀ − I‖₂: the sound one: 0 ≤ sym K ≤ M and sym(K⁻¹) ≥ M⁻¹
};

/// σ up to which tables and logs count a moment of a trained policy as kept [1]; the budget itself
/// holds at σ ≤ 1. The penalty's pull vanishes as σ falls to its bound, so a trained policy lies
/// about its bound and not below: counted are the moments that are over by more than 5 %.
inline constexpr double kKeptSigma = 1.05;

/// "one-sided", "two-sided", "disc".
const char* Name(Condition condition);

/// λ_max of a symmetric matrix (the lower triangle is read). @return kOk, kNotFinite,
/// kNoConvergence.
StiffnessStatus LargestEigenvalue(const JointMatrix& symmetric, double* lambda);

}  // namespace silc
