// SPDX-License-Identifier: Apache-2.0
#include "silc/learn/ppo.h"

#include <gtest/gtest.h>

#include <cmath>

namespace silc {
namespace {

Tensor T(const std::vector<double>& values) { return at::tensor(values, at::kDouble); }

// (P1): one action 2σ away, one at the mean: −2 − ln 0.5 − 0 − ln 2 − ln 2π = −2 − ln 2π
TEST(LogProb, IsTheGaussianDensity) {
  const Tensor logp = LogProb(T({1, 0}).view({1, 2}), T({0.5, 2}), T({2, 0}).view({1, 2}));
  EXPECT_NEAR(logp.item<double>(), -2 - std::log(2 * M_PI), 1e-12);
}

// (P6): σ = 1/√(2πe) has entropy 0, and ln σ adds
TEST(Entropy, IsZeroAtTheUnitVolume) {
  const double unit = 1 / std::sqrt(2 * M_PI * std::exp(1.0));
  EXPECT_NEAR(Entropy(T({unit, 3 * unit})).item<double>(), std::log(3.0), 1e-12);
}

// (P2) by hand, γ = 0.5, λ = 0.5. Robot 0 runs on; robot 1 falls at step 0; robot 2 times out at 0.
TEST(EstimateAdvantages, FollowsFallsAndTimeOuts) {
  const Tensor reward = at::ones({2, 3, 1}, at::kDouble);
  const Tensor value = T({2, 2, 2, 4, 4, 4}).view({2, 3, 1});
  const Tensor last = T({8, 8, 8}).view({3, 1});
  const Tensor done = T({0, 1, 1, 0, 0, 0}).view({2, 3});
  const Tensor timed_out = T({0, 0, 1, 0, 0, 0}).view({2, 3});
  const Advantages result = EstimateAdvantages(reward, value, last, done, timed_out, 0.5, 0.5);
  // step 1, all: δ = 1 + 0.5·8 − 4 = 1
  // step 0: on:      δ = 1 + 0.5·4 − 2 = 1,     A = 1 + 0.25·1 = 1.25
  //         fallen:  δ = 1 − 2 = −1,            A = −1
  //         timeout: δ = 1 + 0.5·2 − 2 = 0,     A = 0
  const Tensor expected = T({1.25, -1, 0, 1, 1, 1}).view({2, 3, 1});
  EXPECT_TRUE(at::allclose(result.advantage, expected));
  EXPECT_TRUE(at::allclose(result.target, expected + value));
}

TEST(Normalised, KeepsAgentsApart) {
  const Tensor a = at::randn({5, 7, 2}, at::kDouble) * T({1, 100}) + T({3, -50});
  const Tensor flat = Normalised(a).view({35, 2});
  EXPECT_LT(flat.mean(0).abs().max().item<double>(), 1e-12);
  EXPECT_LT((flat.std(0) - 1).abs().max().item<double>(), 1e-6);
}

TEST(Normalised, OfBlocksIsThatOfAllSamples) {
  const Tensor a = at::randn({6, 8, 2}, at::kDouble) * T({1, 100}) + T({3, -50});
  std::vector<Tensor> blocks;
  for (int b = 0; b < 4; ++b) blocks.push_back(BlockMoments(a.narrow(1, 2 * b, 2).contiguous()));
  EXPECT_TRUE(at::allclose(Normalised(a, at::stack(blocks), 12), Normalised(a), 1e-12, 1e-12));
}

// (P4): r = 1.5, 0.5, 1.5, 0.5 with A = 1, 1, −1, −1 and ε = 0.2
//   min(1.5, 1.2) = 1.2;  min(0.5, 0.8) = 0.5;  min(−1.5, −1.2) = −1.5;  min(−0.5, −0.8) = −0.8
TEST(ClippedSurrogate, TakesTheWorseOfTheTwo) {
  const Tensor logp = T({1.5, 0.5, 1.5, 0.5}).log();
  const Tensor loss = ClippedSurrogate(logp, at::zeros_like(logp), T({1, 1, -1, -1}), 0.2);
  EXPECT_NEAR(loss.item<double>(), -(1.2 + 0.5 - 1.5 - 0.8) / 4, 1e-12);
}

// (P5): V = 1, V_old = 0, ε = 0.2: clipped 0.2. R = 2: max(1, 3.24); R = 0: max(1, 0.04)
TEST(ClippedValueLoss, TakesTheWorseOfTheTwo) {
  const Tensor loss = ClippedValueLoss(T({1, 1}), T({0, 0}), T({2, 0}), 0.2);
  EXPECT_NEAR(loss.item<double>(), (3.24 + 1) / 2, 1e-12);
}

// (P7): equal spreads σ = 2 and means 1 apart: 1/(2·4)
TEST(MeanKl, IsTheGaussianDivergence) {
  const Tensor kl = MeanKl(T({1}).view({1, 1}), T({2}), T({0}).view({1, 1}), T({2}));
  EXPECT_NEAR(kl.item<double>(), 0.125, 1e-12);
  const Tensor wide = MeanKl(T({0}).view({1, 1}), T({2}), T({0}).view({1, 1}), T({1}));
  EXPECT_NEAR(wide.item<double>(), std::log(2.0) + 0.125 - 0.5, 1e-12);
  // small spreads and a small step, as at the end of a training: 15 joints, σ = 0.05, μ off by 1e-3
  const Tensor mu = at::zeros({1, 15}, at::kDouble), sigma = at::full({15}, 0.05, at::kDouble);
  EXPECT_NEAR(MeanKl(mu + 1e-3, sigma, mu, sigma).item<double>(), 15 * 1e-6 / 0.005, 1e-12);
}

TEST(AdaptedRate, FollowsTheDivergence) {
  const Tensor rate = T({3e-4})[0];
  const auto adapted = [&](double kl) {
    return AdaptedRate(rate, T({kl})[0], T({0.01})[0], 2.5e-4, 4e-4).item<double>();
  };
  EXPECT_DOUBLE_EQ(adapted(0.01), 3e-4);
  EXPECT_DOUBLE_EQ(adapted(0.021), 2.5e-4);  // 2e-4, floored
  EXPECT_DOUBLE_EQ(adapted(0.004), 4e-4);    // 4.5e-4, capped
  EXPECT_DOUBLE_EQ(adapted(1e-4), 4e-4);
  EXPECT_DOUBLE_EQ(adapted(1e-9), 3e-4);  // nothing has moved yet: no reason to hurry
}

TEST(CoolDown, FallsToATenthAtTheEnd) {
  EXPECT_EQ(CoolDown(99, 100, 0), 1);
  EXPECT_EQ(CoolDown(0, 100, 20), 1);
  EXPECT_EQ(CoolDown(80, 100, 20), 1);
  EXPECT_DOUBLE_EQ(CoolDown(90, 100, 20), 0.55);
  EXPECT_DOUBLE_EQ(CoolDown(100, 100, 20), 0.1);
  EXPECT_DOUBLE_EQ(CoolDown(120, 100, 20), 0.1);  // told to go on for longer
}

TEST(ClipFactor, BringsTheNormToTheLimit) {
  EXPECT_NEAR(ClipFactor(T({3, 4}).norm(), 1).item<double>(), 0.2, 1e-6);
  EXPECT_DOUBLE_EQ(ClipFactor(T({0.3, 0.4}).norm(), 1).item<double>(), 1);
}

// (P8) by hand. At t = 1, m̂ = g and v̂ = g²: the step is η sign(g) after the decay. At t = 2 with
// g = 2 then 1: m̂ = (0.9·0.2 + 0.1)/0.19, v̂ = (0.999·0.004 + 0.001)/0.001999.
TEST(AdamW, TakesTheStepsOfTheFormula) {
  Tensor theta = T({10});
  AdamW adam(theta, 0.01);
  const Tensor rate = T({0.1})[0];
  adam.Step(theta, T({2}), rate);
  const double first = 10 * (1 - 0.001) - 0.1;
  EXPECT_NEAR(theta.item<double>(), first, 1e-8);  // ε moves it by 5e-10
  adam.Step(theta, T({1}), rate);
  const double m = 0.28 / 0.19, v = 0.004996 / 0.001999;
  EXPECT_NEAR(theta.item<double>(), first * (1 - 0.001) - 0.1 * m / std::sqrt(v), 1e-8);
}

}  // namespace
}  // namespace silc
