// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstdint>

#include "silc/base/host_device.h"

/// The terms of PPO for one sample or one parameter, with their derivatives written out: what an
/// update without the tape is made of, in the kernels of a GPU (cuda_ppo.cu) and in the loops of
/// the CPU (float_kernel_impl.h). ppo.h has the same terms as tensors on the tape.
namespace silc {

inline constexpr float kHalfLogTwoPi = 0.918938533204672742f;

/// A loss of one sample and its derivative by what the network said.
struct LossTerm {
  float value = 0, slope = 0;
};

/// (P4): −min(r A, clip(r, 1 ± ε) A), and its derivative by log π, (P14): −r A where the unclipped
/// branch is the smaller one, else 0.
SILC_HD LossTerm SurrogateTerm(float ratio, float advantage, float clip) {
  const float low = 1 - clip, high = 1 + clip;
  const float free = ratio * advantage;
  const float held = (ratio < low ? low : ratio > high ? high : ratio) * advantage;
  return free <= held ? LossTerm{-free, -free} : LossTerm{-held, 0.0f};
}

/// (P5): max((V − R)², (V_old + clip(V − V_old, ±ε) − R)²), and its derivative by V.
SILC_HD LossTerm ValueTerm(float value, float old, float target, float clip) {
  // the value itself where it is not clipped: old + (value − old) is not always value
  const float apart = value - old;
  const float held = apart > clip ? old + clip : apart < -clip ? old - clip : value;
  const float free_loss = (value - target) * (value - target);
  const float held_loss = (held - target) * (held - target);
  return free_loss >= held_loss ? LossTerm{free_loss, 2 * (value - target)}
                                : LossTerm{held_loss, 0.0f};
}

/// (P2): rewards and values of a rollout. All (steps, robots, agents) but done and timed_out
/// (steps, robots) and last_value (robots, agents).
struct AdvantageArguments {
  const float *reward = nullptr, *value = nullptr, *last_value = nullptr;
  const std::uint8_t *done = nullptr, *timed_out = nullptr;
  int steps = 0, robots = 0, agents = 0;
  float gamma = 0, lambda = 0;
  float *advantage = nullptr, *target = nullptr;
};
/// (P2) of robot i / agents and agent i % agents.
SILC_HD void EstimateAdvantagesOf(const AdvantageArguments& a, int i) {
  const int robot = i / a.agents;
  float next_value = a.last_value[i], next_advantage = 0;
  for (int t = a.steps - 1; t >= 0; --t) {
    const long at = static_cast<long>(t) * a.robots * a.agents + i;
    const long step = static_cast<long>(t) * a.robots + robot;
    const float goes_on = 1.0f - static_cast<float>(a.done[step]), value = a.value[at];
    const float paid = a.reward[at] + a.gamma * value * static_cast<float>(a.timed_out[step]);
    const float delta = paid + a.gamma * goes_on * next_value - value;
    next_advantage = delta + a.gamma * a.lambda * goes_on * next_advantage;
    a.advantage[at] = next_advantage;
    a.target[at] = next_advantage + value;
    next_value = value;
  }
}

/// (P7): the rate after a mini-batch whose KL was this.
SILC_HD double RateAfter(double rate, double kl, double target, double low, double high) {
  // under this nothing has moved yet, and the sum is rounding
  constexpr double kNothing = 1e-6;
  if (kl > 2 * target) rate /= 1.5;
  if (kl < 0.5 * target && kl > kNothing) rate *= 1.5;
  return rate < low ? low : rate > high ? high : rate;
}

/// (P9): factor ≤ 1 that brings a gradient of this norm to `limit`.
SILC_HD float ClipFactorOf(float norm, float limit) {
  const float factor = limit / (norm + 1e-6f);
  return factor < 1.0f ? factor : 1.0f;
}

inline constexpr double kAdamBeta1 = 0.9, kAdamBeta2 = 0.999;
inline constexpr float kAdamEpsilon = 1e-8f;

/// What a step of (P8) is for all parameters of a network.
struct AdamStep {
  float clip = 1;          // (P9), of the gradient
  float rate = 0;          // η
  float c1 = 1, c2 = 1;    // 1 − β₁ᵗ, √(1 − β₂ᵗ)
  float weight_decay = 0;  // w
};
/// (P8) of one parameter. @param held a gradient to add after clipping   @return the new parameter
SILC_HD float AdamParameter(
    const AdamStep& step, float parameter, float gradient, float held, float* m, float* v) {
  const float g = gradient * step.clip + held;
  const float m_new = *m + static_cast<float>(1 - kAdamBeta1) * (g - *m);
  const float v_new =
      static_cast<float>(kAdamBeta2) * *v + static_cast<float>(1 - kAdamBeta2) * g * g;
  *m = m_new;
  *v = v_new;
  const float kept = parameter * (1 - step.rate * step.weight_decay);
  return kept - m_new / (sqrtf(v_new) / step.c2 + kAdamEpsilon) * (step.rate / step.c1);
}

}  // namespace silc
