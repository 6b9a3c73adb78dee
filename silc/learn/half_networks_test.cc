// SPDX-License-Identifier: Apache-2.0
// The update without the tape, piece by piece, against the tape in double. Runs on a GPU alone.
#include "silc/learn/half_networks.h"

#include <c10/cuda/CUDAStream.h>
#include <gtest/gtest.h>

#include <cmath>

#include "silc/learn/cuda_ppo.h"
#include "silc/learn/ppo.h"
#include "silc/learn/random_env.h"
#include "silc/learn/test_tape.h"
#include "silc/learn/trainer.h"

namespace silc {
namespace {

using test::Apart;
using test::InDouble;

const at::TensorOptions kGpu = at::TensorOptions(at::kFloat).device(at::kCUDA);
HalfBits* Bits(const Tensor& t) { return reinterpret_cast<HalfBits*>(t.data_ptr<at::Half>()); }
CUstream_st* Stream() { return c10::cuda::getCurrentCUDAStream().stream(); }
float* Floats(const Tensor& t) { return t.data_ptr<float>(); }
class HalfNetworksTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!at::globalContext().hasCUDA()) GTEST_SKIP() << "no GPU answers";
    at::manual_seed(5);
  }
};

// Two networks whose outputs differ in number, as an actor's do.
std::vector<Network> TwoNetworks(bool spread) {
  const std::vector<int> hidden = {64, 40, 24};
  const auto std = [&](int n) { return std::vector<double>(spread ? n : 0, 0.4); };
  std::vector<Network> list;
  list.push_back(MakeNetwork({48, hidden, spread ? 15 : 1}, std(15), 1, 0, kGpu));
  list.push_back(MakeNetwork({48, hidden, spread ? 14 : 1}, std(14), 1, 1, kGpu));
  return list;
}

TEST_F(HalfNetworksTest, OutputsAndGradientsAreTheTapes) {
  const std::vector<Network> list = TwoNetworks(true);
  HalfNetworks half({&list[0], &list[1]});
  half.Refresh();
  HalfWorkspace workspace;
  // more rows than pieces, fewer, and a number that is a multiple of nothing
  for (const std::int64_t rows : {1024, 40, 333}) {
    const Tensor x = at::randn({rows, 48}, kGpu).to(at::kHalf);
    const Tensor output = half.Forward(x, &workspace).clone();
    Tensor d = at::randn({2, rows, half.padded()}, kGpu);
    d[0].narrow(1, 15, half.padded() - 15).zero_();
    d[1].narrow(1, 14, half.padded() - 14).zero_();
    const Tensor d_half = d.to(at::kHalf);
    half.Backward(x, d_half, &workspace);
    for (int k = 0; k < 2; ++k) {
      const int outputs = list[k].shape.outputs;
      std::vector<Tensor> leaves;
      const Tensor exact = InDouble(list[k], x, &leaves);
      const Tensor bias = list[k].layers.bias.back();
      EXPECT_LT(Apart(output[k].narrow(1, 0, outputs) + bias, exact), 2e-3) << rows;
      const Tensor loss = (exact * d_half[k].narrow(1, 0, outputs).to(at::kDouble)).sum() / rows;
      const auto gradients = torch::autograd::grad({loss}, leaves);
      std::int64_t at = 0;
      for (std::size_t i = 0; i + 1 < leaves.size(); ++i) {  // the last bias is the loss kernel's
        const std::int64_t count = leaves[i].numel();
        EXPECT_LT(Apart(half.gradient(k).narrow(0, at, count), gradients[i].reshape(-1)), 4e-3)
            << rows << " rows, network " << k << ", leaf " << i;
        at += count;
      }
      EXPECT_EQ(at, half.bias_at(k));
      EXPECT_EQ(half.spread_at(k), at + outputs);
    }
  }
}

TEST_F(HalfNetworksTest, WhatAFloat16CannotHoldSaturates) {
  std::vector<Network> list = TwoNetworks(true);
  {
    at::NoGradGuard no_tape;
    list[0].layers.weight[0].fill_(100);
    list[0].layers.weight[1].fill_(100);
  }
  HalfNetworks half({&list[0], &list[1]});
  half.Refresh();
  HalfWorkspace workspace;
  const Tensor x = at::full({64, 48}, 1000.0, kGpu.dtype(at::kHalf));
  EXPECT_TRUE(at::isfinite(half.Forward(x, &workspace)).all().item<bool>());
  const Tensor d = at::full({2, 64, half.padded()}, 8000.0, kGpu.dtype(at::kHalf));
  half.Backward(x, d, &workspace);
  EXPECT_TRUE(at::isfinite(half.gradient(0)).all().item<bool>());
}

// What a loss kernel left, summed over its pieces.
Tensor Pieces(const Tensor& partial, std::int64_t rows) { return partial.sum(0) / double(rows); }

TEST_F(HalfNetworksTest, TheActorsLossIsTheTapes) {
  const std::int64_t rows = 3000, samples = 5000;
  const int actions = 29, first = 15, count = 14, agents = 2, padded = 16;
  const Tensor output = 0.5 * at::randn({rows, padded}, kGpu);
  const Tensor bias = 0.1 * at::randn({count}, kGpu);
  const Tensor std = at::rand({count}, kGpu) + 0.2, std_old = at::rand({count}, kGpu) + 0.2;
  const Tensor action = at::randn({samples, actions}, kGpu);
  const Tensor mean = 0.5 * at::randn({samples, actions}, kGpu);
  const Tensor index = at::randperm(samples, kGpu.dtype(at::kLong)).narrow(0, 0, rows).clone();
  const Tensor advantage = at::randn({samples, agents}, kGpu);
  // ratios on both sides of the clip
  std::vector<Tensor> leaves = {output.to(at::kDouble).requires_grad_(),
                                bias.to(at::kDouble).requires_grad_(),
                                std.to(at::kDouble).requires_grad_()};
  const Tensor mu = leaves[0].narrow(1, 0, count) + leaves[1];
  const auto own = [&](const Tensor& t) {
    return t.index_select(0, index).narrow(1, first, count).to(at::kDouble);
  };
  const Tensor lp = LogProb(mu, leaves[2], own(action));
  Tensor logp = at::zeros({samples, agents}, kGpu);
  logp.select(1, 1).index_copy_(
      0, index, (lp.detach() + 0.3 * at::randn({rows}, kGpu)).to(at::kFloat));
  const Tensor loss =
      ClippedSurrogate(lp,
                       logp.select(1, 1).index_select(0, index).to(at::kDouble),
                       advantage.select(1, 1).index_select(0, index).to(at::kDouble),
                       0.2);
  const auto gradients = torch::autograd::grad({loss}, leaves);
  const Tensor kl = MeanKl(mu.detach(), std.to(at::kDouble), own(mean), std_old.to(at::kDouble));

  const Tensor d = at::full({rows, padded}, 7.0, kGpu.dtype(at::kHalf));
  const Tensor partial = at::zeros({kLossBlocks, kLossWidth}, kGpu);
  ActorLoss a;
  a.output = Floats(output);
  a.d_output = Bits(d);
  a.padded = padded;
  a.count = count;
  a.bias = Floats(bias);
  a.std = Floats(std);
  a.std_old = Floats(std_old);
  a.index = index.data_ptr<std::int64_t>();
  a.action = Floats(action) + first;
  a.mean = Floats(mean) + first;
  a.actions = actions;
  a.logp = Floats(logp) + 1;
  a.advantage = Floats(advantage) + 1;
  a.agents = agents;
  a.clip = 0.2f;
  a.partial = Floats(partial);
  ASSERT_EQ(LaunchActorLoss(&a, 1, rows, Stream()), 0);
  EXPECT_LT(Apart(d.to(at::kDouble) / double(rows), gradients[0]), 2e-3);
  EXPECT_EQ(d.narrow(1, count, padded - count).abs().max().item<double>(), 0);
  const Tensor sums = Pieces(partial, rows);
  EXPECT_LT(Apart(sums.narrow(0, 0, count), gradients[1]), 1e-4);
  EXPECT_LT(Apart(sums.narrow(0, kMaxOutputs, count), gradients[2]), 1e-4);
  EXPECT_NEAR(sums[2 * kMaxOutputs].item<double>(), loss.item<double>(), 1e-5);
  EXPECT_NEAR(sums[2 * kMaxOutputs + 1].item<double>() / kl.item<double>(), 1, 1e-4);
}

TEST_F(HalfNetworksTest, TheCriticsLossIsTheTapes) {
  const std::int64_t rows = 3000, samples = 5000;
  const int agents = 2, padded = 8;
  const Tensor output = at::randn({rows, padded}, kGpu), bias = at::randn({1}, kGpu);
  const Tensor value = at::randn({samples, agents}, kGpu),
               target = at::randn({samples, agents}, kGpu);
  const Tensor index = at::randperm(samples, kGpu.dtype(at::kLong)).narrow(0, 0, rows).clone();
  for (const float clip : {0.2f, std::numeric_limits<float>::max()}) {
    std::vector<Tensor> leaves = {output.to(at::kDouble).requires_grad_(),
                                  bias.to(at::kDouble).requires_grad_()};
    const auto own = [&](const Tensor& t) {
      return t.index_select(0, index).select(1, 0).to(at::kDouble);
    };
    const Tensor loss =
        ClippedValueLoss(leaves[0].select(1, 0) + leaves[1], own(value), own(target), clip);
    const auto gradients = torch::autograd::grad({0.5 * loss}, leaves);
    const Tensor d = at::zeros({rows, padded}, kGpu.dtype(at::kHalf));
    const Tensor partial = at::zeros({kLossBlocks, 2}, kGpu);
    CriticLoss c;
    c.output = Floats(output);
    c.d_output = Bits(d);
    c.padded = padded;
    c.bias = Floats(bias);
    c.index = index.data_ptr<std::int64_t>();
    c.value = Floats(value);
    c.target = Floats(target);
    c.agents = agents;
    c.clip = clip;
    c.weight = 0.5f;
    c.partial = Floats(partial);
    ASSERT_EQ(LaunchCriticLoss(&c, 1, rows, Stream()), 0);
    EXPECT_LT(Apart(d.to(at::kDouble) / double(rows), gradients[0]), 2e-3) << clip;
    const Tensor sums = Pieces(partial, rows);
    EXPECT_NEAR(sums[0].item<double>(), gradients[1].item<double>(), 1e-4);
    EXPECT_NEAR(sums[1].item<double>(), loss.item<double>(), 1e-4);
  }
}

TEST_F(HalfNetworksTest, AdvantagesAreEstimatedAsOnTheCpu) {
  const std::int64_t T = 24, N = 300, G = 2;
  const Tensor reward = at::randn({T, N, G}, kGpu), value = at::randn({T + 1, N, G}, kGpu);
  const Tensor done = (at::rand({T, N}, kGpu) < 0.2).to(at::kByte);
  const Tensor timed_out = done * (at::rand({T, N}, kGpu) < 0.5).to(at::kByte);
  const Advantages exact =
      EstimateAdvantages(reward, value.narrow(0, 0, T), value[T], done, timed_out, 0.99, 0.95);
  const Tensor advantage = at::zeros({T, N, G}, kGpu), target = at::zeros({T, N, G}, kGpu);
  AdvantageArguments a;
  a.reward = Floats(reward);
  a.value = Floats(value);
  a.last_value = Floats(value[T]);
  a.done = done.data_ptr<std::uint8_t>();
  a.timed_out = timed_out.data_ptr<std::uint8_t>();
  a.steps = T;
  a.robots = N;
  a.agents = G;
  a.gamma = 0.99f;
  a.lambda = 0.95f;
  a.advantage = Floats(advantage);
  a.target = Floats(target);
  ASSERT_EQ(LaunchAdvantages(a, Stream()), 0);
  EXPECT_LT(Apart(advantage, exact.advantage), 1e-5);
  EXPECT_LT(Apart(target, exact.target), 1e-5);
}

// One iteration of the whole trainer, in half precision and on the tape, from the same numbers.
struct Outcome {
  Tensor weights;
  double kl = 0;
};
Outcome OneIteration(const std::string& method,
                     const std::string& precision,
                     bool graphs,
                     int n,
                     int penalty_start = 0) {
  RandomEnv env(256, true);
  LearnConfig config;
  ApplyMethod(method, "test", &config);
  config.device = "cuda";
  config.precision = precision;
  config.graphs = graphs;
  config.rate = config.min_rate = config.max_rate = 1e-4;
  config.scale_inputs = true;
  config.penalty.samples = 512;
  config.penalty.every = 4;
  config.penalty.start = penalty_start;
  Trainer trainer(config, &env);
  Outcome outcome;
  for (int i = 0; i < n; ++i) {
    for (const auto& [name, value] : trainer.Iterate().scalars) {
      if (name == "train/kl_lower") outcome.kl = value;
    }
  }
  std::vector<Tensor> all;
  for (const auto& branch : trainer.Policy().branches) {
    for (const MlpLayer& layer : branch) {
      all.push_back(at::tensor(layer.weight));
      all.push_back(at::tensor(layer.bias));
    }
  }
  outcome.weights = at::cat(all);
  return outcome;
}

TEST_F(HalfNetworksTest, AnIterationGoesWhereTheTapeGoes) {
  for (const char* method : {"baseline", "silc", "lcp"}) {
    const Tensor start = OneIteration(method, "float32", false, 0).weights;
    const Outcome tape = OneIteration(method, "float32", false, 1);
    const Outcome half = OneIteration(method, "float16", false, 1);
    const Tensor a = half.weights - start, b = tape.weights - start;
    // Adam turns every entry of a gradient into a step of about one length, the ones that are
    // rounding as well: the way is the same, not every entry
    EXPECT_GT((at::dot(a, b) / (a.norm() * b.norm())).item<double>(), 0.97) << method;
    EXPECT_NEAR(a.norm().item<double>() / b.norm().item<double>(), 1, 0.03) << method;
    EXPECT_NEAR(half.kl / tape.kl, 1, 0.1) << method;
  }
}

TEST_F(HalfNetworksTest, RecordedOrNotAndAgainTheBitsAreTheSame) {
  for (const char* method : {"baseline", "silc"}) {
    const Outcome free = OneIteration(method, "float16", false, 3);
    const Outcome recorded = OneIteration(method, "float16", true, 3);
    const Outcome again = OneIteration(method, "float16", true, 3);
    EXPECT_TRUE(at::equal(recorded.weights, again.weights)) << method;
    EXPECT_LT(Apart(recorded.weights, free.weights), 1e-4) << method;
  }
}

TEST_F(HalfNetworksTest, APenaltyMaySetInWhenWorkIsRecorded) {
  const Tensor recorded = OneIteration("silc", "float16", true, 5, 2).weights;
  EXPECT_LT(Apart(recorded, OneIteration("silc", "float16", false, 5, 2).weights), 1e-4);
  // and it did: without it the weights are others
  EXPECT_GT(Apart(recorded, OneIteration("silc", "float16", true, 5, 100).weights), 1e-4);
}

}  // namespace
}  // namespace silc
