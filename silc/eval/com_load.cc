// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cmath>

#include "silc/base/nan.h"
#include "silc/eval/experiment_metrics.h"
#include "silc/eval/experiments.h"
#include "silc/eval/trial.h"
#include "silc/observe/shake.h"

namespace silc {
namespace {

const std::vector<double> kForces = {5, 10, 20};  // [N]
constexpr std::size_t kJudged = 1;                // 10 N: what is held against model and budget
const char* kAxes[] = {"x", "y", "z"};

struct Trial {
  LoopStatus end = LoopStatus::kRunning;
  ShakeResult shake;
};

Trial RunTrial(const RobotModel& robot, const Policy& policy, const TrialDraw& draw) {
  Trial trial;
  ClosedLoop loop = MakeLoop(robot, policy, StandCommand(), draw);
  trial.end = RunFor(&loop, SettleTime(draw, loop.period()));
  if (trial.end != LoopStatus::kRunning) return trial;
  ShakeOptions shake;
  shake.point = Push::Point::kCom;
  shake.forces = kForces;
  shake.settle = loop.period();  // it has settled already
  trial.shake = ShakeFinite(loop, shake);
  trial.end = trial.shake.settled;
  return trial;
}

}  // namespace

ExperimentResult RunComLoad(const Policy& policy,
                            const ExperimentOptions& options,
                            const Progress& progress) {
  // a static stiffness needs a floor that does not creep (LoadOptions::firm_contacts)
  const RobotModel robot = LoadRobot(options, {.firm_contacts = true});
  const UserBudget budget = options.Budget();
  std::vector<Trial> trials(NumTrials(options));
  ForTrials(options, progress, [&](int k, const TrialDraw& draw) {
    trials[k] = RunTrial(robot, policy, draw);
  });

  const metric::ComLoadMetrics& declared = metric::ComLoad();
  ExperimentResult result;
  int restless = 0, pairs = 0;
  for (int axis = 0; axis < 3; ++axis) {
    const auto measured = [&](std::size_t level) {
      std::vector<double> values;
      for (const Trial& t : trials) values.push_back(RestingStiffness(t.shake, level, axis));
      return values;
    };
    std::vector<double> model, model_ratio = measured(kJudged), spec_ratio = model_ratio;
    for (const Trial& t : trials) {
      model.push_back(PredictedStiffness(t.shake, ShakeModel::kStaticWithWeight, axis));
    }
    const AxisMetrics* families[] = {
        &declared.measured_5n, &declared.measured, &declared.measured_20n};
    for (std::size_t level = 0; level < kForces.size(); ++level) {
      const std::vector<double> values = measured(level);
      for (std::size_t k = 0; k < trials.size(); ++k) {
        if (level >= trials[k].shake.levels.size()) continue;
        ++pairs;
        restless += std::isnan(values[k]);
      }
      result.metrics.push_back(StiffnessMetric((*families[level])[axis], values));
    }
    result.metrics.push_back(StiffnessMetric(declared.static_with_weight[axis], model));
    for (std::size_t k = 0; k < trials.size(); ++k) model_ratio[k] /= model[k];
    result.metrics.push_back(StiffnessMetric(declared.measured_over_model[axis], model_ratio));
    if (budget.spec.com) {
      const double spec = (*budget.spec.com)[axis];
      result.metrics.push_back({declared.spec[axis], spec});
      for (double& ratio : spec_ratio) ratio /= spec;
      result.metrics.push_back(StiffnessMetric(declared.measured_over_spec[axis], spec_ratio));
    }
    Curve curve{fmt::format("centre of mass, force along {}", kAxes[axis]),
                "measured",
                fmt::format("displacement along {} [m]", kAxes[axis]),
                "force [N]"};
    curve.style = Curve::Style::kPoints;
    const Trial& shown = trials[FirstLasting(EndsOf(trials))];
    for (const ShakeLevel& level : shown.shake.levels) {
      curve.x.insert(curve.x.end(), {level.plus(axis, axis), level.minus(axis, axis)});
      curve.y.insert(curve.y.end(), {level.force, -level.force});
    }
    result.curves.push_back(std::move(curve));
  }
  AddSurvival(declared, EndsOf(trials), &result);
  if (restless > 0) {
    result.notes.push_back(fmt::format(
        "{} of {} pairs of pushes are left out: the robot stepped, fell, or swayed by more than "
        "it was displaced, and has no static stiffness there",
        restless,
        pairs));
  }
  std::vector<double> sway, radius;
  for (const Trial& t : trials) {
    sway.push_back(t.end == LoopStatus::kRunning ? t.shake.sway : kNan);
    radius.push_back(t.end == LoopStatus::kRunning ? t.shake.loop.rho : kNan);
  }
  result.metrics.push_back(MeanMetric(declared.sway, sway));
  result.metrics.push_back(MeanMetric(declared.action_loop_radius, radius));
  result.settings = {
      {"pushes",
       "±5, ±10, ±20 N at the centre of mass along x, y, z; 1.5 s up, 3 s held, last 1 s averaged"},
      {"settling", "4 to 5 s standing, drawn per trial"},
      {"trials per seed", std::to_string(options.episodes)}};
  return result;
}

}  // namespace silc
