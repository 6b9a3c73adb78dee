// SPDX-License-Identifier: Apache-2.0
#include "silc/train/train_run.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>

#include "silc/base/crc32c.h"
#include "silc/base/error.h"
#include "silc/base/file.h"
#include "silc/base/utf8.h"
#include "silc/config/policy_budget.h"
#include "silc/learn/checkpoint.h"
#include "silc/learn/train_log.h"
#include "silc/learn/trainer.h"
#include "silc/policy/onnx/writer.h"
#include "silc/policy/policy_metadata.h"
#include "silc/robot/robot_model.h"
#include "silc/task/task_layout.h"

namespace silc {
namespace {

namespace fs = std::filesystem;

// One trainer per folder. The lock goes with the process, however it ends.
class FolderLock {
 public:
  explicit FolderLock(const std::string& folder) {
    const std::string path = folder + "/lock";
    file_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (file_ < 0) throw RunError(path + ": cannot be made: " + std::strerror(errno));
    if (::flock(file_, LOCK_EX | LOCK_NB) != 0) {
      ::close(file_);
      throw ConfigError(folder + ": somebody trains in this folder already");
    }
  }
  ~FolderLock() { ::close(file_); }
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

  static bool IsHeld(const std::string& folder) {
    const int file = ::open((folder + "/lock").c_str(), O_RDONLY | O_CLOEXEC);
    if (file < 0) return false;
    const bool held = ::flock(file, LOCK_SH | LOCK_NB) != 0;
    ::close(file);
    return held;
  }

 private:
  int file_;
};

// Of a line of metrics.jsonl; 0 where it does not say.
int IterationOf(const nlohmann::json& line) {
  const auto found = line.find("iteration");
  if (found == line.end() || !found->is_number_unsigned()) return 0;
  const auto iteration = found->get<std::uint64_t>();
  return iteration <= std::numeric_limits<int>::max() ? static_cast<int>(iteration) : 0;
}

// Cuts metrics.jsonl behind an iteration. Whole lines that are cut are kept, at the end of
// metrics_replaced.jsonl; a last line without its end was torn by a crash and is not. A damaged
// line before the cut stays where it is: readers skip it.
void TrimMetrics(const std::string& folder, int iteration) {
  const std::string path = folder + "/metrics.jsonl";
  std::ifstream lines(path, std::ios::binary);
  if (!lines) return;
  std::uintmax_t kept = 0;  // [byte]
  std::string replaced;
  for (std::string line; std::getline(lines, line) && !lines.eof();) {
    const bool ours = line.size() <= kMaxMetricsLineBytes;
    const auto json = ours ? nlohmann::json::parse(line, nullptr, false) : nlohmann::json();
    if (replaced.empty() && (!json.is_object() || IterationOf(json) <= iteration)) {
      kept += line.size() + 1;
    } else {
      replaced += line + "\n";
    }
  }
  lines.close();
  if (kept == fs::file_size(path)) return;
  if (!replaced.empty()) {
    const std::string copy = folder + "/metrics_replaced.jsonl";
    std::ofstream file(copy, std::ios::binary | std::ios::app);
    file << replaced << std::flush;
    if (!file) throw RunError(copy + ": cannot be written; metrics.jsonl was not changed");
  }
  fs::resize_file(path, kept);
}

// Checksums of every config.yaml that silc wrote into the folder, one a line. A run that somebody
// edited would go on as a mixture that no settings describe.
std::string ConfigChecksum(std::string_view yaml) { return fmt::format("{:08x}", Crc32c(yaml)); }

void RequireOwnConfig(const std::string& folder) {
  const std::string list = folder + "/config.crc32c";
  if (!fs::exists(list)) return;  // a run of before the list
  const std::string checksum = ConfigChecksum(ReadFile(folder + "/config.yaml", kMaxYamlBytes));
  if (ReadFile(list).find(checksum + "\n") != std::string::npos) return;
  throw ConfigError(
      folder +
      "/config.yaml: was edited since silc wrote it, and a run keeps its settings\n  Undo the "
      "edit, or begin a new run with --preset " +
      folder + "/config.yaml. What may change at a resume is given on the command line.");
}

// the list first: a process killed between the two leaves a config.yaml that is in it
void RememberConfig(const std::string& folder, const std::string& yaml) {
  const std::string list = folder + "/config.crc32c", line = ConfigChecksum(yaml) + "\n";
  const std::string known = fs::exists(list) ? ReadFile(list) : "";
  if (known.find(line) == std::string::npos) WriteFileAtomically(list, known + line);
}

// files a killed process was still writing
void RemoveLeftovers(const std::string& folder) {
  std::error_code missing;
  for (const char* part : {"", "/checkpoints"}) {
    for (const auto& entry : fs::directory_iterator(folder + part, missing)) {
      // WriteFileAtomically() writes NAME.tmpPID first
      const std::string name = entry.path().extension().string();
      if (name.starts_with(".tmp")) fs::remove(entry.path(), missing);
    }
  }
}

// A run without a usable checkpoint begins again only where there never was one: otherwise what is
// left of it would be overwritten.
void RequireFreshRun(const std::string& folder,
                     const TrainConfig& config,
                     const CheckpointFolder& checkpoints) {
  if (config.init) {
    throw RunError(folder + ": no whole checkpoint is left, and it had begun with " +
                   config.init->path + "\n  Begin a new run with --init.");
  }
  if (!checkpoints.Empty()) {
    throw RunError(folder +
                   ": no checkpoint of it is whole; nothing was changed\n  Begin a new run, or put "
                   "back a copy of the checkpoints.");
  }
  // metrics that went on beyond the first checkpoint say that there was one; the folder's own
  // settings say when that was, not those of this resume
  const int last = IterationOf(LastMetrics(folder));
  const int every = ReadTrainConfig(folder + "/config.yaml").learn.checkpoint_every;
  std::string left;
  if (last > every) {
    left = fmt::format("metrics.jsonl goes to iteration {}", last);
  } else if (fs::exists(folder + "/policy.onnx")) {
    left = "policy.onnx is there";  // it is written after a checkpoint
  }
  if (!left.empty()) {
    throw RunError(
        fmt::format("{}: {}, yet there is no checkpoint; nothing was changed\n"
                    "  Put the checkpoints back, or begin a new run.",
                    folder,
                    left));
  }
}

}  // namespace

void ExportPolicy(const std::string& path,
                  const MlpNetwork& network,
                  const TrainConfig& config,
                  int iteration) {
  TaskConfig task = config.task_config;
  const ObservationLayout layout =
      MakeTaskLayout(config.layout,
                     RobotModel::Load(config.robot, {.gains = config.gains}).spec(),
                     &task,
                     config.gains.has_value())
          .layout;
  // what was trained, not where: a copy of the run in another folder writes the same bytes
  const std::string run =
      fmt::format("{}-{}{}-seed{}",
                  fs::path(config.task).stem().string(),
                  config.learn.penalty.method,
                  IsBounded(config) ? "-" + fs::path(config.mode).stem().string() : "",
                  config.learn.seed);
  Metadata metadata = MetadataFor(layout, run);
  TrainingNotes notes;
  notes.task = config.task;
  notes.method = config.learn.penalty.method;
  // with its numbers, so that it is judged by what it was trained for wherever it goes
  if (IsBounded(config)) PutBudget({config.mode, config.budget}, &notes);
  if (IsBounded(config)) notes.bound = fmt::format("{:g}", config.learn.penalty.bound_end);
  // the preset's, which the task's file does not know
  notes.noise = SensorErrors(config.task_config.noise);
  notes.seed = std::to_string(config.learn.seed);
  notes.iterations = std::to_string(iteration);
  WriteNotes(notes, &metadata);
  WriteOnnx(path,
            network,
            layout.input.empty() ? "obs" : layout.input,
            layout.output.empty() ? "actions" : layout.output,
            metadata);
}

namespace {

// Blocks of robots (learn.groups), 0: one process that is one block. A run that goes on keeps its
// blocks where the processes can share them out, and has one for each process where not.
int GroupsOf(const TrainConfig& config, int processes, bool resume) {
  const int asked = config.learn.groups;
  if (config.learn.device == "cuda" && (asked == 0 || resume)) return processes > 1 ? processes : 0;
  const bool fits = asked > 0 && asked % processes == 0;
  if (fits || (asked > 0 && !resume)) return asked;
  return processes > 1 ? processes : 0;
}

// The robots of this process among those of all.
void TakeShare(const std::shared_ptr<Ranks>& ranks, int groups, LocoEnvOptions* env) {
  const int processes = ranks->size(), total = env->num_envs;
  if (total % processes != 0) {
    throw ConfigError(
        fmt::format("{} robots cannot be shared out evenly among {} processes\n"
                    "  Start as many as divide the number of robots.",
                    total,
                    processes));
  }
  env->num_envs = total / processes;
  env->first_env = ranks->rank() * env->num_envs;
  env->total_envs = total;
  env->groups = std::max(1, groups / processes);
  // a number that does not fit is the trainer's to refuse
  if (env->num_envs % env->groups != 0) env->groups = 1;
  if (processes == 1) return;
  const bool gpu = env->backend == "cuda";
  env->sum = [ranks, gpu](std::span<const double> parts, std::size_t blocks) {
    return SumOnHost(ranks.get(), parts, blocks, gpu);
  };
}

// What rank 0 does with the folder, and the training that all ranks do.
class Run {
 public:
  Run(const TrainRunOptions& options, const std::shared_ptr<Ranks>& ranks)
      : options_(options), config_(options.config), ranks_(ranks), first_(ranks->rank() == 0) {
    config_.learn.groups = GroupsOf(config_, ranks->size(), options.resume);
    // before anything is written: settings and environment must fit together
    LocoVecEnvOptions env = EnvOptionsOf(config_);
    if (first_) env.diverged_log = options.folder + "/diverged.jsonl";
    // processes that share a machine share its cores
    if (config_.learn.threads == 0) {
      env.env.threads = std::max(1, env.env.threads / ranks->local_size());
    }
    TakeShare(ranks, config_.learn.groups, &env.env);
    env_ = MakeLocoVecEnv(std::move(env));
    trainer_ = std::make_unique<Trainer>(config_.learn, env_.get(), ranks);
  }

  TrainOutcome Train() {
    const std::string& folder = options_.folder;
    const bool warm = config_.init && !options_.resume;
    if (warm) {
      const std::string& path = config_.init->path;
      config_.init->Check("Name another run or checkpoint with --init.");
      trainer_->Init(ReadCheckpoint(path, path), path);
    }
    std::unique_ptr<FolderLock> lock;
    bool known = false;
    if (first_) {
      std::error_code error;
      fs::create_directories(folder, error);
      if (error) throw RunError(folder + ": cannot be made: " + error.message());
      lock = std::make_unique<FolderLock>(folder);
      known = fs::exists(folder + "/config.yaml");
      if (known && !options_.resume) {
        throw ConfigError(folder + ": holds a run already; silc train --resume " + folder +
                          " goes on with it");
      }
    }
    known = !ranks_->Broadcast(known ? "known" : "").empty();
    if (known) {
      GoOn();
    } else {
      Begin(warm);
    }
    std::unique_ptr<TrainLog> log;
    if (first_) {
      log = std::make_unique<TrainLog>(folder, options_.out, /*line_every_s=*/1, options_.stop);
    }
    const bool done = trainer_->Run(folder, log.get(), options_.stop, [this] { WritePolicy(); });
    return {trainer_->iteration(), done};
  }

 private:
  void Say(const std::string& text) const {
    if (first_ && options_.out != nullptr) fmt::print(options_.out, "{}\n", Printable(text));
  }
  void WritePolicy() const {
    ExportPolicy(
        options_.folder + "/policy.onnx", trainer_->Policy(), config_, trainer_->iteration());
  }

  void Begin(bool warm) {
    const std::string& folder = options_.folder;
    // before config.yaml, which makes the folder a run: it then goes on without the other's files
    if (warm) {
      const Blobs start = trainer_->Save();
      if (first_) {
        CheckpointFolder(folder + "/checkpoints", config_.learn.keep_checkpoints).Save(0, start);
      }
    }
    if (!first_) return;
    const std::string note = BudgetNote(config_);
    RememberConfig(folder, ToYaml(config_));
    WriteRunFolder(folder,
                   ToYaml(config_),
                   config_.learn.seed,
                   note.empty() ? "" : "note: |\n  " + note + "\n");
    if (warm) Say(fmt::format("{}: starts with the networks of {}", folder, config_.init->path));
  }

  void GoOn() {
    const std::string& folder = options_.folder;
    const auto say = [this](const std::string& text) { Say(text); };
    if (!first_) {
      trainer_->Resume(folder, say);
      return;
    }
    // nothing in the folder changes before the newest checkpoint has been looked at
    RequireOwnConfig(folder);
    const CheckpointFolder checkpoints(folder + "/checkpoints", config_.learn.keep_checkpoints);
    const bool resumed = trainer_->Resume(folder, say);
    if (!resumed) RequireFreshRun(folder, config_, checkpoints);
    Say(resumed ? fmt::format("{}: goes on after iteration {}", folder, trainer_->iteration())
                : folder + ": no checkpoint yet; starts at the beginning");
    RememberConfig(folder, ToYaml(config_));
    WriteFileAtomically(folder + "/config.yaml", ToYaml(config_));
    RemoveLeftovers(folder);
    TrimMetrics(folder, trainer_->iteration());
    // a process killed between a checkpoint and its policy left an older one
    if (resumed) WritePolicy();
  }

  const TrainRunOptions& options_;
  TrainConfig config_;
  std::shared_ptr<Ranks> ranks_;
  bool first_;
  std::unique_ptr<VecEnv> env_;
  std::unique_ptr<Trainer> trainer_;
};

}  // namespace

TrainOutcome RunTraining(const TrainRunOptions& options) {
  const std::shared_ptr<Ranks> ranks = options.ranks ? options.ranks : OneRank();
  try {
    const TrainOutcome outcome = Run(options, ranks).Train();
    ranks->Leave();
    return outcome;
  } catch (const std::exception& error) {
    ranks->Fail(error.what());
    throw;
  }
}

nlohmann::json LastMetrics(const std::string& folder) {
  std::ifstream file(folder + "/metrics.jsonl", std::ios::binary);
  // a line has a few kilobytes; runs of days have hundreds of megabytes
  constexpr std::streamoff kTail = 1 << 16;
  file.seekg(0, std::ios::end);
  const std::streamoff size = file ? std::streamoff(file.tellg()) : 0;
  file.seekg(std::max<std::streamoff>(0, size - kTail));
  nlohmann::json last = nlohmann::json::object();
  for (std::string line; std::getline(file, line);) {
    nlohmann::json json = nlohmann::json::parse(line, nullptr, false);
    if (json.is_object()) last = std::move(json);  // others are torn, or began before the tail
  }
  return last;
}

RunInfo InspectRun(const std::string& folder) {
  RunInfo run;
  run.folder = folder;
  run.state = "none";
  run.reward = run.steps_per_s = std::numeric_limits<double>::quiet_NaN();
  if (!fs::exists(folder + "/config.yaml")) return run;
  try {
    const TrainConfig config = ReadTrainConfig(folder + "/config.yaml");
    run.task = config.task;
    run.method = config.learn.penalty.method;
    if (IsBounded(config)) run.mode = config.mode;
    run.iterations = config.learn.iterations;
    run.iteration = CheckpointFolder(folder + "/checkpoints", 2).NewestIteration();
    const bool held = FolderLock::IsHeld(folder);
    run.state = held ? "running" : run.iteration >= run.iterations ? "done" : "stopped";
    const nlohmann::json last = LastMetrics(folder);
    if (held && IterationOf(last) > 0) run.iteration = IterationOf(last);
    const auto number = [&](const char* key, double* value) {
      const auto found = last.find(key);
      if (found != last.end() && found->is_number()) *value = found->get<double>();
    };
    number("train/reward", &run.reward);
    number("steps_per_s", &run.steps_per_s);
  } catch (const ConfigError& broken) {
    run.state = broken.what();
  }
  return run;
}

std::vector<RunInfo> ListRuns(const std::string& folder) {
  if (!fs::is_directory(folder)) throw ConfigError(folder + ": there is no such folder");
  std::vector<std::string> folders;
  if (fs::exists(folder + "/config.yaml")) folders.push_back(folder);
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (fs::exists(entry.path() / "config.yaml")) folders.push_back(entry.path().string());
  }
  std::sort(folders.begin(), folders.end());
  std::vector<RunInfo> runs;
  for (const std::string& path : folders) runs.push_back(InspectRun(path));
  return runs;
}

}  // namespace silc
