// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <Eigen/Eigenvalues>

#include "silc/stiffness/policy_jacobians.h"
#include "silc/stiffness/status.h"
#include "silc/stiffness/types.h"

namespace silc {

/// How the answer about the action loop was found.
enum class ActionLoopMethod {
  kNone,     ///< the policy does not see its actions (or its torques): nothing to be unstable
  kBound,    ///< rho is an upper bound, by Collatz and Wielandt: a proof of stability
  kArnoldi,  ///< rho is the largest Ritz value of a Krylov space, converged: an estimate
  kExact,    ///< rho is the largest eigenvalue modulus of the whole companion matrix
};

struct ActionLoopRadius {
  StiffnessStatus status =
      StiffnessStatus::kNotFinite;  ///< kOk, kUnstableActionLoop, kNotFinite, ...
  double rho = 0;  ///< [1] spectral radius or a bound on it, see method; NaN unless kOk or unstable
  ActionLoopMethod method = ActionLoopMethod::kNone;
};

/// Stability of the policy's feedback on its own actions while the robot stands still, part of
/// (S3):
///
///     a_t = Σ_i A_i a_{t−1−i},   A_i = J_a[i] + J_tau[i] Kp α
///
/// (the torque seen at step t was made by the action of step t−1). Stable when every eigenvalue of
/// the block companion matrix, nv·H square, lies inside the unit circle. Nothing here allocates
/// after construction unless a history longer than `frames` arrives.
class ActionLoop {
 public:
  ActionLoop(int nv, int frames);

  /// Exact, by a Schur decomposition of the companion matrix: about 20 ms for 29 joints and 5
  /// frames.
  ActionLoopRadius Exact(const Servo& servo, const PolicyJacobians& jacobians, bool torque);

  /// Cheapest first: the bound when it proves stability, else the Arnoldi estimate when it has
  /// settled clearly inside the circle, else Exact().
  ///
  /// The bound: with T = Σ|A_i| and any d > 0, t = max_k (T d)_k/d_k < 1 proves ρ ≤ t^{1/H}.
  /// The estimate begins where the last call left off, since a policy's Jacobians change slowly,
  /// mixed with a little of a random vector, so that a new mode is found; it is taken when three
  /// times its Ritz residual still fits between it and the circle. A tool that has the time calls
  /// Exact().
  ActionLoopRadius Fast(const Servo& servo, const PolicyJacobians& jacobians, bool torque);

 private:
  void Resize(int frames);
  bool Gather(const Servo& servo, const PolicyJacobians& jacobians, bool torque);
  double ProvenBound();
  void Advance(int from, int to);
  bool Arnoldi(double* rho);
  ActionLoopRadius Schur();

  int nv_;
  int frames_ = 0;               // H, unused ones are zero: they add eigenvalues at zero only
  Eigen::MatrixXd blocks_;       // nv × nv·H       [A_0 A_1 …]
  Eigen::MatrixXd companion_;    // nv·H × nv·H
  Eigen::MatrixXd krylov_;       // nv·H × (steps + 1)
  Eigen::MatrixXd hessenberg_;   // (steps + 1) × steps
  Eigen::MatrixXd ritz_matrix_;  // steps × steps
  Eigen::MatrixXd absolute_;     // nv × nv         Σ|A_i|
  Eigen::VectorXd direction_, image_, work_, random_;
  bool warm_ = false;  // krylov_.col(0) is left over from the last call
  Eigen::RealSchur<Eigen::MatrixXd> schur_;
  Eigen::EigenSolver<Eigen::MatrixXd> ritz_;
};

}  // namespace silc
