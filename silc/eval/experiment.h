// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "silc/eval/metric_table.h"
#include "silc/observe/run.h"
#include "silc/policy/policy.h"

namespace silc {

/// One number of an experiment, with what it takes to judge it. Not finite where the experiment
/// could not give it (the robot fell); the result's notes then say why.
struct Metric {
  MetricHandle what;  // name, label, unit: as its experiment declares them; once within a result
  double value = std::numeric_limits<double>::quiet_NaN();
  /// 95 % bootstrap confidence interval over episodes or trials (bootstrap.h); NaN when there are
  /// fewer than two.
  double low = std::numeric_limits<double>::quiet_NaN();
  double high = std::numeric_limits<double>::quiet_NaN();
  int n = 0;  // episodes or trials behind the value
  /// Each episode's or trial's own value, in order: for spreads, and to pool training seeds
  /// (PoolMetrics). Empty where the value is no mean over trials.
  std::vector<double> samples;
};

/// One line of a figure. Lines with the same `panel` belong into one set of axes.
struct Curve {
  std::string panel;             // title of the axes: "hand z under −40 N"
  std::string label;             // "measured"; "" where the policy's name says enough
  std::string x_label, y_label;  // with units: "time [s]"
  std::vector<double> x, y;      // NaN in y breaks the line
  enum class Style { kSolid, kDashed, kDotted, kPoints } style = Style::kSolid;
  bool shared = false;  // a specification or limit, the same for every policy: drawn once
  bool log_x = false, log_y = false;
};

/// A shaded stretch of the x axis of a panel: while the push lasts.
struct Span {
  std::string panel, label;
  double x0 = 0, x1 = 0;
};

/// What one experiment found out about one policy.
struct ExperimentResult {
  std::string experiment;                       // name in the registry
  std::string policy;                           // path, as it was given
  std::string policy_hash;                      // PolicyHash() of the file
  std::string layout;                           // of the policy: "g1_loco"
  std::string robot;                            // "g1"
  std::string gains;                            // of the servo: a set of the robot's, or "own"
  std::string mode;                             // name of the budget held against: "compliance"
  BudgetSpec budget;                            // its numbers, channels and condition
  std::vector<std::uint64_t> seeds;             // of the experiment, not of the training
  std::map<std::string, std::string> settings;  // what was used, with units: "force": "-150 N"
  std::vector<Metric> metrics;
  std::vector<Curve> curves;
  std::vector<Span> spans;
  std::vector<std::string> notes;  // sentences a reader must know: "the robot fell in 3 of 20"
  int trials = 0, falls = 0;       // robots or runs started, and those that fell or diverged

  /// Null when the experiment did not give it.
  const Metric* Find(MetricHandle what) const;
  double Value(MetricHandle what) const;  ///< NaN likewise
};

/// JSON text with every field above; numbers that are not finite are null, "inf" or "-inf".
/// FromJson(ToJson(r)) is r, bit for bit. `indent` < 0: one line.
std::string ToJson(const ExperimentResult& result, int indent = -1);
/// Throws ConfigError with `place` for what is no such text, for a metric the experiment does not
/// declare (naming the nearest that it does) and for one in another unit. Labels are the
/// declarations'.
ExperimentResult FromJson(const std::string& text, const std::string& place);

struct ExperimentOptions {
  std::string robot = kDefaultRobot;
  std::optional<UserBudget> budget;        // none: the default mode's
  std::vector<std::uint64_t> seeds = {1};  // each is a repetition of the experiment
  int episodes = 0;                        // per seed; 0: the experiment's own number
  int threads = 1;
  // walk and stand alone
  double force_scale = 0;  // [1] of the task's hand forces
  int observe_every = 50;  // control steps between observations of the stiffness; 0: none

  // budget alone
  double seconds = 10;  // [s] of stepping observed per trial, once the gait has settled
  // com-load-walk alone
  std::optional<PolicyCommand> walk_command;  // none: 0.5 m/s straight ahead
  // knob alone
  BudgetCommand command;  // ranges of the commanded policy; `budget` is that of one command
  int values = 8;         // of each number, from one end of its range to the other; at least 2
  // frequency alone
  std::vector<double> frequencies;  // [Hz] of the shaker; empty: 14 from 0.5 to 24
  std::vector<std::string> points;  // where it acts, FrequencyMetrics' names; empty: all five

  /// Called after every control step of the first trial of the first seed, with the scene as it
  /// stands: for pictures. Called by every experiment but `walk` and `stand`.
  std::function<void(const RobotModel&, const mjData&)> watch;
  bool visuals = false;  // load shapes, sky and lights for `watch`; slower

  /// The budget, or the default mode's. Throws ConfigError where that has no file.
  UserBudget Budget() const { return budget ? *budget : ReadBudget(kDefaultMode); }
};

/// @throws ConfigError when the experiment cannot build what the policy wants to see.
using ExperimentFunction =
    std::function<ExperimentResult(const Policy&, const ExperimentOptions&, const Progress&)>;

struct Experiment {
  std::string name;            // "hand-load"
  std::string what;            // one line
  std::string paper;           // "Table II", "Fig. left_hand"; "" for ours
  int episodes = 1;            // default of ExperimentOptions::episodes
  std::string unit;            // what an episode is: "robots", "trials"
  const MetricTable& metrics;  // all it may give
  /// The metrics a table of one line per policy shows, of those that a result has.
  std::vector<MetricHandle> headline;
  ExperimentFunction run;
  /// Whether a figure of several policies gives each its own panels: where one policy already has
  /// several curves in a panel.
  bool plots_apart = false;
  /// Whether its curves are few and short, and printed as tables, too.
  bool tabulates = false;
};

/// All of them, in the order of the paper.
const std::vector<Experiment>& Experiments();
/// Throws ConfigError that names the nearest.
const Experiment& FindExperiment(const std::string& name);

/// Throws ConfigError unless there is a seed and none is there twice: the same seed again gives the
/// same episodes, which would count as more than they are.
void CheckSeeds(const std::vector<std::uint64_t>& seeds);

/// Runs an experiment and fills in who was tried: path, hash, layout, mode, seeds.
ExperimentResult RunExperiment(const Experiment& experiment,
                               const std::string& policy_path,
                               const Policy& policy,
                               const ExperimentOptions& options,
                               const Progress& progress = {});

/// The same metric of policies trained with different seeds as one: mean of the policies' values,
/// interval by resampling policies and, within each, samples. NaN where one of them has none.
/// @pre there is at least one, and all are the same metric
Metric PoolMetrics(const std::vector<const Metric*>& metrics, std::uint64_t seed = 1);

}  // namespace silc
