// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "silc/base/error.h"
#include "silc/config/budget_file.h"
#include "silc/eval/bootstrap.h"
#include "silc/eval/episodes.h"
#include "silc/eval/experiment_metrics.h"
#include "silc/eval/experiments.h"
#include "silc/eval/trial.h"
#include "silc/stiffness/condition.h"

namespace silc {
namespace {

constexpr int kFewResamples = 300;  // for statistics over all moments, which take long

// All seeds' episodes as one report; a seed is a batch of robots of its own.
EpisodeReport RunSeeds(const Policy& policy,
                       const ExperimentOptions& options,
                       const TaskConfig& task,
                       const Progress& progress) {
  if (options.robot != kDefaultRobot) {
    throw ConfigError("robot '" + options.robot +
                      "': episodes are of g1-loco and g1-stand, for the robot g1; the other "
                      "experiments take any");
  }
  EpisodeReport all;
  for (std::size_t k = 0; k < options.seeds.size(); ++k) {
    EpisodeOptions episodes;
    episodes.task = task;
    episodes.episodes = options.episodes;
    episodes.threads = options.threads;
    episodes.seed = options.seeds[k];
    episodes.budget = options.Budget().spec;
    episodes.observe_every = options.observe_every;
    const double share = 1.0 / static_cast<double>(options.seeds.size());
    EpisodeReport one = RunEpisodes(policy, episodes, [&](double done) {
      if (progress) progress((static_cast<double>(k) + done) * share);
    });
    for (SigmaSample& s : one.sigma) s.episode += static_cast<int>(all.episodes.size());
    all.episodes.insert(all.episodes.end(), one.episodes.begin(), one.episodes.end());
    all.sigma.insert(all.sigma.end(), one.sigma.begin(), one.sigma.end());
  }
  return all;
}

// √ of a time-weighted mean of squares over episodes; the bootstrap's units are episodes.
template <class Square, class Weight>
Metric RmsMetric(MetricHandle what, const EpisodeReport& report, Square square, Weight weight) {
  const auto of = [&](std::span<const int> index) {
    double sum = 0, total = 0;
    for (const int i : index) {
      const EpisodeResult& e = report.episodes[i];
      if (!(weight(e) > 0)) continue;
      sum += weight(e) * square(e);
      total += weight(e);
    }
    return std::sqrt(sum / total);
  };
  std::vector<int> all(report.episodes.size());
  std::iota(all.begin(), all.end(), 0);
  Metric metric{what};
  metric.value = of(all);
  for (const EpisodeResult& e : report.episodes) metric.n += weight(e) > 0;
  const Interval interval = Bootstrap(static_cast<int>(all.size()), of);
  metric.low = interval.low;
  metric.high = interval.high;
  return metric;
}

// A statistic of observed moments; the bootstrap's units are episodes, whose moments belong
// together.
Metric MomentMetric(MetricHandle what,
                    const EpisodeReport& report,
                    const std::function<double(const SigmaSample&)>& value,
                    const std::function<double(std::vector<double>*)>& statistic,
                    const std::function<bool(const SigmaSample&)>& filter = {}) {
  std::vector<std::vector<double>> per(report.episodes.size());
  Metric metric{what};
  for (const SigmaSample& s : report.sigma) {
    if (filter && !filter(s)) continue;
    const double v = value(s);
    if (std::isnan(v)) continue;
    per[s.episode].push_back(v);
    ++metric.n;
  }
  const auto of = [&](std::span<const int> index) {
    std::vector<double> values;
    for (const int i : index) values.insert(values.end(), per[i].begin(), per[i].end());
    return values.empty() ? double(NAN) : statistic(&values);
  };
  std::vector<int> all(per.size());
  std::iota(all.begin(), all.end(), 0);
  metric.value = of(all);
  const Interval interval = Bootstrap(static_cast<int>(all.size()), of, 1, kFewResamples);
  metric.low = interval.low;
  metric.high = interval.high;
  return metric;
}

double OrderStatistic(std::vector<double>* values, double p) {
  const auto at = values->begin() + static_cast<std::ptrdiff_t>(p * double(values->size() - 1));
  std::nth_element(values->begin(), at, values->end());
  return *at;
}

void AddStiffness(const metric::EpisodeMetrics& declared,
                  const EpisodeReport& report,
                  Condition condition,
                  ExperimentResult* result) {
  if (report.sigma.empty()) return;
  const auto disc = [](const SigmaSample& s) { return s.sound ? s.disc : HUGE_VAL; };
  const auto worst = [](const SigmaSample& s) { return s.sound ? s.worst : HUGE_VAL; };
  const auto paper = [](const SigmaSample& s) { return s.paper; };
  const auto paper_worst = [](const SigmaSample& s) { return s.paper_worst; };
  const auto quantile = [](double p) {
    return [p](std::vector<double>* values) { return OrderStatistic(values, p); };
  };
  const auto within = [](std::vector<double>* values) {
    double k = 0;
    for (const double v : *values) k += v <= kKeptSigma;
    return 100 * k / static_cast<double>(values->size());
  };
  auto add = [&](MetricHandle what,
                 const std::function<double(const SigmaSample&)>& value,
                 const std::function<double(std::vector<double>*)>& statistic,
                 const std::function<bool(const SigmaSample&)>& filter = {}) {
    result->metrics.push_back(MomentMetric(what, report, value, statistic, filter));
  };
  if (condition != Condition::kDisc) {
    const auto own = [](const SigmaSample& s) { return s.sound ? s.own : HUGE_VAL; };
    add(declared.condition_within, own, within);
    add(declared.condition_median, own, quantile(0.5));
  }
  add(declared.disc_within, disc, within);
  add(declared.paper_within, paper, within);
  add(declared.disc_median, disc, quantile(0.5));
  add(declared.disc_p95, disc, quantile(0.95));
  add(declared.all_support.disc_p99, disc, quantile(0.99));
  add(declared.all_support.worst_static_p99, worst, quantile(0.99));
  add(declared.worst_one_step_p99, paper_worst, quantile(0.99));
  struct Group {
    const metric::EpisodeMetrics::Support& into;
    bool single;
  };
  for (const Group& group :
       {Group{declared.double_support, false}, Group{declared.single_support, true}}) {
    const auto in = [single = group.single](const SigmaSample& s) {
      return single ? s.mode == ContactMode::kLeftSupport || s.mode == ContactMode::kRightSupport
                    : s.mode == ContactMode::kDoubleSupport;
    };
    if (!std::any_of(report.sigma.begin(), report.sigma.end(), in)) continue;
    add(group.into.disc_p99, disc, quantile(0.99), in);
    add(group.into.worst_static_p99, worst, quantile(0.99), in);
  }
}

}  // namespace

ExperimentResult ResultOfEpisodes(const metric::EpisodeMetrics& declared,
                                  const EpisodeReport& report,
                                  const ExperimentOptions& options) {
  ExperimentResult result;
  const int n = static_cast<int>(report.episodes.size());
  int stood = 0;
  for (const EpisodeResult& e : report.episodes) stood += !e.fell;
  result.trials = n;
  result.falls = n - stood;
  result.metrics.push_back(ShareMetric(declared.survival, stood, n));
  if (stood < n) {
    result.notes.push_back(fmt::format(
        "{} of {} robots fell; what they did before counts in the other numbers", n - stood, n));
  }

  struct Part {
    const metric::EpisodeMetrics::Motion& into;
    MotionMeasures EpisodeResult::*of;
  };
  for (const Part& part : {Part{declared.motion, &EpisodeResult::all},
                           Part{declared.lower, &EpisodeResult::lower},
                           Part{declared.upper, &EpisodeResult::upper}}) {
    const auto add = [&](MetricHandle what, auto member) {
      std::vector<double> samples;
      for (const EpisodeResult& e : report.episodes) samples.push_back((e.*part.of).*member);
      Metric metric = MeanMetric(what, samples);
      if (metric.n > 0) result.metrics.push_back(std::move(metric));
    };
    add(part.into.action_jitter, &MotionMeasures::action_jitter);
    add(part.into.velocity_jitter, &MotionMeasures::velocity_jitter);
    add(part.into.torque_jitter, &MotionMeasures::torque_jitter);
    add(part.into.power, &MotionMeasures::power);
  }
  const auto walking = [](const EpisodeResult& e) { return e.walking; };
  const auto lived = [](const EpisodeResult& e) { return e.seconds; };
  const bool walked = std::any_of(
      report.episodes.begin(), report.episodes.end(), [](const auto& e) { return e.walking > 0; });
  if (walked) {
    result.metrics.push_back(RmsMetric(
        declared.velocity_error, report, [](const auto& e) { return e.velocity_error2; }, walking));
    result.metrics.push_back(RmsMetric(
        declared.gait_error, report, [](const auto& e) { return e.gait_error2; }, walking));
  }
  result.metrics.push_back(RmsMetric(
      declared.arm_error, report, [](const auto& e) { return e.arm_error2; }, lived));
  std::vector<double> saturation;
  for (const EpisodeResult& e : report.episodes) saturation.push_back(100 * e.saturation);
  result.metrics.push_back(MeanMetric(declared.saturation, saturation));
  AddStiffness(declared, report, options.Budget().spec.condition, &result);
  result.settings = {
      {"robots per seed", std::to_string(options.episodes)},
      {"hand forces", fmt::format("{:g} of the task's", options.force_scale)},
      {"stiffness observed", fmt::format("every {} control steps", options.observe_every)}};
  return result;
}

ExperimentResult RunWalk(const Policy& policy,
                         const ExperimentOptions& options,
                         const Progress& progress) {
  const TaskConfig task = NominalTask(ReadTaskFile(FindTaskFile(kDefaultTask)).config,
                                      static_cast<float>(options.force_scale));
  ExperimentResult result =
      ResultOfEpisodes(metric::Walk(), RunSeeds(policy, options, task, progress), options);
  result.settings["task"] = fmt::format(
      "{}, {:g} s, {:g} % of commands walk; jitter and power of the walking part, at {:g} s",
      kDefaultTask,
      task.episode.length,
      100 * task.commands.walk_prob,
      policy.layout().control_dt);
  return result;
}

ExperimentResult RunStand(const Policy& policy,
                          const ExperimentOptions& options,
                          const Progress& progress) {
  TaskConfig task = NominalTask(ReadTaskFile(FindTaskFile("g1-stand")).config, 1);
  task.push = {.force = 50, .min_share = 1, .duration = 0.1f, .interval_min = 2, .interval_max = 4};
  // from rest in the standing pose: the pushes are what is tried, not the landing
  task.episode.start_speed = task.episode.start_legs = 0;
  const float scale = static_cast<float>(options.force_scale);
  task.hand_force.max_x *= scale;
  task.hand_force.max_y *= scale;
  task.hand_force.max_up *= scale;
  task.hand_force.max_down *= scale;
  task.hand_force.noise *= scale;
  ExperimentResult result =
      ResultOfEpisodes(metric::Stand(), RunSeeds(policy, options, task, progress), options);
  result.settings["task"] = fmt::format(
      "g1-stand, {:g} s from rest, pushes of 50 N for 0.1 s every 2 to 4 s", task.episode.length);
  return result;
}

}  // namespace silc
