// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <memory>
#include <nlohmann/json.hpp>

#include "silc/base/rng.h"
#include "silc/cli/verbs.h"
#include "silc/learn/trainer.h"
#include "silc/task/observation.h"
#include "silc/train/train_config.h"

namespace silc {
namespace {

using Clock = std::chrono::steady_clock;

double Since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}
double ProcessorSeconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

struct BenchTrainArguments {
  TrainRequest request;
  std::vector<std::string> methods = {"baseline", "silc"};
  int iterations = 5;
};

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values.empty() ? 0 : values[values.size() / 2];
}

// Physics and task with random actions of the size an untrained policy makes.
struct EnvRate {
  double per_s, per_cpu_s;
};
EnvRate TimeEnv(VecEnv* env, bool samples, int steps) {
  const std::size_t n = env->spec().num_envs;
  std::vector<float> obs(n * kActorObs), critic(n * kCriticObs), reward(2 * n);
  std::vector<float> jacobian(samples ? n * kSampleJacobian : 0), action(n * kTaskJoints);
  std::vector<std::uint8_t> mode(n), done(n), late(n);
  Rng rng(1);
  for (float& a : action) a = static_cast<float>(0.5 * rng.Normal());
  ObservationView view{obs.data(), critic.data(), {}};
  if (samples) {
    float* at = jacobian.data();
    const std::size_t row = n * kTaskJoints;
    view.stiffness = {mode.data(), at, at + 3 * row, at + 9 * row, at + 15 * row};
  }
  const OutcomeView outcome{reward.data(), done.data(), late.data()};
  env->Reset(view);
  for (int i = 0; i < 5; ++i) env->Step(action.data(), outcome, view);
  const double cpu = ProcessorSeconds();
  const auto start = Clock::now();
  for (int i = 0; i < steps; ++i) env->Step(action.data(), outcome, view);
  const double total = double(n) * steps;
  return {total / Since(start), total / (ProcessorSeconds() - cpu)};
}

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
    const auto start = Clock::now();
    const std::unique_ptr<VecEnv> env = MakeLocoVecEnv(env_options);
    Trainer trainer(config.learn, env.get());
    print("start_s", Since(start), "s");
    // the learner owns the device's memory: there, the share of `env` below says it
    if (!env->spec().on_gpu) {
      const EnvRate rate = TimeEnv(env.get(), env_options.env.samples, 2 * config.learn.steps);
      print("env_steps_per_s", rate.per_s, "1/s");
      print("env_steps_per_cpu_s", rate.per_cpu_s, "1/s");
    }
    trainer.Iterate();
    std::vector<double> whole, rollout, update, env_share, policy_share;
    const double cpu = ProcessorSeconds();
    for (int i = 0; i < args.iterations; ++i) {
      const auto begin = Clock::now();
      trainer.Iterate();
      const double s = Since(begin);
      const StageTimes& t = trainer.last_times();
      whole.push_back(s);
      update.push_back(t.update);
      rollout.push_back(s - t.update);
      env_share.push_back(t.env / s);
      policy_share.push_back(t.policy / s);
    }
    const double steps = double(config.envs) * config.learn.steps;
    print("rollout_steps_per_s", steps / Median(rollout), "1/s");
    print("iteration_steps_per_s", steps / Median(whole), "1/s");
    print("iteration_steps_per_cpu_s", steps * args.iterations / (ProcessorSeconds() - cpu), "1/s");
    print("update_ms", 1e3 * Median(update), "ms");
    print("share_env", Median(env_share), "1");
    print("share_policy", Median(policy_share), "1");
    print("share_update", Median(update) / Median(whole), "1");
    // of the process so far: in the order of the methods it can only grow
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    print("peak_memory_mib", static_cast<double>(usage.ru_maxrss) / 1024, "MiB");
  }
}

}  // namespace

void AddBenchTrain(CLI::App* bench) {
  auto args = std::make_shared<BenchTrainArguments>();
  args->request.task = "g1-stand";
  CLI::App* verb =
      bench->add_subcommand("train", "control steps per second: env, rollout, whole iteration");
  verb->add_option("task", args->request.task, "g1-stand, g1-loco or a task file")
      ->capture_default_str();
  verb->add_option("overrides", args->request.overrides, "any setting, as in learn.epochs=3");
  verb->add_option("--preset", args->request.preset, "as of silc train");
  verb->add_option("--method", args->methods, "one, or several as in baseline,silc")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->capture_default_str();
  verb->add_option("--mode", args->request.mode, "budget");
  verb->add_option("--backend", args->request.backend, "batch (CPU), cuda or mujoco");
  verb->add_option("--envs", args->request.envs, "robots")->check(CLI::Range(1, 1 << 20));
  verb->add_option("--threads", args->request.threads, "of the CPU")->check(CLI::Range(1, 1024));
  verb->add_option("--iterations", args->iterations, "timed, after one that is not")
      ->check(CLI::Range(1, 10000))
      ->capture_default_str();
  verb->callback([args] { BenchTrain(*args); });
}

}  // namespace silc
