// SPDX-License-Identifier: Apache-2.0
#include "silc/learn/test_penalty.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "silc/learn/ppo.h"

namespace silc::penalty_test {
namespace {

using RowMajor = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

}  // namespace

Tensor ToTensor(const MatrixXd& m) {
  const RowMajor rows = m;
  return at::from_blob(const_cast<double*>(rows.data()), {m.rows(), m.cols()}, at::kDouble).clone();
}
MatrixXd ToEigen(const Tensor& t) {
  const Tensor host = t.detach().to(at::kDouble).contiguous();
  return Eigen::Map<const RowMajor>(host.data_ptr<double>(), t.size(0), t.size(1));
}

void CheckGradient(World* world, const std::function<PenaltyResult(const PenaltyInput&)>& penalty) {
  const PenaltyResult result = penalty(world->Run());
  ASSERT_GT(result.value.item<double>(), 1e-4) << "nothing violated: the test would be empty";
  const auto gradients =
      torch::autograd::grad({result.surrogate}, world->Leaves(), {}, {}, false, true);
  at::NoGradGuard no_tape;
  std::size_t leaf = 0;
  double largest = 0, worst = 0;
  for (Network& network : world->networks) {
    std::int64_t at = 0;
    for (std::size_t l = 0; l < network.leaves.size(); ++l, ++leaf) {
      const std::int64_t count = network.leaves[l].numel();
      const Tensor g =
          gradients[leaf].defined() ? gradients[leaf].reshape(-1) : at::zeros({count}, at::kDouble);
      // every 7th parameter: all layers, weights, biases and spreads are met
      for (std::int64_t i = at % 7; i < count; i += 7) {
        const double h = 1e-6;
        Tensor entry = network.flat[at + i];
        entry.add_(h);
        const double up = penalty(world->Run()).value.item<double>();
        entry.sub_(2 * h);
        const double down = penalty(world->Run()).value.item<double>();
        entry.add_(h);
        largest = std::max(largest, std::abs(g[i].item<double>()));
        worst = std::max(worst, std::abs(g[i].item<double>() - (up - down) / (2 * h)));
      }
      at += count;
    }
  }
  // central differences at 1e-6: 1e-10 of the value, 1e-12 of the third derivative
  EXPECT_LT(worst, 2e-6 * largest) << "largest entry " << largest;
}

double ShareLeft(World* world,
                 const std::function<PenaltyResult(const PenaltyInput&)>& penalty,
                 int steps,
                 double rate) {
  std::vector<AdamW> adam;
  for (const Network& network : world->networks) adam.emplace_back(network.flat, 0.0);
  double value = 0, start = 0;
  for (int step = 0; step <= steps; ++step) {
    const PenaltyResult result = penalty(world->Run());
    value = result.value.item<double>();
    if (step == 0) start = value;
    if (value == 0 || step == steps) break;
    const auto gradients =
        torch::autograd::grad({result.surrogate}, world->Leaves(), {}, {}, false, true);
    std::size_t leaf = 0;
    for (std::size_t k = 0; k < world->networks.size(); ++k) {
      std::vector<Tensor> flat;
      for (const Tensor& l : world->networks[k].leaves) {
        const Tensor& g = gradients[leaf++];
        flat.push_back(g.defined() ? g.reshape(-1) : at::zeros({l.numel()}, at::kDouble));
      }
      adam[k].Step(world->networks[k].flat,
                   at::cat(flat),
                   at::full({}, rate * (1 - double(step) / steps), at::kDouble));
    }
  }
  EXPECT_GT(start, 1e-2);
  return value / start;
}

PolicyJacobians SampleJacobians(World* world, int i) {
  const Channels& c = world->input.channels;
  PolicyJacobians jacobians;
  jacobians.J_q = {world->Jacobian(c.q, i)};
  jacobians.J_a = {world->Jacobian(c.a, i)};
  jacobians.J_tau = {world->Jacobian(c.tau, i)};
  jacobians.J_g = {world->Jacobian(c.g, i)};
  return jacobians;
}

StaticStiffness Reference(World* world, int i) {
  PolicySums sums;
  SumPolicy(SampleJacobians(world, i), kJoints, &sums);
  StaticChannels channels;
  channels.E = &world->contact[i].E;
  StaticStiffness stiffness;
  SILC_CHECK(SolveQuasiStatic(world->servo, sums, channels, &stiffness) == StiffnessStatus::kOk);
  return stiffness;
}

}  // namespace silc::penalty_test
