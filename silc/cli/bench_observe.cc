// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <Eigen/SVD>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "silc/base/error.h"
#include "silc/base/rng.h"
#include "silc/cli/number.h"
#include "silc/cli/verbs.h"
#include "silc/config/budget_file.h"
#include "silc/observe/closed_loop.h"
#include "silc/observe/load_policy.h"
#include "silc/policy/layout_file.h"
#include "silc/policy/mlp.h"
#include "silc/robot/kinematics.h"
#include "silc/stiffness/observer.h"

namespace silc {
namespace {

using Clock = std::chrono::steady_clock;

struct BenchArguments {
  double seconds = 2;  // per policy
  std::string policy;
  std::string layout;
};

double Quantile(std::vector<double> values, double share) {
  if (values.empty()) return std::nan("");
  const auto at =
      values.begin() + static_cast<std::ptrdiff_t>(share * static_cast<double>(values.size() - 1));
  std::nth_element(values.begin(), at, values.end());
  return *at;
}

// Two actors of FALCON's size with made-up weights. With plain random weights the action loop is so
// tame that a cheap bound proves it stable, which no released policy allows; `slow` plants what
// those have, modes near the unit circle: each previous action of the newest frame is also handed
// through the layers, unit by unit, and comes out at gains from 0.96 down to −0.54, with some of
// its neighbours' and mixed by the random weights: a norm above one, a radius below.
MlpNetwork FalconSizedNetwork(bool slow) {
  constexpr int kActions = 29, kFrames = 5;
  MlpNetwork network;
  network.inputs = 575;
  const int newest_action = network.inputs - network.inputs / kFrames;  // first in the last frame
  constexpr float kLift = 8;  // keeps the units handing on in the linear part of their Elu
  Rng rng(1);
  int first_action = 0;
  for (const int outputs : {15, 14}) {
    std::vector<MlpLayer> layers;
    int inputs = network.inputs;
    for (const int width : {512, 256, 128, outputs}) {
      MlpLayer layer;
      layer.inputs = inputs;
      layer.outputs = width;
      const bool last = width == outputs;
      layer.activation = last ? Activation::kNone : Activation::kElu;
      const double bound = 1 / std::sqrt(inputs);
      for (int i = 0; i < inputs * width; ++i) {
        layer.weight.push_back(static_cast<float>(rng.Uniform(-bound, bound)));
      }
      layer.bias.assign(static_cast<std::size_t>(width), 0.0f);
      const bool first = inputs == network.inputs;
      for (int k = 0; slow && k < width; ++k) {
        float* row = layer.weight.data() + static_cast<std::ptrdiff_t>(k) * inputs;
        if (k < outputs && !last) {
          std::fill(row, row + inputs, 0.0f);
          row[first ? newest_action + first_action + k : k] = 1;
          if (first) layer.bias[k] = kLift;
          continue;
        }
        if (first) continue;
        for (int j = k; last && j < outputs; ++j) {
          const double along = (first_action + k) / (kActions - 1.0);
          row[j] += static_cast<float>(j == k ? 0.96 - 1.5 * along : 0.1);
        }
        // the lift is no part of the signal
        for (int j = 0; j < outputs; ++j) layer.bias[k] -= row[j] * kLift;
      }
      layers.push_back(std::move(layer));
      inputs = width;
    }
    network.branches.push_back(std::move(layers));
    first_action += outputs;
  }
  return network;
}

const char* Name(ActionLoopMethod method) {
  switch (method) {
    case ActionLoopMethod::kNone:
      return "none";
    case ActionLoopMethod::kBound:
      return "bound";
    case ActionLoopMethod::kArnoldi:
      return "arnoldi";
    case ActionLoopMethod::kExact:
      return "schur";
  }
  return "unknown";
}

// The robot stands and its joints are shaken by noise, so that no two observations are alike: what
// starts from the last answer must not be given the same question twice.
void BenchPolicy(const BenchArguments& args,
                 const RobotModel& robot,
                 const Policy& policy,
                 const std::string& network) {
  LoopOptions loop_options;
  loop_options.servo = ServoFor(robot, policy, "");
  ClosedLoop loop(robot, policy, loop_options);
  const auto need = [&](LoopStatus status) {
    if (status != LoopStatus::kRunning) {
      throw RunError(fmt::format("{}: {}", network, Describe(status)));
    }
  };
  need(loop.SettlePolicy(10));
  const std::vector<double> qpos(loop.data()->qpos, loop.data()->qpos + robot.model()->nq);
  const std::vector<double> qvel(loop.data()->qvel, loop.data()->qvel + robot.model()->nv);
  Rng rng(2);
  const auto shake = [&] {
    constexpr double kJoint = 0.01, kSpeed = 0.1;  // [rad], [rad/s] a joint's while standing
    std::vector<double> p = qpos, v = qvel;
    for (const int i : robot.qpos_address()) p[i] += kJoint * rng.Normal();
    for (const int i : robot.dof_address()) v[i] += kSpeed * rng.Normal();
    loop.SetState(p, v);
    need(loop.Decide());
    loop.HoldTarget();
  };

  ObserverOptions options;
  options.servo = loop_options.servo;
  options.budget = ReadBudget("soft-hand").spec;
  StiffnessObserver observer(options);
  PolicyJacobians jacobians, every_block;
  BodyJacobians body;
  std::vector<double> all_policy, resting_policy, times[3], total, radius, norm;
  std::map<std::string, int> methods, states;
  const auto microseconds = [](Clock::time_point begin, Clock::time_point end) {
    return std::chrono::duration<double, std::micro>(end - begin).count();
  };
  const Clock::time_point start = Clock::now();
  for (int i = 0; microseconds(start, Clock::now()) < 1e6 * args.seconds || i < 30; ++i) {
    shake();
    const Clock::time_point t0 = Clock::now();
    loop.policy().StaticJacobians(&jacobians);
    const Clock::time_point t1 = Clock::now();
    ComputeBodyJacobians(robot, loop.data(), &body);
    const Clock::time_point t2 = Clock::now();
    const StiffnessReading& reading =
        observer.Observe(jacobians, body, ContactMode::kDoubleSupport);
    const Clock::time_point t3 = Clock::now();
    if (i < 20) continue;  // caches and buffers
    times[0].push_back(microseconds(t0, t1));
    times[1].push_back(microseconds(t1, t2));
    times[2].push_back(microseconds(t2, t3));
    total.push_back(microseconds(t0, t3));
    ++methods[Name(reading.loop.method)];
    ++states[Describe(reading.static_status)];
    radius.push_back(reading.loop.rho);
    const Clock::time_point t4 = Clock::now();
    loop.policy().Jacobians(&every_block);
    const Clock::time_point t5 = Clock::now();
    all_policy.push_back(microseconds(t4, t5));
    loop.policy().RestingJacobians(&every_block);
    resting_policy.push_back(microseconds(t5, Clock::now()));
    if (i % 50 == 20 && !jacobians.J_a.empty()) {
      Eigen::MatrixXd S_a = jacobians.J_a[0];
      for (std::size_t k = 1; k < jacobians.J_a.size(); ++k) S_a += jacobians.J_a[k];
      norm.push_back(Eigen::JacobiSVD<Eigen::MatrixXd>(S_a).singularValues()[0]);
    }
  }

  const auto hundredths = [](double value) { return std::round(value * 100) / 100; };
  const auto print = [&](const std::string& name, const std::vector<double>& us) {
    const nlohmann::ordered_json line = {
        {"name", name},
        {"value", hundredths(Quantile(us, 0.5))},
        {"unit", "us"},
        {"p99", hundredths(Quantile(us, 0.99))},
        {"robot", kDefaultRobot},
        {"network", network},
        {"frames", policy.layout().history},
        {"action_loop",
         {{"radius", std::round(Quantile(radius, 0.5) * 1e4) / 1e4},
          {"norm", hundredths(Quantile(norm, 0.5))},
          {"by", methods}}},
        {"static", states},
        {"observations", us.size()},
        {"kernel", BestKernel().name},
        {"threads", 1},
        {"version", SILC_VERSION}};
    fmt::print("{}\n", line.dump());
  };
  print("observe.policy_jacobians_us", times[0]);
  print("observe.all_policy_jacobians_us", all_policy);
  print("observe.resting_policy_jacobians_us", resting_policy);
  print("observe.body_jacobians_us", times[1]);
  print("observe.stiffness_us", times[2]);
  print("observe.us", total);
}

void BenchObserve(const BenchArguments& args) {
  const RobotModel robot = RobotModel::Load(kDefaultRobot);
  if (!args.policy.empty()) {
    BenchPolicy(args,
                robot,
                LoadPolicy(args.policy, args.layout, robot),
                std::filesystem::path(args.policy).filename().string());
    return;
  }
  const ObservationLayout layout = ReadLayoutFile(FindLayout("falcon", LayoutFolders())).layout;
  for (const bool slow : {false, true}) {
    const auto graph =
        std::make_shared<const Graph>(MlpGraph(FalconSizedNetwork(slow), "actor_obs", "action"));
    BenchPolicy(args,
                robot,
                Policy(graph, layout, {robot.spec().joints, robot.spec().StandingPose().q}),
                fmt::format("2 x 575-512-256-128, 15 + 14, {}",
                            slow ? "random with slow action modes" : "random"));
  }
}

}  // namespace

void AddBench(CLI::App* app) {
  CLI::App* bench = app->add_subcommand("bench", "measure speed; one JSON object per line");
  bench->require_subcommand(1);
  auto args = std::make_shared<BenchArguments>();
  CLI::App* observe = bench->add_subcommand(
      "observe", "one observation of the G1: Jacobians of policy and body, K₁, K_s, points, σ");
  observe->add_option("--seconds", args->seconds, "per policy [s]")
      ->check(NumberIn(0.01, 600.0))
      ->capture_default_str();
  CLI::Option* policy = observe->add_option(
      "--policy", args->policy, "an ONNX file [two made-up networks of FALCON's size]");
  observe->add_option("--layout", args->layout, "of that policy: a name or a YAML file")
      ->needs(policy);
  observe->callback([args] { BenchObserve(*args); });
  AddBenchPhysics(bench);
#ifdef SILC_HAS_VIEW
  AddBenchView(bench);
#endif
}

}  // namespace silc
