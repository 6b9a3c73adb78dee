// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <Eigen/Core>
#include <span>
#include <vector>

#include "silc/stiffness/contact_jacobian.h"
#include "silc/stiffness/policy_jacobians.h"
#include "silc/stiffness/status.h"
#include "silc/stiffness/types.h"

namespace silc {

/// The sampled loop around the servo.
struct LoopTiming {
  double period = 0.02;  // [s] T, from one action to the next
  double latency = 0;    // [s] d, from sampling to the new target reaching the servo
};
/// [s] The largest latency that users may ask about: ten periods of a policy at 50 Hz.
inline constexpr double kMaxLatency = 0.2;

/// How the base answers to the joints, for the channels of the policy that watch the base. Null:
/// held.
struct BaseChannels {
  const Jacobian3* E = nullptr;      ///< ∂g_B/∂q                         [1/rad]   3 × nv
  const Jacobian3* B_rot = nullptr;  ///< base angular velocity in B per q̇  [1]       3 × nv
  bool torque = true;                ///< use J_tau where the policy has it
};

/// Dynamic stiffness: the torque phasor is −K(jω) times the joint phasor.
///
///     K(jω) = Kp + jω Kd − e^{−jωd} Z(ω) Kp α (I − A(ω))⁻¹ G(ω)                       (S4)
///     A(ω)  = Σ_i J_a[i] e^{−jωT(i+1)},   G(ω) = Σ_i (J_q[i] + jω J_v[i]) e^{−jωTi}
///     Z(ω)  = (1 − e^{−jωT}) / (jωT)
///
/// ideal sampling every T, target held over the period, PD in continuous time. Gravity and angular
/// velocity of the base add J_g E + jω J_w B_rot to G; an observed torque, sampled just before the
/// new target arrives, adds J_tau Kp α e^{−jωT(i+s)}, s = max(1, ⌈d/T⌉), to A and −J_tau (Kp + jω
/// Kd) to G. A motion at ω also excites torque at ω + 2πk/T; those aliases are not in K.
///
/// @param omega  [rad/s]  0 < ω < π/T; at 0 the limit, K_s, is returned
/// @param[out] K [N·m/rad] nv × nv
/// @return kOk, kNotFinite, or kSingularActionLoop where I − A(ω) cannot be inverted. Allocates.
StiffnessStatus DynamicStiffness(const Servo& servo,
                                 const PolicyJacobians& jacobians,
                                 const LoopTiming& timing,
                                 const BaseChannels& base,
                                 double omega,
                                 Eigen::MatrixXcd* K);

/// K(jω) at each of these frequencies [Hz], the base moving as the contacts let it; in flight its
/// channels are held. Not a number in all entries where DynamicStiffness() has no answer.
/// Allocates.
std::vector<Eigen::MatrixXcd> SweepDynamicStiffness(const Servo& servo,
                                                    const PolicyJacobians& jacobians,
                                                    const LoopTiming& timing,
                                                    const ContactKinematics& contact,
                                                    std::span<const double> hz);

/// Entrywise reading: Im K/ω, what a shaker on one joint calls damping. [N·m·s/rad]
Eigen::MatrixXd ApparentDamping(const Eigen::MatrixXcd& K, double omega);

}  // namespace silc
