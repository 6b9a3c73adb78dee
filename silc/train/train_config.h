// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "silc/learn/config.h"
#include "silc/stiffness/budget.h"
#include "silc/task/task_config.h"
#include "silc/train/loco_vec_env.h"

namespace silc {

/// A motion file, and what was in it when the run began.
struct MotionSource {
  std::string file;                     // absolute, so that a run can be resumed from anywhere
  std::optional<std::uint32_t> crc32c;  // of its bytes
};

/// All that a training's result depends on. A run folder keeps it as config.yaml.
struct TrainConfig {
  std::string name = "g1-loco";      // of the task, or its file
  std::string mode;                  // the budget's name; empty: none
  std::optional<BudgetSpec> budget;  // (S6), of `mode`
  std::string backend = "batch";     // batch, mujoco, cuda
  int envs = 4096;
  std::vector<MotionSource> motions;  // none: generated reaches
  TaskConfig task;
  LearnConfig learn;

  Method method() const { return MethodOf(learn); }
  bool needs_budget() const { return method() == Method::kSilc || method() == Method::kSilcPaper; }
};

/// What a user asked for; empty: the preset's, else the task's, else the built-in value.
struct TrainRequest {
  std::string task;    // g1-loco, g1-stand or a file
  std::string preset;  // "quick": configs/train/TASK_quick.yaml; or a file
  std::string method, mode, backend;
  std::optional<int> envs, threads, iterations;
  std::optional<std::uint64_t> seed;
  std::vector<std::string> motions;
  std::vector<std::string> overrides;  // "learn.epochs=3", "task.push.force=80"
};

/// The settings in the order of their say: built in, configs/train/TASK.yaml, the preset, the
/// options, the overrides. Throws ConfigError for names and keys that do not exist (with the
/// nearest), values out of range, and a method without the budget it needs.
///
/// configs/train/*.yaml hold any of: title, name, mode, budget, backend, envs, motions, task: (keys
/// of a task file), learn: (keys of LearnConfig), methods: {METHOD: keys of LearnConfig that go
/// with it}. A run's config.yaml is such a file.
TrainConfig ResolveTrainConfig(const TrainRequest& request);

/// Everything, as YAML that ReadTrainConfig() takes back to the same bits.
std::string ToYaml(const TrainConfig& config);
TrainConfig ReadTrainConfig(const std::string& path);

/// What may change when a run goes on: iterations, threads, how often and how many checkpoints.
/// Throws ConfigError naming what was asked for besides.
void ApplyToResumed(const TrainRequest& request, TrainConfig* config);

/// The environment's options. Reads the motion files; throws ConfigError when one is not what it
/// was, and notes what it is when that is not known yet.
LocoVecEnvOptions MakeEnvOptions(TrainConfig* config, const std::string& diverged_log);

}  // namespace silc
