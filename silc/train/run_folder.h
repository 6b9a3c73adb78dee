// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "silc/policy/mlp.h"
#include "silc/train/train_config.h"

namespace silc {

/// The folder of one training:
///
///     config.yaml             settings as resolved; silc train --resume reads them
///     run.yaml                commit, seed, machine
///     checkpoints/            checkpoint.h
///     policy.onnx             the actors of the newest checkpoint, with their layout
///     metrics.jsonl, events.* every figure of every iteration
///     diverged.jsonl          robots the physics lost, if any
///
/// While an object of this class lives, no other process can train in the folder. Every function
/// throws RunError when the disk will not have it.
class RunFolder {
 public:
  /// Makes the folder and writes config.yaml and run.yaml. Throws ConfigError when a run is there.
  static RunFolder Create(const std::string& path, const TrainConfig& config);
  /// Takes up an existing one. Throws ConfigError when it is none, or in use.
  static RunFolder Open(const std::string& path);
  RunFolder(RunFolder&& other) noexcept;
  RunFolder& operator=(RunFolder&&) = delete;
  ~RunFolder();

  const std::string& path() const { return path_; }
  std::string config_file() const { return path_ + "/config.yaml"; }
  std::string policy_file() const { return path_ + "/policy.onnx"; }

  /// config.yaml anew: of a run that goes on with more iterations.
  void WriteConfig(const TrainConfig& config) const;
  /// policy.onnx, whole or not at all.
  void WritePolicy(const MlpNetwork& actors, const TrainConfig& config) const;
  /// Drops what metrics.jsonl says of iterations after this one: they are about to be done again.
  void ForgetMetricsAfter(int iteration) const;

 private:
  RunFolder(std::string path, int lock) : path_(std::move(path)), lock_(lock) {}
  std::string path_;
  int lock_;  // file descriptor
};

/// runs/DATE-TASK-METHOD[-MODE]-seedS, with a number behind where that is taken.
std::string DefaultRunPath(const TrainConfig& config);

/// One line of `silc runs`.
struct RunInfo {
  std::string path, name, task, method, mode;
  int done = 0, iterations = 0;
  std::optional<double> reward;  // of the last iteration
  std::string state;             // running, done, stopped, …
};
/// The runs in a folder, by name. One that cannot be read is listed with the reason as its state.
/// Throws ConfigError when there is no such folder.
std::vector<RunInfo> ListRuns(const std::string& folder);

}  // namespace silc
