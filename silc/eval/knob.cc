// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <mutex>
#include <optional>

#include "silc/base/error.h"
#include "silc/base/nan.h"
#include "silc/base/thread_pool.h"
#include "silc/eval/experiment_metrics.h"
#include "silc/eval/experiments.h"
#include "silc/eval/trial.h"
#include "silc/observe/shake.h"
#include "silc/robot/kinematics.h"
#include "silc/stiffness/observer.h"
#include "silc/stiffness/task_stiffness.h"

namespace silc {
namespace {

constexpr int kSweepTrials = 3;                // trials of a seed in which values are pushed
constexpr double kGiveWay = 0.02;              // [m] that a push is meant to displace
constexpr double kMinPush = 4, kMaxPush = 30;  // [N]
constexpr double kWatched = 4;  // [s] in which σ is looked at, every kEvery control steps
constexpr int kEvery = 5;
constexpr double kWalkSpeed = 0.5;       // [m/s]
constexpr double kLoad = -20;            // [N] along z of W, at the left hand
constexpr double kLoadLead = 2;          // [s] that the load is on before the command steps
constexpr double kAfter = 3;             // [s] watched after a step of the command
constexpr double kSettled = 1;           // [s] after which what is there counts as final
constexpr double kLeastChange = 0.0953;  // ln 1.1: less is no answer to a command
constexpr double kLeastMove = 2e-3;      // [m] of the loaded hand, likewise
const char* const kAxisNames[] = {"x", "y", "z"};

// What is turned: one number, or all three together.
enum class Knob { kCom, kHands, kAll };
constexpr Knob kKnobs[] = {Knob::kCom, Knob::kHands, Knob::kAll};

enum Situation { kStanding, kWalking, kLoaded, kNumSituations };

PolicyCommand CommandOf(int situation) {
  PolicyCommand command = StandCommand();
  if (situation == kWalking) {
    command.lin_vel.x() = kWalkSpeed;
    command.walk = 1;
  }
  return command;
}

// The budget with its ranges: that of the experiment, which is plain, and what is commanded of it.
BudgetSpec RangesOf(const ExperimentOptions& options) {
  BudgetSpec spec = options.Budget().spec;
  spec.command = options.command;
  return spec;
}

void Turn(const BudgetCommand& command, Knob knob, double share, BudgetValues* values) {
  for (int i = 0; i < kNumCommanded; ++i) {
    const bool turned =
        knob == Knob::kAll || i == (knob == Knob::kCom ? kCommandCom : kCommandHands);
    if (!turned || !command.range[i]) continue;
    const BudgetRange& range = *command.range[i];
    (*values)[i] = range.low * std::pow(range.high / range.low, share);
  }
}

// One control step after the other, and what the policy makes of the robot at those asked for.
class Watch {
 public:
  Watch(const RobotModel& robot, const Servo& servo, const BudgetSpec& budget)
      : robot_(robot), tracker_(MakeContactTracker(robot)), observer_(OptionsFor(servo, budget)) {}

  /// @param look  observe this moment
  LoopStatus Step(ClosedLoop* loop, bool look) {
    loop->TrackContacts(&tracker_);
    const LoopStatus status = NeedFinite(*loop, loop->Decide());
    if (status != LoopStatus::kRunning) return status;
    reading_ = nullptr;
    if (look && loop->policy().StaticJacobians(&jacobians_) == PolicyStatus::kOk) {
      ComputeBodyJacobians(robot_, loop->data(), &body_);
      reading_ = &observer_.Observe(jacobians_, body_, tracker_.mode());
    }
    return loop->Advance();
  }
  /// [1] σ of the budget at the moment looked at; infinite where it cannot be judged.
  double Sigma() const {
    const bool judged = reading_ && reading_->quasi_static.status == StiffnessStatus::kOk;
    return judged ? reading_->quasi_static.sigma : HUGE_VAL;
  }
  /// [N/m] Geometric mean over the commanded axes of the judged stiffness at a point: x and y of
  /// the centre of mass, x, y and z of the left hand against the base. NaN where there is none.
  double Stiffness(Knob point) const {
    if (!reading_ || reading_->judged_status != StiffnessStatus::kOk) return kNan;
    const ContactKinematics& contact = observer_.contact();
    if (point == Knob::kCom && contact.mode == ContactMode::kFlight) return kNan;
    const Jacobian3& J = point == Knob::kCom ? contact.com : contact.hand_on_base[kLeft];
    const ConstMatrix N(contact.N);
    TaskStiffness task;
    if (ComputeTaskStiffness(
            J, reading_->K_judged, contact.closed ? &N : nullptr, nullptr, &task) !=
        StiffnessStatus::kOk) {
      return kNan;
    }
    const int axes = point == Knob::kCom ? 2 : 3;
    const double product = task.one_axis.head(axes).prod();
    return product > 0 ? std::pow(product, 1.0 / axes) : kNan;
  }

 private:
  static ObserverOptions OptionsFor(const Servo& servo, const BudgetSpec& budget) {
    ObserverOptions options;
    options.servo = servo;
    options.budget = budget;
    return options;
  }
  const RobotModel& robot_;
  ContactModeTracker tracker_;
  StiffnessObserver observer_;
  PolicyJacobians jacobians_;
  BodyJacobians body_;
  const StiffnessReading* reading_ = nullptr;
};

// ---- values of the command, one after the other ----

struct SweepRun {
  double commanded = kNan;  // [N/m]
  std::array<LoopStatus, 2> end = {LoopStatus::kRunning, LoopStatus::kRunning};
  ShakeResult shake;
  // standing, walking: as many in every run; infinite where it had fallen
  std::array<std::vector<double>, 2> sigma;
};

SweepRun RunValue(const RobotModel& robot,
                  Policy policy,
                  const BudgetSpec& ranges,
                  Knob knob,
                  double share,
                  const TrialDraw& draw) {
  SweepRun run;
  BudgetValues values = MiddleOf(ranges.command);
  Turn(ranges.command, knob, share, &values);
  run.commanded = values[knob == Knob::kCom ? kCommandCom : kCommandHands];
  policy.SetBudget(values);
  for (const int situation : {kWalking, kStanding}) {
    ClosedLoop loop = MakeLoop(robot, policy, CommandOf(situation), draw);
    LoopStatus& end = run.end[situation];
    end = RunFor(&loop, SettleTime(draw, loop.period()));
    Watch watch(robot, loop.options().servo, BudgetAt(ranges, values));
    const int steps = static_cast<int>(std::lround(kWatched / loop.period()));
    std::vector<double>& sigma = run.sigma[situation];
    for (int k = 0; k < steps && end == LoopStatus::kRunning; ++k) {
      const bool look = k % kEvery == 0;
      end = watch.Step(&loop, look);
      if (look && end == LoopStatus::kRunning) sigma.push_back(watch.Sigma());
    }
    // moments that a fallen robot did not have are over: left out, a fall would look soft
    sigma.resize((steps + kEvery - 1) / kEvery, HUGE_VAL);
    if (situation == kWalking || end != LoopStatus::kRunning) continue;
    ShakeOptions shake;
    shake.point = knob == Knob::kCom ? Push::Point::kCom : Push::Point::kLeftHandOnBase;
    shake.forces = {std::clamp(kGiveWay * run.commanded, kMinPush, kMaxPush)};
    shake.settle = loop.period();  // it has settled already
    run.shake = Shake(loop, shake);
    end = run.shake.settled;
  }
  return run;
}

// ---- steps of the command ----

struct StepRun {
  LoopStatus end = LoopStatus::kRunning;
  double settling = kNan;  // [s] until the stiffness has made 90 % of its change
  double moving = kNan;    // [s] until the loaded hand has
  bool answered = true;    // the stiffness changed at all
  std::vector<double> time, ratio;
};

// [s] The first moment at which `values` have made 90 % of their way to their mean from kSettled
// on. NaN where that is less than `least` away from 0.
double TimeTo90(const std::vector<double>& time, const std::vector<double>& values, double least) {
  double final = 0;
  int n = 0;
  for (std::size_t k = 0; k < time.size(); ++k) {
    if (time[k] < kSettled || std::isnan(values[k])) continue;
    final += values[k];
    ++n;
  }
  if (n == 0) return kNan;
  final /= n;
  if (std::abs(final) < least) return kNan;
  for (std::size_t k = 0; k < time.size(); ++k) {
    if (values[k] / final >= 0.9) return time[k];
  }
  return kNan;
}

StepRun RunStep(const RobotModel& robot,
                Policy policy,
                const BudgetSpec& ranges,
                Knob knob,
                int situation,
                bool up,
                const TrialDraw& draw) {
  StepRun run;
  BudgetValues from = MiddleOf(ranges.command), to = from;
  Turn(ranges.command, knob, up ? 0 : 1, &from);
  Turn(ranges.command, knob, up ? 1 : 0, &to);
  policy.SetBudget(from);
  ClosedLoop stepped = MakeLoop(robot, policy, CommandOf(situation), draw);
  run.end = RunFor(&stepped, SettleTime(draw, stepped.period()));
  if (run.end == LoopStatus::kRunning && situation == kLoaded) {
    stepped.SetPush({Push::Point::kLeftHand, {0, 0, kLoad}});
    run.end = RunFor(&stepped, kLoadLead);
  }
  if (run.end != LoopStatus::kRunning) return run;

  // the same robot, still told the old command: what sway and gait do to both is no answer
  ClosedLoop twin(stepped);
  PolicyCommand command = CommandOf(situation);
  command.budget = to;
  stepped.SetCommand(command);
  const Servo& servo = stepped.options().servo;
  Watch watch(robot, servo, BudgetAt(ranges, to)), twin_watch(robot, servo, BudgetAt(ranges, from));
  const Knob point = knob == Knob::kCom ? Knob::kCom : Knob::kHands;
  const double start = stepped.time();
  std::vector<double> moved;
  bool alone = false;  // the twin has fallen
  const int steps = static_cast<int>(std::lround(kAfter / stepped.period()));
  for (int k = 0; k < steps; ++k) {
    // what is observed is the moment before the physics moves on
    const double time = stepped.time() - start;
    run.end = watch.Step(&stepped, true);
    if (run.end != LoopStatus::kRunning) return run;
    alone = alone || twin_watch.Step(&twin, true) != LoopStatus::kRunning;
    if (alone) continue;
    run.time.push_back(time);
    run.ratio.push_back(std::log(watch.Stiffness(point) / twin_watch.Stiffness(point)));
    moved.push_back(stepped.HandPosition(kLeft).z() - twin.HandPosition(kLeft).z());
  }
  run.settling = TimeTo90(run.time, run.ratio, kLeastChange);
  run.answered = !std::isnan(run.settling);
  if (situation == kLoaded && knob != Knob::kCom) {
    run.moving = TimeTo90(run.time, moved, kLeastMove);
  }
  return run;
}

// ---- all of it ----

struct KnobRuns {
  int sweep_trials = 0, step_trials = 0;
  // [point: com, hands][value][trial]
  std::array<std::vector<std::vector<SweepRun>>, 2> sweep;
  // [situation][knob][up] of each trial
  std::array<std::array<std::array<std::vector<StepRun>, 2>, 3>, kNumSituations> step;
};

KnobRuns RunAll(const RobotModel& robot,
                const Policy& policy,
                const BudgetSpec& ranges,
                const ExperimentOptions& options,
                const Progress& progress) {
  KnobRuns runs;
  std::vector<std::function<void()>> jobs;
  const auto trials = [&](int of_seed) {
    std::vector<TrialDraw> draws;
    for (const std::uint64_t seed : options.seeds) {
      for (int k = 0; k < of_seed; ++k) draws.push_back({seed, k});
    }
    return draws;
  };
  const std::vector<TrialDraw> pushed = trials(std::min(options.episodes, kSweepTrials));
  const std::vector<TrialDraw> all = trials(options.episodes);
  runs.sweep_trials = static_cast<int>(pushed.size());
  runs.step_trials = static_cast<int>(all.size());
  const auto turns = [&](Knob knob) {
    const auto& range = ranges.command.range;
    return knob == Knob::kAll || range[knob == Knob::kCom ? kCommandCom : kCommandHands];
  };
  for (const Knob knob : {Knob::kCom, Knob::kHands}) {
    if (!turns(knob)) continue;
    auto& sweep = runs.sweep[static_cast<int>(knob)];
    sweep.assign(options.values, std::vector<SweepRun>(pushed.size()));
    for (int value = 0; value < options.values; ++value) {
      const double share = value / double(options.values - 1);
      std::vector<SweepRun>& to = sweep[value];
      for (std::size_t k = 0; k < pushed.size(); ++k) {
        jobs.push_back([&, knob, share, k] {
          to[k] = RunValue(robot, policy, ranges, knob, share, pushed[k]);
        });
      }
    }
  }
  for (int situation = 0; situation < kNumSituations; ++situation) {
    for (const Knob knob : kKnobs) {
      if (!turns(knob)) continue;
      for (const bool up : {false, true}) {
        std::vector<StepRun>& to = runs.step[situation][static_cast<int>(knob)][up];
        to.resize(all.size());
        for (std::size_t k = 0; k < all.size(); ++k) {
          jobs.push_back([&, situation, knob, up, k] {
            to[k] = RunStep(robot, policy, ranges, knob, situation, up, all[k]);
          });
        }
      }
    }
  }
  std::mutex mutex;
  int done = 0;
  ThreadPool pool(std::max(1, std::min(options.threads, static_cast<int>(jobs.size()))));
  pool.ParallelFor(static_cast<int>(jobs.size()), [&](int, int k) {
    jobs[k]();
    const std::lock_guard<std::mutex> lock(mutex);
    if (progress) progress(static_cast<double>(++done) / static_cast<double>(jobs.size()));
  });
  return runs;
}

// [N/m] 1/mean(1/k) over the trials that have one.
double PooledStiffness(const std::vector<SweepRun>& trials,
                       const std::function<double(const SweepRun&)>& of) {
  double compliance = 0;
  int n = 0;
  for (const SweepRun& t : trials) {
    const double k = of(t);
    if (std::isnan(k)) continue;
    compliance += 1 / k;
    ++n;
  }
  return n > 0 ? n / compliance : kNan;
}

// [%] of the moments with σ ≤ 1; a moment that cannot be judged, or was lost to a fall, is over.
double ShareWithin(const std::vector<SweepRun>& trials, int situation) {
  double within = 0, n = 0;
  for (const SweepRun& t : trials) {
    for (const double sigma : t.sigma[situation]) {
      within += sigma <= 1 ? 1 : 0;
      ++n;
    }
  }
  return n > 0 ? 100 * within / n : kNan;
}

// One point of the sweep: metrics and curves.
void AddSweep(const KnobRuns& runs, Knob point, ExperimentResult* result) {
  const metric::KnobMetrics& declared = metric::Knob();
  const bool com = point == Knob::kCom;
  const metric::KnobMetrics::Point& into = com ? declared.com : declared.hand_on_base;
  const std::string place = com ? "centre of mass" : "left hand against the base";
  const std::string x_label = "commanded [N/m]";
  const auto& sweep = runs.sweep[static_cast<int>(point)];
  if (sweep.empty()) return;
  std::array<Curve, 2> within;
  for (int situation = 0; situation < 2; ++situation) {
    within[situation] = {place + ", moments with σ ≤ 1",
                         situation == kStanding ? "standing" : "walking",
                         x_label,
                         "share [%]"};
    within[situation].log_x = true;
  }
  const int commanded_axes = com ? 2 : 3;
  int rising = 0, pairs = 0;
  std::vector<double> over_model;
  for (int axis = 0; axis < 3; ++axis) {
    const bool commanded_axis = axis < commanded_axes;
    Curve measured{
        fmt::format("{}, {}", place, kAxisNames[axis]), "measured", x_label, "stiffness [N/m]"};
    measured.log_x = measured.log_y = true;
    Curve model = measured, line = measured;
    measured.style = Curve::Style::kPoints;
    model.label = Name(ShakeModel::kStaticWithWeight);
    line.label = "commanded";
    line.style = Curve::Style::kDashed;
    line.shared = true;
    double most = kNan, least = kNan;
    for (const std::vector<SweepRun>& trials : sweep) {
      const double k = PooledStiffness(
          trials, [&](const SweepRun& t) { return RestingStiffness(t.shake, 0, axis); });
      const double predicted = PooledStiffness(trials, [&](const SweepRun& t) {
        return PredictedStiffness(t.shake, ShakeModel::kStaticWithWeight, axis);
      });
      const double commanded = trials[0].commanded;
      for (Curve* curve : {&measured, &model, &line}) curve->x.push_back(commanded);
      if (!measured.y.empty() && commanded_axis) {
        ++pairs;
        rising += k > measured.y.back();
      }
      measured.y.push_back(k);
      model.y.push_back(predicted);
      line.y.push_back(commanded);
      most = std::fmax(most, k / commanded);
      least = std::fmin(least, k / commanded);
      if (std::isfinite(k / predicted)) over_model.push_back(k / predicted);
    }
    if (commanded_axis) {
      result->metrics.push_back({into.most[axis], most});
      result->metrics.push_back({into.least[axis], least});
      result->metrics.push_back({into.span[axis], measured.y.back() / measured.y.front()});
      result->curves.push_back(line);
    }
    result->curves.push_back(measured);
    result->curves.push_back(model);
  }
  double worst[2] = {kNan, kNan};
  for (const std::vector<SweepRun>& trials : sweep) {
    for (int situation = 0; situation < 2; ++situation) {
      const double share = ShareWithin(trials, situation);
      within[situation].x.push_back(trials[0].commanded);
      within[situation].y.push_back(share);
      worst[situation] = std::fmin(worst[situation], share);
    }
  }
  result->metrics.push_back({into.monotone, pairs > 0 ? 100.0 * rising / pairs : kNan});
  result->metrics.push_back(MedianMetric(into.over_model, over_model));
  result->metrics.push_back({into.within_standing, worst[kStanding]});
  result->metrics.push_back({into.within_walking, worst[kWalking]});
  result->curves.insert(result->curves.end(), within.begin(), within.end());
}

void AddSteps(const KnobRuns& runs, ExperimentResult* result) {
  const metric::KnobMetrics& declared = metric::Knob();
  std::vector<LoopStatus> ends;
  std::vector<double> moving;
  int silent = 0;
  for (int situation = 0; situation < kNumSituations; ++situation) {
    const metric::KnobMetrics::Steps& into = situation == kStanding  ? declared.standing
                                             : situation == kWalking ? declared.walking
                                                                     : declared.loaded;
    std::vector<double> settling;
    int fell = 0, n = 0;
    for (const Knob knob : kKnobs) {
      for (const bool up : {false, true}) {
        for (const StepRun& run : runs.step[situation][static_cast<int>(knob)][up]) {
          ends.push_back(run.end);
          ++n;
          fell += run.end != LoopStatus::kRunning;
          silent += run.end == LoopStatus::kRunning && !run.answered;
          settling.push_back(run.settling);
          moving.push_back(run.moving);
        }
      }
    }
    result->metrics.push_back(MedianMetric(into.settling, settling));
    std::erase_if(settling, [](double s) { return std::isnan(s); });
    std::sort(settling.begin(), settling.end());
    Metric p95{into.settling_p95};
    p95.n = static_cast<int>(settling.size());
    if (!settling.empty()) p95.value = settling[(settling.size() - 1) * 95 / 100];
    result->metrics.push_back(p95);
    result->metrics.push_back(ShareMetric(into.falls, fell, n));
    const auto& shown = runs.step[situation][static_cast<int>(Knob::kAll)][true];
    const char* const names[] = {"standing", "walking", "loaded"};
    Curve curve{"all three from the low to the high end, left hand",
                names[situation],
                "time after the step [s]",
                "stiffness / the unchanged twin's [1]",
                shown[0].time,
                shown[0].ratio};
    for (double& y : curve.y) y = std::exp(y);
    result->curves.push_back(std::move(curve));
  }
  result->metrics.push_back(MedianMetric(declared.loaded_displacement, moving));
  AddSurvival(declared, ends, result);
  if (silent > 0) {
    result->notes.push_back(
        fmt::format("in {} of {} steps of the command the stiffness changed by less than a tenth, "
                    "or could not be read: they have no settling time",
                    silent,
                    ends.size()));
  }
}

}  // namespace

ExperimentResult RunKnob(const Policy& policy,
                         const ExperimentOptions& options,
                         const Progress& progress) {
  const auto& range = options.command.range;
  if (!policy.sees_budget() || !(range[kCommandCom] || range[kCommandHands])) {
    throw ConfigError(
        "knob: needs a policy that is told its budget, trained under one with a range for com or "
        "hands, as --mode command has");
  }
  // a static stiffness needs a floor that does not creep (LoadOptions::firm_contacts)
  const RobotModel robot = LoadRobot(options, {.firm_contacts = true});
  NeedHands(robot);
  const KnobRuns runs = RunAll(robot, policy, RangesOf(options), options, progress);
  ExperimentResult result;
  AddSweep(runs, Knob::kCom, &result);
  AddSweep(runs, Knob::kHands, &result);
  AddSteps(runs, &result);
  int all = 0, restless = 0;
  std::array<int, 2> fell = {0, 0};
  for (const auto& point : runs.sweep) {
    for (const std::vector<SweepRun>& trials : point) {
      for (const SweepRun& t : trials) {
        ++all;
        for (const int situation : {kStanding, kWalking}) {
          fell[situation] += t.end[situation] != LoopStatus::kRunning;
        }
        for (int axis = 0; axis < 3; ++axis) {
          restless += !t.shake.levels.empty() && std::isnan(RestingStiffness(t.shake, 0, axis));
        }
      }
    }
  }
  if (fell[kStanding] > 0) {
    result.notes.push_back(
        fmt::format("standing, the robot fell in {} of {} trials of the values: no stiffness is "
                    "measured there, and the moments that were lost count as over the budget",
                    fell[kStanding],
                    all));
  }
  if (fell[kWalking] > 0) {
    result.notes.push_back(
        fmt::format("walking, the robot fell in {} of {} trials of the values: the moments that "
                    "were lost count as over the budget",
                    fell[kWalking],
                    all));
  }
  if (restless > 0) {
    result.notes.push_back(fmt::format(
        "{} of {} pairs of pushes are left out: the robot stepped, fell, or swayed by more than "
        "it was displaced",
        restless,
        3 * all));
  }
  result.settings = {
      {"values",
       fmt::format("{} of com and of hands, geometric over their ranges, the other "
                   "numbers at the middle; {} trials each",
                   options.values,
                   runs.sweep_trials)},
      {"pushes",
       fmt::format("along x, y, z at the centre of mass, and between base and left hand; 2 cm at "
                   "the commanded stiffness, {:g} to {:g} N; 1.5 s up, 3 s held, last 1 s averaged",
                   kMinPush,
                   kMaxPush)},
      {"σ",
       fmt::format("{:g} s of standing and of walking at {:g} m/s, every {} control steps",
                   kWatched,
                   kWalkSpeed,
                   kEvery)},
      {"steps",
       fmt::format("from one end of the range to the other, of com, of hands, of all "
                   "three; {} trials each way, standing, walking, and with {:g} N on the "
                   "left hand",
                   runs.step_trials,
                   kLoad)},
      {"trials per seed", std::to_string(options.episodes)}};
  return result;
}

}  // namespace silc
