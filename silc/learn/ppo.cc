// SPDX-License-Identifier: Apache-2.0
#include "silc/learn/ppo.h"

#include <cmath>
#include <numbers>

#include "silc/base/check.h"

namespace silc {

Tensor LogProb(const Tensor& mean, const Tensor& std, const Tensor& action) {
  SILC_CHECK(mean.sizes() == action.sizes() && mean.size(1) == std.size(0));
  const double constant = 0.5 * std::log(2 * std::numbers::pi) * double(std.size(0));
  return -0.5 * ((action - mean) / std).square().sum(1) - (std.log().sum() + constant);
}

Tensor Entropy(const Tensor& std) {
  const double constant = 0.5 * std::log(2 * std::numbers::pi * std::numbers::e);
  return std.log().sum() + constant * double(std.size(0));
}

Advantages EstimateAdvantages(const Tensor& reward,
                              const Tensor& value,
                              const Tensor& last_value,
                              const Tensor& done,
                              const Tensor& timed_out,
                              double gamma,
                              double lambda) {
  SILC_CHECK(reward.dim() == 3 && reward.sizes() == value.sizes() && done.dim() == 2 &&
             done.sizes() == timed_out.sizes() && done.size(0) == reward.size(0) &&
             last_value.sizes() == reward[0].sizes());
  at::NoGradGuard no_tape;
  const Tensor goes_on = 1 - done.to(value.dtype()).unsqueeze(2);
  const Tensor paid = reward + gamma * value * timed_out.to(value.dtype()).unsqueeze(2);
  Advantages result{at::empty_like(value), Tensor()};
  Tensor next_value = last_value, next_advantage = at::zeros_like(last_value);
  for (std::int64_t t = reward.size(0) - 1; t >= 0; --t) {
    // (P2)
    const Tensor delta = paid[t] + gamma * goes_on[t] * next_value - value[t];
    next_advantage = delta + gamma * lambda * goes_on[t] * next_advantage;
    result.advantage[t].copy_(next_advantage);
    next_value = value[t];
  }
  result.target = result.advantage + value;
  return result;
}

Tensor Normalised(const Tensor& advantage) {
  const Tensor flat = advantage.reshape({-1, advantage.size(-1)});
  return (advantage - flat.mean(0)) / (flat.std(0) + 1e-8);
}

Tensor BlockMoments(const Tensor& advantage) {
  const Tensor flat = advantage.reshape({-1, advantage.size(-1)}).to(at::kDouble);
  const Tensor mean = flat.mean(0);
  return at::stack({mean, (flat - mean).square().sum(0)});
}

Tensor Normalised(const Tensor& advantage, const Tensor& of_blocks, std::int64_t samples) {
  const Tensor means = of_blocks.select(1, 0), mean = means.mean(0);
  const Tensor squares =
      of_blocks.select(1, 1).sum(0) + double(samples) * (means - mean).square().sum(0);
  const Tensor std = (squares / double(of_blocks.size(0) * samples - 1)).sqrt();
  const auto type = advantage.scalar_type();
  return (advantage - mean.to(type)) / (std.to(type) + 1e-8);
}

Tensor ClippedSurrogate(const Tensor& logp,
                        const Tensor& logp_old,
                        const Tensor& advantage,
                        double clip) {
  // (B) against (B, 1) would broadcast to (B, B) and still train, badly
  SILC_CHECK(logp.sizes() == logp_old.sizes() && logp.sizes() == advantage.sizes());
  const Tensor ratio = (logp - logp_old).exp();
  return -at::min(ratio * advantage, ratio.clamp(1 - clip, 1 + clip) * advantage).mean();
}

Tensor ClippedValueLoss(const Tensor& value,
                        const Tensor& value_old,
                        const Tensor& target,
                        double clip) {
  SILC_CHECK(value.sizes() == value_old.sizes() && value.sizes() == target.sizes());
  const Tensor clipped = value_old + (value - value_old).clamp(-clip, clip);
  return at::max((value - target).square(), (clipped - target).square()).mean();
}

Tensor MeanKl(const Tensor& mean,
              const Tensor& std,
              const Tensor& mean_old,
              const Tensor& std_old) {
  SILC_CHECK(mean.sizes() == mean_old.sizes() && std.sizes() == std_old.sizes());
  return ((std / std_old).log() +
          (std_old.square() + (mean_old - mean).square()) / (2 * std.square()) - 0.5)
      .sum(1)
      .mean();
}

Tensor AdaptedRate(
    const Tensor& rate, const Tensor& kl, const Tensor& target, double low, double high) {
  // the first mini-batch of an iteration: nothing has moved yet, and the sum is rounding
  constexpr double kNothing = 1e-6;
  const Tensor slower = at::where(kl > 2 * target, rate / 1.5, rate);
  return at::where((kl < 0.5 * target).logical_and(kl > kNothing), rate * 1.5, slower)
      .clamp(low, high);
}

double CoolDown(int iteration, int iterations, int cool_down) {
  const int left = iterations - iteration;
  if (cool_down <= 0 || left >= cool_down) return 1;
  return 0.1 + 0.9 * std::max(0, left) / cool_down;
}

Tensor ClipFactor(const Tensor& norm, double limit) { return (limit / (norm + 1e-6)).clamp_max(1); }

AdamW::AdamW(const Tensor& flat, double weight_decay)
    : m(at::zeros_like(flat)),
      v(at::zeros_like(flat)),
      t(at::zeros({}, flat.options().dtype(at::kDouble))),
      weight_decay_(weight_decay) {}

void AdamW::Step(const Tensor& flat, const Tensor& gradient, const Tensor& rate) {
  constexpr double kBeta1 = 0.9, kBeta2 = 0.999, kEpsilon = 1e-8;
  at::NoGradGuard no_tape;
  t.add_(1);
  m.lerp_(gradient, 1 - kBeta1);
  v.mul_(kBeta2).addcmul_(gradient, gradient, 1 - kBeta2);
  // corrections in double: 1 − 0.999ᵗ has three digits less in float
  const auto type = flat.scalar_type();
  const Tensor c1 = (1 - at::pow(kBeta1, t)).to(type);
  const Tensor c2 = (1 - at::pow(kBeta2, t)).sqrt().to(type);
  const Tensor denominator = v.sqrt().div_(c2).add_(kEpsilon);
  flat.mul_(1 - rate.to(type) * weight_decay_);
  flat.sub_((m / denominator).mul_(rate.to(type) / c1));
}

}  // namespace silc
