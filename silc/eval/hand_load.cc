// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cmath>

#include "silc/base/nan.h"
#include "silc/config/budget_file.h"
#include "silc/eval/experiment_metrics.h"
#include "silc/eval/experiments.h"
#include "silc/eval/load_step.h"
#include "silc/eval/trial.h"
#include "silc/observe/shake.h"

namespace silc {
namespace {

constexpr double kHold = 5;    // [s] the load stays on
constexpr double kWindow = 2;  // [s] at the end over which displacement is averaged
const std::vector<double> kRamps = {2, 10, 20, 40};  // [N] the smallest is for the linear model
const std::vector<double> kOnBaseRamps = {10};       // [N] at which the spec is asked for
const char kStepPanel[] = "left hand in the world, z, under −40 N";
const char* kAxes[] = {"x", "y", "z"};

struct LoadTrial {
  LoopStatus end = LoopStatus::kRunning;
  LoadStep step;         // in z
  bool stepped = false;  // a contact changed while the load was on
  std::vector<double> time, z;
  ShakeResult in_world;  // pushed from outside: arm and legs in series
  ShakeResult on_base;   // pulled against the base, as a budget's hands are meant
};

// The load and its unloaded twin, control step by control step.
void Step(const ClosedLoop& settled,
          const std::function<void(const RobotModel&, const mjData&)>& watch,
          LoadTrial* trial) {
  ClosedLoop loaded(settled), twin(settled);
  loaded.SetPush({Push::Point::kLeftHand, {0, 0, kLoadForce}});
  const double start = loaded.time();
  ContactModeTracker tracker = MakeContactTracker(settled.robot());
  trial->end = RunFor(&loaded, kHold, [&] {
    if (watch) watch(loaded.robot(), *loaded.data());
    const ContactMode before = tracker.mode();
    loaded.TrackContacts(&tracker);
    trial->stepped = trial->stepped || tracker.mode() != before;
    if (NeedFinite(twin, twin.Step()) != LoopStatus::kRunning) return;
    trial->time.push_back(loaded.time() - start);
    trial->z.push_back(loaded.HandPosition(kLeft).z() - twin.HandPosition(kLeft).z());
  });
  if (trial->end != LoopStatus::kRunning) return;
  const std::size_t window = std::lround(kWindow / loaded.period());
  // the one that was not loaded has fallen: there is nothing to compare with
  if (trial->z.size() < window) {
    trial->end = LoopStatus::kFallen;
    return;
  }
  trial->step = ReadLoadStep(trial->time, trial->z, window, kLoadForce, trial->stepped);
}

LoadTrial RunLoadTrial(const RobotModel& robot,
                       const Policy& policy,
                       const TrialDraw& draw,
                       const std::function<void(const RobotModel&, const mjData&)>& watch) {
  LoadTrial trial;
  ClosedLoop loop = MakeLoop(robot, policy, StandCommand(), draw);
  trial.end = RunFor(&loop, SettleTime(draw, loop.period()));
  if (trial.end != LoopStatus::kRunning) return trial;
  Step(loop, watch, &trial);
  ShakeOptions shake;
  shake.settle = loop.period();  // it has settled already
  shake.point = Push::Point::kLeftHand;
  shake.forces = kRamps;
  trial.in_world = ShakeFinite(loop, shake);
  shake.point = Push::Point::kLeftHandOnBase;
  shake.forces = kOnBaseRamps;
  trial.on_base = ShakeFinite(loop, shake);
  if (trial.end == LoopStatus::kRunning) trial.end = trial.in_world.settled;
  return trial;
}

// Displacement along an axis for +F and −F of each level, as points of one curve.
Curve RampCurve(const ShakeResult& shake, int axis) {
  Curve curve{fmt::format("{}, force along {}", shake.point, kAxes[axis]),
              "measured",
              fmt::format("displacement along {} [m]", kAxes[axis]),
              "force [N]"};
  curve.style = Curve::Style::kPoints;
  for (const ShakeLevel& level : shake.levels) {
    curve.x.push_back(level.plus(axis, axis));
    curve.y.push_back(level.force);
    curve.x.push_back(level.minus(axis, axis));
    curve.y.push_back(-level.force);
  }
  return curve;
}

// A spring as a line through the origin over the force range of `shake`, into its panel.
Curve Spring(const ShakeResult& shake,
             const std::string& label,
             int axis,
             double stiffness,
             Curve::Style style) {
  const double force = shake.levels.back().force;
  Curve curve{fmt::format("{}, force along {}", shake.point, kAxes[axis]),
              label,
              fmt::format("displacement along {} [m]", kAxes[axis]),
              "force [N]",
              {-force / stiffness, force / stiffness},
              {-force, force},
              style};
  return curve;
}

// What one axis' ramps say: measured and predicted in the world; on the base against the spec, too.
void AddRampMetrics(const std::vector<LoadTrial>& trials,
                    const UserBudget& budget,
                    int axis,
                    ExperimentResult* result) {
  const metric::HandLoadMetrics& declared = metric::HandLoad();
  using Point = ShakeResult LoadTrial::*;
  constexpr Point kInWorld = &LoadTrial::in_world, kOnBase = &LoadTrial::on_base;
  const auto measured = [&](Point point, std::size_t level) {
    std::vector<double> values;
    for (const LoadTrial& t : trials) values.push_back(RestingStiffness(t.*point, level, axis));
    return values;
  };
  const auto predicted = [&](Point point, ShakeModel model) {
    std::vector<double> values;
    for (const LoadTrial& t : trials) values.push_back(PredictedStiffness(t.*point, model, axis));
    return values;
  };
  const auto add = [&](const AxisMetrics& family, const std::vector<double>& values) {
    result->metrics.push_back(StiffnessMetric(family[axis], values));
  };
  add(declared.measured_2n, measured(kInWorld, 0));
  add(declared.measured, measured(kInWorld, 1));
  add(declared.measured_40n, measured(kInWorld, 3));
  add(declared.pd, predicted(kInWorld, ShakeModel::kServo));
  add(declared.one_step, predicted(kInWorld, ShakeModel::kOneStep));
  add(declared.static_stiffness, predicted(kInWorld, ShakeModel::kStatic));
  add(declared.static_with_weight, predicted(kInWorld, ShakeModel::kStaticWithWeight));
  add(declared.on_base, measured(kOnBase, 0));
  add(declared.on_base_static_with_weight, predicted(kOnBase, ShakeModel::kStaticWithWeight));
  if (budget.spec.hand[kLeft]) {
    const double spec = (*budget.spec.hand[kLeft])[axis];
    result->metrics.push_back({declared.spec[axis], spec});
    std::vector<double> ratio = measured(kOnBase, 0);
    for (double& r : ratio) r /= spec;
    add(declared.on_base_over_spec, ratio);
  }
}

// One trial's ramps along an axis, and the springs they are compared to.
void AddRampCurves(const std::vector<LoadTrial>& trials,
                   const UserBudget& budget,
                   int which,
                   int axis,
                   ExperimentResult* result) {
  const metric::HandLoadMetrics& declared = metric::HandLoad();
  const ShakeResult &in_world = trials[which].in_world, &on_base = trials[which].on_base;
  const auto add_model = [&](const ShakeResult& shake,
                             ShakeModel model,
                             const AxisMetrics& family,
                             Curve::Style style) {
    const double stiffness = result->Find(family[axis])->samples[which];
    if (!std::isfinite(stiffness)) return;
    result->curves.push_back(Spring(shake, Name(model), axis, stiffness, style));
  };
  if (!in_world.levels.empty()) {
    result->curves.push_back(RampCurve(in_world, axis));
    add_model(
        in_world, ShakeModel::kStaticWithWeight, declared.static_with_weight, Curve::Style::kSolid);
    add_model(in_world, ShakeModel::kOneStep, declared.one_step, Curve::Style::kDotted);
  }
  if (on_base.levels.empty()) return;
  result->curves.push_back(RampCurve(on_base, axis));
  add_model(on_base,
            ShakeModel::kStaticWithWeight,
            declared.on_base_static_with_weight,
            Curve::Style::kSolid);
  if (budget.spec.hand[kLeft]) {
    const double spec = (*budget.spec.hand[kLeft])[axis];
    result->curves.push_back(Spring(on_base, "specified", axis, spec, Curve::Style::kDashed));
    result->curves.back().shared = true;
  }
}

// Says which ramped pushes are left out of the metrics, and why.
void AddRampNotes(const std::vector<LoadTrial>& trials, ExperimentResult* result) {
  int fell_pushed = 0, pushes = 0, unsettled = 0;
  for (int axis = 0; axis < 3; ++axis) {
    for (const LoadTrial& t : trials) {
      for (const ShakeResult* shake : {&t.in_world, &t.on_base}) {
        for (std::size_t l = 0; l < shake->levels.size(); ++l) {
          const auto& ends_of = shake->levels[l].end[axis];
          for (const LoopStatus end : ends_of) {
            ++pushes;
            fell_pushed += end != LoopStatus::kRunning;
          }
          const bool lasted =
              ends_of[0] == LoopStatus::kRunning && ends_of[1] == LoopStatus::kRunning;
          unsettled += lasted && std::isnan(RestingStiffness(*shake, l, axis));
        }
      }
    }
  }
  if (fell_pushed > 0) {
    result->notes.push_back(fmt::format(
        "the robot fell in {} of {} ramped pushes; a stiffness one of whose two pushes ended in a "
        "fall is left out",
        fell_pushed,
        pushes));
  }
  if (unsettled > 0) {
    result->notes.push_back(fmt::format(
        "{} of {} pairs of ramped pushes are left out: the robot stepped, or the hand swayed by "
        "more than it was displaced",
        unsettled,
        pushes / 2));
  }
}

}  // namespace

ExperimentResult RunHandLoad(const Policy& policy,
                             const ExperimentOptions& options,
                             const Progress& progress) {
  // a static stiffness needs a floor that does not creep (LoadOptions::firm_contacts)
  const RobotModel robot = LoadRobot(options, {.firm_contacts = true});
  NeedHands(robot);
  const UserBudget budget = options.Budget();
  std::vector<LoadTrial> trials(NumTrials(options));
  ForTrials(options, progress, [&](int k, const TrialDraw& draw) {
    trials[k] = RunLoadTrial(robot, policy, draw, k == 0 ? options.watch : nullptr);
  });

  const metric::HandLoadMetrics& declared = metric::HandLoad();
  ExperimentResult result;
  const std::vector<LoopStatus> ends = EndsOf(trials);
  std::vector<LoadStep> steps;
  for (const LoadTrial& t : trials) steps.push_back(t.step);
  int restless = 0, refused = 0;
  for (const LoadTrial& t : trials) {
    restless += t.step.sway > 0.2 * std::abs(kLoadForce / t.step.stiffness);
    refused += t.end == LoopStatus::kRunning && std::isnan(t.step.stiffness);
  }
  const int which = FirstLasting(ends);
  const LoadTrial& shown = trials[which];
  result.metrics = {
      StiffnessMetric(declared.step_stiffness_z, SamplesOf(steps, &LoadStep::stiffness)),
      MeanMetric(declared.step_response_time, SamplesOf(steps, &LoadStep::response)),
      MeanMetric(declared.step_sway, SamplesOf(steps, &LoadStep::sway))};
  if (refused > 0) {
    result.notes.push_back(
        fmt::format("in {} of {} trials the robot stepped under the load, or its hand moved about "
                    "by more than it gave way: no static stiffness, left out",
                    refused,
                    trials.size()));
  }
  if (restless > 0) {
    result.notes.push_back(
        fmt::format("in {} of {} trials the loaded hand goes on moving by more than a fifth of its "
                    "displacement: the step's stiffness is that of a mean position",
                    restless,
                    trials.size()));
  }

  for (int axis = 0; axis < 3; ++axis) {
    AddRampMetrics(trials, budget, axis, &result);
    AddRampCurves(trials, budget, which, axis, &result);
  }
  AddSurvival(declared, ends, &result);
  AddRampNotes(trials, &result);
  // statuses of the predictions, once each
  for (const ShakePrediction& p : shown.in_world.predictions) {
    if (p.status != StiffnessStatus::kOk) {
      result.notes.push_back(fmt::format("{}: {}", p.name, Describe(p.status)));
    }
  }
  if (!shown.in_world.predictions.empty()) {
    result.metrics.push_back({declared.action_loop_radius, shown.in_world.loop.rho});
    result.metrics.push_back({declared.sway, shown.in_world.sway});
  }
  result.settings = {
      {"load", fmt::format("{:g} N along z at the left hand", kLoadForce)},
      {"settling", "4 to 5 s standing before the load or a ramp, drawn per trial"},
      {"load held", fmt::format("{:g} s, last {:g} s averaged", kHold, kWindow)},
      {"ramps",
       "along x, y, z: ±2, ±10, ±20, ±40 N at the hand in the world, ±10 N between base and hand; "
       "1.5 s up, 3 s held, last 1 s averaged"},
      {"trials per seed", std::to_string(options.episodes)}};
  Curve curve{
      kStepPanel, "", "time after the load [s]", "z − unloaded twin's [m]", shown.time, shown.z};
  Thin(&curve.x, &curve.y);
  result.curves.insert(result.curves.begin(), std::move(curve));
  return result;
}

}  // namespace silc
