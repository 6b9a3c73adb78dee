// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <nlohmann/json.hpp>
#include <numeric>

#include "silc/base/rng.h"
#include "silc/cli/load_policy.h"
#include "silc/cli/verbs.h"
#include "silc/config/budget_file.h"
#include "silc/observe/closed_loop.h"
#include "silc/policy/layout_file.h"
#include "silc/policy/mlp.h"
#include "silc/robot/kinematics.h"
#include "silc/stiffness/observer.h"

namespace silc {
namespace {

struct BenchArguments {
  double seconds = 2;  // per figure
};

// Median time of one call [µs], over batches long enough for the clock.
double MedianMicroseconds(double seconds, const std::function<void()>& work) {
  using Clock = std::chrono::steady_clock;
  const auto elapsed = [](Clock::time_point since) {
    return std::chrono::duration<double>(Clock::now() - since).count();
  };
  for (int i = 0; i < 20; ++i) work();
  std::vector<double> times;
  const Clock::time_point start = Clock::now();
  while (elapsed(start) < seconds) {
    constexpr int kBatch = 10;
    const Clock::time_point begin = Clock::now();
    for (int i = 0; i < kBatch; ++i) work();
    times.push_back(1e6 * elapsed(begin) / kBatch);
  }
  std::nth_element(times.begin(), times.begin() + times.size() / 2, times.end());
  return times[times.size() / 2];
}

// Two actors of FALCON's size with made-up weights: the work does not depend on their values.
MlpNetwork FalconSizedNetwork() {
  MlpNetwork network;
  network.inputs = 575;
  Rng rng(1);
  for (const int outputs : {15, 14}) {
    std::vector<MlpLayer> layers;
    int inputs = network.inputs;
    for (const int width : {512, 256, 128, outputs}) {
      MlpLayer layer;
      layer.inputs = inputs;
      layer.outputs = width;
      layer.activation = width == outputs ? Activation::kNone : Activation::kElu;
      const double bound = 1 / std::sqrt(inputs);
      for (int i = 0; i < inputs * width; ++i) {
        layer.weight.push_back(static_cast<float>(rng.Uniform(-bound, bound)));
      }
      layer.bias.assign(static_cast<std::size_t>(width), 0.0f);
      layers.push_back(std::move(layer));
      inputs = width;
    }
    network.branches.push_back(std::move(layers));
  }
  return network;
}

void BenchObserve(const BenchArguments& args) {
  const RobotModel robot = RobotModel::Load("g1");
  const auto graph =
      std::make_shared<const Graph>(MlpGraph(FalconSizedNetwork(), "actor_obs", "action"));
  const std::string layout_path = FindLayout("falcon", LayoutFolder());
  Policy policy(graph,
                ReadLayoutFile(layout_path).layout,
                {robot.spec().joints, robot.spec().StandingPose().q});
  LoopOptions loop_options;
  loop_options.servo = ServoFor(robot, policy, "");
  ClosedLoop loop(robot, policy, loop_options);
  loop.SettlePolicy(10);

  ObserverOptions options;
  options.servo = loop_options.servo;
  options.budget = ReadBudget("soft-hand").spec;
  StiffnessObserver observer(options);
  PolicyJacobians jacobians;
  BodyJacobians body;

  const auto print = [&](const std::string& name, double value) {
    const nlohmann::ordered_json line = {{"name", name},
                                         {"value", std::round(value * 100) / 100},
                                         {"unit", "us"},
                                         {"robot", "g1"},
                                         {"network", "2 x 575-512-256-128, 15 + 14"},
                                         {"frames", 5},
                                         {"kernel", BestKernel().name},
                                         {"threads", 1},
                                         {"version", SILC_VERSION}};
    fmt::print("{}\n", line.dump());
  };
  const auto network = [&] { loop.policy().StaticJacobians(&jacobians); };
  PolicyJacobians all;
  const auto everything = [&] { loop.policy().Jacobians(&all); };
  const auto kinematics = [&] { ComputeBodyJacobians(robot, loop.data(), &body); };
  const auto stiffness = [&] { observer.Observe(jacobians, body, ContactMode::kDoubleSupport); };
  network();
  kinematics();
  print("observe.policy_jacobians_us", MedianMicroseconds(args.seconds, network));
  print("observe.all_policy_jacobians_us", MedianMicroseconds(args.seconds, everything));
  print("observe.body_jacobians_us", MedianMicroseconds(args.seconds, kinematics));
  print("observe.stiffness_us", MedianMicroseconds(args.seconds, stiffness));
  print("observe.us", MedianMicroseconds(args.seconds, [&] {
          network();
          kinematics();
          stiffness();
        }));
}

}  // namespace

void AddBench(CLI::App* app) {
  CLI::App* bench = app->add_subcommand("bench", "measure speed; one JSON object per line");
  bench->require_subcommand(1);
  auto args = std::make_shared<BenchArguments>();
  CLI::App* observe = bench->add_subcommand(
      "observe", "one observation of the G1: Jacobians of policy and body, K₁, K_s, points, σ");
  observe->add_option("--seconds", args->seconds, "per figure [s]")
      ->check(CLI::Range(0.01, 600.0))
      ->capture_default_str();
  observe->callback([args] { BenchObserve(*args); });
  AddBenchPhysics(bench);
  AddBenchTrain(bench);
  AddBenchPenalty(bench);
}

}  // namespace silc
