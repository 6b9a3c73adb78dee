// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdint>
#include <limits>
#include <numbers>

#include "silc/base/error.h"
#include "silc/base/nan.h"
#include "silc/base/nearest.h"
#include "silc/config/budget_file.h"
#include "silc/eval/experiment_metrics.h"
#include "silc/eval/experiments.h"
#include "silc/eval/trial.h"
#include "silc/robot/geometric_stiffness.h"
#include "silc/robot/kinematics.h"
#include "silc/stiffness/dynamic_stiffness.h"
#include "silc/stiffness/frequency_condition.h"

namespace silc {
namespace {

using Complex = std::complex<double>;
using Eigen::MatrixXcd;
using Eigen::MatrixXd;
using Eigen::Vector3d;

// [Hz] evenly on a logarithmic axis, to just under the policy's Nyquist frequency of 25 Hz
const std::vector<double> kHz = {0.5, 0.7, 1, 1.4, 2, 3, 4, 5.6, 8, 10, 12, 16, 20, 24};
constexpr double kTransient = 3;  // [s] shaken before it is measured
constexpr double kMeasured = 3;   // [s] at least, in whole cycles

constexpr double kMetricEnd = 5;   // [Hz] up to which extremes over frequencies are metrics
constexpr double kShakeForce = 2;  // [N] small: the linear answer is wanted

// Where and along which axis the shaker acts, and the metrics that say what it felt.
struct Point {
  const metric::FrequencyMetrics::Point& declared;
  Push::Point point;
  int axis;
};
std::vector<Point> AllPoints() {
  const metric::FrequencyMetrics& declared = metric::Frequency();
  return {{declared.hand_in_world_x, Push::Point::kLeftHand, 0},
          {declared.hand_in_world_y, Push::Point::kLeftHand, 1},
          {declared.hand_in_world_z, Push::Point::kLeftHand, 2},
          {declared.com_x, Push::Point::kCom, 0},
          {declared.com_y, Push::Point::kCom, 1}};
}

// Those the user asked for, in the order of AllPoints(); of a robot without hands, none of theirs.
std::vector<Point> PointsOf(const ExperimentOptions& options, const RobotModel& robot) {
  std::vector<Point> points;
  std::vector<std::string> known;
  for (const Point& point : AllPoints()) {
    known.push_back(point.declared.name);
    const bool wanted = options.points.empty() ||
                        std::find(options.points.begin(), options.points.end(), known.back()) !=
                            options.points.end();
    if (!wanted) continue;
    if (point.point != Push::Point::kCom && !robot.has_hands()) {
      if (options.points.empty()) continue;
      NeedHands(robot);
    }
    points.push_back(point);
  }
  for (const std::string& name : options.points) {
    if (std::find(known.begin(), known.end(), name) == known.end())
      throw ConfigError("--points: there is no point '" + name + "'" + DidYouMean(name, known));
    if (std::count(options.points.begin(), options.points.end(), name) > 1)
      throw ConfigError("--points: '" + name + "' is there twice");
  }
  return points;
}

// Rising. A policy that acts every Δt answers nothing above 1/(2Δt).
std::vector<double> FrequenciesOf(const ExperimentOptions& options, const Policy& policy) {
  const double nyquist = 0.5 / policy.layout().control_dt;
  std::vector<double> hz;
  for (const double f : options.frequencies.empty() ? kHz : options.frequencies) {
    if (f > 0 && f < nyquist) {
      hz.push_back(f);
    } else if (!options.frequencies.empty()) {
      throw ConfigError(fmt::format(
          "--frequencies: {:g} Hz is outside (0, {:g}), half of the policy's rate", f, nyquist));
    }
  }
  if (hz.empty()) {
    throw ConfigError(
        fmt::format("the policy's rate leaves no frequency: it acts every {:g} s and answers "
                    "nothing above {:g} Hz, the lowest that is shaken is {:g} Hz",
                    policy.layout().control_dt,
                    nyquist,
                    kHz.front()));
  }
  std::sort(hz.begin(), hz.end());
  const auto twice = std::adjacent_find(hz.begin(), hz.end());
  if (twice != hz.end()) {
    throw ConfigError(fmt::format("--frequencies: {:g} Hz is there twice", *twice));
  }
  return hz;
}

Vector3d Position(const ClosedLoop& loop, Push::Point point) {
  return point == Push::Point::kCom ? loop.ComPosition() : loop.HandPosition(kLeft);
}

/// Stiffness a shaker along one axis feels: force over displacement phasor.
struct Response {
  Complex stiffness{kNan, kNan};  // [N/m]
  double residual = kNan;         // [1] share of the motion that is no sine of that frequency
};

double Duration(double hz, double period) {
  const double cycles = std::ceil(kMeasured * hz);
  return std::ceil((kTransient + cycles / hz) / period) * period;
}

/// Where the points of a robot that is left alone are, step by step.
struct Twin {
  LoopStatus end = LoopStatus::kRunning;
  std::vector<Vector3d> hand, com;
  const std::vector<Vector3d>& at(Push::Point point) const {
    return point == Push::Point::kCom ? com : hand;
  }
};
Twin LeaveAlone(const ClosedLoop& settled, double seconds) {
  Twin twin;
  ClosedLoop loop(settled);
  loop.SetHooks({}, [&] {
    twin.hand.push_back(Position(loop, Push::Point::kLeftHand));
    twin.com.push_back(Position(loop, Push::Point::kCom));
  });
  twin.end = RunFor(&loop, seconds);
  return twin;
}

// From a copy of the settled loop, against its twin.
Response Shaken(const ClosedLoop& settled, const Twin& twin, const Point& point, double hz) {
  ClosedLoop loop(settled);
  const double omega = 2 * std::numbers::pi * hz, start = loop.time();
  const double step = loop.robot().model()->opt.timestep;
  std::vector<double> time, moved;
  loop.SetHooks(
      [&] {
        // MuJoCo's integrator takes a step's force for the second difference of positions about the
        // step's beginning: phases are counted from there
        const double f = kShakeForce * std::sin(omega * (loop.time() - start));
        loop.SetPush({point.point, f * Vector3d::Unit(point.axis)});
      },
      [&] {
        // what mj_step left in the kinematics is the state at the step's beginning
        time.push_back(loop.time() - step - start);
        moved.push_back(Position(loop, point.point)[point.axis]);
      });
  if (RunFor(&loop, Duration(hz, loop.period())) != LoopStatus::kRunning) return {};

  // least squares of a sine, a cosine, an offset and a drift, over the last part
  std::vector<int> rows;
  for (std::size_t k = 0; k < time.size(); ++k) {
    if (time[k] >= kTransient) rows.push_back(static_cast<int>(k));
  }
  MatrixXd A(rows.size(), 4);
  Eigen::VectorXd b(rows.size());
  for (std::size_t r = 0; r < rows.size(); ++r) {
    const double t = time[rows[r]];
    A.row(r) << std::sin(omega * t), std::cos(omega * t), 1, t;
    b[r] = moved[rows[r]] - twin.at(point.point)[rows[r]][point.axis];
  }
  const Eigen::VectorXd x = A.colPivHouseholderQr().solve(b);
  Response response;
  // F sin ωt = Im(F e^{jωt}), x = Im((x₀ + j x₁) e^{jωt})
  response.stiffness = kShakeForce / Complex(x[0], x[1]);
  double noise = 0, wave = 0;
  for (Eigen::Index r = 0; r < A.rows(); ++r) {
    const double sine = A(r, 0) * x[0] + A(r, 1) * x[1];
    const double off = b[r] - sine - x[2] - A(r, 3) * x[3];
    noise += off * off;
    wave += sine * sine;
  }
  response.residual = std::sqrt(noise / (noise + wave));
  return response;
}

// The same from (S4): K(jω) of servo and policy, the joints' inertia with the base that follows
// them (S5), and gravity's part, as a point feels them. And the budget over the same frequencies.
class Prediction {
 public:
  Prediction(ClosedLoop loop, ContactMode mode, const BudgetSpec& budget)
      : servo_(loop.options().servo), budget_(budget) {
    if (NeedFinite(loop, loop.Decide()) != LoopStatus::kRunning) return;
    const RobotModel& robot = loop.robot();
    BodyJacobians body;
    ComputeBodyJacobians(robot, loop.data(), &body);
    if (ComputeContactKinematics(body, mode, nullptr, &contact_) != StiffnessStatus::kOk) return;
    if (loop.policy().Jacobians(&jacobians_) != PolicyStatus::kOk) return;
    timing_ = {loop.period(), loop.options().latency};
    JointMatrix H;
    if (ComputeGeometricStiffness(robot, *loop.data(), loop.tau(), contact_, &H) !=
        StiffnessStatus::kOk) {
      return;
    }
    H_ = H;
    N_ = contact_.closed ? MatrixXd(contact_.N) : MatrixXd::Identity(H.rows(), H.rows());

    // full inertia in the columns' order (base linear, base angular, joints), then along B
    const mjModel* model = robot.model();
    const int n = robot.num_joints(), nv = model->nv;
    std::vector<mjtNum> full(static_cast<std::size_t>(nv) * nv);
    mj_fullM(model, loop.data(), full.data());
    const auto dof = [&](int k) {
      return k < 6 ? robot.base_dof_address() + k : robot.dof_address()[k - 6];
    };
    MatrixXd M(6 + n, 6 + n), follow(6 + n, n);
    damping_ = MatrixXd::Zero(n, n);
    for (int r = 0; r < 6 + n; ++r) {
      for (int c = 0; c < 6 + n; ++c)
        M(r, c) = full[static_cast<std::size_t>(dof(r)) * nv + dof(c)];
      if (r >= 6) damping_(r - 6, r - 6) = model->dof_damping[dof(r)];
    }
    follow << MatrixXd(contact_.B), MatrixXd::Identity(n, n);
    inertia_ = follow.transpose() * M * follow;
    known_ = true;
    ReducedBudget reduced;
    bounded_ =
        MakeBudgetCoordinates(budget_, servo_, contact_, &coordinates_) == StiffnessStatus::kOk &&
        ComputeReducedBudget(budget_, servo_, contact_, &reduced) == StiffnessStatus::kOk;
    M_ = reduced.M;
  }

  bool known() const { return known_; }

  // [N/m] what a shaker feels
  Complex Stiffness(const Point& point, double hz) const {
    const double omega = 2 * std::numbers::pi * hz;
    const Jacobian3 B_rot = contact_.B.bottomRows<3>();
    MatrixXcd K;
    if (DynamicStiffness(servo_, jacobians_, timing_, {&contact_.E, &B_rot}, omega, &K) !=
        StiffnessStatus::kOk) {
      return {kNan, kNan};
    }
    return Felt(point, omega, N_.transpose() * K.real() * N_, N_.transpose() * K.imag() * N_);
  }

  // [N/m] what it would feel if the budget's springs and the servo's dashpots were all there is
  Complex OfTheBudget(const Point& point, double hz) const {
    if (!bounded_) return {kNan, kNan};
    const double omega = 2 * std::numbers::pi * hz;
    return Felt(point, omega, M_, omega * (N_.transpose() * servo_.kd.asDiagonal() * N_));
  }

  // (S12), (S13) with the channels that the budget holds held; the gyroscope always is
  FrequencyReading Judge(double hz) const {
    const double omega = 2 * std::numbers::pi * hz;
    BaseChannels channels;
    if (budget_.gravity == Channel::kFollowed) channels.E = &contact_.E;
    channels.torque = budget_.torque == Channel::kFollowed;
    MatrixXcd K;
    if (!bounded_ || DynamicStiffness(servo_, jacobians_, timing_, channels, omega, &K) !=
                         StiffnessStatus::kOk) {
      return {kNan, kNan};
    }
    return ReadAtFrequency(K, servo_, omega, coordinates_);
  }

 private:
  // of springs and dashpots given along the motions that the contacts allow, Re and Im
  Complex Felt(const Point& point, double omega, const MatrixXd& re, const MatrixXd& im) const {
    const Jacobian3& J3 =
        point.point == Push::Point::kCom ? contact_.com : contact_.hand_in_world[kLeft];
    const Eigen::VectorXd J = N_.transpose() * J3.row(point.axis).transpose();
    const MatrixXd A = re + N_.transpose() * (H_ - omega * omega * inertia_) * N_;
    const MatrixXd B = im + omega * (N_.transpose() * damping_ * N_);
    // (A + jB)(x + jy) = Jᵀ as real equations, twice as many
    const Eigen::Index z = J.size();
    MatrixXd both(2 * z, 2 * z);
    both << A, -B, B, A;
    Eigen::VectorXd right = Eigen::VectorXd::Zero(2 * z);
    right.head(z) = J;
    const Eigen::VectorXd motion = both.partialPivLu().solve(right);
    return 1.0 / Complex(J.dot(motion.head(z)), J.dot(motion.tail(z)));
  }

  Servo servo_;
  LoopTiming timing_;
  ContactKinematics contact_;
  PolicyJacobians jacobians_;
  MatrixXd H_, inertia_, damping_;
  BudgetSpec budget_;
  BudgetCoordinates coordinates_;
  MatrixXd N_;  // the motions that the contacts allow: all, or N of (S5)
  MatrixXd M_;  // (S6) along them
  bool known_ = false, bounded_ = false;
};

struct FrequencyTrial {
  LoopStatus end = LoopStatus::kRunning;
  ContactMode mode = ContactMode::kDoubleSupport;
  bool predicted = false;
  std::vector<std::vector<Response>> measured;  // [point][frequency]
  std::vector<std::vector<Complex>> model;
  std::vector<std::vector<Complex>> fine, bound;  // along FineGrid(): for the curves
  std::vector<FrequencyReading> judged;           // likewise
};

std::vector<double> FineGrid(const std::vector<double>& hz) {
  constexpr int kGrid = 61;
  std::vector<double> grid;
  for (int i = 0; i < kGrid; ++i) {
    grid.push_back(hz.front() * std::pow(hz.back() / hz.front(), i / (kGrid - 1.0)));
  }
  return grid;
}

// Measured, (S4), and the budget's springs in the place of servo and policy: of the first trial.
void AddPointCurves(const std::string& label,
                    std::size_t p,
                    const std::vector<double>& hz,
                    const FrequencyTrial& trial,
                    std::vector<Curve>* curves) {
  const auto add = [&](const std::string& name,
                       Curve::Style style,
                       const std::vector<double>& at,
                       const auto& stiffness) {
    Curve re{label + ": Re", name, "frequency [Hz]", "Re F/x [N/m]"};
    re.style = style;
    re.log_x = true;
    re.x = at;
    Curve im = re;
    im.panel = label + ": Im/ω";
    im.y_label = "Im F/x /ω [N·s/m]";
    for (std::size_t f = 0; f < at.size(); ++f) {
      re.y.push_back(stiffness(f).real());
      im.y.push_back(stiffness(f).imag() / (2 * std::numbers::pi * at[f]));
    }
    curves->push_back(re);
    curves->push_back(im);
  };
  add("measured", Curve::Style::kPoints, hz, [&](std::size_t f) {
    return trial.measured[p][f].stiffness;
  });
  // where ν(ω) ≤ 0, nobody who shakes a point gets energy out of it
  Curve passive = curves->back();
  passive.label = "passive, (S13): not below";
  passive.style = Curve::Style::kDashed;
  passive.shared = true;
  passive.y.assign(hz.size(), 0);
  curves->push_back(std::move(passive));
  if (p >= trial.fine.size()) return;
  const std::vector<double> grid = FineGrid(hz);
  add("(S4)", Curve::Style::kSolid, grid, [&](std::size_t f) { return trial.fine[p][f]; });
  add("the budget's springs", Curve::Style::kDashed, grid, [&](std::size_t f) {
    return trial.bound[p][f];
  });
}

// The least damping that a shaker felt at any point: what (S13) bounds from below.
double LeastDamping(const FrequencyTrial& trial, const std::vector<double>& hz) {
  double least = kNan;
  for (const std::vector<Response>& at_point : trial.measured) {
    for (std::size_t f = 0; f < hz.size() && hz[f] <= kMetricEnd; ++f) {
      least = std::fmin(least, at_point[f].stiffness.imag() / (2 * std::numbers::pi * hz[f]));
    }
  }
  return least;
}

// (S12) and (S13) over the frequencies, with what they may be.
void AddJudged(const std::vector<double>& hz,
               const std::vector<FrequencyTrial>& trials,
               ExperimentResult* result) {
  const std::vector<double> grid = FineGrid(hz);
  // not a number where one of them is not known
  const auto largest = [&](const FrequencyTrial& t, double FrequencyReading::*value) {
    double most = t.judged.empty() ? kNan : -std::numeric_limits<double>::infinity();
    for (std::size_t f = 0; f < t.judged.size() && grid[f] <= kMetricEnd; ++f) {
      most = std::isnan(t.judged[f].*value) ? kNan : std::max(most, t.judged[f].*value);
      if (std::isnan(most)) break;
    }
    return std::isfinite(most) ? most : kNan;
  };
  std::vector<double> sigma, driving, damping;
  for (const FrequencyTrial& t : trials) {
    damping.push_back(LeastDamping(t, hz));
    sigma.push_back(largest(t, &FrequencyReading::sigma));
    driving.push_back(largest(t, &FrequencyReading::driving));
  }
  result->metrics.push_back(MeanMetric(metric::Frequency().frequency_sigma, sigma));
  result->metrics.push_back(MeanMetric(metric::Frequency().frequency_driving, driving));
  result->metrics.push_back(MeanMetric(metric::Frequency().least_damping, damping));
  const std::vector<FrequencyReading>& judged = trials[0].judged;
  if (judged.empty()) return;
  const auto add = [&](const std::string& panel, double limit, double FrequencyReading::*value) {
    Curve curve{panel, "(S4)", "frequency [Hz]", panel};
    curve.log_x = true;
    curve.x = grid;
    for (const FrequencyReading& reading : judged) curve.y.push_back(reading.*value);
    Curve bound = curve;
    bound.label = "bound";
    bound.style = Curve::Style::kDashed;
    bound.shared = true;
    bound.y.assign(grid.size(), limit);
    result->curves.push_back(curve);
    result->curves.push_back(bound);
  };
  add("σ(ω), (S12)", 1, &FrequencyReading::sigma);
  add("ν(ω), (S13)", 0, &FrequencyReading::driving);
}

}  // namespace

ExperimentResult RunFrequency(const Policy& policy,
                              const ExperimentOptions& options,
                              const Progress& progress) {
  const RobotModel robot = LoadRobot(options, {.firm_contacts = true});
  const std::vector<Point> points = PointsOf(options, robot);
  const std::vector<double> hz = FrequenciesOf(options, policy);
  const UserBudget budget = options.Budget();
  const int trials_count = NumTrials(options);
  const auto jobs = static_cast<std::int64_t>(trials_count) *
                    static_cast<std::int64_t>(points.size() * hz.size());
  if (jobs > std::numeric_limits<int>::max()) {
    throw ConfigError("--frequencies: too many for as many trials");
  }
  std::vector<FrequencyTrial> trials(trials_count);
  std::vector<ClosedLoop> settled;
  settled.reserve(trials_count);
  std::vector<Twin> twins(trials_count);
  // every robot stands first; then each shaking starts from its copy
  for (int k = 0; k < trials_count; ++k) {
    const TrialDraw draw{options.seeds[k / options.episodes], k % options.episodes};
    settled.push_back(MakeLoop(robot, policy, StandCommand(), draw));
    ContactModeTracker tracker = MakeContactTracker(robot);
    trials[k].end = RunFor(&settled[k], SettleTime(draw, settled[k].period()), [&] {
      settled[k].TrackContacts(&tracker);
      if (k == 0 && options.watch) options.watch(robot, *settled[k].data());
    });
    trials[k].mode = tracker.mode();
    trials[k].measured.assign(points.size(), std::vector<Response>(hz.size()));
    trials[k].model.assign(points.size(), std::vector<Complex>(hz.size(), {kNan, kNan}));
    if (trials[k].end != LoopStatus::kRunning) continue;
    double longest = 0;
    for (const double f : hz) longest = std::max(longest, Duration(f, settled[k].period()));
    twins[k] = LeaveAlone(settled[k], longest);
    trials[k].end = twins[k].end;
    if (trials[k].end != LoopStatus::kRunning) continue;
    const Prediction prediction(settled[k], trials[k].mode, budget.spec);
    trials[k].predicted = prediction.known();
    if (!prediction.known()) continue;
    for (const double f : FineGrid(hz)) trials[k].judged.push_back(prediction.Judge(f));
    for (std::size_t p = 0; p < points.size(); ++p) {
      for (std::size_t f = 0; f < hz.size(); ++f) {
        trials[k].model[p][f] = prediction.Stiffness(points[p], hz[f]);
      }
      if (k > 0) continue;
      trials[k].fine.emplace_back();
      trials[k].bound.emplace_back();
      for (const double f : FineGrid(hz)) {
        trials[k].fine.back().push_back(prediction.Stiffness(points[p], f));
        trials[k].bound.back().push_back(prediction.OfTheBudget(points[p], f));
      }
    }
  }
  const int per_trial = static_cast<int>(points.size() * hz.size());
  ExperimentOptions split = options;
  split.seeds = {1};
  split.episodes = trials_count * per_trial;
  ForTrials(split, progress, [&](int job, const TrialDraw&) {
    const int k = job / per_trial, p = job % per_trial / static_cast<int>(hz.size()),
              f = job % static_cast<int>(hz.size());
    if (trials[k].end != LoopStatus::kRunning) return;
    trials[k].measured[p][f] = Shaken(settled[k], twins[k], points[p], hz[f]);
  });

  ExperimentResult result;
  std::vector<LoopStatus> ends;
  bool all_predicted = true;
  for (const FrequencyTrial& t : trials) {
    ends.push_back(t.end);
    all_predicted = all_predicted && (t.predicted || t.end != LoopStatus::kRunning);
  }
  if (!all_predicted) {
    result.notes.push_back("(S4) could not be worked out at the settled moment of some trials");
  }
  for (std::size_t p = 0; p < points.size(); ++p) {
    const Point& point = points[p];
    const std::string& label = point.declared.label;
    std::vector<double> error, residual;
    for (const FrequencyTrial& t : trials) {
      std::vector<double> relative;
      double worst = kNan;
      for (std::size_t f = 0; f < hz.size(); ++f) {
        const Complex a = t.measured[p][f].stiffness, b = t.model[p][f];
        if (std::isfinite(std::abs(a)) && std::isfinite(std::abs(b))) {
          relative.push_back(100 * std::abs(a - b) / std::abs(a));
        }
        worst = std::fmax(worst, t.measured[p][f].residual);
      }
      std::sort(relative.begin(), relative.end());
      error.push_back(relative.empty() ? kNan : relative[relative.size() / 2]);
      residual.push_back(100 * worst);
    }
    result.metrics.push_back(MeanMetric(point.declared.error, error));
    result.metrics.push_back(MeanMetric(point.declared.residual, residual));
    const auto at = [&](double f, auto value) {
      std::vector<double> samples;
      for (const FrequencyTrial& t : trials) {
        const auto it = std::find(hz.begin(), hz.end(), f);
        samples.push_back(it == hz.end() ? kNan
                                         : value(t.measured[p][it - hz.begin()].stiffness, f));
      }
      return samples;
    };
    const auto real = [](Complex k, double) { return k.real(); };
    const auto damping = [](Complex k, double f) { return k.imag() / (2 * std::numbers::pi * f); };
    for (const metric::FrequencyMetrics::AtFrequency& into : point.declared.all()) {
      result.metrics.push_back(MeanMetric(into.stiffness, at(into.hz, real)));
      result.metrics.push_back(MeanMetric(into.damping, at(into.hz, damping)));
    }
    AddPointCurves(label, p, hz, trials[0], &result.curves);
  }
  AddJudged(hz, trials, &result);
  AddSurvival(metric::Frequency(), ends, &result);
  result.settings = {
      {"force", fmt::format("{:g} N, a sine along one axis", kShakeForce)},
      {"transient", fmt::format("{:g} s", kTransient)},
      {"measured", fmt::format("{:g} s or more, against an unshaken twin", kMeasured)},
      {"trials per seed", std::to_string(options.episodes)}};
  if (!options.frequencies.empty()) {
    result.settings["frequencies"] = fmt::format("{:g} Hz", fmt::join(hz, ", "));
  }
  return result;
}

}  // namespace silc
