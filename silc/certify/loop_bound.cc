// SPDX-License-Identifier: Apache-2.0
#include "silc/certify/loop_bound.h"

#include <Eigen/Cholesky>
#include <Eigen/Eigenvalues>
#include <Eigen/LU>
#include <algorithm>
#include <cmath>
#include <limits>

#include "silc/base/check.h"
#include "silc/base/nan.h"

namespace silc {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// (C7) Products of three matrices of up to 640 rows are off by less than this times the product of
// their Frobenius norms.
constexpr double kProductError = 1e-12;
// Y, whose mean diagonal is one, is enlarged by this, so that rounding has room.
constexpr double kMargin = 1e-3;
constexpr int kDoublings = 40;
// A Lyapunov function beyond this has no digits left for the check.
constexpr double kLargest = 1e8;

Eigen::MatrixXd Companion(const Eigen::MatrixXd& A) {
  const Eigen::Index n = A.rows(), size = A.cols();
  Eigen::MatrixXd C = Eigen::MatrixXd::Zero(size, size);
  C.topRows(n) = A;
  for (Eigen::Index k = n; k < size; ++k) C(k, k - n) = 1;
  return C;
}

// P = Cᵀ P (I − B Bᵀ P)⁻¹ C + Q, the smallest solution, by doubling: the k-th H is what 2ᵏ steps of
// the fixed point iteration from P = 0 make. False where none is found.
bool SolveRiccati(const Eigen::MatrixXd& C,
                  const Eigen::MatrixXd& B,
                  const Eigen::MatrixXd& Q,
                  Eigen::MatrixXd* P) {
  const Eigen::Index size = C.rows();
  Eigen::MatrixXd F = C, G = -(B * B.transpose()), H = Q;
  const Eigen::MatrixXd I = Eigen::MatrixXd::Identity(B.cols(), B.cols());
  for (int k = 0; k < kDoublings; ++k) {
    Eigen::MatrixXd W = G * H;
    W.diagonal().array() += 1;
    const Eigen::PartialPivLU<Eigen::MatrixXd> factor(W);
    const Eigen::MatrixXd WF = factor.solve(F), WG = factor.solve(G);
    const Eigen::MatrixXd HWF = H * WF, FWG = F * WG;
    const Eigen::MatrixXd more = F.transpose() * HWF;
    G += FWG * F.transpose();
    F = Eigen::MatrixXd(F * WF);
    H += 0.5 * (more + more.transpose());
    if (!H.allFinite() || H.norm() > kLargest * static_cast<double>(size)) return false;
    const Eigen::MatrixXd HB = H * B;
    if (Eigen::LLT<Eigen::MatrixXd>(I - B.transpose() * HB).info() != Eigen::Success) return false;
    if (more.norm() <= 1e-9 * H.norm()) {
      *P = H;
      return true;
    }
  }
  return false;
}

// (C9) with C̄/r and e L/r in the place of C̄ and e L, which is the same.
bool Proves(const Eigen::MatrixXd& C,
            const Eigen::MatrixXd& B,
            const Eigen::MatrixXd& Y,
            const Eigen::MatrixXd& P) {
  const Eigen::Index size = C.rows(), n = B.cols();
  const Eigen::MatrixXd PC = P * C, PB = P * B;
  Eigen::MatrixXd S(size + n, size + n);
  S.topLeftCorner(size, size) = C.transpose() * PC - P + Y;
  S.topRightCorner(size, n) = C.transpose() * PB;
  S.bottomLeftCorner(n, size) = S.topRightCorner(size, n).transpose();
  S.bottomRightCorner(n, n) = B.transpose() * PB;
  S.bottomRightCorner(n, n).diagonal().array() -= 1;
  S = Eigen::MatrixXd(0.5 * (S + S.transpose()));
  const double reach = C.norm() + B.norm();
  const double room = kProductError * (reach * reach + 1) * (P.norm() + Y.norm() + 1);
  return LargestEigenvalueBound(S) + room < 0 && LargestEigenvalueBound(-P) < 0;
}

}  // namespace

double LoopRadius(const Eigen::MatrixXd& A) {
  if (!A.allFinite()) return kNan;
  const Eigen::EigenSolver<Eigen::MatrixXd> solver(Companion(A), false);
  return solver.info() == Eigen::Success ? solver.eigenvalues().cwiseAbs().maxCoeff() : kNan;
}

double LoopRadiusBound(const Eigen::MatrixXd& A, const FormBound& change, int steps) {
  const Eigen::Index n = A.rows(), size = A.cols();
  SILC_CHECK(size % n == 0 && change.X.rows() == n && change.Y.rows() == size);
  if (!A.allFinite() || !change.X.allFinite() || !change.Y.allFinite()) return kInfinity;
  const double centre = LoopRadius(A);
  if (!(centre < 1)) return kInfinity;

  // (s X, Y/s): the mean of Y's diagonal is one
  const double s = std::max(change.Y.trace() / static_cast<double>(size), 1e-30);
  Eigen::MatrixXd X = s * change.X, Y = change.Y / s;
  X.diagonal().array() += 1e-9 * X.norm() + 1e-30;
  const Eigen::MatrixXd L = Eigen::LLT<Eigen::MatrixXd>(X).matrixL();
  // the factor has to reach as far as X, and does because of what was added to it
  const Eigen::MatrixXd missed = s * change.X - L * L.transpose();
  if (!(LargestEigenvalueBound(missed) + 1e-13 * X.norm() <= 0)) return kInfinity;
  Eigen::MatrixXd enough = Y;
  enough.diagonal().array() += kMargin;

  const Eigen::MatrixXd C = Companion(A);
  Eigen::MatrixXd B = Eigen::MatrixXd::Zero(size, n);
  B.topRows(n) = L;
  const auto shown = [&](double r) {
    Eigen::MatrixXd P;
    const Eigen::MatrixXd C_r = C / r, B_r = B / r;
    // Y, too, has been rounded
    return SolveRiccati(C_r, B_r, enough, &P) && Proves(C_r, B_r, Y * (1 + 1e-12), P);
  };
  if (!shown(1)) return kInfinity;
  double low = centre, high = 1;
  for (int i = 0; i < steps; ++i) {
    const double middle = 0.5 * (low + high);
    (shown(middle) ? high : low) = middle;
  }
  return high;
}

}  // namespace silc
