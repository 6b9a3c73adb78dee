// SPDX-License-Identifier: Apache-2.0
#include "silc/eval/experiment_metrics.h"

#include <fmt/format.h>

#include "silc/stiffness/condition.h"

// Braces initialise from left to right, so families are declared in the order in which they stand.
namespace silc::metric {

std::string KeptLabel() { return fmt::format("σ ≤ {:g}", kKeptSigma); }

BudgetMetrics::Quantiles BudgetMetrics::DeclareQuantiles(const std::string& suffix,
                                                         const std::string& where) {
  const auto p99 = [&](const std::string& name, const std::string& label) {
    return DeclareOfBudget(name + suffix, label + where, "", Better::kLower);
  };
  return {p99("worst_one_step_p99", "worst eigenvalue p99, K₁"),
          p99("worst_static_p99", "worst eigenvalue p99, K_s"),
          p99("sigma_paper_p99", "σ p99, (S7a) on K₁"),
          p99("disc_p99", "σ p99, (S7c) on K_s")};
}

BudgetMetrics::InMode BudgetMetrics::DeclareMode(const std::string& suffix,
                                                 const std::string& where) {
  return {Declare("moments" + suffix, "moments" + where, "%", Better::kNeither),
          DeclareQuantiles(suffix, where)};
}

EpisodeMetrics::Motion EpisodeMetrics::DeclareMotion(const std::string& suffix,
                                                     const std::string& where) {
  const auto mean = [&](const std::string& name, const std::string& label, const char* unit) {
    return Declare(name + suffix, label + where, unit, Better::kLower);
  };
  return {mean("action_jitter", "action jitter", "1/s³"),
          mean("velocity_jitter", "velocity jitter", "rad/s⁴"),
          mean("torque_jitter", "torque jitter", "N·m/s³"),
          mean("power", "mean |τ q̇|", "W")};
}

EpisodeMetrics::Support EpisodeMetrics::DeclareSupport(const std::string& suffix,
                                                       const std::string& where) {
  return {
      DeclareOfBudget("disc_p99" + suffix, "σ p99, (S7c) on K_s" + where, "", Better::kLower),
      DeclareOfBudget(
          "worst_static_p99" + suffix, "worst eigenvalue p99, K_s" + where, "", Better::kLower)};
}

KnobMetrics::Point KnobMetrics::DeclarePoint(const std::string& name, const std::string& label) {
  return {
      DeclareAxes(name + "_most", label + ": most measured/commanded", "", Better::kLower),
      DeclareAxes(name + "_least", label + ": least measured/commanded", "", Better::kHigher),
      DeclareAxes(name + "_span", label + ": measured at the ends, high/low", "", Better::kHigher),
      Declare(name + "_monotone", label + ": neighbouring values in order", "%", Better::kHigher),
      Declare(
          name + "_over_model", label + ": measured/K_s with weight, median", "", Better::kNeither),
      DeclareOfBudget(
          name + "_within_standing", label + ": σ ≤ 1 standing, worst value", "%", Better::kHigher),
      DeclareOfBudget(
          name + "_within_walking", label + ": σ ≤ 1 walking, worst value", "%", Better::kHigher)};
}

KnobMetrics::Steps KnobMetrics::DeclareSteps(const std::string& situation) {
  return {
      Declare(
          "settling_" + situation, "90 % of the new stiffness, " + situation, "s", Better::kLower),
      Declare("settling_p95_" + situation,
              "90 % of the new stiffness, p95, " + situation,
              "s",
              Better::kLower),
      Declare("falls_" + situation, "falls after a step, " + situation, "%", Better::kLower)};
}

FrequencyMetrics::Point FrequencyMetrics::DeclarePoint(const std::string& name,
                                                       const std::string& label) {
  const auto at = [&](double hz) {
    return AtFrequency{hz,
                       Declare(fmt::format("{}_stiffness_{:g}hz", name, hz),
                               fmt::format("{}: Re at {:g} Hz", label, hz),
                               "N/m",
                               Better::kNeither),
                       Declare(fmt::format("{}_damping_{:g}hz", name, hz),
                               fmt::format("{}: Im/ω at {:g} Hz", label, hz),
                               "N·s/m",
                               Better::kHigher)};
  };
  return {
      name,
      label,
      Declare(
          name + "_error", label + ": |measured − (S4)|/|measured|, median", "%", Better::kLower),
      Declare(name + "_residual", label + ": worst share of other motion", "%", Better::kLower),
      at(0.5),
      at(1),
      at(3),
      at(10)};
}

std::vector<MetricHandle> PunchMetrics::DeclareForces(const std::string& doing) {
  std::vector<MetricHandle> handles;
  for (const double force : kForces) {
    handles.push_back(Declare(fmt::format("{}_{:g}n", doing, force),
                              fmt::format("fallen {}, {:g} N", doing, force),
                              "%",
                              Better::kLower));
  }
  return handles;
}

const ComImpulseMetrics& ComImpulse() {
  static const ComImpulseMetrics metrics;
  return metrics;
}

const HandLoadMetrics& HandLoad() {
  static const HandLoadMetrics metrics;
  return metrics;
}

const BudgetMetrics& Budget() {
  static const BudgetMetrics metrics;
  return metrics;
}

const EpisodeMetrics& Walk() {
  static const EpisodeMetrics metrics("walk");
  return metrics;
}

const EpisodeMetrics& Stand() {
  static const EpisodeMetrics metrics("stand");
  return metrics;
}

const HandImpactMetrics& HandImpact() {
  static const HandImpactMetrics metrics;
  return metrics;
}

const FoamStepMetrics& FoamStep() {
  static const FoamStepMetrics metrics;
  return metrics;
}

const ComLoadMetrics& ComLoad() {
  static const ComLoadMetrics metrics;
  return metrics;
}

const ComLoadWalkMetrics& ComLoadWalk() {
  static const ComLoadWalkMetrics metrics;
  return metrics;
}

const KnobMetrics& Knob() {
  static const KnobMetrics table;
  return table;
}
const PunchMetrics& Punch() {
  static const PunchMetrics metrics;
  return metrics;
}

const FrequencyMetrics& Frequency() {
  static const FrequencyMetrics metrics;
  return metrics;
}

}  // namespace silc::metric
