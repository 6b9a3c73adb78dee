// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "silc/base/nan.h"
#include "silc/eval/experiment_metrics.h"
#include "silc/eval/experiments.h"
#include "silc/eval/metrics.h"
#include "silc/eval/trial.h"

namespace silc {
namespace {

constexpr double kDuration = 0.05;  // [s]
constexpr double kBefore = 1;       // [s] over which the resting place is averaged
constexpr double kAfter = 6;        // [s] watched after the push
constexpr double kBand = 0.05;      // [1] of the peak: settled
const char kPanel[] = "centre of mass, x";

struct ImpulseTrial {
  LoopStatus end = LoopStatus::kRunning;
  double peak = kNan, peak_time = kNan, overshoot = kNan, residual = kNan, settling = kNan;
  bool stepped = false;
  std::vector<double> time, x;  // [s] from the push, [m] from the resting place
};

ImpulseTrial RunImpulseTrial(const RobotModel& robot,
                             const Policy& policy,
                             const TrialDraw& draw,
                             const std::function<void(const RobotModel&, const mjData&)>& watch) {
  ImpulseTrial trial;
  ClosedLoop loop = MakeLoop(robot, policy, StandCommand(), draw);
  const auto look = [&] {
    if (watch) watch(robot, *loop.data());
  };
  trial.end = RunFor(&loop, SettleTime(draw, loop.period()) - kBefore, look);
  if (trial.end != LoopStatus::kRunning) return trial;
  double rest = 0;
  int count = 0;
  const double start = loop.time() + kBefore;
  const auto record = [&] {
    trial.time.push_back(loop.time() - start);
    trial.x.push_back(loop.ComPosition().x());
    look();
  };
  trial.end = RunFor(&loop, kBefore, [&] {
    record();
    rest += trial.x.back();
    ++count;
  });
  if (trial.end != LoopStatus::kRunning) return trial;
  rest /= count;

  ContactModeTracker tracker = MakeContactTracker(robot);
  loop.TrackContacts(&tracker);
  // at the physics' own pace: 0.05 s is no whole number of control periods
  loop.SetHooks(
      [&] {
        const bool on = loop.time() < start + kDuration - 1e-9;
        loop.SetPush(on ? Push{Push::Point::kBase, {kImpulseForce, 0, 0}} : Push{});
      },
      {});
  const std::size_t first = trial.x.size();
  trial.end = RunFor(&loop, kAfter, [&] {
    record();
    loop.TrackContacts(&tracker);
    trial.stepped = trial.stepped || tracker.mode() != ContactMode::kDoubleSupport;
  });
  for (double& x : trial.x) x -= rest;
  if (trial.end != LoopStatus::kRunning) return trial;

  const std::span<const double> after = std::span<const double>(trial.x).subspan(first);
  const auto low = std::min_element(after.begin(), after.end());
  trial.peak = -*low;
  trial.peak_time = (double(low - after.begin()) + 1) * loop.period();
  trial.overshoot = std::max(0.0, *std::max_element(low, after.end()));
  const Settling settling = SettlingTime(after, loop.period(), kBand);
  trial.settling = settling.time;
  trial.residual = settling.final;
  return trial;
}

}  // namespace

ExperimentResult RunComImpulse(const Policy& policy,
                               const ExperimentOptions& options,
                               const Progress& progress) {
  const RobotModel robot = LoadRobot(options);
  std::vector<ImpulseTrial> trials(NumTrials(options));
  ForTrials(options, progress, [&](int k, const TrialDraw& draw) {
    trials[k] = RunImpulseTrial(robot, policy, draw, k == 0 ? options.watch : nullptr);
  });

  const metric::ComImpulseMetrics& declared = metric::ComImpulse();
  ExperimentResult result;
  const auto samples = [&](double ImpulseTrial::*member) { return SamplesOf(trials, member); };
  result.metrics = {MeanMetric(declared.peak_excursion, samples(&ImpulseTrial::peak)),
                    MeanMetric(declared.peak_time, samples(&ImpulseTrial::peak_time)),
                    MeanMetric(declared.overshoot, samples(&ImpulseTrial::overshoot)),
                    MeanMetric(declared.residual_offset, samples(&ImpulseTrial::residual)),
                    MedianMetric(declared.settling_time, samples(&ImpulseTrial::settling))};
  int stepped = 0, lasted = 0;
  const std::vector<LoopStatus> ends = EndsOf(trials);
  for (const ImpulseTrial& t : trials) {
    lasted += t.end == LoopStatus::kRunning;
    stepped += t.end == LoopStatus::kRunning && t.stepped;
  }
  result.metrics.push_back(ShareMetric(declared.stepped, stepped, lasted));
  const ImpulseTrial& shown = trials[FirstLasting(ends)];
  AddSurvival(declared, ends, &result);
  result.settings = {{"force", fmt::format("{:g} N along x at the pelvis", kImpulseForce)},
                     {"duration", fmt::format("{:g} s", kDuration)},
                     {"trials per seed", std::to_string(options.episodes)}};
  Curve curve{kPanel, "", "time after the push began [s]", "x − rest [m]", shown.time, shown.x};
  Thin(&curve.x, &curve.y);
  result.curves.push_back(std::move(curve));
  result.spans.push_back({kPanel, "push", 0, kDuration});
  return result;
}

}  // namespace silc
