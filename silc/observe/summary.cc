// SPDX-License-Identifier: Apache-2.0
#include "silc/observe/summary.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <numbers>

#include "silc/base/check.h"
#include "silc/base/nan.h"

namespace silc {
namespace {

std::vector<double> Collect(const std::vector<Moment>& moments,
                            const std::function<double(const Moment&)>& value) {
  std::vector<double> values;
  values.reserve(moments.size());
  for (const Moment& moment : moments) values.push_back(value(moment));
  return values;
}

std::vector<double> Collect(const std::vector<const Moment*>& moments,
                            const std::function<double(const Moment&)>& value) {
  std::vector<double> values;
  values.reserve(moments.size());
  for (const Moment* moment : moments) values.push_back(value(*moment));
  return values;
}

PointSummary SummarizePoint(const ObservationRun& run,
                            const std::string& name,
                            const std::optional<Eigen::Vector3d>& budget,
                            const std::function<const PointReading&(const Moment&)>& point) {
  PointSummary summary;
  summary.name = name;
  summary.budget = budget.value_or(Eigen::Vector3d::Constant(kNan));
  // readings that failed are NaN and drop out of the median
  for (int axis = 0; axis < 3; ++axis) {
    summary.one_axis[axis] =
        Median(Collect(run.moments, [&](const Moment& m) { return point(m).one_axis[axis]; }));
    summary.held[axis] =
        Median(Collect(run.moments, [&](const Moment& m) { return point(m).K_x(axis, axis); }));
  }
  const std::vector<double> worst =
      Collect(run.moments, [&](const Moment& m) { return point(m).worst; });
  summary.worst_median = Median(worst);
  summary.worst_p99 = Quantile(worst, 0.99);
  return summary;
}

ModeSummary SummarizeMode(const std::vector<const Moment*>& moments, std::size_t total) {
  ModeSummary summary;
  summary.mode = moments.front()->mode;
  summary.moments = static_cast<int>(moments.size());
  summary.share = static_cast<double>(moments.size()) / static_cast<double>(total);
  const std::vector<double> sigma =
      Collect(moments, [](const Moment& m) { return m.reading.quasi_static.sigma; });
  const std::vector<double> worst =
      Collect(moments, [](const Moment& m) { return m.reading.quasi_static.worst; });
  double samples = 0, sample_violations = 0;
  for (const Moment* moment : moments) {
    if (moment->reading.quasi_static.status == StiffnessStatus::kOk) {
      ++summary.judged;
      summary.over += moment->reading.quasi_static.sigma > 1;
    }
    samples += moment->random_directions.samples;
    sample_violations += moment->random_directions.violations;
  }
  const int unjudged = summary.moments - summary.judged;
  summary.violations = (summary.over + unjudged) / static_cast<double>(summary.moments);
  summary.random_direction_violations = samples > 0 ? sample_violations / samples : kNan;
  summary.sigma_median = Median(sigma);
  summary.sigma_p99 = Quantile(sigma, 0.99);
  summary.worst_median = Median(worst);
  summary.worst_p99 = Quantile(worst, 0.99);
  summary.one_step_median =
      Median(Collect(moments, [](const Moment& m) { return m.reading.one_step.sigma; }));
  return summary;
}

}  // namespace

double Quantile(std::vector<double> values, double p) {
  SILC_CHECK(0 <= p && p <= 1);
  std::erase_if(values, [](double value) { return !std::isfinite(value); });
  if (values.empty()) return kNan;
  std::sort(values.begin(), values.end());
  const double position = p * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::size_t>(position);
  const std::size_t above = std::min(below + 1, values.size() - 1);
  const double part = position - static_cast<double>(below);
  return values[below] * (1 - part) + values[above] * part;
}

double Median(std::vector<double> values) { return Quantile(std::move(values), 0.5); }

namespace {

// From positions alone: steps between moments turned into the heading of their first, so that
// walking in a circle counts as walking forward.
Eigen::Vector3d MeanVelocity(const ObservationRun& run) {
  Eigen::Vector3d sum = Eigen::Vector3d::Zero();
  const auto count = static_cast<double>(run.moments.size()) - 1;
  if (count < 1) return sum;
  for (std::size_t i = 1; i < run.moments.size(); ++i) {
    const Moment &before = run.moments[i - 1], &after = run.moments[i];
    const Eigen::Vector3d step = after.p_WB - before.p_WB;
    const double c = std::cos(before.yaw), s = std::sin(before.yaw);
    sum += Eigen::Vector3d(c * step.x() + s * step.y(),
                           -s * step.x() + c * step.y(),
                           std::remainder(after.yaw - before.yaw, 2 * std::numbers::pi));
  }
  return sum / (count * run.timing.period);
}

}  // namespace

RunSummary Summarize(const ObservationRun& run) {
  RunSummary summary;
  if (run.moments.empty()) return summary;

  for (int i = 0; i < static_cast<int>(run.joints.size()); ++i) {
    JointSummary joint;
    joint.name = run.joints[i];
    joint.kp = run.servo.kp[i];
    joint.kd = run.servo.kd[i];
    joint.one_step =
        Median(Collect(run.moments, [&](const Moment& m) { return m.reading.K_1_diag[i]; }));
    joint.quasi_static =
        Median(Collect(run.moments, [&](const Moment& m) { return m.reading.K_s_diag[i]; }));
    for (std::size_t k = 0; k < kDampingHz.size(); ++k) {
      joint.damping[k] =
          Median(Collect(run.moments, [&](const Moment& m) { return m.damping[k][i]; }));
    }
    summary.joints.push_back(joint);
  }

  const BudgetSpec& budget = run.budget.spec;
  summary.points.push_back(
      SummarizePoint(run, "centre of mass", budget.com, [](const Moment& m) -> const PointReading& {
        return m.reading.com;
      }));
  for (const int hand : {kLeft, kRight}) {
    summary.points.push_back(SummarizePoint(
        run,
        hand == kLeft ? "left hand in the world" : "right hand in the world",
        std::nullopt,
        [hand](const Moment& m) -> const PointReading& { return m.reading.hand_in_world[hand]; }));
  }
  for (const int hand : {kLeft, kRight}) {
    if (!budget.hand[hand]) continue;
    summary.points.push_back(SummarizePoint(
        run,
        hand == kLeft ? "left hand on the base" : "right hand on the base",
        budget.hand[hand],
        [hand](const Moment& m) -> const PointReading& { return m.reading.hand_on_base[hand]; }));
  }

  std::map<ContactMode, std::vector<const Moment*>> by_mode;
  std::vector<const Moment*> all;
  for (const Moment& moment : run.moments) {
    by_mode[moment.mode].push_back(&moment);
    all.push_back(&moment);
  }
  for (const auto& [mode, moments] : by_mode) {
    summary.modes.push_back(SummarizeMode(moments, run.moments.size()));
  }
  if (by_mode.size() > 1) summary.modes.push_back(SummarizeMode(all, run.moments.size()));

  const std::vector<double> radii =
      Collect(run.moments, [](const Moment& m) { return m.reading.loop.rho; });
  summary.loop_radius_median = Median(radii);
  for (const Moment& moment : run.moments) {
    summary.loop_radius_is_bound |= moment.reading.loop.method == ActionLoopMethod::kBound;
  }
  summary.loop_radius_max = Quantile(radii, 1);
  for (const Moment& moment : run.moments) {
    summary.saturation += moment.saturation / static_cast<double>(run.moments.size());
  }

  summary.velocity = MeanVelocity(run);

  std::map<StiffnessStatus, int> missing;
  for (const Moment& moment : run.moments) {
    if (moment.reading.static_status != StiffnessStatus::kOk)
      ++missing[moment.reading.static_status];
  }
  summary.missing.assign(missing.begin(), missing.end());
  return summary;
}

bool BudgetHolds(const RunSummary& summary) {
  if (summary.modes.empty()) return false;
  const ModeSummary& all = summary.modes.back();
  return all.moments > 0 && all.judged == all.moments && all.over == 0;
}

}  // namespace silc
