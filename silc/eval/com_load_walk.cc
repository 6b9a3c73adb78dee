// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cmath>

#include "silc/base/error.h"
#include "silc/base/nan.h"
#include "silc/eval/experiment_metrics.h"
#include "silc/eval/experiments.h"
#include "silc/eval/trial.h"
#include "silc/observe/walking_shake.h"

namespace silc {
namespace {

constexpr std::size_t kJudged = 1;  // 10 N: what is held against model and budget
const char* kAxes[] = {"x", "y", "z"};

WalkingShakeOptions Pushes() { return {.forces = {5, 10, 20}}; }

struct Trial {
  LoopStatus end = LoopStatus::kRunning;
  WalkingShakeResult shake;
};

Trial RunTrial(const RobotModel& robot,
               const Policy& policy,
               const PolicyCommand& command,
               const TrialDraw& draw,
               const std::function<void(const RobotModel&, const mjData&)>& watch) {
  Trial trial;
  ClosedLoop loop = MakeLoop(robot, policy, command, draw);
  trial.end = RunFor(&loop, SettleTime(draw, loop.period()), [&] {
    if (watch) watch(robot, *loop.data());
  });
  if (trial.end != LoopStatus::kRunning) return trial;
  trial.shake = ShakeWalking(loop, Pushes());
  bool finite = trial.shake.twin != LoopStatus::kPolicyNotFinite;
  for (const WalkingLevel& level : trial.shake.levels) {
    for (const auto& [plus, minus] : level.end) {
      finite =
          finite && plus != LoopStatus::kPolicyNotFinite && minus != LoopStatus::kPolicyNotFinite;
    }
  }
  if (!finite) {
    throw RunError(fmt::format(
        "walking on after {:.2f} s: {}", loop.time(), Describe(LoopStatus::kPolicyNotFinite)));
  }
  trial.end = trial.shake.twin;
  return trial;
}

// One number of every trial's pair of pushes; NaN where it has no such pair.
template <class Of>
std::vector<double> OfLevel(const std::vector<Trial>& trials, std::size_t level, const Of& of) {
  std::vector<double> values;
  for (const Trial& t : trials) {
    values.push_back(level < t.shake.levels.size() ? of(t.shake, t.shake.levels[level]) : kNan);
  }
  return values;
}

void AddAxis(const std::vector<Trial>& trials,
             const UserBudget& budget,
             int axis,
             ExperimentResult* result) {
  const metric::ComLoadWalkMetrics& declared = metric::ComLoadWalk();
  const auto stiffness = [&](std::size_t level) {
    return OfLevel(trials, level, [&](const WalkingShakeResult&, const WalkingLevel& l) {
      return WalkingStiffness(l.moved[axis], l.force);
    });
  };
  const auto add = [&](MetricHandle what, const std::vector<double>& values) {
    result->metrics.push_back(StiffnessMetric(what, values));
  };
  add(declared.measured_5n[axis], stiffness(0));
  add(declared.measured[axis], stiffness(kJudged));
  add(declared.measured_20n[axis], stiffness(2));
  // a lean is bounded whatever the robot does: the spread over trials says how well it repeats
  add(declared.over_feet[axis],
      OfLevel(trials, kJudged, [&](const WalkingShakeResult& shake, const WalkingLevel& l) {
        return l.force / ResponseOf(l.leaned[axis], shake.cycle).mean;
      }));
  const std::vector<double> model =
      OfLevel(trials, kJudged, [&](const WalkingShakeResult& shake, const WalkingLevel&) {
        return 1 / shake.model_compliance[axis];
      });
  add(declared.static_with_weight[axis], model);
  std::vector<double> over_model = stiffness(kJudged), over_spec = over_model;
  for (std::size_t k = 0; k < trials.size(); ++k) over_model[k] /= model[k];
  add(declared.measured_over_model[axis], over_model);
  if (budget.spec.com) {
    const double spec = (*budget.spec.com)[axis];
    result->metrics.push_back({declared.spec[axis], spec});
    for (double& ratio : over_spec) ratio /= spec;
    add(declared.measured_over_spec[axis], over_spec);
  }
  result->metrics.push_back(MeanMetric(
      declared.speed[axis],
      OfLevel(trials, kJudged, [&](const WalkingShakeResult& shake, const WalkingLevel& l) {
        return ResponseOf(l.moved[axis], shake.cycle).speed;
      })));
}

// What ±10 N move one trial's robot over time, and what K_s says of the same force.
void AddCourse(const WalkingShakeResult& shown, int axis, ExperimentResult* result) {
  if (kJudged >= shown.levels.size() || shown.levels[kJudged].course[axis].empty()) return;
  const WalkingLevel& level = shown.levels[kJudged];
  Curve measured{fmt::format("walking, ±{:g} N along {}", level.force, kAxes[axis]),
                 "measured",
                 "time after the push began [s]",
                 "displacement from the twin [m]",
                 shown.time,
                 level.course[axis]};
  Thin(&measured.x, &measured.y);
  Curve model = measured;
  model.label = "K_s with weight";
  model.style = Curve::Style::kDashed;
  model.x = {shown.time.front(), shown.time.back()};
  model.y.assign(2, level.force * shown.model_compliance[axis]);
  result->curves.push_back(std::move(measured));
  if (std::isfinite(model.y[0])) result->curves.push_back(std::move(model));
}

// How many pairs of pushes have no stiffness, and why.
void AddRefused(const std::vector<Trial>& trials, ExperimentResult* result) {
  int pairs = 0, fell = 0, apart = 0;
  for (const Trial& t : trials) {
    for (const WalkingLevel& level : t.shake.levels) {
      for (int axis = 0; axis < 3; ++axis) {
        ++pairs;
        const bool lasted = level.end[axis][0] == LoopStatus::kRunning &&
                            level.end[axis][1] == LoopStatus::kRunning;
        fell += !lasted;
        apart += lasted && std::isnan(WalkingStiffness(level.moved[axis], level.force));
      }
    }
  }
  result->metrics.push_back(ShareMetric(metric::ComLoadWalk().refused, fell + apart, pairs));
  if (apart > 0) {
    result->notes.push_back(
        fmt::format("{} of {} pairs of pushes have no static stiffness: the pushed robot walked "
                    "away from its twin, or its steps differed by more than the push moved it; the "
                    "distance of the two changed by more than {:g} % of its mean over the cycles "
                    "averaged",
                    apart,
                    pairs,
                    100 * kMostGrowth));
  }
  if (fell > 0) {
    result->notes.push_back(
        fmt::format("in {} of {} pairs of pushes a robot fell: those are left out", fell, pairs));
  }
}

}  // namespace

ExperimentResult RunComLoadWalk(const Policy& policy,
                                const ExperimentOptions& options,
                                const Progress& progress) {
  // a static stiffness needs a floor that does not creep (LoadOptions::firm_contacts)
  const RobotModel robot = LoadRobot(options, {.firm_contacts = true});
  const UserBudget budget = options.Budget();
  const PolicyCommand command = options.walk_command.value_or(WalkCommand());
  std::vector<Trial> trials(NumTrials(options));
  ForTrials(options, progress, [&](int k, const TrialDraw& draw) {
    trials[k] = RunTrial(robot, policy, command, draw, k == 0 ? options.watch : nullptr);
  });

  const metric::ComLoadWalkMetrics& declared = metric::ComLoadWalk();
  ExperimentResult result;
  const std::vector<LoopStatus> ends = EndsOf(trials);
  for (int axis = 0; axis < 3; ++axis) {
    AddAxis(trials, budget, axis, &result);
    AddCourse(trials[FirstLasting(ends)].shake, axis, &result);
  }
  AddSurvival(declared, ends, &result);
  AddRefused(trials, &result);
  int moments = 0, modelled = 0;
  double cycle = 0;
  for (const Trial& t : trials) {
    if (t.end != LoopStatus::kRunning) continue;
    moments += t.shake.moments;
    modelled += t.shake.modelled;
    cycle = t.shake.cycle;
  }
  result.metrics.push_back(ShareMetric(declared.modelled, modelled, moments));
  const WalkingShakeOptions pushes = Pushes();
  result.settings = {
      {"command",
       fmt::format("{:g}, {:g} m/s, {:g} rad/s",
                   command.lin_vel.x(),
                   command.lin_vel.y(),
                   command.yaw_rate)},
      {"pushes",
       fmt::format(
           "±5, ±10, ±20 N at the centre of mass along x, y, z of the walking frame; {:g} s "
           "up, {:g} s held, then {} cycles averaged",
           pushes.ramp,
           pushes.settle,
           pushes.cycles)},
      {"settling", "4 to 5 s walking, drawn per trial"},
      {"trials per seed", std::to_string(options.episodes)}};
  if (cycle > 0) {
    const bool clock = policy.layout().clock.period > 0;
    result.settings["gait cycle"] =
        fmt::format("{:g} s, {}", cycle, clock ? "the policy's clock" : "the policy has no clock");
  }
  return result;
}

}  // namespace silc
