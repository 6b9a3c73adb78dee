// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <Eigen/Core>
#include <vector>

namespace silc {

/// An upper bound of λ_max of a symmetric matrix that rounding cannot break: μ such that a Cholesky
/// factorisation of (μ − c) I − S runs through, c covering its own rounding (C7). Within 1e−9 of
/// the size of S. Infinite where S is not finite.
double LargestEigenvalueBound(const Eigen::MatrixXd& S);

/// An upper bound of ‖M‖₂ within a tenth, rounding included: the Frobenius norm of the eighth power
/// of the smaller Gram matrix, to the power 1/16.
double NormBound(const Eigen::MatrixXd& M);

/// A bound on a set of matrices, by two symmetric positive semidefinite ones:
///
///     uᵀ B v ≤ ½ (uᵀ X u + vᵀ Y v)    for all u, v and all B of the set                      (C4)
///
/// Sums of sets are bounded by sums of X and of Y. (s X, Y/s) is as good a bound for any s > 0.
struct FormBound {
  Eigen::MatrixXd X;  // rows × rows
  Eigen::MatrixXd Y;  // columns × columns

  static FormBound Zero(Eigen::Index rows, Eigen::Index columns);
  /// Adds {t B : |t| ≤ 1}: X += (B Bᵀ)^{½}, Y += (Bᵀ B)^{½}. What the computed roots miss of B is
  /// measured and added to both.
  void AddSegment(const Eigen::MatrixXd& B);
  /// Adds {P diag(d) Q : |d_k| ≤ radius_k}.
  void AddUnits(const Eigen::MatrixXd& P, const Eigen::VectorXd& radius, const Eigen::MatrixXd& Q);
  /// Adds {P M Q : ‖M‖ ≤ size}.
  void AddProduct(const Eigen::MatrixXd& P, double size, const Eigen::MatrixXd& Q);
  /// Adds every matrix of norm ≤ size.
  void AddBall(double size);
  /// An upper bound of the norm of every matrix of the set.
  double Norm() const;
};

/// An upper bound of ‖A + B‖ over the set of B: λ_max of [s X + p I, A; Aᵀ, Y/s − p I] for the best
/// s and p found, never more than ‖A‖ + Norm().
double ShiftedNormBound(const Eigen::MatrixXd& A, const FormBound& set);

}  // namespace silc
