// SPDX-License-Identifier: Apache-2.0
#include "silc/train/train_run.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>

#include "silc/base/error.h"
#include "silc/base/file.h"
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

// Lines of metrics.jsonl up to an iteration; a line torn by a crash is dropped with what follows.
void TrimMetrics(const std::string& path, int iteration) {
  if (!fs::exists(path)) return;
  std::istringstream lines(ReadFile(path));
  std::string kept, line;
  while (std::getline(lines, line)) {
    const auto json = nlohmann::json::parse(line, nullptr, false);
    if (!json.is_object() || json.value("iteration", 0) > iteration) break;
    kept += line + "\n";
  }
  WriteFileAtomically(path, kept);
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

}  // namespace

void ExportPolicy(const std::string& path,
                  const MlpNetwork& network,
                  const TrainConfig& config,
                  int iteration) {
  TaskConfig task = config.task_config;
  const ObservationLayout layout =
      MakeTaskLayout(config.layout, RobotModel::Load(config.robot).spec(), &task).layout;
  Metadata metadata = MetadataFor(layout, fs::path(path).parent_path().filename().string());
  TrainingNotes notes;
  notes.task = config.task;
  notes.method = config.learn.penalty.method;
  // with its numbers, so that it is judged by what it was trained for wherever it goes
  if (IsBounded(config)) PutBudget({config.mode, config.budget}, &notes);
  notes.seed = std::to_string(config.learn.seed);
  notes.iterations = std::to_string(iteration);
  Put(notes, &metadata);
  WriteOnnx(path,
            network,
            layout.input.empty() ? "obs" : layout.input,
            layout.output.empty() ? "actions" : layout.output,
            metadata);
}

TrainOutcome RunTraining(const TrainRunOptions& options) {
  const std::string& folder = options.folder;
  const TrainConfig& config = options.config;
  // before anything is written: settings and environment must fit together
  LocoVecEnvOptions env_options = EnvOptionsOf(config);
  env_options.diverged_log = folder + "/diverged.jsonl";
  const std::unique_ptr<VecEnv> env = MakeLocoVecEnv(std::move(env_options));
  Trainer trainer(config.learn, env.get());
  const bool warm = config.init && !options.resume;
  if (warm) {
    const std::string& path = config.init->path;
    config.init->Check("Name another run or checkpoint with --init.");
    trainer.Init(ParseBlobs(ReadFile(path), path), path);
  }

  std::error_code error;
  fs::create_directories(folder, error);
  if (error) throw RunError(folder + ": cannot be made: " + error.message());
  const FolderLock lock(folder);
  const bool known = fs::exists(folder + "/config.yaml");
  if (known && !options.resume) {
    throw ConfigError(folder + ": holds a run already; silc train --resume " + folder +
                      " goes on with it");
  }
  if (!known) {
    // before config.yaml, which makes the folder a run: it then goes on without the other's files
    if (warm) {
      CheckpointFolder(folder + "/checkpoints", config.learn.keep_checkpoints)
          .Save(0, trainer.Save());
    }
    const std::string note = BudgetNote(config);
    WriteRunFolder(
        folder, ToYaml(config), config.learn.seed, note.empty() ? "" : "note: |\n  " + note + "\n");
  } else {
    WriteFileAtomically(folder + "/config.yaml", ToYaml(config));
    RemoveLeftovers(folder);
  }
  const auto say = [&](const std::string& text) {
    if (options.out != nullptr) fmt::print(options.out, "{}\n", text);
  };
  const auto write_policy = [&] {
    ExportPolicy(folder + "/policy.onnx", trainer.Policy(), config, trainer.iteration());
  };
  if (warm) say(fmt::format("{}: starts with the networks of {}", folder, config.init->path));
  if (options.resume) {
    const bool resumed = trainer.Resume(folder, say);
    if (!resumed && config.init) {
      throw RunError(folder + ": no whole checkpoint is left, and it had begun with " +
                     config.init->path + "\n  Begin a new run with --init.");
    }
    say(resumed ? fmt::format("{}: goes on after iteration {}", folder, trainer.iteration())
                : folder + ": no whole checkpoint; starts at the beginning");
    TrimMetrics(folder + "/metrics.jsonl", trainer.iteration());
    // a process killed between a checkpoint and its policy left an older one
    if (resumed) write_policy();
  }
  TrainLog log(folder, options.out, /*line_every_s=*/1, options.stop);
  const bool done = trainer.Run(folder, &log, options.stop, write_policy);
  return {trainer.iteration(), done};
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
    if (held) run.iteration = last.value("iteration", run.iteration);
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
