// SPDX-License-Identifier: Apache-2.0
#include "silc/certify/matrix_bounds.h"

#include <Eigen/Cholesky>
#include <Eigen/Eigenvalues>
#include <algorithm>
#include <cmath>
#include <limits>

namespace silc {
namespace {

constexpr double kUnit = std::numeric_limits<double>::epsilon();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Room for the roundings of a few products of matrices of up to some thousand terms, relative to
// the Frobenius norms of what was multiplied.
constexpr double kRoom = 1e-10;

// Whether μ I − S is positive semidefinite for certain (Rump 2006): the floating-point Cholesky
// factorisation of a matrix that is smaller by c I, c = (n + 3) n u max diag, runs through.
bool Dominates(double mu, const Eigen::MatrixXd& S) {
  const double n = static_cast<double>(S.rows());
  const double largest = std::max(mu - S.diagonal().minCoeff(), 0.0);
  const double c = 2 * (n + 3) * n * kUnit * largest + std::numeric_limits<double>::min();
  Eigen::MatrixXd shifted = -S;
  shifted.diagonal().array() += mu - c;
  const Eigen::LLT<Eigen::MatrixXd> factor(shifted);
  return factor.info() == Eigen::Success;
}

}  // namespace

double LargestEigenvalueBound(const Eigen::MatrixXd& S) {
  if (S.rows() == 0) return 0;
  if (!S.allFinite()) return kInfinity;
  const double size = S.norm();
  const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> solver(S, Eigen::EigenvaluesOnly);
  double mu = solver.info() == Eigen::Success ? solver.eigenvalues()[S.rows() - 1] : size;
  double step = 1e-11 * size + std::numeric_limits<double>::min();
  for (int attempt = 0; attempt < 14; ++attempt, step *= 8) {  // to beyond the size of S
    if (Dominates(mu + step, S)) return mu + step;
  }
  // the Frobenius norm needs no factorisation
  return size * (1 + kRoom);
}

double NormBound(const Eigen::MatrixXd& M) {
  if (M.size() == 0) return 0;
  if (!M.allFinite()) return kInfinity;
  const double size = M.norm();
  if (size == 0) return 0;
  Eigen::MatrixXd power = M / size;
  power = M.rows() < M.cols() ? Eigen::MatrixXd(power * power.transpose())
                              : Eigen::MatrixXd(power.transpose() * power);
  double scale = 1;  // ‖M‖² / size² = scale ‖power‖^{1/root}
  double root = 1;
  for (int k = 0; k < 3; ++k) {
    // each squaring is off by n u ‖power‖_F², at most √n n u of ‖power²‖_F: inside kRoom
    power = Eigen::MatrixXd(power * power);
    root *= 2;
    const double norm = power.norm();
    power /= norm;
    scale *= std::pow(norm, 1 / root);
  }
  return size * std::sqrt(scale * std::pow(power.norm(), 1 / root)) * (1 + kRoom);
}

FormBound FormBound::Zero(Eigen::Index rows, Eigen::Index columns) {
  return {Eigen::MatrixXd::Zero(rows, rows), Eigen::MatrixXd::Zero(columns, columns)};
}

void FormBound::AddBall(double size) {
  X.diagonal().array() += size;
  Y.diagonal().array() += size;
}

void FormBound::AddSegment(const Eigen::MatrixXd& B) {
  // With any vectors w_i and numbers s_i > 0, Σ_i w_i (B_iᵀ) for B_i = Bᵀ w_i obeys (C4) with X = Σ
  // s_i w_i w_iᵀ and Y = Σ B_i B_iᵀ / s_i; the eigenvectors of B Bᵀ make Σ w_i w_iᵀ the identity
  // and s_i the singular values.
  const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> solver(B * B.transpose());
  const double norm = B.norm();
  if (norm == 0) return;
  const Eigen::MatrixXd& W = solver.eigenvectors();
  const Eigen::MatrixXd images = B.transpose() * W;  // columns × rows
  Eigen::VectorXd s(W.cols());
  // a floor, because tiny ones are rounding and are divided by
  for (Eigen::Index i = 0; i < s.size(); ++i) {
    s[i] = std::max(images.col(i).norm(), 1e-9 * norm);
  }
  const Eigen::VectorXd inverse = s.cwiseInverse();
  X.noalias() += W * s.asDiagonal() * W.transpose();
  Y.noalias() += images * inverse.asDiagonal() * images.transpose();
  const double missed = (B - W * images.transpose()).norm();
  AddBall(missed + kRoom * norm);
}

void FormBound::AddUnits(const Eigen::MatrixXd& P,
                         const Eigen::VectorXd& radius,
                         const Eigen::MatrixXd& Q) {
  const Eigen::VectorXd p = P.colwise().norm(), q = Q.rowwise().norm();
  Eigen::VectorXd left(p.size()), right(p.size());
  double room = 0;
  for (Eigen::Index k = 0; k < p.size(); ++k) {
    const bool none = p[k] == 0 || q[k] == 0;
    left[k] = none ? 0 : radius[k] * q[k] / p[k];
    right[k] = none ? 0 : radius[k] * p[k] / q[k];
    room += kRoom * radius[k] * p[k] * q[k];
  }
  X.noalias() += P * left.asDiagonal() * P.transpose();
  Y.noalias() += Q.transpose() * right.asDiagonal() * Q;
  AddBall(room);
}

void FormBound::AddProduct(const Eigen::MatrixXd& P, double size, const Eigen::MatrixXd& Q) {
  const double p = P.norm(), q = Q.norm();
  if (p == 0 || q == 0 || size == 0) return;
  X.noalias() += size * q / p * (P * P.transpose());
  Y.noalias() += size * p / q * (Q.transpose() * Q);
  AddBall(kRoom * size * p * q);
}

void FormBound::Add(const FormBound& other) {
  X += other.X;
  Y += other.Y;
}

double FormBound::Norm() const {
  return std::sqrt(LargestEigenvalueBound(X) * LargestEigenvalueBound(Y)) * (1 + kRoom);
}

FormBound ImageOf(const FormBound& set, double size, const Eigen::MatrixXd& O) {
  FormBound out{size * (O * set.X * O.transpose()), size * set.Y};
  out.X.diagonal().array() += kRoom * size * O.squaredNorm() * set.X.norm();
  out.Y.diagonal().array() += kRoom * out.Y.norm();
  return out;
}

FormBound ChainOf(const FormBound& left, double size, const FormBound& right) {
  const double g = size * (1 + kRoom) *
                   std::sqrt(LargestEigenvalueBound(left.Y) * LargestEigenvalueBound(right.X));
  FormBound out{g * left.X, g * right.Y};
  out.X.diagonal().array() += kRoom * out.X.norm();
  out.Y.diagonal().array() += kRoom * out.Y.norm();
  return out;
}

double ShiftedNormBound(const Eigen::MatrixXd& A, const std::vector<FormBound>& sets) {
  const Eigen::Index rows = A.rows(), columns = A.cols();
  if (!A.allFinite()) return kInfinity;
  const std::size_t count = sets.size();
  std::vector<double> s(count), best_s(count);
  double reach = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const double x = LargestEigenvalueBound(sets[i].X), y = LargestEigenvalueBound(sets[i].Y);
    if (!std::isfinite(x) || !std::isfinite(y)) return kInfinity;
    // a set of zero alone needs no scale
    s[i] = best_s[i] = x > 0 && y > 0 ? std::sqrt(y / x) : 1;
    reach += std::sqrt(x * y);
  }
  // uᵀ A v + ½ Σ (s_i uᵀ X_i u + vᵀ Y_i v/s_i) + ½ p (|u|² − |v|²) for unit u, v: any s_i > 0 and
  // any p will do
  Eigen::MatrixXd S(rows + columns, rows + columns);
  const auto fill = [&](const std::vector<double>& scales, double p) {
    S.topLeftCorner(rows, rows).setZero();
    S.bottomRightCorner(columns, columns).setZero();
    for (std::size_t i = 0; i < count; ++i) {
      S.topLeftCorner(rows, rows) += scales[i] * sets[i].X;
      S.bottomRightCorner(columns, columns) += sets[i].Y / scales[i];
    }
    S.topRightCorner(rows, columns) = A;
    S.bottomLeftCorner(columns, rows) = A.transpose();
    S.diagonal().head(rows).array() += p;
    S.diagonal().tail(columns).array() -= p;
  };
  // λ_max is convex in p, and flat where the top eigenvector has halves of the same length; a good
  // s_i is where the two parts of a set weigh the same on it. Both are looked for in turns.
  double best_p = 0, best = kInfinity;
  for (int round = 0; round < 3; ++round) {
    double low = -reach, high = reach, p = 0;
    Eigen::VectorXd u, v;
    for (int step = 0; step < 8; ++step, p = 0.5 * (low + high)) {
      fill(s, p);
      const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> solver(S);
      const double value = solver.eigenvalues()[S.rows() - 1];
      if (value < best) {
        best = value;
        best_s = s;
        best_p = p;
      }
      const Eigen::VectorXd top = solver.eigenvectors().col(S.rows() - 1);
      u = top.head(rows);
      v = top.tail(columns);
      (u.squaredNorm() > v.squaredNorm() ? high : low) = p;
    }
    for (std::size_t i = 0; i < count; ++i) {
      const double on_u = u.dot(sets[i].X * u), on_v = v.dot(sets[i].Y * v);
      if (on_u > 0 && on_v > 0) s[i] = std::sqrt(on_v / on_u);
    }
  }
  fill(best_s, best_p);
  // the sum: the sets have room for the roundings of their own terms, p and A have it here
  return LargestEigenvalueBound(S) + 4 * kUnit * (S.norm() + std::abs(best_p));
}

}  // namespace silc
