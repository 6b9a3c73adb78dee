// SPDX-License-Identifier: Apache-2.0
#include "silc/stiffness/diagonal_gains.h"

#include <Eigen/Cholesky>
#include <Eigen/Eigenvalues>
#include <algorithm>
#include <cmath>
#include <limits>

#include "silc/base/check.h"

namespace silc {
namespace {

using Eigen::MatrixXd;
using Eigen::VectorXd;

constexpr double kGap = 1e-6;    // [1] of Σ ln kp; for less, S⁻¹ at the end has too few digits
constexpr double kTighten = 20;  // factor of t between centres
constexpr double kFullStep = 0.06;  // squared Newton decrement below which a full step converges
constexpr double kCentred = 1e-9;   // and below which it has: multipliers to some 1e-4
constexpr int kMostSteps = 5000;    // some hundreds are taken

// The barrier of (G1) at one kp:
//     φ(d) = −t Σ ln d_i − Σ_k ln det(M_k − N_kᵀ D N_k) − Σ ln(limit_i − d_i)
// With P_k = N_k (M_k − N_kᵀ D N_k)⁻¹ N_kᵀ its derivatives are ∂φ/∂d_i = −t/d_i + Σ (P_k)_ii + …
// and ∂²φ/∂d_i∂d_j = δ_ij t/d_i² + Σ (P_k)_ij² + …, since the k-th matrix is Σ d_i n_i n_iᵀ.
struct Barrier {
  const std::vector<GainCeiling>& ceilings;
  const JointVector& limit;

  // Infinity outside.
  double Value(const VectorXd& d, double t) const {
    if (!((d.array() > 0).all() && (d.array() < limit.array()).all())) return HUGE_VAL;
    double value = -t * d.array().log().sum() - (limit - d).array().log().sum();
    for (const GainCeiling& c : ceilings) {
      const Eigen::LLT<MatrixXd> factor(Slack(c, d));
      if (factor.info() != Eigen::Success) return HUGE_VAL;
      value -= 2 * factor.matrixLLT().diagonal().array().log().sum();
    }
    return std::isfinite(value) ? value : HUGE_VAL;
  }
  static MatrixXd Slack(const GainCeiling& c, const VectorXd& d) {
    return c.M - c.N.transpose() * d.asDiagonal() * c.N;
  }
  // @param pressure  Σ_k (P_k)_ii
  void Derivatives(const VectorXd& d,
                   double t,
                   VectorXd* gradient,
                   MatrixXd* hessian,
                   VectorXd* pressure) const {
    const VectorXd room = limit - d;
    *gradient = (-t / d.array() + 1 / room.array()).matrix();
    *hessian = (t / d.array().square() + 1 / room.array().square()).matrix().asDiagonal();
    pressure->setZero(d.size());
    for (const GainCeiling& c : ceilings) {
      const Eigen::LLT<MatrixXd> factor(Slack(c, d));
      const MatrixXd P = c.N * factor.solve(MatrixXd(c.N.transpose()));
      *pressure += P.diagonal();
      *hessian += P.cwiseAbs2();
    }
    *gradient += *pressure;
  }
};

std::string Complaint(const std::vector<GainCeiling>& ceilings, const JointVector& limit) {
  if (!(limit.allFinite() && (limit.array() > 0).all())) return "a joint's limit is not positive";
  for (const GainCeiling& c : ceilings) {
    SILC_CHECK(c.N.rows() == limit.size() && c.N.cols() == c.M.rows() && c.M.rows() == c.M.cols());
    if (!c.N.allFinite() || !c.M.allFinite()) return "a budget is not finite";
    if (Eigen::LLT<MatrixXd>(c.M).info() != Eigen::Success) return "a budget is not positive";
  }
  return "";
}

}  // namespace

double WorstOfServo(const GainCeiling& ceiling, const JointVector& kp) {
  const MatrixXd K = ceiling.N.transpose() * kp.asDiagonal() * ceiling.N;
  const Eigen::GeneralizedSelfAdjointEigenSolver<MatrixXd> solver(
      K, ceiling.M, Eigen::EigenvaluesOnly | Eigen::Ax_lBx);
  if (solver.info() != Eigen::Success) return std::numeric_limits<double>::quiet_NaN();
  return solver.eigenvalues().maxCoeff();
}

double SigmaOfServo(double worst) { return std::max(1.0, 2 * worst - 1); }

DiagonalGains SolveDiagonalGains(const std::vector<GainCeiling>& ceilings,
                                 const JointVector& limit) {
  DiagonalGains out;
  out.why = Complaint(ceilings, limit);
  if (!out.why.empty()) return out;
  const Barrier barrier{ceilings, limit};
  // half of a multiple of the limits that fits everywhere: inside
  double worst = 1;
  for (const GainCeiling& c : ceilings) worst = std::max(worst, WorstOfServo(c, limit));
  VectorXd d = limit / (2 * worst), gradient, pressure, step;
  MatrixXd hessian;

  // the gap of a centre is (number of barrier terms)/t: each eigenvalue of a slack, each limit
  double terms = static_cast<double>(limit.size());
  for (const GainCeiling& c : ceilings) terms += static_cast<double>(c.M.rows());
  for (double t = 1;; t = std::min(t * kTighten, terms / kGap)) {
    for (double before = HUGE_VAL;;) {
      if (++out.newton_steps > kMostSteps) {
        out.why = "the barrier method did not settle";
        return out;
      }
      barrier.Derivatives(d, t, &gradient, &hessian, &pressure);
      step = -hessian.ldlt().solve(gradient);
      const double decrement = -gradient.dot(step);
      // rounding leaves some of it where the slacks are nearly singular
      if (!(decrement > kCentred) || (before < kFullStep && decrement >= before)) break;
      before = decrement;
      double length = 1;
      // near the centre φ is self-concordant enough for the full step, and its rounding hides what
      // a line search would look for
      if (decrement > kFullStep) {
        const double now = barrier.Value(d, t);
        while (!(barrier.Value(d + length * step, t) <= now - 0.1 * length * decrement)) {
          length *= 0.5;
          if (length < 1e-9) break;
        }
      }
      d += length * step;
    }
    out.gap = terms / t;
    if (out.gap <= kGap * (1 + 1e-9)) {
      out.ok = true;
      out.kp = d;
      out.pressure = (d.array() * pressure.array() / t).matrix();
      return out;
    }
  }
}

}  // namespace silc
