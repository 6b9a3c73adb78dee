// SPDX-License-Identifier: Apache-2.0
#include "silc/eval/experiment.h"

#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>

#include "silc/base/check.h"
#include "silc/base/error.h"
#include "silc/base/nan.h"
#include "silc/base/nearest.h"
#include "silc/config/budget_json.h"
#include "silc/eval/bootstrap.h"
#include "silc/eval/experiment_metrics.h"
#include "silc/eval/experiments.h"
#include "silc/observe/load_policy.h"

namespace silc {
namespace {

using Json = nlohmann::ordered_json;

Json Number(double value) {
  if (std::isnan(value)) return nullptr;
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  return value;
}

Json Numbers(const std::vector<double>& values) {
  Json list = Json::array();
  for (const double value : values) list.push_back(Number(value));
  return list;
}

double ToNumber(const Json& json) {
  if (json.is_null()) return kNan;
  if (json.is_number()) return json.get<double>();
  const std::string text = json.get<std::string>();
  if (text == "inf") return HUGE_VAL;
  if (text == "-inf") return -HUGE_VAL;
  throw ConfigError("'" + text + "' is no number");
}

std::vector<double> ToNumbers(const Json& json) {
  std::vector<double> values;
  for (const Json& item : json) values.push_back(ToNumber(item));
  return values;
}

// A number written as 1e88 or -1 must not be cut to what fits: nlohmann's get<int>() does, without
// a word.
int ToCount(const Json& json, const std::string& what) {
  if (!json.is_number_unsigned() || json.get<std::uint64_t>() > std::numeric_limits<int>::max()) {
    throw ConfigError("'" + what + "' must be a count and is " + json.dump());
  }
  return json.get<int>();
}

std::vector<std::uint64_t> ToSeeds(const Json& json) {
  std::vector<std::uint64_t> seeds;
  for (const Json& item : json) {
    if (!item.is_number_unsigned()) {
      throw ConfigError("'seeds' must be whole numbers from 0 and one is " + item.dump());
    }
    seeds.push_back(item.get<std::uint64_t>());
  }
  return seeds;
}

constexpr int kMaxResultDepth = 64;  // lists in lists; a result has five

const std::vector<std::string> kStyles = {"solid", "dashed", "dotted", "points"};

Json MetricJson(const Metric& metric) {
  Json json = {{"name", metric.what->name},
               {"label", metric.what->label},
               {"unit", metric.what->unit},
               {"value", Number(metric.value)},
               {"ci95", {Number(metric.low), Number(metric.high)}},
               {"n", metric.n}};
  if (!metric.samples.empty()) json["samples"] = Numbers(metric.samples);
  return json;
}

Metric ToMetric(const Json& json, const MetricTable& declared) {
  const std::string name = json.at("name").get<std::string>();
  const std::optional<MetricHandle> what = declared.Find(name);
  if (!what) {
    throw ConfigError("'" + name + "' is no metric of " + declared.experiment() +
                      DidYouMean(name, declared.Names()));
  }
  const std::string unit = json.at("unit").get<std::string>();
  if (unit != (*what)->unit) {
    throw ConfigError("metric '" + name + "' of " + declared.experiment() + " is in [" +
                      (*what)->unit + "] and not in [" + unit + "]");
  }
  Metric metric{*what};
  metric.value = ToNumber(json.at("value"));
  metric.low = ToNumber(json.at("ci95").at(0));
  metric.high = ToNumber(json.at("ci95").at(1));
  metric.n = ToCount(json.at("n"), "n");
  if (json.contains("samples")) metric.samples = ToNumbers(json["samples"]);
  return metric;
}

Json CurveJson(const Curve& curve) {
  return {{"panel", curve.panel},
          {"label", curve.label},
          {"x_label", curve.x_label},
          {"y_label", curve.y_label},
          {"style", kStyles[static_cast<int>(curve.style)]},
          {"shared", curve.shared},
          {"log", {curve.log_x, curve.log_y}},
          {"x", Numbers(curve.x)},
          {"y", Numbers(curve.y)}};
}

Curve ToCurve(const Json& json) {
  Curve curve;
  curve.panel = json.at("panel").get<std::string>();
  curve.label = json.at("label").get<std::string>();
  curve.x_label = json.at("x_label").get<std::string>();
  curve.y_label = json.at("y_label").get<std::string>();
  const std::string style = json.at("style").get<std::string>();
  const auto found = std::find(kStyles.begin(), kStyles.end(), style);
  if (found == kStyles.end()) throw ConfigError("style '" + style + "' is not known");
  curve.style = static_cast<Curve::Style>(found - kStyles.begin());
  curve.shared = json.at("shared").get<bool>();
  curve.log_x = json.at("log").at(0).get<bool>();
  curve.log_y = json.at("log").at(1).get<bool>();
  curve.x = ToNumbers(json.at("x"));
  curve.y = ToNumbers(json.at("y"));
  if (curve.x.size() != curve.y.size()) throw ConfigError("a curve's x and y differ in length");
  return curve;
}

// What each experiment is: its name, its size and the figures that stand in its summary.

Experiment DeclareComImpulse() {
  const metric::ComImpulseMetrics& m = metric::ComImpulse();
  return {.name = m.experiment(),
          .what = "standing, −150 N on the pelvis for 0.05 s: where the centre of mass goes",
          .paper = "Fig. com_impact",
          .episodes = 10,
          .unit = "trials",
          .metrics = m,
          .headline = {m.survival, m.peak_excursion, m.residual_offset, m.settling_time},
          .run = RunComImpulse};
}

Experiment DeclareHandLoad() {
  const metric::HandLoadMetrics& m = metric::HandLoad();
  return {
      .name = m.experiment(),
      .what =
          "standing, −40 N on the left hand, and ramps along three axes: stiffness in the world, "
          "and on the base against its spec",
      .paper = "Fig. left_hand",
      .episodes = 12,
      .unit = "trials",
      .metrics = m,
      .headline = {m.survival,
                   m.step_stiffness_z,
                   m.measured.z,
                   m.static_with_weight.z,
                   m.one_step.z,
                   m.on_base.z},
      .run = RunHandLoad};
}

Experiment DeclareBudget() {
  const metric::BudgetMetrics& m = metric::Budget();
  return {.name = m.experiment(),
          .what =
              "stepping with moving arms: the quadratic form and its worst direction against the "
              "budget",
          .paper = "Fig. kq_budget",
          .episodes = 3,
          .unit = "trials",
          .metrics = m,
          .headline = {m.survival,
                       m.random_direction_violations_one_step,
                       m.all.worst_one_step_p99,
                       m.all.worst_static_p99,
                       m.all.disc_p99,
                       m.condition_p99,
                       m.judged_share},
          .run = RunBudget,
          .plots_apart = true};
}

Experiment DeclareWalk() {
  const metric::EpisodeMetrics& m = metric::Walk();
  return {
      .name = m.experiment(),
      .what = "random commands and arm motions, one episode of 20 s each: jitter, energy, tracking",
      .paper = "Table II",
      .episodes = 1024,
      .unit = "robots",
      .metrics = m,
      .headline = {m.survival,
                   m.motion.action_jitter,
                   m.motion.velocity_jitter,
                   m.motion.torque_jitter,
                   m.motion.power,
                   m.velocity_error,
                   m.gait_error,
                   m.arm_error,
                   m.disc_within,
                   m.condition_within},
      .run = RunWalk};
}

Experiment DeclareStand() {
  const metric::EpisodeMetrics& m = metric::Stand();
  return {
      .name = m.experiment(),
      .what = "20 s through pushes of 50 N for 0.1 s from all sides",
      .paper = "",
      .episodes = 100,
      .unit = "robots",
      .metrics = m,
      .headline =
          {m.survival, m.arm_error, m.disc_within, m.disc_median, m.disc_p95, m.condition_within},
      .run = RunStand};
}

Experiment DeclareHandImpact() {
  const metric::HandImpactMetrics& m = metric::HandImpact();
  return {
      .name = m.experiment(),
      .what = "standing, 2.5 kg on a 0.3 m rope dropped from the right hand: settling, 5–100 Hz",
      .paper = "Table III",
      .episodes = 10,
      .unit = "trials",
      .metrics = m,
      .headline = {m.survival, m.settling_time_z, m.band_power_z, m.peak_excursion_z},
      .run = RunHandImpact};
}

Experiment DeclareFoamStep() {
  const metric::FoamStepMetrics& m = metric::FoamStep();
  return {.name = m.experiment(),
          .what = "stepping with the left foot on 30 mm of foam: gyroscope and accelerometer",
          .paper = "Table IV",
          .episodes = 10,
          .unit = "trials",
          .metrics = m,
          .headline = {m.survival, m.gyro_rms, m.gyro_p95_p5, m.acc_rms, m.acc_p95_p5},
          .run = RunFoamStep};
}

Experiment DeclareFrequency() {
  const metric::FrequencyMetrics& m = metric::Frequency();
  return {.name = m.experiment(),
          .what =
              "standing, a shaker at the left hand and the centre of mass, 0.5 to 24 Hz, against "
              "(S4)",
          .paper = "",
          .episodes = 1,
          .unit = "trials",
          .metrics = m,
          .headline = {m.survival,
                       m.hand_in_world_z.error,
                       m.com_x.error,
                       m.hand_in_world_z.at_1hz.stiffness,
                       m.hand_in_world_z.at_3hz.damping},
          .run = RunFrequency};
}

Experiment DeclareComLoad() {
  const metric::ComLoadMetrics& m = metric::ComLoad();
  return {.name = m.experiment(),
          .what =
              "standing, ±5, ±10 and ±20 N at the centre of mass: what is felt, against K_s with "
              "weight and the spec",
          .paper = "",
          .episodes = 6,
          .unit = "trials",
          .metrics = m,
          .headline = {m.survival,
                       m.measured.x,
                       m.measured.y,
                       m.measured_over_model.x,
                       m.measured_over_model.y,
                       m.sway},
          .run = RunComLoad};
}

Experiment DeclareComLoadWalk() {
  const metric::ComLoadWalkMetrics& m = metric::ComLoadWalk();
  return {.name = m.experiment(),
          .what =
              "walking, ±5, ±10 and ±20 N at the centre of mass, averaged over the gait against a "
              "twin that is not pushed",
          .paper = "",
          .episodes = 6,
          .unit = "trials",
          .metrics = m,
          .headline = {m.survival,
                       m.measured.x,
                       m.measured.y,
                       m.measured.z,
                       m.static_with_weight.x,
                       m.static_with_weight.y,
                       m.speed.x,
                       m.speed.y,
                       m.refused},
          .run = RunComLoadWalk};
}

Experiment DeclarePunch() {
  const metric::PunchMetrics& m = metric::Punch();
  return {.name = m.experiment(),
          .what =
              "150 to 900 N at the pelvis for 0.08 s from 8 sides, standing and walking: how many "
              "fall",
          .paper = "",
          .episodes = 2,
          .unit = "starts",
          .metrics = m,
          .headline = {m.survival,
                       m.standing[1],
                       m.standing[3],
                       m.standing[5],
                       m.walking[1],
                       m.walking[3],
                       m.walking[5]},
          .run = RunPunch};
}

Experiment DeclareKnob() {
  const metric::KnobMetrics& m = metric::Knob();
  return {.name = m.experiment(),
          .what =
              "a commanded policy at 8 values of its command: commanded against K_s and measured, "
              "σ; and steps of the command",
          .paper = "",
          .episodes = 12,
          .unit = "trials",
          .metrics = m,
          .headline = {m.survival,
                       m.com.most.x,
                       m.com.span.x,
                       m.hand_on_base.most.z,
                       m.hand_on_base.span.z,
                       m.hand_on_base.within_walking,
                       m.standing.settling,
                       m.walking.settling},
          .run = RunKnob,
          .plots_apart = true,
          .tabulates = true};
}

}  // namespace

const Metric* ExperimentResult::Find(MetricHandle what) const {
  for (const Metric& metric : metrics) {
    if (metric.what == what) return &metric;
  }
  return nullptr;
}

double ExperimentResult::Value(MetricHandle what) const {
  const Metric* metric = Find(what);
  return metric != nullptr ? metric->value : kNan;
}

std::string ToJson(const ExperimentResult& r, int indent) {
  Json json = {{"experiment", r.experiment},
               {"policy", r.policy},
               {"policy_sha256", r.policy_hash},
               {"layout", r.layout},
               {"robot", r.robot},
               {"gains", r.gains},
               {"budget", BudgetJson(r.mode, r.budget)},
               {"seeds", r.seeds},
               {"settings", r.settings},
               {"trials", r.trials},
               {"falls", r.falls},
               {"notes", r.notes}};
  json["metrics"] = Json::array();
  for (const Metric& metric : r.metrics) json["metrics"].push_back(MetricJson(metric));
  json["curves"] = Json::array();
  for (const Curve& curve : r.curves) json["curves"].push_back(CurveJson(curve));
  json["spans"] = Json::array();
  for (const Span& span : r.spans) {
    json["spans"].push_back({{"panel", span.panel},
                             {"label", span.label},
                             {"x0", Number(span.x0)},
                             {"x1", Number(span.x1)}});
  }
  // names of files and their notes may be any bytes
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

ExperimentResult FromJson(const std::string& text, const std::string& place) {
  try {
    // whoever writes a value again goes down into it, a stack frame for each list in a list
    const Json json = Json::parse(text, [](int depth, Json::parse_event_t, const Json&) {
      if (depth > kMaxResultDepth) {
        throw ConfigError("nested deeper than " + std::to_string(kMaxResultDepth) + " levels");
      }
      return true;
    });
    ExperimentResult r;
    r.experiment = json.at("experiment").get<std::string>();
    r.policy = json.at("policy").get<std::string>();
    r.policy_hash = json.at("policy_sha256").get<std::string>();
    r.layout = json.at("layout").get<std::string>();
    r.robot = json.at("robot").get<std::string>();
    r.gains = json.value("gains", "");  // results of before policies had gains of their own
    Json budget = json.at("budget");
    r.mode = budget.at("name").get<std::string>();
    budget.erase("name");
    r.budget = ParseBudget(budget.dump(), "budget").spec;
    r.seeds = ToSeeds(json.at("seeds"));
    r.settings = json.at("settings").get<std::map<std::string, std::string>>();
    r.trials = ToCount(json.at("trials"), "trials");
    r.falls = ToCount(json.at("falls"), "falls");
    r.notes = json.at("notes").get<std::vector<std::string>>();
    const MetricTable& declared = FindExperiment(r.experiment).metrics;
    for (const Json& metric : json.at("metrics")) {
      r.metrics.push_back(ToMetric(metric, declared));
      if (r.Find(r.metrics.back().what) != &r.metrics.back()) {
        throw ConfigError("metric '" + r.metrics.back().what->name + "' is there twice");
      }
    }
    for (const Json& curve : json.at("curves")) r.curves.push_back(ToCurve(curve));
    for (const Json& span : json.at("spans")) {
      r.spans.push_back({span.at("panel").get<std::string>(),
                         span.at("label").get<std::string>(),
                         ToNumber(span.at("x0")),
                         ToNumber(span.at("x1"))});
    }
    return r;
  } catch (const ConfigError& error) {  // what silc does not know, in its own words
    throw ConfigError(place + ": " + error.what());
  } catch (const std::exception& error) {
    throw ConfigError(place + ": is no result of silc eval: " + error.what());
  }
}

const std::vector<Experiment>& Experiments() {
  static const std::vector<Experiment> experiments = {
      DeclareComImpulse(),
      DeclareHandLoad(),
      DeclareBudget(),
      DeclareWalk(),
      DeclareStand(),
      DeclareHandImpact(),
      DeclareFoamStep(),
      DeclareFrequency(),
      DeclareComLoad(),
      DeclareComLoadWalk(),
      DeclarePunch(),
      DeclareKnob(),
  };
  return experiments;
}

const Experiment& FindExperiment(const std::string& name) {
  std::vector<std::string> names;
  for (const Experiment& experiment : Experiments()) {
    if (experiment.name == name) return experiment;
    names.push_back(experiment.name);
  }
  throw ConfigError("there is no experiment '" + name + "'" + DidYouMean(name, names));
}

void CheckSeeds(const std::vector<std::uint64_t>& seeds) {
  if (seeds.empty()) throw ConfigError("--seeds: an experiment needs at least one");
  std::set<std::uint64_t> seen;
  for (const std::uint64_t seed : seeds) {
    if (!seen.insert(seed).second) {
      throw ConfigError("--seeds: " + std::to_string(seed) +
                        " is there twice\n  The same seed gives the same episodes again, not more "
                        "of them; name each once, or raise --episodes.");
    }
  }
}

ExperimentResult RunExperiment(const Experiment& experiment,
                               const std::string& policy_path,
                               const Policy& policy,
                               const ExperimentOptions& options,
                               const Progress& progress) {
  ExperimentOptions filled = options;
  if (filled.episodes <= 0) filled.episodes = experiment.episodes;
  CheckSeeds(filled.seeds);
  filled.budget = options.Budget();
  ExperimentResult result = experiment.run(policy, filled, progress);
  result.experiment = experiment.name;
  result.policy = policy_path;
  result.policy_hash = PolicyHash(policy_path);
  result.layout = policy.layout().name;
  result.robot = filled.robot;
  const RobotModel robot = RobotModel::Load(filled.robot);
  result.gains = GainsOf(robot, policy).name;
  result.mode = filled.budget->name;
  result.budget = filled.budget->spec;
  result.seeds = filled.seeds;
  return result;
}

Metric PoolMetrics(const std::vector<const Metric*>& metrics, std::uint64_t seed) {
  SILC_CHECK(!metrics.empty());
  Metric pooled = *metrics.front();
  pooled.samples.clear();
  pooled.value = 0;
  pooled.n = 0;
  std::vector<std::vector<double>> groups;
  for (const Metric* metric : metrics) {
    pooled.value += metric->value / static_cast<double>(metrics.size());
    pooled.n += metric->n;
    pooled.samples.push_back(metric->value);
    // a quantile or an RMS has no samples whose mean it is: its policies alone are resampled
    groups.push_back({metric->value});
    std::vector<double> finite;
    double mean = 0;
    for (const double s : metric->samples) {
      if (!std::isfinite(s)) continue;
      finite.push_back(s);
      mean += s;
    }
    if (finite.empty()) continue;
    mean /= static_cast<double>(finite.size());
    if (std::abs(mean - metric->value) <= 1e-9 * std::abs(mean)) groups.back() = finite;
  }
  if (metrics.size() == 1) {
    pooled.low = metrics.front()->low;
    pooled.high = metrics.front()->high;
    return pooled;
  }
  const Interval interval = BootstrapGroups(groups, seed);
  pooled.low = interval.low;
  pooled.high = interval.high;
  return pooled;
}

}  // namespace silc
