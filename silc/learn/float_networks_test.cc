// SPDX-License-Identifier: Apache-2.0
// The CPU's update without the tape, piece by piece and in every instruction set that this machine
// has, against the tape in double.
#include "silc/learn/float_networks.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "silc/learn/ppo.h"
#include "silc/learn/ppo_terms.h"
#include "silc/learn/test_env.h"
#include "silc/learn/test_tape.h"
#include "silc/learn/trainer.h"

namespace silc {
namespace {

using test::Apart;
using test::InDouble;
using test::SpringEnv;

const at::TensorOptions kFloats = at::TensorOptions(at::kFloat);
float* Floats(const Tensor& t) { return t.data_ptr<float>(); }
// rows filled up with zeros, as the buffers of an update are
Tensor Padded(const Tensor& t) {
  Tensor padded = at::zeros({t.size(0), InRegisters(t.size(1))}, t.options());
  padded.narrow(1, 0, t.size(1)).copy_(t);
  return padded;
}

class FloatKernelTest : public ::testing::TestWithParam<FloatKernel> {
 protected:
  void SetUp() override { at::manual_seed(5); }
};
INSTANTIATE_TEST_SUITE_P(All,
                         FloatKernelTest,
                         ::testing::ValuesIn(AvailableFloatKernels()),
                         [](const auto& test) { return std::string(test.param.name); });

// Single sums of n products in float are off by √n units in the last place at most, about.
constexpr double kRounding = 1e-6;

TEST_P(FloatKernelTest, OutputsAndGradientsAreTheTapes) {
  const FloatKernel kernel = GetParam();
  // widths of the quick preset, and some that fill no register
  const MlpShape shapes[] = {{136, {128, 64}, 15}, {24, {33, 20, 7}, 14}, {9, {5}, 1}, {8, {}, 3}};
  FloatWorkspace workspace;
  for (const MlpShape& shape : shapes) {
    const Network network = MakeNetwork(shape, {}, 1, 0, kFloats);
    FloatNetwork own(network, kernel);
    own.Refresh();
    for (const int rows : {1, 13, 14, 40, 333, 384}) {
      const Tensor x = at::randn({rows, shape.inputs}, kFloats), padded = Padded(x);
      const Tensor d = at::randn({rows, shape.outputs}, kFloats);
      const std::int64_t stride = own.output_stride();
      own.Forward(Floats(x), shape.inputs, rows, &workspace);
      const Tensor output =
          at::from_blob(workspace.output.data(), {rows, stride}).narrow(1, 0, shape.outputs);
      std::vector<Tensor> leaves;
      const Tensor exact = InDouble(network, x, &leaves);
      EXPECT_LT(Apart(output, exact.detach()), kRounding) << rows;
      std::copy_n(Floats(Padded(d)), rows * stride, Room(&workspace.d_output, rows * stride));
      // gradients are added to what is there
      const Tensor gradient = at::ones({network.count()}, kFloats);
      own.Forward(Floats(padded), padded.size(1), rows, &workspace);
      own.Backward(Floats(padded), padded.size(1), rows, &workspace, Floats(gradient));
      const auto gradients = torch::autograd::grad({(exact * d).sum()}, leaves);
      std::int64_t at = 0;
      for (std::size_t i = 0; i < leaves.size(); ++i) {
        const std::int64_t count = leaves[i].numel();
        // what is added to one is rounded as one is
        const Tensor found = gradient.narrow(0, at, count).to(at::kDouble) - 1;
        EXPECT_LT((found - gradients[i].reshape(-1)).norm().item<double>(),
                  2 * kRounding * (gradients[i].norm().item<double>() + std::sqrt(double(count))))
            << rows << " rows, leaf " << i;
        at += count;
      }
      EXPECT_EQ(at, network.count());
    }
  }
}

// What a robot does, and is worth, does not hang on the robots it is worked out with.
void HoldRowsApart(const FloatKernel& kernel) {
  at::manual_seed(5);
  const Network network = MakeNetwork({24, {40, 24}, 15}, {}, 1, 0, kFloats);
  FloatNetwork own(network, kernel);
  own.Refresh();
  FloatWorkspace together, alone;
  const int rows = 57;
  const Tensor x = at::randn({rows, 24}, kFloats);
  own.Forward(Floats(x), 24, rows, &together);
  for (int r = 0; r < rows; ++r) {
    own.Forward(Floats(x) + r * 24, 24, 1, &alone);
    for (int j = 0; j < 15; ++j) {
      EXPECT_EQ(alone.output[j], together.output[r * own.output_stride() + j]) << r << " " << j;
    }
  }
}
TEST_P(FloatKernelTest, ARowDoesNotSeeTheOthers) { HoldRowsApart(GetParam()); }
TEST(Bfloat16Kernel, ARowDoesNotSeeTheOthers) {
  if (Bfloat16Kernel() == nullptr) GTEST_SKIP() << "this processor cannot multiply bfloat16";
  HoldRowsApart(*Bfloat16Kernel());
}

// Nothing but the operands is rounded to eight bits: the product of rounded ones is exact to the
// rounding of its sums.
TEST(Bfloat16Kernel, ProductsAreThoseOfRoundedOperands) {
  if (Bfloat16Kernel() == nullptr) GTEST_SKIP() << "this processor cannot multiply bfloat16";
  const FloatKernel& kernel = *Bfloat16Kernel();
  at::manual_seed(5);
  const auto rounded = [](const Tensor& t) { return t.to(at::kBFloat16).to(at::kDouble); };
  for (const int rows : {1, 14, 40}) {
    for (const int inner : {1, 2, 15, 33, 136}) {
      for (const int columns : {16, 32, 80}) {
        const Tensor A = at::randn({rows, inner}, kFloats),
                     B = at::randn({inner, columns}, kFloats);
        const Tensor exact = rounded(A).matmul(rounded(B));
        for (const bool along : {false, true}) {
          const Tensor a = along ? A.t().contiguous() : A;
          // one row after the other, panels side by side
          const Tensor c = at::ones({rows, columns}, kFloats);
          FloatProduct p;
          p.rows = rows;
          p.inner = inner;
          p.columns = columns;
          p.a = Floats(a);
          p.a_row = along ? 1 : inner;
          p.a_inner = along ? rows : 1;
          p.b = Floats(B);
          p.b_inner = columns;
          p.b_panel = kernel.panel;
          p.c = Floats(c);
          p.c_row = columns;
          p.add = true;
          std::vector<float> scratch(kernel.product_scratch(p));
          p.scratch = scratch.data();
          kernel.product(p);
          EXPECT_LT(Apart(c, exact + 1), kRounding)
              << rows << " " << inner << " " << columns << " " << along;
        }
      }
    }
  }
}

TEST_P(FloatKernelTest, EluIsGoodToItsLastDigits) {
  const FloatKernel kernel = GetParam();
  std::vector<float> z = {0.0f, -0.0f, 1e-30f, -1e-30f, 3.5f, -100.0f, -1e30f, 1e30f};
  float x = 1e-8f;
  while (x < 40) {
    z.push_back(-x);
    x *= 1.01f;
  }
  z.push_back(std::numeric_limits<float>::quiet_NaN());
  const int rows = static_cast<int>(z.size());
  const std::vector<float> one(2 * kRowPadding, 1.0f), zero(2 * kRowPadding, 0.0f);
  std::vector<float> h(z.size() * kRowPadding);
  FloatProduct p;
  p.rows = rows;
  p.inner = 1;
  p.columns = kRowPadding;
  p.a = z.data();
  p.a_row = 1;
  p.a_inner = rows;
  p.b = one.data();
  p.b_inner = p.b_panel = 0;
  p.c = h.data();
  p.c_row = kRowPadding;
  p.finish = FloatProduct::Finish::kBiasElu;
  p.bias = zero.data();
  kernel.product(p);
  for (int r = 0; r + 1 < rows; ++r) {
    const double exact = z[r] > 0 ? double(z[r]) : std::expm1(double(z[r]));
    for (int c = 0; c < kRowPadding; ++c) {
      EXPECT_NEAR(h[r * kRowPadding + c], exact, 2e-7 * std::fabs(exact)) << z[r];
    }
  }
  EXPECT_TRUE(std::isnan(h.back())) << "NaN is to be seen";
}

TEST_P(FloatKernelTest, TheActorsLossIsTheTapes) {
  const FloatKernel kernel = GetParam();
  for (const auto& [rows, count] : {std::pair{3000, 14}, {1, 1}, {77, 16}, {200, 29}}) {
    const std::int64_t stride = InRegisters(count);
    const Tensor mu = 0.5 * at::randn({rows, count}, kFloats);
    const Tensor std = at::rand({count}, kFloats) + 0.2, std_old = at::rand({count}, kFloats) + 0.2;
    const Tensor action = at::randn({rows, count}, kFloats);
    const Tensor mean_old = 0.5 * at::randn({rows, count}, kFloats);
    const Tensor advantage = at::randn({rows}, kFloats);
    std::vector<Tensor> leaves = {mu.to(at::kDouble).requires_grad_(),
                                  std.to(at::kDouble).requires_grad_()};
    const Tensor lp = LogProb(leaves[0], leaves[1], action.to(at::kDouble));
    // ratios on both sides of the clip, under advantages of both signs
    const Tensor logp_old = (lp.detach() + 0.3 * at::randn({rows}, kFloats)).to(at::kFloat);
    const Tensor loss =
        ClippedSurrogate(lp, logp_old.to(at::kDouble), advantage.to(at::kDouble), 0.2);
    const auto gradients = torch::autograd::grad({loss}, leaves);
    const Tensor kl = MeanKl(
        leaves[0].detach(), leaves[1].detach(), mean_old.to(at::kDouble), std_old.to(at::kDouble));
    if (rows == 3000) {
      const Tensor ratio = (lp.detach() - logp_old).exp();
      for (const Tensor& taken : {ratio > 1.2, ratio < 0.8, (ratio - 1).abs() < 0.2}) {
        for (const Tensor& sign : {advantage > 0, advantage < 0}) {
          EXPECT_GT(taken.logical_and(sign).sum().item<long>(), 100) << "every branch is seen";
        }
      }
    }
    const Tensor output = Padded(mu), a = Padded(action), m = Padded(mean_old);
    const Tensor d = at::full({rows, stride}, 7.0, kFloats), d_std = at::zeros({count}, kFloats);
    std::vector<float> scratch(4 * stride);
    float surrogate = 0, divergence = 0;
    ActorLossRows p;
    p.rows = rows;
    p.count = count;
    p.stride = static_cast<int>(stride);
    p.output = Floats(output);
    p.action = Floats(a);
    p.mean_old = Floats(m);
    p.std = Floats(std);
    p.std_old = Floats(std_old);
    p.logp_old = Floats(logp_old);
    p.advantage = Floats(advantage);
    p.clip = 0.2f;
    p.scale = 1.0f / static_cast<float>(rows);
    p.scratch = scratch.data();
    p.d_output = Floats(d);
    p.d_std = Floats(d_std);
    p.surrogate = &surrogate;
    p.kl = &divergence;
    kernel.actor_loss(p);
    // log π is a sum of some dozen numbers of order ten: its rounding is that of the ratio
    EXPECT_LT(Apart(d.narrow(1, 0, count), gradients[0]), 2e-5);
    if (stride > count) {
      EXPECT_EQ(d.narrow(1, count, stride - count).abs().max().item<float>(), 0);
    }
    EXPECT_LT(Apart(d_std, gradients[1]), 2e-5);
    EXPECT_NEAR(surrogate, loss.item<double>(), 2e-5 * std::fabs(loss.item<double>()) + 1e-6);
    EXPECT_NEAR(divergence / kl.item<double>(), 1, 1e-5);
  }
}

TEST_P(FloatKernelTest, TheCriticsLossIsTheTapes) {
  const FloatKernel kernel = GetParam();
  const int rows = 3000;
  const Tensor output = at::randn({rows, kRowPadding}, kFloats);
  const Tensor old = at::randn({rows}, kFloats), target = at::randn({rows}, kFloats);
  for (const float clip : {0.2f, std::numeric_limits<float>::max()}) {
    const Tensor leaf = output.select(1, 0).to(at::kDouble).requires_grad_();
    const Tensor loss = ClippedValueLoss(leaf, old.to(at::kDouble), target.to(at::kDouble), clip);
    const auto gradients = torch::autograd::grad({0.5 * loss}, {leaf});
    const Tensor d = at::zeros({rows, kRowPadding}, kFloats);
    float found = 0;
    CriticLossRows p;
    p.rows = rows;
    p.stride = kRowPadding;
    p.output = Floats(output);
    p.value_old = Floats(old);
    p.target = Floats(target);
    p.clip = clip;
    p.weight = 0.5f;
    p.scale = 1.0f / rows;
    p.d_output = Floats(d);
    p.loss = &found;
    kernel.critic_loss(p);
    EXPECT_LT(Apart(d.select(1, 0), gradients[0]), kRounding) << clip;
    EXPECT_NEAR(found, loss.item<double>(), 1e-5);
    const std::int64_t still = (gradients[0] == 0).sum().item<long>();
    EXPECT_EQ(still > 0, clip < 1) << "the clipped branch is seen where there is one";
  }
}

TEST_P(FloatKernelTest, AStepIsTheTapes) {
  const FloatKernel kernel = GetParam();
  const std::int64_t count = 5003;
  const Tensor flat = at::randn({count}, kFloats), exact = flat.to(at::kDouble);
  const Tensor m = at::zeros({count}, kFloats), v = at::zeros({count}, kFloats);
  AdamW adam(exact, 0.01);
  for (int t = 1; t <= 5; ++t) {
    const Tensor pieces = at::randn({3, count}, kFloats), gradient = at::zeros({count}, kFloats);
    const Tensor held = at::randn({count}, kFloats);
    kernel.add_rows(Floats(pieces), count, 3, count, Floats(gradient));
    EXPECT_LT(Apart(gradient, pieces.to(at::kDouble).sum(0)), kRounding);
    const double squares = kernel.sum_of_squares(Floats(gradient), count);
    EXPECT_NEAR(squares / gradient.to(at::kDouble).square().sum().item<double>(), 1, kRounding);
    const float norm = static_cast<float>(std::sqrt(squares));
    AdamRows p;
    p.count = count;
    p.gradient = Floats(gradient);
    p.held = t % 2 == 0 ? Floats(held) : nullptr;
    p.flat = Floats(flat);
    p.m = Floats(m);
    p.v = Floats(v);
    // norms above the limit, and one under it
    const double limit = t == 3 ? 1e3 : 1.0;
    p.clip = ClipFactorOf(norm, static_cast<float>(limit));
    EXPECT_EQ(p.clip == 1, t == 3);
    p.rate = 1e-2f;
    p.c1 = static_cast<float>(1 - std::pow(kAdamBeta1, t));
    p.c2 = static_cast<float>(std::sqrt(1 - std::pow(kAdamBeta2, t)));
    p.weight_decay = 0.01f;
    kernel.adam(p);
    const Tensor wide = gradient.to(at::kDouble);
    Tensor whole = wide * ClipFactor(wide.norm(), limit);
    if (t % 2 == 0) whole = whole + held;
    adam.Step(exact, whole, at::full({}, 1e-2, at::kDouble));
    EXPECT_LT(Apart(flat, exact), kRounding) << t;
    EXPECT_LT(Apart(m, adam.m), 1e-5) << t;
    EXPECT_LT(Apart(v, adam.v), 1e-5) << t;
  }
}

TEST(PpoTerms, TheRateFollowsTheKlAsTheTapesDoes) {
  for (const double kl : {0.0, 1e-7, 0.004, 0.006, 0.019, 0.021, 1.0}) {
    for (const double rate : {1e-5, 1e-3, 1e-2}) {
      const Tensor tape = AdaptedRate(at::full({}, rate, at::kDouble),
                                      at::full({}, kl, at::kDouble),
                                      at::full({}, 0.01, at::kDouble),
                                      1e-5,
                                      1e-2);
      EXPECT_EQ(RateAfter(rate, kl, 0.01, 1e-5, 1e-2), tape.item<double>()) << kl << " " << rate;
    }
  }
}

TEST(PpoTerms, AdvantagesAreTheTensors) {
  at::manual_seed(5);
  const int T = 24, N = 30, G = 2;
  const Tensor reward = at::randn({T, N, G}, kFloats), value = at::randn({T + 1, N, G}, kFloats);
  const Tensor done = (at::rand({T, N}, kFloats) < 0.2).to(at::kByte);
  const Tensor timed_out = done * (at::rand({T, N}, kFloats) < 0.5).to(at::kByte);
  const Advantages exact =
      EstimateAdvantages(reward, value.narrow(0, 0, T), value[T], done, timed_out, 0.99, 0.95);
  const Tensor advantage = at::zeros({T, N, G}, kFloats), target = at::zeros({T, N, G}, kFloats);
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
  for (int i = 0; i < N * G; ++i) EstimateAdvantagesOf(a, i);
  EXPECT_LT(Apart(advantage, exact.advantage), kRounding);
  EXPECT_LT(Apart(target, exact.target), kRounding);
}

// Whole iterations with and without the tape, from the same numbers.
struct Outcome {
  Tensor actors, critics, spreads;
  double kl = 0, value_loss = 0, gradient = 0;
};
Outcome Iterations(LearnConfig config, bool tape, int iterations) {
  SpringEnv env(96);
  config.tape = tape;
  Trainer trainer(config, &env);
  Outcome outcome;
  for (int i = 0; i < iterations; ++i) {
    for (const auto& [name, value] : trainer.Iterate().scalars) {
      if (name == "train/kl_lower") outcome.kl = value;
      if (name == "train/value_loss_upper") outcome.value_loss = value;
      if (name == "train/gradient_lower") outcome.gradient = value;
    }
  }
  const Blobs blobs = trainer.Save();
  const auto floats = [&](const std::string& name) {
    const std::string& bytes = blobs.at(name);
    return at::from_blob(const_cast<char*>(bytes.data()),
                         {static_cast<std::int64_t>(bytes.size() / sizeof(float))})
        .clone();
  };
  const Tensor lower = floats("lower.actor"), upper = floats("upper.actor");
  constexpr int kOutputs = SpringEnv::kJoints / 2;
  outcome.actors = at::cat(
      {lower.narrow(0, 0, lower.size(0) - kOutputs), upper.narrow(0, 0, upper.size(0) - kOutputs)});
  outcome.spreads = at::cat({lower.narrow(0, lower.size(0) - kOutputs, kOutputs),
                             upper.narrow(0, upper.size(0) - kOutputs, kOutputs)});
  outcome.critics = at::cat({floats("lower.critic"), floats("upper.critic")});
  return outcome;
}

TEST(FloatUpdate, AnIterationGoesWhereTheTapeGoes) {
  struct Case {
    const char* what;
    const char* method;
    std::function<void(LearnConfig*)> set;
    int iterations = 2;
  };
  const Case cases[] = {
      {"plain", "baseline", [](LearnConfig*) {}},
      {"inputs scaled", "baseline", [](LearnConfig* c) { c->scale_inputs = true; }},
      {"values not clipped", "baseline", [](LearnConfig* c) { c->value_clip = 0; }},
      {"a rate of the critic's own", "baseline", [](LearnConfig* c) { c->critic_rate = 1e-3; }},
      {"entropy alone moves the spread", "baseline", [](LearnConfig* c) { c->entropy_weight = 5; }},
      {"a floor under the spread", "baseline", [](LearnConfig* c) { c->min_std = 0.5; }},
      {"blocks of robots", "baseline", [](LearnConfig* c) { c->groups = 3; }},
      {"more pieces than rows",
       "baseline",
       [](LearnConfig* c) {
         c->steps = 1;
         c->chunks = 64;
       }},
      {"a penalty on some rows", "silc", [](LearnConfig* c) { c->penalty.every = 3; }},
      // singular values lie close here: rounding turns their vectors, which probes add up
      {"a penalty through probes",
       "silc",
       [](LearnConfig* c) {
         c->penalty.probes = 1;
         c->penalty.every = 6;
       },
       1},
      {"a penalty on all rows", "lcp", [](LearnConfig* c) { c->penalty.samples = 0; }},
      {"a penalty of few rows", "silc", [](LearnConfig* c) { c->penalty.samples = 1; }},
  };
  for (const Case& own : cases) {
    LearnConfig config;
    ApplyMethod(own.method, "test", &config);
    config.actor_hidden = {32, 24};
    config.critic_hidden = {40, 16};
    config.init_std = {0.5};
    config.rate = 1e-3;
    config.epochs = 3;
    config.mini_batches = 2;
    config.steps = 12;
    config.penalty.samples = 64;
    own.set(&config);
    const Outcome start = Iterations(config, true, 0);
    const Outcome tape = Iterations(config, true, own.iterations);
    const Outcome found = Iterations(config, false, own.iterations);
    // Rounding alone, in the order of 1e-6. Adam turns it into steps where a gradient is next to
    // nothing, and the second iteration sees robots that it has moved: ten times as much may pass.
    const auto hold = [&](const Tensor& a, const Tensor& b, const Tensor& from) {
      EXPECT_LT(Apart(a - from, b - from), 4e-5) << own.what;
    };
    hold(found.actors, tape.actors, start.actors);
    hold(found.critics, tape.critics, start.critics);
    EXPECT_LT(Apart(found.spreads, tape.spreads), 2e-6) << own.what;
    EXPECT_NEAR(found.kl / tape.kl, 1, 1e-4) << own.what;
    EXPECT_NEAR(found.value_loss / tape.value_loss, 1, 1e-4) << own.what;
    EXPECT_NEAR(found.gradient / tape.gradient, 1, 1e-4) << own.what;
  }
}

}  // namespace
}  // namespace silc
