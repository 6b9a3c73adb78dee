// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cmath>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "silc/cli/verbs.h"
#include "silc/train/train_bench.h"

namespace silc {
namespace {

struct BenchTrainArguments {
  TrainRequest request{.task = "g1-loco"};
  std::vector<std::string> methods = {"baseline", "silc"};
  int iterations = 5;
};

void BenchTrain(const BenchTrainArguments& args) {
  bool first = true;
  for (const std::string& method : args.methods) {
    TrainRequest request = args.request;
    request.method = method;
    if (request.mode.empty()) request.mode = "compliance";
    const TrainConfig config = ResolveTrainConfig(request);
    const double samples = static_cast<double>(config.envs) * config.learn.steps;
    const auto print = [&](const std::string& name, double value, const char* unit) {
      const double scale = std::pow(10, 4 - std::floor(std::log10(std::max(1e-9, value))));
      const nlohmann::ordered_json line = {{"name", "train." + name},
                                           {"value", std::round(value * scale) / scale},
                                           {"unit", unit},
                                           {"method", method},
                                           {"task", config.name},
                                           {"backend", config.backend},
                                           {"envs", config.envs},
                                           {"steps", config.learn.steps},
                                           {"threads", config.learn.threads},
                                           {"version", SILC_VERSION}};
      fmt::print("{}\n", line.dump());
      std::fflush(stdout);
    };
    // the environment has nothing to do with the method but for the Jacobians
    double env_rate = 0;
    if (first || config.needs_budget()) {
      env_rate = BenchEnv(config, args.iterations * config.learn.steps);
      print("env_steps_per_s", env_rate, "1/s");
      first = false;
    }
    const TrainBenchResult result = BenchTraining(config, args.iterations);
    print("rollout_steps_per_s", samples / result.rollout_s, "1/s");
    print("iteration_steps_per_s", samples / result.iteration_s, "1/s");
    print("update_ms", 1e3 * result.update_s, "ms");
    print("first_iteration_s", result.first_s, "s");
    // on a GPU rollout is one recording; its environment's part is what the environment alone takes
    const double total = result.rollout_s + result.update_s;
    const double env_s = result.env_s > 0 ? result.env_s
                         : env_rate > 0   ? std::min(samples / env_rate, result.rollout_s)
                                          : 0;
    if (env_s > 0) {
      print("env_share", env_s / total, "1");
      print("policy_share", (result.rollout_s - env_s) / total, "1");
    }
    print("update_share", result.update_s / total, "1");
    const MemoryUse memory = PeakMemory();
    print("peak_host_mib", memory.host / 1048576, "MiB");
    if (memory.device > 0) print("device_mib", memory.device / 1048576, "MiB");
  }
}

}  // namespace

void AddBenchTrain(CLI::App* bench) {
  auto args = std::make_shared<BenchTrainArguments>();
  TrainRequest* request = &args->request;
  CLI::App* verb = bench->add_subcommand(
      "train", "control steps per second: environment, rollout, iteration; update; memory");
  verb->add_option("--task", request->task)->capture_default_str();
  verb->add_option("--preset", request->preset, "settings by name or from a YAML file");
  verb->add_option("--methods", args->methods, "one training each")
      ->delimiter(',')
      ->capture_default_str();
  verb->add_option("--mode", request->mode, "budget [compliance]");
  verb->add_option("--backend", request->backend, "batch (CPU), mujoco or cuda");
  verb->add_option("--envs", request->envs, "robots")->check(CLI::Range(1, 1 << 20));
  verb->add_option("--threads", request->threads, "CPU threads; 0: all")
      ->check(CLI::Range(0, 1024));
  verb->add_option("--iterations", args->iterations, "timed, of each kind")
      ->check(CLI::Range(1, 10000))
      ->capture_default_str();
  verb->add_option("--set", request->overrides, "learn.KEY=VALUE, task.KEY=VALUE");
  verb->callback([args] { BenchTrain(*args); });
}

}  // namespace silc
