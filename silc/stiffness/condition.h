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

/// "one-sided", "two-sided", "disc".
const char* Name(Condition condition);

/// A singular value with its vectors, A v = σ u, and the derivative of σ with respect to K:
///
///     dσ = leftᵀ dK right                                                            (S9)
struct SigmaTriple {
  double sigma = 0;   // [1]
  JointVector u, v;   // [1] unit vectors of A
  JointVector left;   // kOneSided: L⁻ᵀ u;  kTwoSided: L⁻ᵀ u;  kDisc: 2 L⁻ᵀ u
  JointVector right;  // kOneSided: v;      kTwoSided, kDisc: L⁻ᵀ v
};

/// All of them, largest first.
struct SigmaSpectrum {
  JointVector sigma;        // n
  JointMatrix U, V;         // n × n, columns belong to sigma
  JointMatrix left, right;  // n × n, as in SigmaTriple
};

/// Largest σ of (S7a), (S7b) or (S7c), values only. K need not be symmetric. In double support hand
/// in Nᵀ K N and the reduced M.
///
/// For the disc σ² = 1 + 4 λ_max(K̃ᵀK̃ − sym K̃), K̃ = L⁻¹ K L⁻ᵀ: one symmetric eigenvalue problem.
/// @return kOk, kNotFinite, kBudgetNotPositive, kNoConvergence. Does not allocate, does not throw.
StiffnessStatus LargestSigma(Condition condition,
                             const ConstMatrix& K,
                             const ConstMatrix& M,
                             double* sigma);

/// The largest σ with its vectors. When σ is not simple, any of its vectors.
StiffnessStatus LargestSigma(Condition condition,
                             const ConstMatrix& K,
                             const ConstMatrix& M,
                             SigmaTriple* triple);

/// All σ with their vectors.
StiffnessStatus AllSigmas(Condition condition,
                          const ConstMatrix& K,
                          const ConstMatrix& M,
                          SigmaSpectrum* spectrum);

/// Band version of (S7c), with a floor m under the stiffness:
///
///     ‖L_h⁻¹ (K − (M + m)/2) L_h⁻ᵀ‖₂ ≤ 1,   L_h L_hᵀ = (M − m)/2                      (S7c)
///
/// gives m ≤ sym K ≤ M and sym(K⁻¹) ≥ M⁻¹; m = 0 is the disc. @return kBudgetNotPositive unless M >
/// m ≥ 0.
StiffnessStatus LargestBandSigma(const ConstMatrix& K,
                                 const ConstMatrix& M,
                                 const ConstMatrix& m,
                                 SigmaTriple* triple);

/// λ_max(L⁻¹ sym(K) L⁻ᵀ): the worst direction of the quadratic form xᵀKx against xᵀMx. What a
/// search over directions would find if it never missed; blind to the skew part and to negative
/// stiffness.
StiffnessStatus WorstEigenvalue(const ConstMatrix& K, const ConstMatrix& M, double* lambda);

/// λ_max of a symmetric matrix (the lower triangle is read). @return kOk, kNotFinite,
/// kNoConvergence.
StiffnessStatus LargestEigenvalue(const JointMatrix& symmetric, double* lambda);

}  // namespace silc
