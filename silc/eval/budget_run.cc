// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "silc/base/error.h"
#include "silc/config/budget_file.h"
#include "silc/eval/bootstrap.h"
#include "silc/eval/experiment_metrics.h"
#include "silc/eval/experiments.h"
#include "silc/eval/trial.h"
#include "silc/robot/kinematics.h"
#include "silc/stiffness/observer.h"
#include "silc/stiffness/quadratic_form.h"
#include "silc/task/reach_table.h"

namespace silc {
namespace {

constexpr double kBudgetWarmUp = 2;  // [s] of stepping before
constexpr int kDirections = 64;      // random unit vectors per control step
const char kFormPanel[] = "K₁, worst of 64 random directions";
const char kWorstPanel[] = "worst direction of all";

struct Sample {
  double time = 0;
  ContactMode mode = ContactMode::kDoubleSupport;
  QuadraticFormTest one_step;  // on K₁, directions of this step
  QuadraticFormTest shown;     // on K₁, the same directions at every step: for the curve
  double worst_one_step = NAN, worst_static = HUGE_VAL;  // [1] λ_max
  double sigma_paper = NAN, disc = HUGE_VAL;             // [1] (S7a) on K₁, (S7c) on K_s
  double own = HUGE_VAL;  // [1] the budget's condition on K_s: `disc` where that is the disc
  bool sound = false;
};

struct BudgetTrial {
  LoopStatus end = LoopStatus::kRunning;
  std::vector<Sample> samples;
};

// Arm references as in training, for policies that take one.
class MovingArms {
 public:
  MovingArms(const OwnedReachTable& table,
             const RobotSpec& robot,
             const Policy& policy,
             const TrialDraw& draw)
      : table_(table.view()),
        arms_(robot.Actor("upper").joints),
        q_ref_(policy.default_pose()),
        draw_(draw) {
    TaskConfig::Arms arms;
    arms.fixed_prob = 0;
    Draw d = MakeDraw();
    ResetArms(arms, table_, motions_, d, &state_);
  }
  const Eigen::VectorXd& Next(double dt) {
    TaskConfig::Arms arms;
    arms.fixed_prob = 0;
    Draw d = MakeDraw();
    AdvanceArms(arms, table_, motions_, static_cast<float>(dt), d, &state_);
    for (std::size_t j = 0; j < arms_.size(); ++j) q_ref_[arms_[j]] = state_.ref[j];
    return q_ref_;
  }

 private:
  Draw MakeDraw() { return Draw(draw_.seed, draw_.trial, count_++, DrawPurpose::kArm); }

  ReachTable table_;
  std::vector<int> arms_;  // the robot's joints that the table is of
  MotionTable motions_{nullptr, nullptr, 0};
  ArmState state_{};
  Eigen::VectorXd q_ref_;
  TrialDraw draw_;
  std::uint32_t count_ = 0;
};

BudgetTrial RunBudgetTrial(const RobotModel& robot,
                           const Policy& policy,
                           const OwnedReachTable* reaches,
                           const BudgetSpec& budget,
                           const ExperimentOptions& options,
                           const TrialDraw& draw,
                           const std::function<void(const RobotModel&, const mjData&)>& watch) {
  BudgetTrial trial;
  ClosedLoop loop = MakeLoop(robot, policy, StepCommand(policy), draw);
  std::optional<MovingArms> arms;
  if (reaches != nullptr) arms.emplace(*reaches, robot.spec(), policy, draw);

  ObserverOptions observe;
  observe.servo = loop.options().servo;
  observe.budget = budget;
  const ObserverOptions own_options = observe;
  observe.budget.condition = Condition::kDisc;
  ObserverOptions paper_options = observe;
  paper_options.one_step_sigma = true;
  paper_options.budget.condition = Condition::kOneSided;
  paper_options.budget.hand_floor.setZero();  // which (S7a) does not have
  StiffnessObserver disc(observe), own(own_options), paper(paper_options);
  PolicyJacobians jacobians;
  BodyJacobians body;
  ContactModeTracker tracker = MakeContactTracker(robot);

  const int steps =
      static_cast<int>(std::lround((kBudgetWarmUp + options.seconds) / loop.period()));
  for (int step = 0; step < steps; ++step) {
    loop.TrackContacts(&tracker);
    if (arms) loop.SetReference(arms->Next(loop.period()));
    trial.end = NeedFinite(loop, loop.Decide());
    if (trial.end != LoopStatus::kRunning) break;
    if (loop.time() >= kBudgetWarmUp - 1e-9 &&
        loop.policy().StaticJacobians(&jacobians) == PolicyStatus::kOk) {
      Sample s;
      s.time = loop.time() - kBudgetWarmUp;
      s.mode = tracker.mode();
      ComputeBodyJacobians(robot, loop.data(), &body);
      const StiffnessReading& reading = disc.Observe(jacobians, body, s.mode);
      s.sound = reading.quasi_static.status == StiffnessStatus::kOk;
      if (s.sound) {
        s.worst_static = reading.quasi_static.worst;
        s.disc = s.own = reading.quasi_static.sigma;
      }
      if (s.sound && budget.condition != Condition::kDisc) {
        s.own = own.Observe(jacobians, body, s.mode).quasi_static.sigma;
      }
      // the paper's test, on the paper's stiffness
      ReducedBudget reduced;
      const ContactKinematics& contact = disc.contact();
      if (reading.contact_status == StiffnessStatus::kOk &&
          ComputeReducedBudget(budget, observe.servo, contact, &reduced) == StiffnessStatus::kOk) {
        if (reading.one_step_status == StiffnessStatus::kOk) {
          JointMatrix K_z = reading.K_1;
          if (contact.closed) K_z = contact.N.transpose() * reading.K_1 * contact.N;
          Rng fresh = draw.Stream(100 + step), fixed = draw.Stream(99);
          s.one_step = TestQuadraticForm(K_z, reduced.M, kDirections, &fresh);
          s.shown = TestQuadraticForm(K_z, reduced.M, kDirections, &fixed);
        }
      }
      // K₁ against the paper's budget, which has no floor
      const BudgetReading& printed = paper.Observe(jacobians, body, s.mode).one_step;
      s.sigma_paper = printed.sigma;
      s.worst_one_step = printed.worst;
      trial.samples.push_back(s);
    }
    trial.end = loop.Advance();
    if (watch) watch(robot, *loop.data());
    if (trial.end != LoopStatus::kRunning) break;
  }
  return trial;
}

// p-quantile with infinities, of the samples of some trials; the bootstrap's units are trials.
template <class Value, class Filter>
Metric QuantileMetric(MetricHandle what,
                      const std::vector<BudgetTrial>& trials,
                      double p,
                      Value value,
                      Filter filter) {
  const auto of = [&](std::span<const int> index) {
    std::vector<double> values;
    for (const int i : index) {
      for (const Sample& s : trials[i].samples) {
        if (filter(s) && !std::isnan(value(s))) values.push_back(value(s));
      }
    }
    if (values.empty()) return double(NAN);
    const auto at = values.begin() + std::lround(p * double(values.size() - 1));
    std::nth_element(values.begin(), at, values.end());
    return *at;
  };
  std::vector<int> all;
  for (std::size_t i = 0; i < trials.size(); ++i) all.push_back(static_cast<int>(i));
  Metric metric{what};
  metric.value = of(all);
  for (const BudgetTrial& t : trials) {
    for (const Sample& s : t.samples) metric.n += filter(s) ? 1 : 0;
  }
  const Interval interval = Bootstrap(static_cast<int>(trials.size()), of, 1, 300);
  metric.low = interval.low;
  metric.high = interval.high;
  return metric;
}

}  // namespace

ExperimentResult RunBudget(const Policy& policy,
                           const ExperimentOptions& options,
                           const Progress& progress) {
  const RobotModel robot = LoadRobot(options);
  const BudgetSpec budget = options.Budget().spec;
  ExperimentResult result;

  bool follows = false;
  for (const ObservationTerm& term : policy.layout().terms) {
    follows = follows || term.source == TermSource::kRefJointPos;
  }
  std::optional<OwnedReachTable> reaches;
  const bool arms = std::any_of(robot.spec().actors.begin(),
                                robot.spec().actors.end(),
                                [](const JointGroup& actor) { return actor.name == "upper"; });
  if (follows && arms) reaches = MakeReachTable(robot);
  if (!reaches)
    result.notes.push_back("the policy takes no arm reference: its arms move as it will");

  std::vector<BudgetTrial> trials(NumTrials(options));
  ForTrials(options, progress, [&](int k, const TrialDraw& draw) {
    trials[k] = RunBudgetTrial(robot,
                               policy,
                               reaches ? &*reaches : nullptr,
                               budget,
                               options,
                               draw,
                               k == 0 ? options.watch : nullptr);
  });

  const metric::BudgetMetrics& declared = metric::Budget();
  const std::vector<LoopStatus> ends = EndsOf(trials);
  const auto trial_share = [&](auto count, auto total) {
    std::vector<double> shares;
    for (const BudgetTrial& t : trials) {
      double k = 0, n = 0;
      for (const Sample& s : t.samples) {
        k += count(s);
        n += total(s);
      }
      shares.push_back(n > 0 ? 100 * k / n : NAN);
    }
    return shares;
  };
  const auto one = [](const Sample&) { return 1; };
  const auto any = [](const Sample&) { return true; };
  result.metrics = {
      MeanMetric(declared.random_direction_violations_one_step,
                 trial_share([](const Sample& s) { return s.one_step.violations; },
                             [](const Sample& s) { return s.one_step.samples; })),
      MeanMetric(declared.random_direction_moments_one_step,
                 trial_share([](const Sample& s) { return s.one_step.violations > 0; }, one)),
      MeanMetric(declared.worst_moments_one_step,
                 trial_share([](const Sample& s) { return !(s.worst_one_step <= 1); }, one)),
      MeanMetric(declared.worst_moments_static,
                 trial_share([](const Sample& s) { return !(s.worst_static <= 1); }, one)),
      MeanMetric(declared.disc_violations,
                 trial_share([](const Sample& s) { return !(s.disc <= 1); }, one)),
      MeanMetric(declared.judged_share, trial_share([](const Sample& s) { return s.sound; }, one))};
  if (budget.condition != Condition::kDisc) {
    result.metrics.push_back(
        MeanMetric(declared.condition_violations,
                   trial_share([](const Sample& s) { return !(s.own <= 1); }, one)));
    result.metrics.push_back(QuantileMetric(
        declared.condition_p99, trials, 0.99, [](const Sample& s) { return s.own; }, any));
  }
  using Declared = metric::BudgetMetrics;
  const auto quantiles = [&](const Declared::Quantiles& into, auto filter) {
    const auto add = [&](MetricHandle what, auto value) {
      result.metrics.push_back(QuantileMetric(what, trials, 0.99, value, filter));
    };
    add(into.worst_one_step_p99, [](const Sample& s) { return s.worst_one_step; });
    add(into.worst_static_p99, [](const Sample& s) { return s.worst_static; });
    add(into.sigma_paper_p99, [](const Sample& s) { return s.sigma_paper; });
    add(into.disc_p99, [](const Sample& s) { return s.disc; });
  };
  quantiles(declared.all, any);
  struct Group {
    const Declared::InMode& into;
    bool (*in)(ContactMode);
  };
  const Group groups[] = {
      {declared.double_support, [](ContactMode m) { return m == ContactMode::kDoubleSupport; }},
      {declared.single_support,
       [](ContactMode m) {
         return m == ContactMode::kLeftSupport || m == ContactMode::kRightSupport;
       }},
      {declared.flight, [](ContactMode m) { return m == ContactMode::kFlight; }}};
  for (const Group& group : groups) {
    const auto in = [&](const Sample& s) { return group.in(s.mode); };
    result.metrics.push_back(MeanMetric(group.into.moments, trial_share(in, one)));
    if (result.metrics.back().value > 0) quantiles(group.into.quantiles, in);
  }
  AddSurvival(declared, ends, &result);

  // curves of the first trial
  const char kTime[] = "time [s]";
  Curve form{kFormPanel, "δqᵀK₁δq", kTime, "quadratic form [N·m·rad]"}, bound = form;
  bound.label = "budget δqᵀMδq";
  bound.style = Curve::Style::kDashed;
  Curve over = form;
  over.label = "over budget";
  over.style = Curve::Style::kPoints;
  Curve worst{kWorstPanel, "K₁", kTime, "worst eigenvalue [1]"}, worst_static = worst;
  worst.log_y = worst_static.log_y = true;
  worst_static.label = "K_s";
  worst_static.style = Curve::Style::kDotted;
  for (const Sample& s : trials[0].samples) {
    for (Curve* curve : {&form, &bound, &worst, &worst_static}) curve->x.push_back(s.time);
    const bool there = s.shown.samples > 0;
    form.y.push_back(there ? s.shown.worst_form : NAN);
    bound.y.push_back(there ? s.shown.worst_budget : NAN);
    if (there && s.shown.violations > 0) {
      over.x.push_back(s.time);
      over.y.push_back(s.shown.worst_form);
    }
    worst.y.push_back(s.worst_one_step);
    worst_static.y.push_back(s.sound ? s.worst_static : NAN);
  }
  result.curves = {form, bound, over, worst, worst_static};
  Curve limit{kWorstPanel,
              "budget",
              kTime,
              "worst eigenvalue [1]",
              {0, options.seconds},
              {1, 1},
              Curve::Style::kDashed};
  limit.shared = limit.log_y = true;
  result.curves.push_back(limit);
  for (std::size_t k = 0; k < trials[0].samples.size(); ++k) {
    const Sample& s = trials[0].samples[k];
    if (s.mode == ContactMode::kLeftSupport || s.mode == ContactMode::kRightSupport) continue;
    const double next = s.time + policy.layout().control_dt;
    const char* label = Name(s.mode);
    if (!result.spans.empty() && result.spans.back().label == label &&
        result.spans.back().x1 > s.time - 1e-6) {
      result.spans.back().x1 = next;
    } else {
      result.spans.push_back({kWorstPanel, label, s.time, next});
    }
  }
  result.settings = {
      {"observed",
       fmt::format("{:g} s of stepping in place per trial, every control step", options.seconds)},
      {"arms", reaches ? "random reaches, as in training" : "the policy's own"},
      {"random directions", std::to_string(kDirections) + " per control step"},
      {"trials per seed", std::to_string(options.episodes)}};
  return result;
}

}  // namespace silc
