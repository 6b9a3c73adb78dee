// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <Eigen/Eigenvalues>
#include <vector>

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
/// the block companion matrix, nv·H square, lies inside the unit circle. Preallocated: after
/// construction nothing here allocates for up to `max_frames` frames.
class ActionLoop {
 public:
  ActionLoop(int nv, int max_frames);

  /// Exact, by a Schur decomposition of the companion matrix: about 20 ms for 29 joints and 5
  /// frames.
  ActionLoopRadius Exact(const Servo& servo, const PolicyJacobians& jacobians, bool torque);

  /// Cheapest first: the bound when it proves stability, else the Arnoldi estimate when it has
  /// settled clearly inside the circle, else Exact().
  ///
  /// The bound: ρ(companion) < 1 whenever ρ(Σ|A_i|) < 1, and max_k (T d)_k/d_k ≥ ρ(T) for any d >
  /// 0. The estimate is taken when its Ritz residual is below 1 % of what is left to the circle; a
  /// start vector that happens to have no part along an unstable mode would fool it, which is why a
  /// tool that has the time calls Exact().
  ActionLoopRadius Fast(const Servo& servo, const PolicyJacobians& jacobians, bool torque);

 private:
  bool Gather(const Servo& servo, const PolicyJacobians& jacobians, bool torque);
  double CollatzWielandt();
  bool Arnoldi(double* rho);
  ActionLoopRadius Schur();

  int nv_;
  int max_frames_;
  int frames_ = 0;              // frames in use
  Eigen::MatrixXd blocks_;      // nv × (nv·H): [A_0 A_1 …]
  Eigen::MatrixXd companion_;   // (nv·H) × (nv·H)
  Eigen::MatrixXd krylov_;      // (nv·H) × (steps + 1)
  Eigen::MatrixXd hessenberg_;  // (steps + 1) × steps
  Eigen::MatrixXd ritz_matrix_;
  std::vector<Eigen::RealSchur<Eigen::MatrixXd>> schur_;  // one per number of frames, sized before
  std::vector<Eigen::EigenSolver<Eigen::MatrixXd>> ritz_;
  JointMatrix absolute_;
};

}  // namespace silc
