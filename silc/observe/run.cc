// SPDX-License-Identifier: Apache-2.0
#include "silc/observe/run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "silc/base/error.h"
#include "silc/npz/npz.h"
#include "silc/robot/kinematics.h"

namespace silc {
namespace {

// 0.2 Hz to just under the policy's Nyquist frequency, evenly on a logarithmic axis
std::vector<double> SweepGrid(double period) {
  constexpr int kPoints = 60;
  const double low = 0.2, high = 0.98 * 0.5 / period;
  std::vector<double> hz;
  for (int i = 0; i < kPoints; ++i) hz.push_back(low * std::pow(high / low, i / (kPoints - 1.0)));
  return hz;
}

ObservationRun Begin(ClosedLoop* loop, const ObservationOptions& options, std::string source) {
  ObservationRun run;
  run.robot = loop->robot().spec().name;
  run.joints = loop->robot().spec().joints;
  run.source = std::move(source);
  run.budget = options.budget;
  run.servo = loop->options().servo;
  run.timing = {loop->period(), loop->options().latency};
  return run;
}

// The sweep of the moment in the middle of the run, by σ where there is one: a moment that
// happened, so its matrices belong together, which an average's would not.
class MedianSweep {
 public:
  void Consider(const Moment& moment,
                const MomentObserver& observer,
                const std::vector<double>& grid) {
    sweeps_.emplace_back(moment.reading.quasi_static.sigma, observer.Sweep(grid));
  }
  FrequencySweep Take() {
    if (sweeps_.empty()) return {};
    const auto key = [](double sigma) { return std::isfinite(sigma) ? sigma : HUGE_VAL; };
    const auto middle = sweeps_.begin() + static_cast<std::ptrdiff_t>((sweeps_.size() - 1) / 2);
    std::nth_element(sweeps_.begin(), middle, sweeps_.end(), [&](const auto& a, const auto& b) {
      return key(a.first) < key(b.first);
    });
    return std::move(middle->second);
  }

 private:
  std::vector<std::pair<double, FrequencySweep>> sweeps_;
};

// One moment in this many gets a whole sweep: 60 complex solves each, and the median needs no more.
constexpr int kSweepEvery = 25;

}  // namespace

ObservationRun ObservePose(ClosedLoop loop, const ObservationOptions& options) {
  ObservationRun run = Begin(&loop, options, "standing pose");
  run.end = loop.SettlePolicy();
  if (run.end != LoopStatus::kRunning) return run;
  MomentObserver observer(loop.robot(), run.servo, run.timing, options);
  Moment moment =
      observer.Observe(&loop.policy(), loop.data(), ContactMode::kDoubleSupport, loop.time());
  moment.tau = loop.tau();
  run.sweep = observer.Sweep(SweepGrid(run.timing.period));
  run.moments.push_back(std::move(moment));
  return run;
}

ObservationRun ObserveRollout(ClosedLoop loop,
                              double seconds,
                              double settle,
                              const ObservationOptions& options,
                              const Progress& progress) {
  const PolicyCommand& command = loop.options().command;
  ObservationRun run = Begin(&loop,
                             options,
                             fmt::format("rollout of {:g} s, command {:g} {:g} m/s, {:g} rad/s",
                                         seconds,
                                         command.lin_vel.x(),
                                         command.lin_vel.y(),
                                         command.yaw_rate));
  MomentObserver observer(loop.robot(), run.servo, run.timing, options);
  ContactModeTracker tracker = MakeContactTracker(loop.robot());
  MedianSweep median;
  const std::vector<double> grid = SweepGrid(run.timing.period);

  const int steps = static_cast<int>(std::lround((settle + seconds) / loop.period()));
  for (int step = 0; step < steps; ++step) {
    loop.TrackContacts(&tracker);
    run.end = loop.Decide();
    if (run.end != LoopStatus::kRunning) break;
    if (loop.time() >= settle - 1e-9) {
      Moment moment = observer.Observe(&loop.policy(), loop.data(), tracker.mode(), loop.time());
      moment.saturation = loop.saturation();
      moment.tau = loop.tau();
      if (run.moments.size() % kSweepEvery == 0) median.Consider(moment, observer, grid);
      run.moments.push_back(std::move(moment));
    }
    run.end = loop.Advance();
    if (run.end != LoopStatus::kRunning) break;
    if (progress) progress((step + 1.0) / steps);
  }
  run.end_time = loop.time();
  run.sweep = median.Take();
  return run;
}

ObservationRun ObserveStates(ClosedLoop loop,
                             const std::string& npz_path,
                             const ObservationOptions& options,
                             const Progress& progress) {
  const mjModel* model = loop.robot().model();
  const NpzFile file = ReadNpz(npz_path);
  const std::vector<double> qpos = file["qpos"].AsDoubles({kAnySize, model->nq});
  const std::vector<double> qvel = file["qvel"].AsDoubles({kAnySize, model->nv});
  const int rows = static_cast<int>(qpos.size()) / model->nq;
  if (static_cast<int>(qvel.size()) != rows * model->nv) {
    throw ConfigError(fmt::format("{}: qpos has {} rows and qvel {}: they must be the same states",
                                  npz_path,
                                  rows,
                                  qvel.size() / model->nv));
  }
  if (rows == 0) throw ConfigError(npz_path + ": holds no states");
  ObservationRun run = Begin(&loop, options, fmt::format("{} states from {}", rows, npz_path));
  MomentObserver observer(loop.robot(), run.servo, run.timing, options);
  ContactModeTracker tracker = MakeContactTracker(loop.robot());
  MedianSweep median;
  const std::vector<double> grid = SweepGrid(run.timing.period);
  const auto row = [](const std::vector<double>& values, int index, int width) {
    return std::span<const double>(values).subspan(static_cast<std::size_t>(index) * width, width);
  };
  for (int i = 0; i < rows; ++i) {
    loop.SetState(row(qpos, i, model->nq), row(qvel, i, model->nv));
    loop.TrackContacts(&tracker);
    run.end = loop.Decide();
    if (run.end != LoopStatus::kRunning) break;
    Moment moment =
        observer.Observe(&loop.policy(), loop.data(), tracker.mode(), i * loop.period());
    moment.tau = loop.tau();
    if (i % kSweepEvery == 0) median.Consider(moment, observer, grid);
    run.moments.push_back(std::move(moment));
    loop.HoldTarget();
    if (progress) progress((i + 1.0) / rows);
  }
  run.end_time = static_cast<double>(run.moments.size()) * loop.period();
  run.sweep = median.Take();
  return run;
}

}  // namespace silc
