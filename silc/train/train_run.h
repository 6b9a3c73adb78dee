// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdio>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "silc/learn/ranks.h"
#include "silc/policy/mlp.h"
#include "silc/train/train_config.h"

namespace silc {

/// A training in a folder of its own:
///     config.yaml, run.yaml   what it is made of, commit, seed, machine
///     config.crc32c           of every config.yaml that silc wrote there: an edited one is refused
///     checkpoints/            the newest few
///     policy.onnx             of the newest checkpoint; `silc observe` takes it as it is
///     metrics.jsonl, events…  one line, one record per iteration
///     diverged.jsonl          robots the physics lost, where there were any
///     lock                    held while somebody trains
struct TrainRunOptions {
  TrainConfig config;
  std::string folder;
  bool resume = false;                      // go on from the newest whole checkpoint
  std::FILE* out = nullptr;                 // what the user watches
  const std::atomic<bool>* stop = nullptr;  // ends after the iteration at work, with a checkpoint
  // Processes that train together, each config.envs / size of the robots; null: this one alone.
  // Rank 0 alone reads and writes the folder.
  std::shared_ptr<Ranks> ranks;
};

struct TrainOutcome {
  int iteration = 0;  // finished
  bool done = false;  // all that were asked for
};

/// Trains to the end or until stopped. Throws ConfigError when the folder holds a run already (and
/// resume is off) or somebody else trains in it, RunError when something breaks on the way.
TrainOutcome RunTraining(const TrainRunOptions& options);

/// policy.onnx: the actors with the layout they were trained with, and how they were.
void ExportPolicy(const std::string& path,
                  const MlpNetwork& network,
                  const TrainConfig& config,
                  int iteration);

/// One line of `silc runs`.
struct RunInfo {
  std::string folder;
  std::string state;  // running, done, stopped, none (no run here); or what is wrong with it
  std::string task, method;
  std::string mode;                   // of the budget; "": the method has none
  int iteration = 0, iterations = 0;  // checkpointed, asked for
  double reward = 0;                  // of the last line of metrics.jsonl; NaN: none
  double steps_per_s = 0;             // the same
};
RunInfo InspectRun(const std::string& folder);

/// The last whole line of a run's metrics.jsonl; an empty object where there is none.
nlohmann::json LastMetrics(const std::string& folder);

/// Runs in `folder` and its direct sub-folders, by name. Throws ConfigError when there is no such
/// folder.
std::vector<RunInfo> ListRuns(const std::string& folder);

}  // namespace silc
