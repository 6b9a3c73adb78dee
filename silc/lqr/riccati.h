// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <Eigen/Core>

namespace silc {

/// x⁺ = A x + B u sampled every `period`, from ẋ = A_c x + B_c u with u held between samples.
struct SampledSystem {
  Eigen::MatrixXd A;  // nx × nx
  Eigen::MatrixXd B;  // nx × nu
};
SampledSystem SampleSystem(const Eigen::MatrixXd& A_c, const Eigen::MatrixXd& B_c, double period);

/// Gain F of the regulator u = −F x that minimises Σ xᵀ Q x + uᵀ R u along x⁺ = A x + B u.
///
///     X = Q + Aᵀ X A − Aᵀ X B F,   F = (R + Bᵀ X B)⁻¹ Bᵀ X A
///
/// solved by structure-preserving doubling (Chu, Fan, Lin, Wang 2004): each step squares the
/// horizon, so a dozen steps reach rounding. Throws RunError when it does not converge: (A, B) has
/// an unstable mode that u cannot reach, or Q does not see one.
///
/// @param Q  nx × nx, symmetric positive semidefinite
/// @param R  nu × nu, symmetric positive definite
Eigen::MatrixXd RegulatorGain(const SampledSystem& system,
                              const Eigen::MatrixXd& Q,
                              const Eigen::MatrixXd& R);

}  // namespace silc
