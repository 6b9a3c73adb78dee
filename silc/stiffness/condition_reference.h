// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "silc/stiffness/condition.h"

/// The conditions (S7a), (S7b), (S7c) as they are written, with dense factors, and their
/// derivatives. For tests: the observer and the trainer have σ cheaper, and are held against this.
namespace silc {

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

}  // namespace silc
