// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "silc/stiffness/condition_reference.h"
#include "silc/stiffness/joint_stiffness.h"
#include "silc/stiffness/status.h"
#include "silc/stiffness/types.h"

/// Penalties sample by sample, with their derivatives as they are written down. For tests: the
/// trainer's batched ones, silc/learn/penalty.h, are held against these.
namespace silc {

/// (σ − 1)₊²                                                                            (S8)
/// One sample of the penalty; λ and the mean over samples are the trainer's.
double Hinge(double sigma);
/// Its derivative, 2 (σ − 1)₊.
double HingeSlope(double sigma);

/// A derivative of a scalar s with respect to the policy's Jacobians, when ds = leftᵀ dK right:
///
///     ds = pᵀ (dS_q r_q + dS_a r_a + dS_tau r_tau + dS_g r_g)                           (S9)
///
/// so with p and the r frozen it is one forward tangent through the network, r_q seeded in every q
/// slot, r_a in every previous-action slot and so on, dotted with p.
struct PolicyDirection {
  JointVector p;                                  // nu
  JointVector r_q;                                // nv   right
  JointVector r_a;                                // nu   X r: how the settled action moves along
  JointVector r_tau;                              // nv   −K r: how the torque moves along
  Eigen::Vector3d r_g = Eigen::Vector3d::Zero();  // E r: how gravity moves along
};

/// Through K₁ of (S2): p = −α Kp left, r_q = right; the other directions are zero, and S_q stands
/// for the newest frame's J_q alone.
void OneStepDirection(const Servo& servo,
                      const ConstVector& left,
                      const ConstVector& right,
                      PolicyDirection* direction);

/// Through K_s of (S3): p = −N₀ᵀ α Kp left. `channels` as given to SolveQuasiStatic().
void StaticDirection(const Servo& servo,
                     const StaticStiffness& stiffness,
                     const StaticChannels& channels,
                     const ConstVector& left,
                     const ConstVector& right,
                     PolicyDirection* direction);

/// The same for a whole gradient matrix dS/dK (n × n): dS_q = −N₀ᵀ α Kp dS/dK, dS_a = dS_q Xᵀ and
/// so on.
struct PolicyGradient {
  JointMatrix dS_q;                                                             // nu × nv
  JointMatrix dS_a;                                                             // nu × nu
  JointMatrix dS_tau;                                                           // nu × nv
  Eigen::Matrix<double, Eigen::Dynamic, 3, Eigen::ColMajor, kMaxDofs, 3> dS_g;  // nu × 3
};
void OneStepGradient(const Servo& servo, const ConstMatrix& dK, PolicyGradient* gradient);
void StaticGradient(const Servo& servo,
                    const StaticStiffness& stiffness,
                    const StaticChannels& channels,
                    const ConstMatrix& dK,
                    PolicyGradient* gradient);

/// Penalty on the largest σ: (σ₁ − 1)₊² and its derivative with respect to K, n × n. Differentiable
/// where σ₁ is simple.
///
/// @param N  as in ComputeTaskStiffness(): K is n × n, M lives in z and NᵀKN is held against it;
/// null: z = q
StiffnessStatus LargestSigmaPenalty(Condition condition,
                                    const ConstMatrix& K,
                                    const ConstMatrix& M,
                                    const ConstMatrix* N,
                                    double* value,
                                    JointMatrix* dK);

/// Penalty on all violating σ: Σ_i (σ_i − 1)₊². Differentiable also where σ cross, since a
/// symmetric function of all of them.
StiffnessStatus AllSigmasPenalty(Condition condition,
                                 const ConstMatrix& K,
                                 const ConstMatrix& M,
                                 const ConstMatrix* N,
                                 double* value,
                                 JointMatrix* dK);

/// The paper's section IV-A: v = λ_max(J Jᵀ − K_LCP K_LCPᵀ), penalty v₊².              (S10)
///
/// @param      J      ∂a/∂o, any columns                             nu × no
/// @param      K_lcp  nu × nu, not singular
/// @param[out] dJ     ∂(v₊²)/∂J                                      nu × no
StiffnessStatus AnisotropicLcpPenalty(const ConstMatrix& J,
                                      const ConstMatrix& K_lcp,
                                      double* value,
                                      Eigen::MatrixXd* dJ);

/// The paper's scalar comparison: (‖J‖₂ − k)₊².
StiffnessStatus ScalarLcpPenalty(const ConstMatrix& J,
                                 double k,
                                 double* value,
                                 Eigen::MatrixXd* dJ);

/// LCP for a Gaussian policy of fixed spread: E_a‖∇_o log π(a|o)‖² = ‖Σ^{−1/2} J‖_F², Σ =
/// diag(sigma²).
StiffnessStatus LogProbPenalty(const ConstMatrix& J,
                               const ConstVector& sigma,
                               double* value,
                               Eigen::MatrixXd* dJ);

}  // namespace silc
