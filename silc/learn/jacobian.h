// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <complex>
#include <span>
#include <vector>

#include "silc/learn/networks.h"
#include "silc/learn/tensor.h"
#include "silc/policy/mlp.h"

namespace silc {

/// A point z = e^{iθ} of the unit circle beside z = 1: how the observation moves with actions that
/// went up and down as z^t. What is seen k steps late has z^{−k}; real and imaginary parts apart,
/// undefined where nothing is seen.
struct LoopPoint {
  Tensor a, a_imag;      // (obs, nu)
  Tensor tau, tau_imag;  // (obs, nv)
};

/// A frequency of `penalty.frequencies`: how the observation moves with joints, actions and torques
/// that go as e^{jωt}, as they are sampled. Each is (obs, 2 n): the real part, then the imaginary.
struct FrequencyPoint {
  double omega = 0;                   // [rad/s]
  std::complex<double> path = 1;      // e^{−jωd} Z(ω) of (S4)
  std::complex<double> torque_delay;  // e^{−jωTs}
  Tensor q;                           // (obs, 2 nv)  joints, and their velocities by jω
  Tensor a, tau, g;                   // (obs, 2 nu), (obs, 2 nv), (obs, 6); undefined: not seen
};

/// How an observation moves with physical quantities, as dense matrices (obs_dim, columns) with all
/// scales inside. A sum over frames is one set of columns with an entry in every frame: S_q costs
/// what J_q⁰ costs. Undefined where the policy does not see the quantity.
struct Channels {
  Tensor q0;   // (obs, nv)  newest frame of q
  Tensor q;    // (obs, nv)  every frame of q
  Tensor a;    // (obs, nu)  every frame of the previous action
  Tensor tau;  // (obs, nv)  every frame of the torque
  Tensor g;    // (obs, 3)   every frame of projected gravity
  std::vector<LoopPoint> loop;
  std::vector<FrequencyPoint> frequencies;
};

/// Angles of points on the upper half of the unit circle, one in each of `points` equal parts, as a
/// function of seed and iteration.                                                        (P16)
std::vector<double> DrawLoopAngles(int points, std::uint64_t seed, int iteration);

/// The points z = e^{iθ} at these angles; none where neither actions nor torque are seen.
/// @param age  of each number of the observation; empty: 0. An action is seen a step after it was.
std::vector<LoopPoint> MakeLoopPoints(std::span<const double> angles,
                                      std::span<const ColumnEntry> a,
                                      std::span<const ColumnEntry> tau,
                                      std::span<const int> age,
                                      int obs_dim,
                                      int columns,
                                      const at::TensorOptions& options);

/// Columns from entries; undefined when there are none.
Tensor DenseColumns(std::span<const ColumnEntry> entries,
                    int obs_dim,
                    int columns,
                    const at::TensorOptions& options);

/// act'(z) of every hidden layer, per actor.
struct Slopes {
  std::vector<std::vector<Tensor>> actor;  // [actor][layer] (B, width)
};
/// Off the tape, whatever z is on.
Slopes FrozenSlopes(const std::vector<Activations>& actors, std::int64_t first, std::int64_t count);
/// On the tape, from the same forward pass that PPO's losses use.
Slopes TapedSlopes(const std::vector<Activations>& actors, std::int64_t first, std::int64_t count);

/// ∂a/∂o E of actors that stand side by side, exact, off the tape:
///
///     W_L D_{L−1} W_{L−1} … D_1 (W_1 E)                                                 (P11)
///
/// multiplied from the left. The first layer meets E before any sample does, so it is free; from
/// the left every product has 15 or 14 rows where the tangents of S_q and S_a would be 58 columns:
/// 2.9 M multiply-adds a sample and actor for FALCON's widths, against 9.6 M.
///
/// @param columns (obs, c)   @return (B, nu, c)
Tensor ActionJacobian(const std::vector<Layers>& actors,
                      const Slopes& slopes,
                      const Tensor& columns);

/// Tangents: how the action moves when the observation moves by Σ_i E_i r_i, k directions a sample.
/// On the tape of the weights and of `slopes`: dotted with a frozen p it is the scalar whose
/// gradient (S9) asks for.
struct Seed {
  Tensor columns;    // (obs, c)
  Tensor direction;  // (B, k, c)
};
/// @return (B, k, nu)
Tensor ActionTangent(const std::vector<Layers>& actors,
                     const Slopes& slopes,
                     const std::vector<Seed>& seeds);

/// Jᵀ e of one actor, on the tape: e (B, outputs) → (B, obs).
Tensor ObservationGradient(const Layers& actor, const std::vector<Tensor>& slopes, const Tensor& e);

}  // namespace silc
