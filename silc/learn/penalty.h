// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "silc/learn/config.h"
#include "silc/learn/jacobian.h"
#include "silc/learn/networks.h"
#include "silc/learn/small_matrix.h"
#include "silc/learn/tensor.h"
#include "silc/stiffness/budget.h"

/// The seven methods as batched tensors, docs/penalty.md. Values agree with silc/stiffness, sample
/// by sample; gradients are those of the mean over the samples.
namespace silc {

/// What (S5) leaves of a batch of moments; the budget is made of it. Any float type.
struct ContactBatch {
  Tensor mode;          // (B) uint8    ContactMode
  Tensor com;           // (B, 3, nv)   contact-consistent [m/rad]
  Tensor hand_on_base;  // (B, 2, 3, nv)
  Tensor closing;       // (B, 6, nv)   J_c; read in double support only
  Tensor gravity;       // (B, 3, nv)   E = ∂g_B/∂q
};

/// The budget of every sample as factors that need no reduced coordinates; the batched twin of
/// FactorBudget() in silc/stiffness/budget.h:
///
///     P Pᵀ = N M_s⁻¹ Nᵀ,    Π = N (Nᵀ N)⁻¹ Nᵀ                                           (S6)
///
/// so that (S7c) is ‖2 Pᵀ K P − Π_c‖ and (S7a) is ‖Pᵀ K Π‖, n × n in every contact mode: directions
/// that the closed chain forbids give σ = 0.
///
/// With Ŵ = W^{1/2}, Π_c the projector off the rows of J_c Ŵ⁻¹ and (J Ŵ⁻¹ Π_c)ᵀ = Q R:
///
///     P = Ŵ⁻¹ [ b^{−1/2} (Π_c − Q Qᵀ) + Q F Qᵀ ],   F Fᵀ = (R K_x Rᵀ)⁻¹
struct BudgetFactors {
  Tensor P;      // (B, nv, nv)   [(rad/N·m)^½]
  Tensor Pi;     // (B, nv, nv)
  Tensor unit;   // (B, nv, nv)   projector on what P acts on: the identity but for a closed chain
  Tensor ok;     // (B) bool: false where a Jacobian has lost rank
  Tensor floor;  // (B, nv, nv) m of the band [N·m/rad]; undefined: 0
};
/// Calls copy(tensor, &tensor) for every pair of fields. A field forgotten here does not compile.
template <class Copy>
void CopyFields(const BudgetFactors& from, BudgetFactors* to, Copy copy) {
  const auto& [P, Pi, unit, ok, floor] = from;
  auto& [to_P, to_Pi, to_unit, to_ok, to_floor] = *to;
  copy(P, &to_P);
  copy(Pi, &to_Pi);
  copy(unit, &to_unit);
  copy(ok, &to_ok);
  copy(floor, &to_floor);
}
/// Worked out in double on the batch's device, handed out as `type`. With a floor under the hands,
/// spec.hand_floor, the budget is the band from m = Jᵀ f K J of the hands to M (docs/math/
/// stiffness.md section 3): P is then made of M − m, and K − m takes the place of K.
/// @param command  (B, 3) u of each sample, (B1) of docs/command.md, in double: the budget is that
///     of BudgetAt(spec, exp u), (B2). Undefined: the spec's own numbers
BudgetFactors MakeBudgetFactors(const BudgetSpec& spec,
                                const Tensor& kp,
                                const ContactBatch& contact,
                                at::ScalarType type,
                                const Tensor& command = {});

/// The servo (S1), one entry per joint.
struct ServoTensors {
  Tensor kp;     // (nv) [N·m/rad]
  Tensor alpha;  // (nv) [rad]
  Tensor kd;     // (nv) [N·m·s/rad]; only penalty.frequencies need it
};

/// A penalty of one batch.
struct PenaltyResult {
  Tensor surrogate;  // scalar on the tape: its gradient is that of `value`
  Tensor value;      // scalar: mean over the samples, off the tape
  Tensor sigma;  // (B) largest σ, or what the method bounds relative to its bound; 1 is the edge
  Tensor condition;  // (B, n, n) silc with a margin: its norm is σ, where `sigma` is of the margin
  Tensor ok;         // (B) bool: samples that took part
  Tensor loop_norm;  // (B) largest ‖A(z)‖₂ of the loop's points (silc), else undefined
  // (B) largest σ(ω), of the margin, and ν(ω) of penalty.frequencies; undefined without
  Tensor frequency_sigma, frequency_driving;
};

/// What the methods look at. Members a method does not need may be undefined.
struct PenaltyInput {
  std::vector<Layers> actors;            // as the forward pass used them
  std::vector<Activations> activations;  // on the tape
  std::int64_t first = 0, count = 0;     // rows of the activations that take part
  std::vector<Tensor> std;               // per actor (lcp)
  std::vector<Tensor> action;            // per actor (count, k) that was taken (lcp)
  Channels channels;                     // torque and gravity undefined where the budget holds them
  ServoTensors servo;
  BudgetFactors budget;  // (count)
  Tensor gravity;        // (count, 3, nv) E
  Tensor signs;          // (count, probes, nv) of ±1: random combinations
  Tensor bound;          // scalar b: σ beyond it is penalised; undefined: 1. (S7c) takes b < 1 as
                         // a margin: σ of the budget b M beyond 1
};

/// Σ_actors mean ‖∇_o log π(a|o)‖², at the action taken.                                 (lcp)
PenaltyResult LogProbGradientPenalty(const PenaltyInput& input);
/// mean (‖J_q⁰‖₂ − k)₊².                                                          (scalar-lcp)
PenaltyResult ScalarPenalty(const PenaltyInput& input, const PenaltyConfig& config);
/// mean λ_max(J_q⁰ J_q⁰ᵀ − k² I)₊².                                                     (S10)
PenaltyResult AnisotropicPenalty(const PenaltyInput& input, const PenaltyConfig& config);
/// (S7a) on K₁.                                                                   (silc-paper)
PenaltyResult PaperPenalty(const PenaltyInput& input, const PenaltyConfig& config);
/// (S7c) on K_s, ‖2 Pᵀ(K − m)P/min(b, 1) − Π_c‖ ≤ max(b, 1), and ‖S_a + S_τ Kp α‖₂ held under its
/// limit.                                                                             (silc)
PenaltyResult StaticPenalty(const PenaltyInput& input, const PenaltyConfig& config);

/// The one the method names. @pre it has one: not baseline, not sn-lcp.
PenaltyResult Penalty(Method method, const PenaltyInput& input, const PenaltyConfig& config);

/// Singular values and vectors of a batch of square or wide matrices:
/// the largest alone, by squaring A Aᵀ ten times, which is matrix products and nothing else.
Singular LargestSingular(const Tensor& A);

/// λ from iteration to iteration.
class PenaltyWeight {
 public:
  explicit PenaltyWeight(const PenaltyConfig& config) : config_(config) {}
  /// The weight at `iteration`.
  double Lambda(int iteration) const;
  /// After an iteration: the mean violation and the task's score (reward, or the share of the task
  /// that was fulfilled), higher is better. Only the multiplier listens.
  ///
  ///     ln λ ← ln λ + rate · d,  d = clip((violation − target)/target, ±1) while the smoothed
  ///     score is above floor · reference, else −4 (1 − score/(floor · reference)) clipped to ±1
  ///
  /// The score is smoothed over 10 iterations and λ moves by `rate` at most: that is the damping.
  ///
  /// The bound goes from bound_start to bound_end: ln b by −bound_rate while the smoothed score is
  /// above the floor, back by as much while it is not. It waits while the smoothed violation is
  /// above bound_lag: a policy that lags far behind its bound is pulled too hard.
  void Follow(double violation, double score);
  /// σ that is let pass now.
  double Bound() const;

  /// As a checkpoint holds it.
  struct State {
    double log_multiplier = 0;  // ln(λ/lambda)
    double smoothed_score = 0;
    double best_score = 0;
    double follows = 0;    // iterations
    double log_bound = 0;  // ln(bound/bound_start)
    double smoothed_violation = 0;
  };
  State state;

 private:
  PenaltyConfig config_;
};

}  // namespace silc
