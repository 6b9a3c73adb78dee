// SPDX-License-Identifier: Apache-2.0
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <atomic>
#include <cctype>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <memory>
#include <mutex>
#include <thread>

#include "silc/base/error.h"
#include "silc/base/shell.h"
#include "silc/base/utf8.h"
#include "silc/cli/mode_option.h"
#include "silc/cli/number.h"
#include "silc/cli/trainer.h"
#include "silc/cli/verbs.h"
#include "silc/learn/ranks.h"
#include "silc/train/train_run.h"

namespace silc {
namespace {

std::atomic<bool> stop_requested{false};
std::atomic<bool> is_first{true};         // of the processes that train together: it speaks
std::atomic<bool> has_others{false};      // there are more of them
std::atomic<std::int64_t> first_stop{0};  // when the first signal came [s]
static_assert(std::atomic<bool>::is_always_lock_free &&
                  std::atomic<std::int64_t>::is_always_lock_free,
              "set from a signal handler");

// Once: finish the iteration. Twice: at once, as the signal would have done. Who starts many
// processes hands signals on to each, and a terminal does the same: what comes twice in a moment
// was meant once.
extern "C" void OnStopSignal(int signal) {
  constexpr std::int64_t kMoment = 3;  // [s]
  timespec now = {};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  // before anything else: another signal may come while this one is answered
  std::int64_t never = 0;
  first_stop.compare_exchange_strong(never, now.tv_sec);
  if (stop_requested.exchange(true)) {
    if (has_others && now.tv_sec - first_stop <= kMoment) return;
    std::_Exit(128 + signal);
  }
  if (!is_first) return;
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
      wake_.wait_for(lock, ended, std::chrono::duration<double>(seconds), [] { return false; });
      if (ended.stop_requested() || stop_requested.exchange(true) || !is_first) return;
      fmt::print(stderr, "\nthe {} s are over: stopping after this iteration\n", seconds);
    });
  }

 private:
  std::mutex mutex_;
  std::condition_variable_any wake_;
  std::jthread thread_;
};

struct TrainArguments {
  TrainRequest request;
  std::string out, resume;
  double max_seconds = 0;
  double rank_timeout = 60;  // [s]
};

std::string DefaultFolder(const TrainConfig& config) {
  const auto stem = [](const std::string& name) {
    return std::filesystem::path(name).stem().string();
  };
  std::string name = fmt::format("runs/{:%Y-%m-%d}-{}-{}",
                                 fmt::localtime(std::time(nullptr)),
                                 stem(config.task),
                                 config.learn.penalty.method);
  if (IsBounded(config)) {
    // a mode with changes has signs that no folder should have
    std::string mode = config.mode;
    for (char& c : mode) c = std::isalnum(static_cast<unsigned char>(c)) ? c : '-';
    name += "-" + mode;
  }
  name += fmt::format("-seed{}", config.learn.seed);
  std::string folder = name;
  for (int i = 2; std::filesystem::exists(folder); ++i) folder = fmt::format("{}.{}", name, i);
  return folder;
}

void SayWhatStarts(const TrainRunOptions& options, int processes) {
  fmt::print("{}: {}, {}{}, {} robots{}, {} iterations\n",
             Printable(options.folder),
             Printable(options.config.task),
             options.config.learn.penalty.method,
             IsBounded(options.config) ? " under " + Printable(options.config.mode) : "",
             options.config.envs,
             processes > 1 ? fmt::format(" on {} processes", processes) : "",
             options.config.learn.iterations);
  const std::string note = BudgetNote(options.config);
  if (!note.empty()) fmt::print("  {}\n", Printable(note));
  if (!options.config.motions.empty()) {
    fmt::print("  arms follow {} motion file{}\n",
               options.config.motions.size(),
               options.config.motions.size() > 1 ? "s" : "");
  }
  fmt::print("  Ctrl-C stops after the iteration at work, with a checkpoint\n");
  std::fflush(stdout);
}

void SayHowItEnded(const TrainRunOptions& options, const TrainOutcome& outcome) {
  fmt::print("{} after iteration {} of {}; policy in {}/policy.onnx\n",
             outcome.done ? "done" : "stopped",
             outcome.iteration,
             options.config.learn.iterations,
             Printable(options.folder));
  if (outcome.done) {
    const std::string& robot = options.config.robot;
    std::vector<std::string> words = {"observe", options.folder + "/policy.onnx"};
    if (robot != kDefaultRobot) words.insert(words.end(), {"--robot", robot});
    words.insert(words.end(), {"--rollout", "10"});
    fmt::print("  silc {}\n", Printable(ShellCommand(words)));
  } else {
    fmt::print("  silc {}\n", Printable(ShellCommand({"train", "--resume", options.folder})));
  }
}

void Train(TrainArguments args) {
  const StopTimer timer(args.max_seconds);
  TrainRequest& request = args.request;
  // with --resume the task is the run's: what stands in its place is an override
  if (request.task.find('=') != std::string::npos) {
    request.overrides.insert(request.overrides.begin(), request.task);
    request.task.clear();
  }
  // --motions takes all words that follow it: settings among them are settings
  for (auto file = request.motions.begin(); file != request.motions.end();) {
    const bool setting = file->find('=') != std::string::npos && !std::filesystem::exists(*file);
    if (setting) request.overrides.push_back(*file);
    file = setting ? request.motions.erase(file) : file + 1;
  }
  RankSetup ranks = ReadRankSetup([](const char* name) { return std::getenv(name); });
  request.processes = ranks.size;
  is_first = ranks.rank == 0;
  has_others = ranks.size > 1;
  TrainRunOptions options;
  if (!args.resume.empty()) {
    if (!request.task.empty() || request.method || request.mode || request.envs || request.seed ||
        request.backend || !request.preset.empty() || !request.motions.empty() ||
        !request.init.empty() || !args.out.empty()) {
      throw ConfigError("--resume " + args.resume +
                        ": takes task, method and the rest from the run; --iterations and "
                        "--threads may change it");
    }
    const std::string path = args.resume + "/config.yaml";
    if (!std::filesystem::exists(path)) {
      throw ConfigError("--resume " + args.resume + ": no run: there is no " + path);
    }
    options.config = ReadTrainConfig(path);
    if (request.threads) options.config.learn.threads = *request.threads;
    if (request.iterations) options.config.learn.iterations = *request.iterations;
    ApplyResumeOverrides(request.overrides, &options.config);
    options.folder = args.resume;
    options.resume = true;
  } else {
    options.config = ResolveTrainConfig(request);
    options.folder = args.out.empty() ? DefaultFolder(options.config) : args.out;
  }

  struct sigaction action = {};
  action.sa_handler = OnStopSignal;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  // a closed terminal, a cut connection: the same, unless nohup has it ignored
  struct sigaction hangup = {};
  sigaction(SIGHUP, nullptr, &hangup);
  if (hangup.sa_handler != SIG_IGN) sigaction(SIGHUP, &action, nullptr);
  std::signal(SIGPIPE, SIG_IGN);  // nobody reads on: what is said is lost, not what is trained
  options.stop = &stop_requested;
  options.out = is_first ? stdout : nullptr;
  if (ranks.size > 1) {
    ranks.timeout = args.rank_timeout;
    ranks.way_out = "The last checkpoint is whole: silc train --resume " +
                    ShellQuote(options.folder) + " goes on, with any number of processes.";
    options.ranks = ConnectRanks(ranks, options.config.backend == "cuda");
  }
  if (is_first) SayWhatStarts(options, ranks.size);
  const TrainOutcome outcome = RunTraining(options);
  if (is_first) SayHowItEnded(options, outcome);
}

}  // namespace

void AddTrain(CLI::App* app) {
  auto args = std::make_shared<TrainArguments>();
  TrainRequest& request = args->request;
  CLI::App* verb = app->add_subcommand("train", kTrainHelp);
  verb->add_option(
      "task", request.task, "g1-stand, g1-loco, t1-stand, berkeley-stand or a task file");
  verb->add_option(
      "overrides", request.overrides, "any setting, as in learn.epochs=3 task.push.force=50");
  verb->add_option(
      "--method", request.method, fmt::format("{} [baseline]", fmt::join(MethodNames(), ", ")));
  AddModeOption(verb,
                &request.mode,
                "budget of silc and silc-paper",
                "the preset's, else " + std::string(kDefaultMode));
  verb->add_option("--preset",
                   request.preset,
                   "settings that go together: quick, a YAML file, or a run to make again");
  verb->add_option("--backend", request.backend, "batch (CPU), cuda or mujoco [batch]");
  verb->add_option("--envs", request.envs, "robots trained at once, by each process [the preset's]")
      ->check(WholeIn(1, 1 << 20));
  verb->add_option("--seed", request.seed, "of everything random [1]")
      ->check(WholeIn(0, 2147483647));
  verb->add_option("--threads", request.threads, "of the CPU; the result does not depend on it")
      ->check(WholeIn(1, 1024));
  verb->add_option("--iterations", request.iterations, "learn.iterations [the preset's]")
      ->check(WholeIn(0, 1000000000));
  verb->add_option(
          "--max-seconds", args->max_seconds, "stop after this time, with a checkpoint [s]")
      ->check(NumberIn(0.0, 1e9));
  verb->add_option("--rank-timeout",
                   args->rank_timeout,
                   "of several processes: one that is silent for so long is lost [s]")
      ->capture_default_str()
      ->check(NumberIn(1.0, 1e6));
  verb->add_option(
      "--motions", request.motions, "arm references: .csv or .npz files, or folders of them");
  verb->add_option("--init",
                   request.init,
                   "warm start: networks and optimiser of another run (folder or checkpoint)");
  verb->add_option("--out", args->out, "folder of the run [runs/DATE-TASK-METHOD-MODE-seedS]");
  verb->add_option("--resume", args->resume, "folder of a run to go on with");
  verb->callback([args] { Train(*args); });
}

}  // namespace silc
