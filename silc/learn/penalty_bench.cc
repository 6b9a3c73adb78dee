// SPDX-License-Identifier: Apache-2.0
#include "silc/learn/penalty_bench.h"

#include <algorithm>
#include <chrono>
#include <ctime>

#include "silc/base/error.h"
#include "silc/learn/device_graph.h"
#include "silc/learn/jacobian.h"
#include "silc/learn/networks.h"
#include "silc/learn/penalty.h"

namespace silc {
namespace {

constexpr int kJoints = 29, kFrame = 131, kFrames = 5, kObs = kFrame * kFrames;

// Where a frame has joint positions, previous actions, torques of the upper body and gravity: the
// counts are what costs, not the places.
Channels MakeChannels(const at::TensorOptions& options) {
  std::vector<ColumnEntry> q0, q, a, tau, g;
  for (int frame = 0; frame < kFrames; ++frame) {
    const int first = frame * kFrame;
    for (int j = 0; j < kJoints; ++j) {
      q.push_back({first + j, j, 1.f});
      a.push_back({first + 2 * kJoints + j, j, 1.f});
      if (frame == 0) q0.push_back(q.back());
    }
    for (int j = 0; j < 14; ++j) tau.push_back({first + 3 * kJoints + j, 15 + j, 0.01f});
    for (int j = 0; j < 3; ++j) g.push_back({first + 3 * kJoints + 14 + j, j, 1.f});
  }
  const auto dense = [&](const std::vector<ColumnEntry>& entries, int columns) {
    return DenseColumns(entries, kObs, columns, options);
  };
  return {
      dense(q0, kJoints), dense(q, kJoints), dense(a, kJoints), dense(tau, kJoints), dense(g, 3)};
}

}  // namespace

PenaltyBenchResult BenchPenalty(const PenaltyBenchOptions& options, const LearnConfig& config) {
  const bool cuda = options.device == "cuda";
  if (cuda && !at::hasCUDA()) throw ConfigError("--device cuda: this LibTorch has no CUDA");
  if (!cuda) HoldToOneThread();
  const auto place = at::TensorOptions(at::kFloat).device(cuda ? at::kCUDA : at::kCPU);
  const Method method = MethodOf(config);
  const std::int64_t B = options.samples;
  at::manual_seed(1);
  std::vector<Network> networks;
  std::vector<Tensor> leaves;
  const int outputs[] = {15, 14};
  for (std::uint32_t k = 0; k < 2; ++k) {
    networks.push_back(MakeNetwork(
        {kObs, options.hidden, outputs[k]}, std::vector<double>(outputs[k], 0.5), 1, k, place));
    // the spread has no part in these penalties, but for lcp
    for (const Tensor& leaf : networks.back().leaves) leaves.push_back(leaf);
  }
  const Tensor obs = at::randn({B, kObs}, place);
  PenaltyInput input;
  input.count = B;
  input.channels = MakeChannels(place);
  input.servo = {at::full({kJoints}, 100.0, place), at::full({kJoints}, 0.25, place)};
  input.gravity = 0.3 * at::randn({B, 3, kJoints}, place);
  const Tensor jacobian = 0.3 * at::randn({B, 6, kJoints}, place);
  BudgetSpec budget;
  budget.com = Eigen::Vector3d(200, 200, 20000);
  input.budget =
      MakeBudgetFactors(budget,
                        input.servo.kp,
                        {at::randint(0, 3, {B}, place.dtype(at::kByte)),
                         jacobian.narrow(1, 0, 3),
                         at::stack({jacobian.narrow(1, 0, 3), jacobian.narrow(1, 3, 3)}, 1),
                         jacobian.flip(2),
                         {}},
                        at::kFloat);
  for (const Network& network : networks) {
    input.std.push_back(network.std);
    input.action.push_back(at::randn({B, network.shape.outputs}, place));
  }
  if (config.penalty.probes > 0) {
    input.signs = at::randint(0, 2, {B, config.penalty.probes, kJoints}, place) * 2 - 1;
  }

  const auto once = [&] {
    input.actors.clear();
    input.activations.clear();
    for (const Network& network : networks) {
      input.actors.push_back(network.layers);
      input.activations.push_back(Forward(network.layers, obs));
    }
    const PenaltyResult penalty = Penalty(method, input, config.penalty);
    torch::autograd::grad({penalty.surrogate}, leaves, {}, false, false, true);
    WaitForDevice();
  };
  std::vector<double> wall, cpu;
  for (int i = -2; i < options.repeats; ++i) {
    const auto start = std::chrono::steady_clock::now();
    const std::clock_t cpu_start = std::clock();
    once();
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    if (i < 0) continue;
    wall.push_back(took.count());
    cpu.push_back(static_cast<double>(std::clock() - cpu_start) / CLOCKS_PER_SEC);
  }
  const auto median = [](std::vector<double>& values) {
    std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
    return values[values.size() / 2];
  };
  return {median(wall), median(cpu)};
}

}  // namespace silc
