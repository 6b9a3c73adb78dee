// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <Eigen/Eigenvalues>
#include <Eigen/LU>
#include <complex>

#include "silc/stiffness/policy_jacobians.h"
#include "silc/stiffness/status.h"
#include "silc/stiffness/types.h"

namespace silc {

/// Joints times frames of the longest action loop that is judged: its companion matrix has that
/// many rows, and the Schur decomposition takes time with the third power, here some two seconds.
/// Policies have 5 to 10 frames of 29 joints.
inline constexpr int kMaxActionLoop = 640;

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
/// after construction unless a history longer than `frames` arrives. Where nv·H is more than
/// kMaxActionLoop the answer is kLongActionLoop.
class ActionLoop {
 public:
  ActionLoop(int nv, int frames);

  /// Exact, by a Schur decomposition of the companion matrix: about 20 ms for 29 joints and 5
  /// frames.
  ActionLoopRadius Exact(const Servo& servo, const PolicyJacobians& jacobians, bool torque);

  /// Cheapest first: the bound when it proves stability, else the Arnoldi estimate when its Ritz
  /// values have settled clearly on one side of the circle, first in a short space, then in a
  /// longer one, else Exact(). The answer depends on the arguments alone, not on earlier calls.
  ///
  /// The bound: with T = Σ|A_i| and any d > 0, t = max_k (T d)_k/d_k < 1 proves ρ ≤ t^{1/H}.
  ///
  /// The estimate: trained policies have a handful of modes crowded at z = 1, nearly integrators,
  /// and all others well inside. Powers of the companion matrix C tell the crowd apart only slowly,
  /// powers of (I − C)⁻¹ at once, so a random vector goes through both, x = (I − C)⁻ˢ Cᶠ r, and the
  /// Krylov space of x holds the crowd by the first factor and a mode anywhere else on the circle
  /// by the second. A Ritz value counts when ten times its residual still fits between it and the
  /// circle. Policies that were trained to keep ‖Σ A_i‖ below one have no crowd at z = 1 but modes
  /// of some 0.96 at other angles, which the short space sees badly and the long one well; no norm
  /// proves them stable (docs/math/stiffness.md). A tool that has the time calls Exact().
  ActionLoopRadius Fast(const Servo& servo, const PolicyJacobians& jacobians, bool torque);

 private:
  enum class Verdict { kStable, kUnstable, kOpen };

  // A rational Krylov space and what is worked out in it: inverse steps first, then forward ones.
  struct Space {
    Eigen::MatrixXd krylov;     // nv·H × (steps + 1), rows padded with zeros
    Eigen::MatrixXd inverse;    // K
    Eigen::MatrixXd forward;    // columns h of forward steps, each at its column's place
    int inverse_steps = 0;      // p
    int columns = 0;            // fewer than there could be when they span an invariant space
    double next = 0;            // what leaves the space
    Eigen::MatrixXd projected;  // F = Vᵀ C V
    Eigen::VectorXd coefficients;
    Eigen::VectorXcd ritz_vector;
    Eigen::HessenbergDecomposition<Eigen::MatrixXd> reduction;
    Eigen::RealSchur<Eigen::MatrixXd> ritz;
    void Resize(int size, int forward_steps);
  };

  void Resize(int frames);
  bool TooLong(const PolicyJacobians& jacobians, bool torque) const;
  bool Gather(const Servo& servo, const PolicyJacobians& jacobians, bool torque);
  double ProvenBound();
  void Advance(const double* from, double* to);
  void ShiftInvert(const double* from, double* to);
  void FilterStart(Space* space);
  void Begin(Space* space);
  static void Continue(const Space& begun, Space* space);
  void Extend(Space* space);
  static bool Orthogonalise(Space* space, int j, Eigen::Ref<Eigen::VectorXd> column, double* next);
  static void Project(Space* space);
  static double RitzResidual(Space* space, std::complex<double> theta, double next);
  static Verdict Judge(Space* space, double* rho);
  ActionLoopRadius Schur();

  int nv_;
  int frames_ = 0;             // H, unused ones are zero: they add eigenvalues at zero only
  Eigen::MatrixXd blocks_;     // nv × nv·H       [A_0 A_1 …], rows padded for the kernel
  Eigen::MatrixXd companion_;  // nv·H × nv·H
  Eigen::MatrixXd absolute_;   // nv × nv         Σ|A_i|
  Eigen::VectorXd direction_, image_, work_, random_;
  Eigen::PartialPivLU<JointMatrix> loop_;  // of I − Σ A_i
  Space short_space_, long_space_;
  Eigen::RealSchur<Eigen::MatrixXd> schur_;
};

}  // namespace silc
