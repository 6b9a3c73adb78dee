// SPDX-License-Identifier: Apache-2.0
#include "silc/stiffness/penalty_reference.h"

#include <Eigen/Eigenvalues>
#include <algorithm>
#include <cmath>

#include "silc/base/check.h"
#include "silc/stiffness/test_algebra.h"

namespace silc {
namespace {

using namespace test::eager;

// −α Kp times each column: how K answers to X
template <typename Matrix>
void TimesMinusGain(const Servo& servo, Matrix* m) {
  for (Eigen::Index j = 0; j < m->cols(); ++j) {
    m->col(j).array() *= -(servo.kp.array() * servo.alpha.array());
  }
}

// A penalty on Nᵀ K N (or K, without N), its gradient dK_z brought back to K: N dK_z Nᵀ.
// penalty(K_z, &dK_z) returns a status.
template <typename SigmaPenalty>
StiffnessStatus InReducedCoordinates(const ConstMatrix& K,
                                     const ConstMatrix* N,
                                     JointMatrix* dK,
                                     const SigmaPenalty& penalty) {
  if (!K.allFinite() || (N != nullptr && !N->allFinite())) return StiffnessStatus::kNotFinite;
  JointMatrix K_z = K;
  if (N != nullptr) {
    SILC_CHECK(N->rows() == K.rows());
    const JointMatrix KN = K * *N;
    K_z = N->transpose() * KN;
  }
  JointMatrix dK_z = JointMatrix::Zero(K_z.rows(), K_z.cols());
  const StiffnessStatus status = penalty(K_z, &dK_z);
  if (status != StiffnessStatus::kOk) return status;
  *dK = dK_z;
  if (N != nullptr) {
    const JointMatrix NdK = *N * dK_z;
    *dK = NdK * N->transpose();
  }
  return StiffnessStatus::kOk;
}

}  // namespace

double Hinge(double sigma) {
  const double over = std::max(0.0, sigma - 1);
  return over * over;
}

double HingeSlope(double sigma) { return 2 * std::max(0.0, sigma - 1); }

void OneStepDirection(const Servo& servo,
                      const ConstVector& left,
                      const ConstVector& right,
                      PolicyDirection* direction) {
  SILC_CHECK(left.size() == servo.nv() && right.size() == servo.nv());
  direction->p = left;
  TimesMinusGain(servo, &direction->p);
  direction->r_q = right;
  direction->r_a.setZero(servo.nv());
  direction->r_tau.setZero(servo.nv());
  direction->r_g.setZero();
}

void StaticDirection(const Servo& servo,
                     const StaticStiffness& stiffness,
                     const StaticChannels& channels,
                     const ConstVector& left,
                     const ConstVector& right,
                     PolicyDirection* direction) {
  OneStepDirection(servo, left, right, direction);
  if (!stiffness.open) {
    const JointVector p = direction->p;
    direction->p = stiffness.loop.transpose().solve(p);
  }
  direction->r_a = stiffness.X * right;
  if (channels.torque) direction->r_tau = -(stiffness.K * right);
  if (channels.E != nullptr) direction->r_g = *channels.E * right;
}

void OneStepGradient(const Servo& servo, const ConstMatrix& dK, PolicyGradient* gradient) {
  const int nv = servo.nv();
  SILC_CHECK(dK.rows() == nv && dK.cols() == nv);
  gradient->dS_q = dK;
  TimesMinusGain(servo, &gradient->dS_q);
  gradient->dS_a.setZero(nv, nv);
  gradient->dS_tau.setZero(nv, nv);
  gradient->dS_g.setZero(nv, 3);
}

void StaticGradient(const Servo& servo,
                    const StaticStiffness& stiffness,
                    const StaticChannels& channels,
                    const ConstMatrix& dK,
                    PolicyGradient* gradient) {
  OneStepGradient(servo, dK, gradient);
  if (!stiffness.open) {
    const JointMatrix p = gradient->dS_q;
    gradient->dS_q = stiffness.loop.transpose().solve(p);
  }
  gradient->dS_a = gradient->dS_q * stiffness.X.transpose();
  if (channels.torque) gradient->dS_tau = -(gradient->dS_q * stiffness.K.transpose());
  if (channels.E != nullptr) gradient->dS_g = gradient->dS_q * channels.E->transpose();
}

StiffnessStatus LargestSigmaPenalty(Condition condition,
                                    const ConstMatrix& K,
                                    const ConstMatrix& M,
                                    const ConstMatrix* N,
                                    double* value,
                                    JointMatrix* dK) {
  return InReducedCoordinates(K, N, dK, [&](const JointMatrix& K_z, JointMatrix* dK_z) {
    SigmaTriple triple;
    const StiffnessStatus status = LargestSigma(condition, K_z, M, &triple);
    if (status != StiffnessStatus::kOk) return status;
    *value = Hinge(triple.sigma);
    dK_z->noalias() = HingeSlope(triple.sigma) * triple.left * triple.right.transpose();
    return status;
  });
}

StiffnessStatus AllSigmasPenalty(Condition condition,
                                 const ConstMatrix& K,
                                 const ConstMatrix& M,
                                 const ConstMatrix* N,
                                 double* value,
                                 JointMatrix* dK) {
  return InReducedCoordinates(K, N, dK, [&](const JointMatrix& K_z, JointMatrix* dK_z) {
    SigmaSpectrum spectrum;
    const StiffnessStatus status = AllSigmas(condition, K_z, M, &spectrum);
    if (status != StiffnessStatus::kOk) return status;
    *value = 0;
    for (Eigen::Index i = 0; i < spectrum.sigma.size() && spectrum.sigma[i] > 1; ++i) {
      *value += Hinge(spectrum.sigma[i]);
      dK_z->noalias() +=
          HingeSlope(spectrum.sigma[i]) * spectrum.left.col(i) * spectrum.right.col(i).transpose();
    }
    return status;
  });
}

StiffnessStatus AnisotropicLcpPenalty(const ConstMatrix& J,
                                      const ConstMatrix& K_lcp,
                                      double* value,
                                      Eigen::MatrixXd* dJ) {
  SILC_CHECK(K_lcp.rows() == J.rows() && K_lcp.cols() == K_lcp.rows() && J.rows() > 0);
  if (!J.allFinite() || !K_lcp.allFinite()) return StiffnessStatus::kNotFinite;
  const Eigen::MatrixXd excess = J * J.transpose() - K_lcp * K_lcp.transpose();
  const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> solver(excess);
  if (solver.info() != Eigen::Success) return StiffnessStatus::kNoConvergence;
  // (S10): dv = wᵀ (dJ Jᵀ + J dJᵀ) w
  const double v = std::max(0.0, solver.eigenvalues()[J.rows() - 1]);
  const Eigen::VectorXd w = solver.eigenvectors().col(J.rows() - 1);
  *value = v * v;
  *dJ = (4 * v) * w * (w.transpose() * J);
  return StiffnessStatus::kOk;
}

StiffnessStatus ScalarLcpPenalty(const ConstMatrix& J,
                                 double k,
                                 double* value,
                                 Eigen::MatrixXd* dJ) {
  SILC_CHECK(J.rows() > 0 && k > 0);
  if (!J.allFinite()) return StiffnessStatus::kNotFinite;
  const Eigen::MatrixXd gram = J * J.transpose();
  const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> solver(gram);
  if (solver.info() != Eigen::Success) return StiffnessStatus::kNoConvergence;
  const double sigma = std::sqrt(std::max(0.0, solver.eigenvalues()[J.rows() - 1]));
  const double over = std::max(0.0, sigma - k);
  *value = over * over;
  dJ->setZero(J.rows(), J.cols());
  if (over > 0) {
    // u vᵀ = u uᵀ J / σ
    const Eigen::VectorXd u = solver.eigenvectors().col(J.rows() - 1);
    *dJ = (2 * over / sigma) * u * (u.transpose() * J);
  }
  return StiffnessStatus::kOk;
}

StiffnessStatus LogProbPenalty(const ConstMatrix& J,
                               const ConstVector& sigma,
                               double* value,
                               Eigen::MatrixXd* dJ) {
  SILC_CHECK(sigma.size() == J.rows());
  if (!J.allFinite() || !sigma.allFinite() || !(sigma.array() > 0).all()) {
    return StiffnessStatus::kNotFinite;
  }
  const Eigen::VectorXd precision = sigma.array().square().inverse();
  *dJ = precision.asDiagonal() * J;
  *value = dJ->cwiseProduct(J).sum();
  *dJ *= 2;
  return StiffnessStatus::kOk;
}

}  // namespace silc
