// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <Eigen/LU>

#include "silc/stiffness/action_loop.h"
#include "silc/stiffness/policy_jacobians.h"
#include "silc/stiffness/status.h"
#include "silc/stiffness/types.h"

namespace silc {

/// Latest-frame stiffness: the torque change one control step after the joints jump, while history
/// and every other observation stand still. The paper's K_eq.
///
///     K₁ = Kp (I − α J_q⁰)                                                           (S2)
///
/// Sign: δτ = −K₁ δq, tau is what the motors apply. In general not symmetric.
///
/// @param      J_q0  ∂a/∂q of the newest frame                        [1/rad]     nv × nv
/// @param[out] K_1   overwritten                                      [N·m/rad]   nv × nv
/// @return kOk or kNotFinite. Does not allocate, does not throw.
StiffnessStatus OneStepStiffness(const Servo& servo, const ConstMatrix& J_q0, JointMatrix* K_1);

/// Sums over the frames: what the policy answers when a quantity stands still long enough to fill
/// the whole history. Velocities and angular velocity vanish at rest and have no part here.
struct PolicySums {
  JointMatrix S_q;    // Σ J_q    [1/rad]
  JointMatrix S_a;    // Σ J_a    [1]
  JointMatrix S_tau;  // Σ J_tau  [1/(N·m)]
  Eigen::Matrix<double, Eigen::Dynamic, 3, Eigen::ColMajor, kMaxDofs, 3> S_g;  // Σ J_g [1]
  bool sees_action = false, sees_torque = false, sees_gravity = false;
};

/// Fills `sums`; lists that are empty give zeros. @pre every block nv rows.
void SumPolicy(const PolicyJacobians& jacobians, int nv, PolicySums* sums);

/// Which of the policy's channels move when the joints move.
struct StaticChannels {
  bool torque = true;            ///< use J_tau where the policy has it
  const Jacobian3* E = nullptr;  ///< ∂g_B/∂q of (S5), 3 × nv [1/rad]; null: gravity is held
};

/// (S3) and what its gradients need.
struct StaticStiffness {
  JointMatrix K;                          // K_s                                       [N·m/rad]
  JointMatrix X;                          // δa = X δq once everything has settled     [1/rad]
  Eigen::PartialPivLU<JointMatrix> loop;  // of I − S_a − S_τ Kp α, unless open
  bool open = true;  ///< the policy sees neither its actions nor its torques: that matrix is I
  double loop_condition = 0;  // [1] 1-norm condition number of that matrix, estimated
};

/// Quasi-static stiffness: the torque after the joints have moved and everything that follows them
/// has settled: all frames of q, the policy's own previous actions, its torques, the gravity
/// vector.
///
///     K_s = Kp (I − α (I − S_a − S_τ Kp α)⁻¹ (S_q + S_g E − S_τ Kp))                 (S3)
///
/// Valid only when the action loop is stable, which this function does NOT check: see ActionLoop.
/// The batched twin is SolveQuasiStaticBatch() in silc/learn/penalty.cc; Python's, held to that one
/// by tests, is settle() in silc.torch.stiffness.
///
/// @return kOk, kNotFinite, or kSingularActionLoop when the reciprocal condition of the loop matrix
/// is
///         under kLoopRcond: then fewer than six digits of K_s would be left.
/// Does not allocate, does not throw.
StiffnessStatus SolveQuasiStatic(const Servo& servo,
                                 const PolicySums& sums,
                                 const StaticChannels& channels,
                                 StaticStiffness* out);

inline constexpr double kLoopRcond = 1e-10;  // [1]

}  // namespace silc
