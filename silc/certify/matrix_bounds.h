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
  /// Adds another set.
  void Add(const FormBound& other);
  /// An upper bound of the norm of every matrix of the set.
  double Norm() const;
};

/// The set {size O B : B in `set`}.
FormBound ImageOf(const FormBound& set, double size, const Eigen::MatrixXd& O);

/// The set {L Ψ R : L in `left`, ‖Ψ‖ ≤ size, R in `right`}:
///
///     X = g X_L,   Y = g Y_R,   g = size (‖Y_L‖ ‖X_R‖)^{½}                                   (C8)
///
/// X keeps the directions that L reaches, and Y those that R starts from.
FormBound ChainOf(const FormBound& left, double size, const FormBound& right);

/// An upper bound of ‖A + Σ B_i‖, each B_i from a set of its own: λ_max of
/// [Σ s_i X_i + p I, A; Aᵀ, Σ Y_i/s_i − p I] for the best s_i and p found, never more than ‖A‖ +
/// the sum of the sets' Norm().
double ShiftedNormBound(const Eigen::MatrixXd& A, const std::vector<FormBound>& sets);

}  // namespace silc
