// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <csignal>
#include <cstdio>
#include <memory>
#include <mutex>
#include <thread>

#include "silc/base/error.h"
#include "silc/cli/verbs.h"
#include "silc/learn/trainer.h"
#include "silc/train/run_folder.h"
#include "silc/train/train_config.h"

namespace silc {
namespace {

struct TrainArguments {
  std::vector<std::string> words;  // the task, and key=value
  TrainRequest request;
  std::string out, resume;
  double max_seconds = 0;
};

// ---- stopping ----

std::atomic<bool> g_stop{false};
static_assert(std::atomic<bool>::is_always_lock_free);  // set in a signal handler

extern "C" void OnSignal(int) {
  if (g_stop.exchange(true)) ::_exit(130);
  static constexpr char kText[] =
      "\nstopping after this iteration, with a checkpoint; again: at once\n";
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, kText, sizeof(kText) - 1);
}

// Asks for the stop when its time has come.
class StopTimer {
 public:
  explicit StopTimer(double seconds) {
    if (seconds <= 0) return;
    thread_ = std::jthread([this, seconds](const std::stop_token& ended) {
      std::unique_lock lock(mutex_);
      const bool over = wake_.wait_for(
          lock, ended, std::chrono::duration<double>(seconds), [&] { return false; });
      if (!over && !ended.stop_requested()) g_stop = true;
    });
  }

 private:
  std::mutex mutex_;
  std::condition_variable_any wake_;
  std::jthread thread_;
};

// ---- the verb ----

void Announce(const TrainConfig& config, const LocoVecEnvOptions& env, const std::string& folder) {
  const LearnConfig& learn = config.learn;
  fmt::print("{}, {}{}: {} robots × {} steps × {} iterations on {}, seed {}\n",
             config.name,
             learn.penalty.method,
             config.needs_budget() ? " under " + config.mode : "",
             config.envs,
             learn.steps,
             learn.iterations,
             config.backend == "cuda"
                 ? "the GPU"
                 : fmt::format("{}, {} threads", config.backend, env.env.threads),
             learn.seed);
  if (!config.needs_budget() && !config.mode.empty()) {
    fmt::print(
        "{} bounds no stiffness: the budget {} is not used\n", learn.penalty.method, config.mode);
  }
  fmt::print("run folder {}; Ctrl-C stops with a checkpoint\n", folder);
  std::fflush(stdout);
}

void Train(TrainArguments args) {
  const StopTimer timer(args.max_seconds);
  TrainRequest& request = args.request;
  for (const std::string& word : args.words) {
    if (word.find('=') != std::string::npos) {
      request.overrides.push_back(word);
    } else if (request.task.empty()) {
      request.task = word;
    } else {
      throw ConfigError(word + ": one task at a time, and settings as key=value");
    }
  }
  const bool resumes = !args.resume.empty();
  if (!resumes && request.task.empty()) {
    throw ConfigError("silc train: which task? g1-stand, g1-loco or a file; or --resume RUN");
  }
  if (resumes && !args.out.empty()) {
    throw ConfigError("--out: a resumed run goes on in its own folder");
  }

  TrainConfig config;
  if (resumes) {
    while (args.resume.size() > 1 && args.resume.ends_with('/')) args.resume.pop_back();
  } else {
    config = ResolveTrainConfig(request);
    if (args.out.empty()) args.out = DefaultRunPath(config);
  }
  // what an environment or a trainer cannot be made of shall leave no folder behind
  std::optional<RunFolder> folder;
  if (resumes) {
    folder.emplace(RunFolder::Open(args.resume));
    config = ReadTrainConfig(folder->config_file());
    ApplyToResumed(request, &config);
  }
  const std::string path = resumes ? args.resume : args.out;
  const LocoVecEnvOptions options = MakeEnvOptions(&config, path + "/diverged.jsonl");
  const std::unique_ptr<VecEnv> env = MakeLocoVecEnv(options);
  Trainer trainer(config.learn, env.get());
  if (!resumes) folder.emplace(RunFolder::Create(path, config));

  Announce(config, options, path);
  if (resumes) {
    const bool found = trainer.Resume(
        path, [](const std::string& text) { fmt::print(stderr, "silc: {}\n", text); });
    folder->WriteConfig(config);
    folder->ForgetMetricsAfter(trainer.iteration());
    fmt::print("{}\n",
               found ? fmt::format("going on after iteration {}", trainer.iteration())
                     : "there is no checkpoint yet: begins anew");
    std::fflush(stdout);
  }
  const auto export_policy = [&] { folder->WritePolicy(trainer.Policy(), config); };
  export_policy();  // an old one may be of an older checkpoint than the one taken up

  struct sigaction action = {};
  action.sa_handler = OnSignal;
  ::sigaction(SIGINT, &action, nullptr);
  ::sigaction(SIGTERM, &action, nullptr);
  TrainLog log(path, stdout, /*line_every_s=*/1);
  const bool done = trainer.Run(path, &log, &g_stop, export_policy);
  log.Say(fmt::format("{} {} of {} iterations; policy {}",
                      done ? "done:" : "stopped after",
                      trainer.iteration(),
                      config.learn.iterations,
                      folder->policy_file()));
  if (!done) log.Say("go on with: silc train --resume " + path);
}

}  // namespace

void AddTrain(CLI::App* app) {
  auto args = std::make_shared<TrainArguments>();
  TrainRequest* request = &args->request;
  CLI::App* verb =
      app->add_subcommand("train", "train a policy, with or without a stiffness bound");
  verb->add_option("task", args->words, "g1-stand, g1-loco or a task file; then key=value settings")
      ->type_name("TASK [learn.KEY=VALUE] [task.KEY=VALUE]...");
  verb->add_option(
      "--method", request->method, "baseline, lcp, sn-lcp, scalar-lcp, alcp, silc-paper, silc");
  verb->add_option("--mode",
                   request->mode,
                   "budget of silc and silc-paper: compliance, soft-hand, … or a YAML file");
  verb->add_option("--preset", request->preset, "settings by name (quick) or from a YAML file");
  verb->add_option("--backend", request->backend, "batch (CPU), mujoco (CPU, reference) or cuda");
  verb->add_option("--envs", request->envs, "robots")->check(CLI::Range(1, 1 << 20));
  verb->add_option("--threads", request->threads, "CPU threads; 0: all")
      ->check(CLI::Range(0, 1024));
  verb->add_option("--seed", request->seed)->check(CLI::Range(0, 2147483647));
  verb->add_option("--iterations", request->iterations)->check(CLI::Range(0, 1000000000));
  verb->add_option("--out", args->out, "run folder [runs/DATE-TASK-METHOD-MODE-seed]");
  verb->add_option("--motions", request->motions, "motion files for the arms [generated reaches]");
  verb->add_option(
          "--max-seconds", args->max_seconds, "stop after this time, with a checkpoint [s]")
      ->check(CLI::Range(0.0, 1e9));
  verb->add_option("--resume", args->resume, "go on with the run in this folder");
  verb->callback([args] { Train(*args); });
}

}  // namespace silc
