// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "silc/config/budget_file.h"
#include "silc/learn/config.h"
#include "silc/policy/observation_layout.h"
#include "silc/robot/robot_spec.h"
#include "silc/stiffness/budget.h"
#include "silc/task/task_config.h"
#include "silc/train/loco_vec_env.h"

namespace silc {

/// A file a run was made with, and what it held then.
struct InputFile {
  std::string path;    // absolute
  std::string crc32c;  // of its bytes, eight hexadecimal digits

  /// Throws ConfigError when it cannot be read.
  static InputFile Of(const std::string& path);
  /// Throws ConfigError, ending with `way_out`, when it is gone or no longer holds what it held.
  void Check(const std::string& way_out) const;
};

/// All that a training is made of. Two runs with the same one are the same, on the CPU.
struct TrainConfig {
  std::string task;  // name or path of the task file
  std::string robot = kDefaultRobot;
  std::optional<GainSet> gains;     // the task names, with their numbers; none: the robot's default
  std::string backend = "batch";    // batch, mujoco, cuda
  int envs = 4096;                  // robots, of all processes together
  std::string mode = kDefaultMode;  // name of the budget
  std::string mode_from = "default";  // who chose it: default, preset, --mode
  BudgetSpec budget;
  std::vector<InputFile> motions;  // arm references; none: generated
  std::optional<InputFile> init;   // checkpoint of another run the networks come from
  LearnConfig learn;
  TaskConfig task_config;
  ObservationLayout layout;  // what the policy sees, as its file had it when the run was made
};

/// What a user asked for; what is left out comes from the preset, then from the defaults.
struct TrainRequest {
  std::string task;    // may be empty when the preset is a run's
  std::string preset;  // configs/train/TASK_PRESET.yaml, or a file, or a run; "": TASK.yaml
  std::optional<std::string> method;  // one of MethodNames()
  std::optional<std::string> mode;    // budget by name or file
  std::optional<std::string> backend;
  std::optional<int> envs;
  int processes = 1;  // that train together; envs, and a preset's, are those of each. A run's that
                      // is made again are of all
  std::optional<std::uint64_t> seed;
  std::optional<int> threads;
  std::optional<int> iterations;
  std::vector<std::string> motions;    // files, or folders with files
  std::string init;                    // a run's folder or a checkpoint, for a warm start
  std::vector<std::string> overrides;  // learn.epochs=3, task.push.force=50, task.gains=mjlab
};

/// Task file, preset, options and overrides, in this order. Throws ConfigError.
///
/// A preset has the keys envs, mode, learn (a LearnConfig), task (a task file's sections) and
/// methods: what a method needs besides, as in methods: {silc: {penalty: {lambda: 2}}}. A run's
/// config.yaml in its place (or the run's folder) gives that run again, but for what is asked for.
TrainConfig ResolveTrainConfig(const TrainRequest& request);

/// "learn.epochs=3", "task.push.force=50", "task.layout=mine.yaml". Throws ConfigError that names
/// the nearest known key.
void ApplyTrainOverrides(std::span<const std::string> overrides, TrainConfig* config);

/// The same for a run that goes on: iterations, threads and the keeping of checkpoints may change.
/// Throws ConfigError for anything else, which would make it another run.
void ApplyResumeOverrides(std::span<const std::string> overrides, TrainConfig* config);

/// Whether the method holds the policy to the budget; the others train without looking at it.
bool IsBounded(const TrainConfig& config);

/// What a user should know about the budget before the training starts: which one, who chose it,
/// its numbers; or that --mode has no effect. Empty when there is nothing to say.
std::string BudgetNote(const TrainConfig& config);

/// A run's config.yaml, every number of it.
std::string ToYaml(const TrainConfig& config);
TrainConfig ReadTrainConfig(const std::string& path);

/// The environment a config asks for. Throws ConfigError when a motion file is not (or no longer)
/// what it should be.
LocoVecEnvOptions EnvOptionsOf(const TrainConfig& config);

}  // namespace silc
