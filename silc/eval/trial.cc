// SPDX-License-Identifier: Apache-2.0
#include "silc/eval/trial.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <mutex>

#include "silc/base/error.h"
#include "silc/base/thread_pool.h"
#include "silc/eval/bootstrap.h"
#include "silc/robot/pose.h"

namespace silc {
namespace {
constexpr double kStartNoise = 0.02;  // [rad]
constexpr double kSettle = 4;         // [s]
constexpr double kWalkSpeed = 0.5;    // [m/s]
// The samples and how many of them are known; a trial that fell has NaN.
Metric MetricOf(MetricHandle what, const std::vector<double>& samples, std::vector<double>* known) {
  Metric metric{what};
  metric.samples = samples;
  for (const double s : samples) {
    if (!std::isnan(s)) known->push_back(s);
  }
  metric.n = static_cast<int>(known->size());
  return metric;
}

}  // namespace

RobotModel LoadRobot(const ExperimentOptions& options, LoadOptions load) {
  load.visuals = options.visuals;
  return RobotModel::Load(options.robot, load);
}

void NeedHands(const RobotModel& robot) {
  if (!robot.has_hands()) throw ConfigError("robot '" + robot.spec().name + "' has no hands");
}

PolicyCommand StandCommand() { return {}; }

PolicyCommand WalkCommand() {
  PolicyCommand command;
  command.walk = 1;
  command.lin_vel.x() = kWalkSpeed;
  return command;
}

PolicyCommand StepCommand(const Policy& policy) {
  PolicyCommand command;
  command.walk = 1;
  for (const ObservationTerm& term : policy.layout().terms) {
    if (term.source == TermSource::kCommandWalk) return command;
  }
  command.lin_vel.x() = 2 * policy.layout().clock.standing_speed;
  return command;
}

Rng TrialDraw::Stream(std::uint32_t k) const {
  return Rng(seed, static_cast<std::uint32_t>(trial), k);
}

ClosedLoop MakeLoop(const RobotModel& robot,
                    const Policy& policy,
                    const PolicyCommand& command,
                    const TrialDraw& draw) {
  LoopOptions options;
  options.servo = ServoFor(robot, policy, "");
  options.command = command;
  ClosedLoop loop(robot, policy, options);
  Pose start;
  start.q = policy.default_pose();
  // the legs are left alone: a tilted sole is a push of its own
  const mjModel* model = robot.model();
  std::vector<bool> leg(model->nbody, false);
  for (int body : robot.foot_body()) {
    for (; body > 0 && body != robot.base_body(); body = model->body_parentid[body]) {
      leg[body] = true;
    }
  }
  Rng rng = draw.Stream(0);
  for (int j = 0; j < start.q.size(); ++j) {
    if (leg[model->dof_bodyid[robot.dof_address()[j]]]) continue;
    start.q[j] = std::clamp(
        start.q[j] + rng.Uniform(-kStartNoise, kStartNoise), robot.q_min()[j], robot.q_max()[j]);
  }
  StandInPose(robot, start, loop.data(), kRestingDepth);
  return loop;
}

double SettleTime(const TrialDraw& draw, double period) {
  Rng rng = draw.Stream(1);
  return std::round((kSettle + rng.Uniform()) / period) * period;
}

LoopStatus NeedFinite(const ClosedLoop& loop, LoopStatus status) {
  if (status != LoopStatus::kPolicyNotFinite) return status;
  throw RunError(fmt::format("control step {} ({:.2f} s): {}",
                             std::lround(loop.time() / loop.period()) + 1,
                             loop.time(),
                             Describe(status)));
}

ShakeResult ShakeFinite(const ClosedLoop& settled, const ShakeOptions& options) {
  ShakeResult shake = Shake(settled, options);
  bool finite = shake.settled != LoopStatus::kPolicyNotFinite;
  for (const ShakeLevel& level : shake.levels) {
    for (const auto& [plus, minus] : level.end) {
      finite =
          finite && plus != LoopStatus::kPolicyNotFinite && minus != LoopStatus::kPolicyNotFinite;
    }
  }
  if (finite) return shake;
  throw RunError(fmt::format("pushed after control step {} ({:.2f} s): {}",
                             std::lround(settled.time() / settled.period()),
                             settled.time(),
                             Describe(LoopStatus::kPolicyNotFinite)));
}

LoopStatus RunFor(ClosedLoop* loop, double seconds, const std::function<void()>& each) {
  const int steps = static_cast<int>(std::lround(seconds / loop->period()));
  for (int k = 0; k < steps; ++k) {
    const LoopStatus status = NeedFinite(*loop, loop->Step());
    if (status != LoopStatus::kRunning) return status;
    if (each) each();
  }
  return LoopStatus::kRunning;
}

int NumTrials(const ExperimentOptions& options) {
  const auto trials = static_cast<std::int64_t>(options.seeds.size()) * options.episodes;
  if (trials > kMaxTrials) {
    throw ConfigError(fmt::format("--episodes {} of {} seeds are {} trials; at most {}",
                                  options.episodes,
                                  options.seeds.size(),
                                  trials,
                                  kMaxTrials));
  }
  return static_cast<int>(trials);
}

void ForTrials(const ExperimentOptions& options,
               const Progress& progress,
               const std::function<void(int, const TrialDraw&)>& body) {
  // the experiments may have split the trials further
  const int n = static_cast<int>(options.seeds.size()) * options.episodes;
  std::mutex mutex;
  int done = 0;
  ThreadPool pool(std::max(1, std::min(options.threads, n)));
  pool.ParallelFor(n, [&](int, int k) {
    const TrialDraw draw{options.seeds[k / options.episodes], k % options.episodes};
    body(k, draw);
    const std::lock_guard<std::mutex> lock(mutex);
    ++done;
    if (progress) progress(static_cast<double>(done) / n);
  });
}

Metric MeanMetric(MetricHandle what, const std::vector<double>& samples) {
  std::vector<double> known;
  Metric metric = MetricOf(what, samples, &known);
  if (known.empty()) return metric;
  metric.value = 0;
  for (const double s : known) metric.value += s / static_cast<double>(known.size());
  const Interval interval = BootstrapMean(known);
  metric.low = interval.low;
  metric.high = interval.high;
  return metric;
}

Metric MedianMetric(MetricHandle what, const std::vector<double>& samples) {
  std::vector<double> known;
  Metric metric = MetricOf(what, samples, &known);
  if (known.empty()) return metric;
  // the upper of two middle ones: an interpolation with ∞ would be no number of any trial
  const auto median = [](std::vector<double> values) {
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    return *middle;
  };
  metric.value = median(known);
  const Interval interval = Bootstrap(metric.n, [&](std::span<const int> index) {
    std::vector<double> drawn;
    for (const int i : index) drawn.push_back(known[i]);
    return median(std::move(drawn));
  });
  metric.low = interval.low;
  metric.high = interval.high;
  return metric;
}

Metric StiffnessMetric(MetricHandle what, const std::vector<double>& samples) {
  std::vector<double> compliance;
  Metric metric = MetricOf(what, samples, &compliance);
  if (compliance.empty()) return metric;
  for (double& c : compliance) c = 1 / c;
  double mean = 0;
  for (const double c : compliance) mean += c / static_cast<double>(compliance.size());
  metric.value = 1 / mean;
  const Interval interval = BootstrapMean(compliance);
  // of one sign, or there is no interval: it would reach through infinity
  if (interval.low * interval.high > 0) {
    metric.low = 1 / interval.high;
    metric.high = 1 / interval.low;
  }
  return metric;
}

Metric ShareMetric(MetricHandle what, int k, int n) {
  Metric metric{what};
  metric.n = n;
  if (n == 0) return metric;
  metric.value = 100.0 * k / n;
  const Interval interval = WilsonInterval(k, n);
  metric.low = 100 * interval.low;
  metric.high = 100 * interval.high;
  return metric;
}

Metric GroupedShareMetric(MetricHandle what, const std::vector<double>& shares) {
  std::vector<double> known;
  Metric metric = MetricOf(what, {}, &known);
  for (const double share : shares) {
    metric.samples.push_back(100 * share);
    if (!std::isnan(share)) known.push_back(share);
  }
  metric.n = static_cast<int>(known.size());
  if (known.empty()) return metric;
  metric.value = 0;
  for (const double share : known) metric.value += 100 * share / metric.n;
  const Interval interval = GroupedShareInterval(known);
  metric.low = 100 * interval.low;
  metric.high = 100 * interval.high;
  return metric;
}

void AddSurvival(const MetricTable& declared,
                 const std::vector<LoopStatus>& ends,
                 ExperimentResult* result) {
  const int n = static_cast<int>(ends.size());
  int stood = 0;
  for (const LoopStatus end : ends) stood += end == LoopStatus::kRunning;
  result->trials = n;
  result->falls = n - stood;
  result->metrics.insert(result->metrics.begin(), ShareMetric(declared.survival, stood, n));
  if (stood == n) return;
  std::string why;
  for (const LoopStatus end : {LoopStatus::kFallen, LoopStatus::kDiverged}) {
    const auto count = std::count(ends.begin(), ends.end(), end);
    if (count == 0) continue;
    const auto first = std::find(ends.begin(), ends.end(), end) - ends.begin();
    why += fmt::format(
        "{}{} × {}, first in trial {}", why.empty() ? "" : "; ", count, Describe(end), first + 1);
  }
  result->notes.push_back(
      fmt::format("{} of {} trials ended early ({}); other numbers are of the trials that lasted",
                  n - stood,
                  n,
                  why));
}

int FirstLasting(const std::vector<LoopStatus>& ends) {
  const auto found = std::find(ends.begin(), ends.end(), LoopStatus::kRunning);
  return found == ends.end() ? 0 : static_cast<int>(found - ends.begin());
}

void Thin(std::vector<double>* x, std::vector<double>* y, int points) {
  const std::size_t stride = (x->size() + points - 1) / points;
  if (stride <= 1) return;
  std::size_t kept = 0;
  for (std::size_t k = 0; k < x->size(); k += stride, ++kept) {
    (*x)[kept] = (*x)[k];
    (*y)[kept] = (*y)[k];
  }
  x->resize(kept);
  y->resize(kept);
}

}  // namespace silc
