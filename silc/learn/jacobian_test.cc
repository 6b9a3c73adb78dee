// SPDX-License-Identifier: Apache-2.0
#include "silc/learn/jacobian.h"

#include <gtest/gtest.h>

namespace silc {
namespace {

constexpr int kObs = 14, kBatch = 3;

struct Fixture {
  std::vector<Network> networks;
  std::vector<Layers> actors;
  Tensor x = at::randn({kBatch, kObs}, at::kDouble);

  Fixture() {
    const int outputs[] = {5, 4};
    for (std::uint32_t k = 0; k < 2; ++k) {
      networks.push_back(MakeNetwork(
          {.inputs = kObs, .hidden = {9, 7, 6}, .outputs = outputs[k]}, {}, 5, k, at::kDouble));
      actors.push_back(networks.back().layers);
    }
  }
  std::vector<Activations> Run(const Tensor& in) const {
    std::vector<Activations> result;
    for (const Layers& actor : actors) result.push_back(Forward(actor, in));
    return result;
  }
  Tensor Action(const Tensor& in) const {
    const auto runs = Run(in);
    return at::cat({runs[0].output, runs[1].output}, 1);
  }
};

class JacobianTest : public testing::Test {
 protected:
  JacobianTest() { at::manual_seed(4); }
};

// (P11) against central differences of the actors themselves, two frames moving together
TEST_F(JacobianTest, ChainIsTheDerivativeOfTheAction) {
  const Fixture f;
  // columns with an entry in two frames each, scales unequal
  const std::vector<ColumnEntry> entries = {
      {0, 0, 1.f}, {7, 0, 1.f}, {1, 1, 0.5f}, {8, 1, 0.5f}, {5, 2, 2.f}};
  const Tensor E = DenseColumns(entries, kObs, 3, at::kDouble);
  const Tensor J = ActionJacobian(f.actors, FrozenSlopes(f.Run(f.x), 0, kBatch), E);
  const double h = 1e-6;
  for (int c = 0; c < 3; ++c) {
    const Tensor step = h * E.select(1, c);
    const Tensor difference = (f.Action(f.x + step) - f.Action(f.x - step)) / (2 * h);
    EXPECT_LT((difference - J.select(2, c)).abs().max().item<double>(), 1e-8);
  }
  EXPECT_FALSE(J.requires_grad());
}

TEST_F(JacobianTest, ChainAgreesWithAutogradOnASliceOfTheBatch) {
  const Fixture f;
  const Tensor x = f.x.clone().requires_grad_();
  const Tensor y = f.Action(x);
  const Tensor J =
      ActionJacobian(f.actors, FrozenSlopes(f.Run(f.x), 1, 2), at::eye(kObs, at::kDouble));
  for (int i = 0; i < 9; ++i) {
    const Tensor row = torch::autograd::grad({y.select(1, i).sum()}, {x}, {}, true)[0];
    EXPECT_LT((row.narrow(0, 1, 2) - J.select(1, i)).abs().max().item<double>(), 1e-13);
  }
}

TEST_F(JacobianTest, TangentsAreTheJacobianTimesTheDirections) {
  const Fixture f;
  const auto runs = f.Run(f.x);
  const Tensor E = at::randn({kObs, 4}, at::kDouble), F = at::randn({kObs, 3}, at::kDouble);
  const Tensor r = at::randn({kBatch, 2, 4}, at::kDouble),
               s = at::randn({kBatch, 2, 3}, at::kDouble);
  const Slopes slopes = FrozenSlopes(runs, 0, kBatch);
  const Tensor t = ActionTangent(f.actors, slopes, {{E, r}, {F, s}});
  const Tensor expected = at::matmul(r, ActionJacobian(f.actors, slopes, E).transpose(1, 2)) +
                          at::matmul(s, ActionJacobian(f.actors, slopes, F).transpose(1, 2));
  EXPECT_LT((t - expected).abs().max().item<double>(), 1e-13);
}

TEST_F(JacobianTest, ObservationGradientIsTheTransposeTimesE) {
  const Fixture f;
  const auto runs = f.Run(f.x);
  const Slopes slopes = FrozenSlopes(runs, 0, kBatch);
  const Tensor J = ActionJacobian({f.actors[0]}, {{slopes.actor[0]}}, at::eye(kObs, at::kDouble));
  const Tensor e = at::randn({kBatch, 5}, at::kDouble);
  const Tensor g = ObservationGradient(f.actors[0], slopes.actor[0], e);
  EXPECT_LT((g - at::matmul(e.unsqueeze(1), J).squeeze(1)).abs().max().item<double>(), 1e-13);
}

// (S9): the gradient of pᵀ J r through every weight and bias, second derivative of ELU included
TEST_F(JacobianTest, GradientOfATangentIsItsCentralDifference) {
  Fixture f;
  const Tensor E = at::randn({kObs, 4}, at::kDouble), r = at::randn({kBatch, 1, 4}, at::kDouble);
  const Tensor p = at::randn({kBatch, 1, 9}, at::kDouble);
  const auto scalar = [&](bool tape) {
    const auto runs = f.Run(f.x);
    const Slopes slopes = tape ? TapedSlopes(runs, 0, kBatch) : FrozenSlopes(runs, 0, kBatch);
    return (p * ActionTangent(f.actors, slopes, {{E, r}})).sum();
  };
  for (Network& network : f.networks) {
    // the last layer's bias has no part in a Jacobian
    auto leaves = network.leaves;
    leaves.pop_back();
    const auto gradients = torch::autograd::grad({scalar(true)}, leaves, {}, true);
    at::NoGradGuard no_tape;
    std::int64_t at = 0;
    for (const Tensor& gradient : gradients) {
      const Tensor flat = gradient.reshape(-1);
      for (std::int64_t i = 0; i < flat.size(0); ++i, ++at) {
        const double h = 1e-6;
        Tensor entry = network.flat[at];
        entry.add_(h);
        const double up = scalar(false).item<double>();
        entry.sub_(2 * h);
        const double down = scalar(false).item<double>();
        entry.add_(h);
        ASSERT_NEAR(flat[i].item<double>(), (up - down) / (2 * h), 1e-7) << "parameter " << at;
      }
    }
  }
}

}  // namespace
}  // namespace silc
