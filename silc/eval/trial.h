// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "silc/eval/experiment.h"
#include "silc/observe/closed_loop.h"
#include "silc/observe/shake.h"

namespace silc {

// What the experiments with one robot at a time have in common.

/// The robot of the experiment, as `load` says.
RobotModel LoadRobot(const ExperimentOptions& options, LoadOptions load = {});

/// Throws ConfigError when an experiment on a hand is asked of a robot that has none.
void NeedHands(const RobotModel& robot);

/// Stand upright.
PolicyCommand StandCommand();
/// Walk straight ahead at 0.5 m/s.
PolicyCommand WalkCommand();
/// Step in place: the walk flag where the policy sees one, else the slowest speed its gait clock
/// takes for walking.
PolicyCommand StepCommand(const Policy& policy);

/// One trial's randomness; everything follows from seed and number.
struct TrialDraw {
  std::uint64_t seed = 1;
  int trial = 0;  // within the seed
  /// Stream k of this trial.
  Rng Stream(std::uint32_t k) const;
};

/// A loop whose robot stands in the policy's pose with each joint of arms and waist off by up to
/// 0.02 rad: enough for trials to differ, too little to matter after it has settled. Throws
/// ConfigError when the loop cannot be made for this policy.
ClosedLoop MakeLoop(const RobotModel& robot,
                    const Policy& policy,
                    const PolicyCommand& command,
                    const TrialDraw& draw);

/// [s] how long a trial settles before anything is done to it: 4 s and up to one more, in whole
/// control periods, so that trials differ in the moment of their gait or sway.
double SettleTime(const TrialDraw& draw, double period);

/// The status, unless it is kPolicyNotFinite: a policy whose answer is not finite did not fall, and
/// counting a fall would hide it. Throws RunError with the control step then.
LoopStatus NeedFinite(const ClosedLoop& loop, LoopStatus status);

/// Shake(), which throws RunError where the policy's answer is not finite.
ShakeResult ShakeFinite(const ClosedLoop& settled, const ShakeOptions& options);

/// Steps the loop for `seconds`, each step NeedFinite(); `each` (may be empty) after every control
/// period.
LoopStatus RunFor(ClosedLoop* loop, double seconds, const std::function<void()>& each = {});

/// Calls body(k, draw, progress) for each trial of each seed, on `options.threads` threads, k
/// counting from 0 over all of them. Exceptions come out here.
/// NumTrials() throws ConfigError beyond kMaxTrials.
inline constexpr int kMaxTrials = 1'000'000;
int NumTrials(const ExperimentOptions& options);
void ForTrials(const ExperimentOptions& options,
               const Progress& progress,
               const std::function<void(int k, const TrialDraw& draw)>& body);

/// Mean over the trials that have a value (NaN: fell), with its bootstrap interval.
Metric MeanMetric(MetricHandle what, const std::vector<double>& samples);
/// The median, for what may be infinite: settling times.
Metric MedianMetric(MetricHandle what, const std::vector<double>& samples);
/// 1/mean(1/s): for stiffnesses, whose reciprocals, the compliances, are what was measured. A
/// policy that leans against a push has negative ones, and one near the change of sign has huge
/// ones, over which a plain mean means nothing.
Metric StiffnessMetric(MetricHandle what, const std::vector<double>& samples);
/// A share of trials, with Wilson's interval.
Metric ShareMetric(MetricHandle what, int k, int n);
/// The same of trials in groups of one size, by the share of each group (NaN: none): drawn by
/// groups.
Metric GroupedShareMetric(MetricHandle what, const std::vector<double>& shares);

/// One number of every trial: SamplesOf(trials, &Trial::peak).
template <class Trial>
std::vector<double> SamplesOf(const std::vector<Trial>& trials, double Trial::*member) {
  std::vector<double> values;
  for (const Trial& t : trials) values.push_back(t.*member);
  return values;
}
/// How every trial ended: its member `end`.
template <class Trial>
std::vector<LoopStatus> EndsOf(const std::vector<Trial>& trials) {
  std::vector<LoopStatus> ends;
  for (const Trial& t : trials) ends.push_back(t.end);
  return ends;
}

/// Adds the table's survival, trials, falls and the note that says how many fell and of what.
void AddSurvival(const MetricTable& declared,
                 const std::vector<LoopStatus>& ends,
                 ExperimentResult* result);

/// The trial whose curves are shown: the first that lasted, or the first.
int FirstLasting(const std::vector<LoopStatus>& ends);

/// At most `points` of a curve's samples, evenly.
void Thin(std::vector<double>* x, std::vector<double>* y, int points = 600);

}  // namespace silc
