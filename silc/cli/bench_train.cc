// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "silc/cli/mode_option.h"
#include "silc/cli/number.h"
#include "silc/cli/trainer.h"
#include "silc/cli/verbs.h"
#include "silc/policy/method.h"
#include "silc/train/train_bench.h"

namespace silc {
namespace {

struct BenchTrainArguments {
  TrainRequest request;
  std::vector<std::string> methods = {Name(Method::kBaseline), Name(Method::kSilc)};
  int iterations = 5;
};

void BenchTrain(const BenchTrainArguments& args) {
  for (const std::string& method : args.methods) {
    TrainRequest request = args.request;
    request.method = method;
    const TrainConfig config = ResolveTrainConfig(request);
    const LocoVecEnvOptions env_options = EnvOptionsOf(config);
    const auto print = [&](const std::string& name, double value, const char* unit) {
      const nlohmann::ordered_json line = {{"name", "train." + name},
                                           {"value", value},
                                           {"unit", unit},
                                           {"task", config.task},
                                           {"method", method},
                                           {"backend", config.backend},
                                           {"envs", config.envs},
                                           {"steps", config.learn.steps},
                                           {"threads", env_options.env.threads},
                                           {"actor", config.learn.actor_hidden},
                                           {"epochs", config.learn.epochs},
                                           {"version", SILC_VERSION}};
      fmt::print("{}\n", line.dump());
      std::fflush(stdout);
    };
    const EnvRate env = BenchEnv(config, args.iterations * config.learn.steps);
    print("env_steps_per_s", env.per_s, "1/s");
    print("env_steps_per_cpu_s", env.per_cpu_s, "1/s");
    const TrainBenchResult result = BenchTraining(config, args.iterations);
    const double steps = double(config.envs) * config.learn.steps;
    print("first_iteration_s", result.first_s, "s");
    print("rollout_steps_per_s", steps / result.rollout_s, "1/s");
    print("iteration_steps_per_s", steps / result.iteration_s, "1/s");
    print("iteration_steps_per_cpu_s", steps / result.cpu_s, "1/s");
    print("update_ms", 1e3 * result.update_s, "ms");
    // on a GPU a rollout is one recording: its environment's part is what that takes alone
    const double env_s =
        result.env_s > 0 ? result.env_s : std::min(steps / env.per_s, result.rollout_s);
    const double total = result.rollout_s + result.update_s;
    print("share_env", env_s / total, "1");
    print("share_policy", (result.rollout_s - env_s) / total, "1");
    print("share_update", result.update_s / total, "1");
    // of the process so far: in the order of the methods it can only grow
    const MemoryUse memory = PeakMemory();
    print("peak_memory_mib", memory.host / 1048576, "MiB");
    if (memory.device > 0) print("device_memory_mib", memory.device / 1048576, "MiB");
  }
}

}  // namespace

void AddBenchTrain(CLI::App* bench) {
  auto args = std::make_shared<BenchTrainArguments>();
  args->request.task = "g1-stand";
  CLI::App* verb = bench->add_subcommand("train", kBenchTrainHelp);
  verb->add_option(
          "task", args->request.task, "g1-stand, g1-loco, t1-stand, berkeley-stand or a task file")
      ->capture_default_str();
  verb->add_option("overrides", args->request.overrides, "any setting, as in learn.epochs=3");
  verb->add_option("--preset", args->request.preset, "as of silc train");
  verb->add_option("--method", args->methods, "one, or several as in baseline,silc")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->capture_default_str();
  AddModeOption(verb,
                &args->request.mode,
                "budget of silc and silc-paper",
                "the preset's, else " + std::string(kDefaultMode));
  verb->add_option("--backend", args->request.backend, "batch (CPU), cuda or mujoco");
  verb->add_option("--envs", args->request.envs, "robots")->check(WholeIn(1, 1 << 20));
  verb->add_option("--threads", args->request.threads, "of the CPU")->check(WholeIn(1, 1024));
  verb->add_option("--iterations", args->iterations, "timed, after two that are not")
      ->check(WholeIn(1, 10000))
      ->capture_default_str();
  verb->callback([args] { BenchTrain(*args); });
}

}  // namespace silc
