// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "silc/learn/tensor.h"

/// The terms of proximal policy optimisation (Schulman et al. 2017), one function each, (P1)…(P9)
/// of docs/learning.md. Batches are (B); everything in one call lives on one device.
namespace silc {

/// log π(a|o) of a diagonal Gaussian, summed over the actions:
///
///     −Σ_i [ (a_i − μ_i)²/(2σ_i²) + ln σ_i + ½ ln 2π ]                                  (P1)
///
/// @param mean, action  (B, k)   @param std  (k)   @return (B)
Tensor LogProb(const Tensor& mean, const Tensor& std, const Tensor& action);

/// Its entropy, Σ_i ln σ_i + ½ ln 2πe, a scalar.                                          (P6)
Tensor Entropy(const Tensor& std);

/// Advantages by an exponential mean of temporal differences, and the returns they belong to:
///
///     δ_t = r_t + γ (1 − d_t) V_{t+1} − V_t,   A_t = δ_t + γλ (1 − d_t) A_{t+1},
///     R_t = A_t + V_t                                                                    (P2)
///
/// An episode that ran out of time did not fail: its last reward is raised by γ V_t beforehand, V_t
/// standing for the value of the state it would have gone on from.
///
/// @param reward, value    (T, N, agents)       @param last_value  (N, agents)
/// @param done, timed_out  (T, N), 0 or 1; a timed-out step is done, too
struct Advantages {
  Tensor advantage;  // (T, N, agents)
  Tensor target;     // (T, N, agents)   R
};
Advantages EstimateAdvantages(const Tensor& reward,
                              const Tensor& value,
                              const Tensor& last_value,
                              const Tensor& done,
                              const Tensor& timed_out,
                              double gamma,
                              double lambda);

/// (A − mean)/(std + 1e-8) over all steps and robots, each agent apart.                   (P3)
Tensor Normalised(const Tensor& advantage);
/// The same over blocks of samples of one size, from the mean and the sum of squared distances from
/// it of each. @param of_blocks (blocks, 2, agents) double   @param samples of a block
Tensor Normalised(const Tensor& advantage, const Tensor& of_blocks, std::int64_t samples);
/// @param advantage (…, agents) of a block   @return (2, agents) double
Tensor BlockMoments(const Tensor& advantage);

/// −mean min(r A, clip(r, 1 ± ε) A), r = exp(logp − logp_old).                            (P4)
Tensor ClippedSurrogate(const Tensor& logp,
                        const Tensor& logp_old,
                        const Tensor& advantage,
                        double clip);

/// mean max((V − R)², (V_old + clip(V − V_old, ±ε) − R)²).                                (P5)
Tensor ClippedValueLoss(const Tensor& value,
                        const Tensor& value_old,
                        const Tensor& target,
                        double clip);

/// mean_B Σ_i [ ln(σ/σ_old) + (σ_old² + (μ_old − μ)²)/(2σ²) − ½ ].                         (P7)
/// The published code adds 1e-5 to the quotient and to 2σ². That takes up to 1e-5/(4σ²) off each
/// joint's term: with spreads of 0.1 the sum goes below zero, and a rate that has once fallen to
/// its floor, where steps are small, never rises again. Spreads have a floor here instead.
Tensor MeanKl(const Tensor& mean, const Tensor& std, const Tensor& mean_old, const Tensor& std_old);

/// The rate that keeps KL near its target: divided by 1.5 above twice, multiplied by 1.5 under half
/// of it (and above 1e-6), within [low, high]. On the device: nothing waits for it.       (P7)
Tensor AdaptedRate(
    const Tensor& rate, const Tensor& kl, const Tensor& target, double low, double high);

/// What is left of the KL's target at `iteration` of `iterations`: 1, and over the last `cool_down`
/// of them falling evenly to a tenth. A run that ends at full speed ends anywhere in the
/// neighbourhood of what it has learnt. (P13)
double CoolDown(int iteration, int iterations, int cool_down);

/// Factor ≤ 1 that brings a gradient of this norm to `limit`.                             (P9)
Tensor ClipFactor(const Tensor& norm, double limit);

/// Adam with decoupled weight decay (Loshchilov and Hutter 2019) on one parameter vector:
///
///     m ← β₁m + (1−β₁)g,  v ← β₂v + (1−β₂)g²,
///     θ ← θ − η (w θ + m̂/(√v̂ + ε)),  m̂ = m/(1−β₁ᵗ),  v̂ = v/(1−β₂ᵗ)                    (P8)
class AdamW {
 public:
  AdamW() = default;
  AdamW(const Tensor& flat, double weight_decay);
  /// @param rate  scalar tensor η on the device
  void Step(const Tensor& flat, const Tensor& gradient, const Tensor& rate);

  Tensor m, v;  // like flat
  Tensor t;     // scalar double: steps taken
 private:
  double weight_decay_ = 0;
};

}  // namespace silc
