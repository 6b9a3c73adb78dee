// SPDX-License-Identifier: Apache-2.0
#include "silc/train/run_folder.h"

#include <fcntl.h>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "silc/base/error.h"
#include "silc/base/file.h"
#include "silc/learn/checkpoint.h"
#include "silc/policy/onnx/writer.h"
#include "silc/policy/policy_metadata.h"
#include "silc/robot/robot_model.h"
#include "silc/train/loco_spec.h"

namespace silc {
namespace {

namespace fs = std::filesystem;

constexpr char kConfig[] = "/config.yaml", kMetrics[] = "/metrics.jsonl";

// A lock the system takes back when the process ends, however it ends. −1: another has it.
int TakeLock(const std::string& folder) {
  const std::string file = folder + "/.lock";
  const int lock = ::open(file.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0644);
  if (lock < 0) throw RunError(file + ": cannot be written: " + std::strerror(errno));
  if (::flock(lock, LOCK_EX | LOCK_NB) == 0) return lock;
  ::close(lock);
  return -1;
}

bool IsLocked(const std::string& folder) {
  const int lock = ::open((folder + "/.lock").c_str(), O_RDONLY | O_CLOEXEC);
  if (lock < 0) return false;
  const bool taken = ::flock(lock, LOCK_SH | LOCK_NB) != 0;
  ::close(lock);
  return taken;
}

int Lock(const std::string& folder) {
  const int lock = TakeLock(folder);
  if (lock < 0) throw ConfigError(folder + ": another process is training in it");
  return lock;
}

struct LastMetrics {
  int iteration = 0;
  std::optional<double> reward;
};

LastMetrics ReadLastMetrics(const std::string& folder) {
  LastMetrics last;
  std::ifstream file(folder + kMetrics);
  // a line is some 2 kB: the end of the file is enough
  constexpr std::streamoff kTail = 64 << 10;
  file.seekg(0, std::ios::end);
  file.seekg(std::max<std::streamoff>(0, std::streamoff(file.tellg()) - kTail));
  for (std::string line; std::getline(file, line);) {
    const auto json = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (!json.is_object() || !json.contains("iteration")) continue;  // cut off
    last.iteration = json["iteration"].get<int>();
    last.reward.reset();
    if (json.contains("train/reward") && json["train/reward"].is_number()) {
      last.reward = json["train/reward"].get<double>();
    }
  }
  return last;
}

RunInfo Describe(const std::string& path) {
  RunInfo info{.path = path, .name = fs::path(path).filename().string()};
  try {
    const TrainConfig config = ReadTrainConfig(path + kConfig);
    info.task = config.name;
    info.method = config.learn.penalty.method;
    info.mode = config.mode;
    info.iterations = config.learn.iterations;
  } catch (const ConfigError& error) {
    info.state = error.what();
    return info;
  }
  const LastMetrics last = ReadLastMetrics(path);
  info.done = last.iteration;
  info.reward = last.reward;
  const int saved = CheckpointFolder(path + "/checkpoints", 2).NewestIteration().value_or(0);
  if (IsLocked(path)) {
    info.state = "running";
  } else if (saved >= info.iterations) {
    info.state = "done";
  } else if (saved == last.iteration) {
    info.state = saved == 0 ? "not begun" : "stopped";
  } else {
    info.state = fmt::format("cut off, resumes after {}", saved);
  }
  return info;
}

}  // namespace

RunFolder RunFolder::Create(const std::string& path, const TrainConfig& config) {
  std::error_code error;
  fs::create_directories(path, error);
  if (error) throw RunError(path + ": cannot be made: " + error.message());
  RunFolder folder(path, Lock(path));
  if (fs::exists(folder.config_file())) {
    throw ConfigError("--out " + path + ": holds a run; go on with it by silc train --resume " +
                      path + ", or choose another folder");
  }
  WriteRunFolder(path, ToYaml(config), config.learn.seed);
  return folder;
}

RunFolder RunFolder::Open(const std::string& path) {
  if (!fs::is_regular_file(path + kConfig)) {
    throw ConfigError("--resume " + path +
                      ": is no run: there is no config.yaml; silc runs lists " + "those in runs/");
  }
  return {path, Lock(path)};
}

RunFolder::RunFolder(RunFolder&& other) noexcept
    : path_(std::move(other.path_)), lock_(std::exchange(other.lock_, -1)) {}

RunFolder::~RunFolder() {
  if (lock_ >= 0) ::close(lock_);
}

void RunFolder::WriteConfig(const TrainConfig& config) const {
  WriteFileAtomically(config_file(), ToYaml(config));
}

void RunFolder::WritePolicy(const MlpNetwork& actors, const TrainConfig& config) const {
  const RobotModel robot = RobotModel::Load("g1");
  WriteOnnx(policy_file(),
            actors,
            "obs",
            "actions",
            MetadataFor(LocoLayout(robot, config.task), fs::path(path_).filename().string()));
}

void RunFolder::ForgetMetricsAfter(int iteration) const {
  const std::string path = path_ + kMetrics;
  if (!fs::exists(path)) return;
  std::ifstream file(path);
  std::string kept;
  bool dropped = false;
  for (std::string line; std::getline(file, line);) {
    const auto json = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
    const bool keep =
        json.is_object() && json.contains("iteration") && json["iteration"].get<int>() <= iteration;
    if (keep) kept += line + "\n";
    dropped = dropped || !keep;
  }
  if (dropped) WriteFileAtomically(path, kept);
}

std::string DefaultRunPath(const TrainConfig& config) {
  const std::time_t now = std::time(nullptr);
  const auto stem = [](const std::string& name) { return fs::path(name).stem().string(); };
  std::string name = fmt::format("runs/{:%Y-%m-%d}-{}-{}",
                                 fmt::localtime(now),
                                 stem(config.name),
                                 config.learn.penalty.method);
  if (config.needs_budget()) name += "-" + stem(config.mode);
  name += fmt::format("-seed{}", config.learn.seed);
  std::string path = name;
  for (int i = 2; fs::exists(path); ++i) path = fmt::format("{}.{}", name, i);
  return path;
}

std::vector<RunInfo> ListRuns(const std::string& folder) {
  if (!fs::is_directory(folder)) throw ConfigError(folder + ": is no folder");
  std::vector<RunInfo> runs;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (fs::is_regular_file(entry.path() / "config.yaml")) {
      runs.push_back(Describe(entry.path().string()));
    }
  }
  std::sort(
      runs.begin(), runs.end(), [](const RunInfo& a, const RunInfo& b) { return a.name < b.name; });
  return runs;
}

}  // namespace silc
