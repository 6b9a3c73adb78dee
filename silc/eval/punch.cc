// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cmath>
#include <numbers>

#include "silc/base/nan.h"
#include "silc/eval/experiment_metrics.h"
#include "silc/eval/experiments.h"
#include "silc/eval/trial.h"

namespace silc {
namespace {

constexpr double kDuration = 0.08;  // [s]
constexpr int kDirections = 8;      // around the pelvis, beginning with +x
constexpr double kAfter = 4;        // [s] a robot has to stay up after a push
const char kPanel[] = "fallen after a push of 0.08 s at the pelvis";

// Everything that one start gives: standing and walking, each settled and then pushed with every
// force from every side, always from the same moment.
struct Trial {
  LoopStatus end = LoopStatus::kRunning;  // before any push, of either
  // [standing, walking][force] of kDirections; −1 where it fell without being pushed
  std::array<std::array<int, metric::PunchMetrics::kForces.size()>, 2> fallen;
};

bool Falls(const ClosedLoop& settled,
           const Eigen::Vector3d& f_W,
           const std::function<void(const RobotModel&, const mjData&)>& watch) {
  ClosedLoop loop(settled);
  const double start = loop.time();
  // at the physics' own pace: a push is no whole number of control periods
  loop.SetHooks(
      [&] {
        const bool on = loop.time() < start + kDuration - 1e-9;
        loop.SetPush(on ? Push{Push::Point::kBase, f_W} : Push{});
      },
      {});
  const LoopStatus end = RunFor(&loop, kAfter, [&] {
    if (watch) watch(loop.robot(), *loop.data());
  });
  return end != LoopStatus::kRunning;
}

Trial RunTrial(const RobotModel& robot,
               const Policy& policy,
               const TrialDraw& draw,
               const std::function<void(const RobotModel&, const mjData&)>& watch) {
  Trial trial;
  for (const int walking : {0, 1}) {
    auto& fallen = trial.fallen[walking];
    fallen.fill(-1);
    ClosedLoop loop = MakeLoop(robot, policy, walking ? WalkCommand() : StandCommand(), draw);
    const LoopStatus end = RunFor(&loop, SettleTime(draw, loop.period()));
    if (end != LoopStatus::kRunning) {
      trial.end = end;
      continue;
    }
    for (std::size_t f = 0; f < fallen.size(); ++f) {
      fallen[f] = 0;
      for (int k = 0; k < kDirections; ++k) {
        const double angle = 2 * std::numbers::pi * k / kDirections;
        const Eigen::Vector3d direction(std::cos(angle), std::sin(angle), 0);
        const bool show = walking == 0 && f == 0 && k == 0;
        fallen[f] += Falls(loop,
                           metric::PunchMetrics::kForces[f] * direction,
                           show ? watch : std::function<void(const RobotModel&, const mjData&)>());
      }
    }
  }
  return trial;
}

}  // namespace

ExperimentResult RunPunch(const Policy& policy,
                          const ExperimentOptions& options,
                          const Progress& progress) {
  const RobotModel robot = LoadRobot(options);
  std::vector<Trial> trials(NumTrials(options));
  ForTrials(options, progress, [&](int k, const TrialDraw& draw) {
    trials[k] = RunTrial(robot, policy, draw, k == 0 ? options.watch : nullptr);
  });

  const metric::PunchMetrics& declared = metric::Punch();
  ExperimentResult result;
  for (const int walking : {0, 1}) {
    const char* name = walking ? "walking" : "standing";
    Curve curve{kPanel, name, "force [N]", "fallen [%]"};
    curve.style = walking ? Curve::Style::kDashed : Curve::Style::kSolid;
    int lost = 0;
    for (const Trial& t : trials) lost += t.fallen[walking][0] < 0;
    if (lost > 0) {
      result.notes.push_back(
          fmt::format("{}: {} of {} starts fell before any push; they are in no "
                      "share",
                      name,
                      lost,
                      trials.size()));
    }
    for (std::size_t f = 0; f < metric::PunchMetrics::kForces.size(); ++f) {
      std::vector<double> shares;
      for (const Trial& t : trials) {
        const int fallen = t.fallen[walking][f];
        shares.push_back(fallen < 0 ? kNan : static_cast<double>(fallen) / kDirections);
      }
      // pushes of one start have its moment in common: starts are what is drawn
      const MetricHandle what = (walking ? declared.walking : declared.standing)[f];
      result.metrics.push_back(GroupedShareMetric(what, shares));
      curve.x.push_back(metric::PunchMetrics::kForces[f]);
      curve.y.push_back(result.metrics.back().value);
    }
    result.curves.push_back(std::move(curve));
  }
  AddSurvival(declared, EndsOf(trials), &result);
  result.settings = {
      {"pushes",
       fmt::format("{:g} s at the pelvis, {} directions × {} starts per seed for each force",
                   kDuration,
                   kDirections,
                   options.episodes)},
      {"fallen", fmt::format("within {:g} s", kAfter)},
      {"walking", fmt::format("{:g} m/s forward", WalkCommand().lin_vel.x())},
      {"settling", "4 to 5 s before the push, drawn per start"}};
  return result;
}

}  // namespace silc
