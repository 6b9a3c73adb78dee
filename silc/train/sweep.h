// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "silc/train/train_config.h"
#include "silc/train/train_run.h"

namespace silc {

/// One training of a sweep: a row of its file with one of the row's seeds.
struct SweepJob {
  std::string row;
  std::string name;      // ROW-seedS
  std::string folder;    // of its run
  TrainRequest request;  // as a user would type it; request.init is empty
  TrainConfig config;    // what that means, but for the networks of `from`
  int rank = 0;          // which of its row's seeds: all first ones are trained before the second
  int from = -1;         // job whose last checkpoint it starts with; −1: none
  bool collect = true;   // whether CollectPolicies() takes it: not what others only start from

  /// The words after `silc`: a new training, or the rest of one that was begun.
  std::vector<std::string> TrainWords(const std::string& init_folder) const;
  std::vector<std::string> ResumeWords() const;
};

struct Sweep {
  std::string title;
  std::vector<SweepJob> jobs;  // in the order of the file; `from` points to earlier ones
};

/// What the command line says about every row.
struct SweepOptions {
  std::string folder;  // of the runs; "": the file's, else runs/sweep
  std::optional<std::string> backend;
  std::optional<int> threads;
  std::vector<std::string> only;       // ROW or ROW-seedN; empty: all. What they start from, too
  std::vector<std::string> overrides;  // after each row's own
};

/// A list of trainings:
///
///     title: …                             # optional, as are folder and defaults
///     folder: runs/sweep
///     defaults: {task: g1-loco}            # what rows share: but for name, from and collect
///     rows:
///       - {name: baseline, method: baseline, seeds: [1, 2, 3]}
///       - {name: soft, method: silc, mode: compliance, overrides: [learn.rate=1e-4], from:
///       baseline}
///
/// Keys of a row: name, task, method, mode, preset, envs, iterations, seeds, motions, overrides
/// (after the defaults' own), collect: false for what others only start from, from: an earlier row
/// whose networks it starts with, of the same seed where there is one, else of its first. Every
/// row's settings are resolved here, so that a slip in the last row is found before the first is
/// trained. Throws ConfigError with file and line.
Sweep ReadSweep(const std::string& path, const SweepOptions& options);

/// Where a job stands on disk.
struct SweepState {
  enum class Kind { kNew, kCut, kDone, kElsewhere, kBroken };
  Kind kind = Kind::kNew;
  RunInfo run;
  std::string note;  // kBroken: why; else a setting in which the run differs from the row, or ""
};
SweepState StateOf(const SweepJob& job);

/// Copies the policies of finished rows (of each its first seed) to `folder` as ROW.onnx with
/// float16 weights, and writes ROW.md: command, commit, seed, iterations, last figures of the
/// training. What somebody wrote in a card from "## Results" on stays as long as the policy is the
/// same.
/// A row that cannot be collected is told and left out.
struct Collected {
  std::vector<std::string> said;    // one line for the user per row
  std::vector<std::string> failed;  // rows that are finished and could not be collected
};
Collected CollectPolicies(const Sweep& sweep, const std::string& folder);

}  // namespace silc
