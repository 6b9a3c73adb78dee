// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <string>
#include <vector>

#include "silc/eval/metric_table.h"

/// What each experiment measures: one table per experiment, one member per metric or family of
/// metrics. This is the only place with names, labels and units; docs/experiments.md defines the
/// measures, `silc eval EXPERIMENT --help` lists them.
namespace silc::metric {

/// "σ ≤ 1.05": the share of moments that are kept, in a label.
std::string KeptLabel();

struct ComImpulseMetrics : MetricTable {
  ComImpulseMetrics() : MetricTable("com-impulse") {}
  // how far a body swings says how stiff it is, not how good
  MetricHandle peak_excursion =
      Declare("peak_excursion", "peak excursion, −x", "m", Better::kNeither);
  MetricHandle peak_time = Declare("peak_time", "time of the peak", "s", Better::kNeither);
  MetricHandle overshoot = Declare("overshoot", "overshoot, +x", "m", Better::kLower);
  MetricHandle residual_offset =
      Declare("residual_offset", "offset 5–6 s after", "m", Better::kNearZero);
  MetricHandle settling_time = Declare("settling_time", "settling to 5 %", "s", Better::kLower);
  MetricHandle stepped = Declare("stepped", "a foot left the floor", "%", Better::kLower);
};
const ComImpulseMetrics& ComImpulse();

struct HandLoadMetrics : MetricTable {
  HandLoadMetrics() : MetricTable("hand-load") {}
  MetricHandle step_stiffness_z =
      Declare("step_stiffness_z", "stiffness z, −40 N step", "N/m", Better::kNeither);
  MetricHandle step_response_time =
      Declare("step_response_time", "time to 90 % of the displacement", "s", Better::kLower);
  MetricHandle step_sway =
      Declare("step_sway", "hand's P95−P5 under the load", "m", Better::kLower);
  // the hand in the world, pushed from outside: arm and legs in series
  AxisMetrics measured_2n = DeclareAxes("measured_2n", "measured ±2 N", "N/m", Better::kNeither);
  AxisMetrics measured = DeclareAxes("measured", "measured ±10 N", "N/m", Better::kNeither);
  AxisMetrics measured_40n = DeclareAxes("measured_40n", "measured ±40 N", "N/m", Better::kNeither);
  AxisMetrics pd = DeclareAxes("pd", "PD alone", "N/m", Better::kNeither);
  AxisMetrics one_step = DeclareAxes("one_step", "one-step K₁", "N/m", Better::kNeither);
  AxisMetrics static_stiffness = DeclareAxes("static", "static K_s", "N/m", Better::kNeither);
  AxisMetrics static_with_weight =
      DeclareAxes("static_with_weight", "K_s with weight", "N/m", Better::kNeither);
  // the hand on the base, pulled against it: what a budget's hands are about
  AxisMetrics on_base =
      DeclareAxes("on_base", "on the base, measured ±10 N", "N/m", Better::kNeither);
  AxisMetrics on_base_static_with_weight = DeclareAxes(
      "on_base_static_with_weight", "on the base, K_s with weight", "N/m", Better::kNeither);
  // where the budget has hands
  AxisMetrics spec = DeclareAxesOfBudget("spec", "on the base, specified", "N/m", Better::kNeither);
  AxisMetrics on_base_over_spec = DeclareAxesOfBudget(
      "on_base_over_spec", "on the base, measured/specified", "", Better::kNeither);
  MetricHandle action_loop_radius =
      Declare("action_loop_radius", "radius of the action loop, joints held", "", Better::kLower);
  MetricHandle sway = Declare("sway", "sway of the unpushed hand", "m", Better::kLower);
};
const HandLoadMetrics& HandLoad();

/// `budget`: moments are control steps of stepping in place.
struct BudgetMetrics : MetricTable {
  BudgetMetrics() : MetricTable("budget") {}
  MetricHandle random_direction_violations_one_step =
      DeclareOfBudget("random_direction_violations_one_step",
                      "random directions over budget, K₁",
                      "%",
                      Better::kLower);
  MetricHandle random_direction_moments_one_step =
      DeclareOfBudget("random_direction_moments_one_step",
                      "moments with one of 64 directions over, K₁",
                      "%",
                      Better::kLower);
  MetricHandle worst_moments_one_step = DeclareOfBudget(
      "worst_moments_one_step", "moments with a direction over, K₁", "%", Better::kLower);
  MetricHandle worst_moments_static = DeclareOfBudget(
      "worst_moments_static", "moments with a direction over, K_s", "%", Better::kLower);
  // where the budget's condition is not the disc
  MetricHandle condition_violations =
      DeclareOfBudget("condition_violations",
                      "moments with σ > 1, the budget's condition on K_s",
                      "%",
                      Better::kLower);
  MetricHandle condition_p99 =
      DeclareOfBudget("condition_p99", "σ p99, the budget's condition on K_s", "", Better::kLower);
  MetricHandle disc_violations =
      DeclareOfBudget("disc_violations", "moments with σ > 1, (S7c) on K_s", "%", Better::kLower);
  MetricHandle judged_share =
      Declare("judged_share", "moments that could be judged", "%", Better::kHigher);

  /// 99th percentiles over some of the moments.
  struct Quantiles {
    MetricHandle worst_one_step_p99, worst_static_p99, sigma_paper_p99, disc_p99;
  };
  /// Moments of one contact mode.
  struct InMode {
    MetricHandle moments;
    Quantiles quantiles;
  };
  Quantiles all = DeclareQuantiles("", "");
  InMode double_support = DeclareMode("_double", ", double support");
  InMode single_support = DeclareMode("_single", ", single support");
  InMode flight = DeclareMode("_flight", ", flight");

 private:
  Quantiles DeclareQuantiles(const std::string& suffix, const std::string& where);
  InMode DeclareMode(const std::string& suffix, const std::string& where);
};
const BudgetMetrics& Budget();

/// `walk` and `stand`: what robots do over an episode.
struct EpisodeMetrics : MetricTable {
  explicit EpisodeMetrics(const std::string& experiment) : MetricTable(experiment) {}
  /// How some of the joints move.
  struct Motion {
    MetricHandle action_jitter, velocity_jitter, torque_jitter, power;
  };
  Motion motion = DeclareMotion("", "");
  Motion lower = DeclareMotion("_lower", ", legs and waist");
  Motion upper = DeclareMotion("_upper", ", arms");
  MetricHandle velocity_error =
      Declare("velocity_error", "velocity error, RMS", "m/s", Better::kLower);
  MetricHandle gait_error = Declare("gait_error", "over a gait cycle, RMS", "m/s", Better::kLower);
  MetricHandle arm_error = Declare("arm_error", "arm error, RMS", "rad", Better::kLower);
  MetricHandle saturation = Declare("saturation", "torque at its limit", "%", Better::kLower);

  // where the budget's condition is not the disc
  MetricHandle condition_within = DeclareOfBudget(
      "condition_within", KeptLabel() + ", the budget's condition on K_s", "%", Better::kHigher);
  MetricHandle condition_median = DeclareOfBudget(
      "condition_median", "σ median, the budget's condition on K_s", "", Better::kLower);
  MetricHandle disc_within =
      DeclareOfBudget("disc_within", KeptLabel() + ", (S7c) on K_s", "%", Better::kHigher);
  MetricHandle paper_within =
      DeclareOfBudget("paper_within", KeptLabel() + ", (S7a) on K₁", "%", Better::kHigher);
  MetricHandle disc_median =
      DeclareOfBudget("disc_median", "σ median, (S7c) on K_s", "", Better::kLower);
  MetricHandle disc_p95 = DeclareOfBudget("disc_p95", "σ p95, (S7c) on K_s", "", Better::kLower);
  /// 99th percentiles over the moments of some contact modes.
  struct Support {
    MetricHandle disc_p99, worst_static_p99;
  };
  Support all_support = DeclareSupport("", "");
  MetricHandle worst_one_step_p99 =
      DeclareOfBudget("worst_one_step_p99", "worst eigenvalue p99, K₁", "", Better::kLower);
  Support double_support = DeclareSupport("_double", ", double support");
  Support single_support = DeclareSupport("_single", ", single support");

 private:
  Motion DeclareMotion(const std::string& suffix, const std::string& where);
  Support DeclareSupport(const std::string& suffix, const std::string& where);
};
const EpisodeMetrics& Walk();
const EpisodeMetrics& Stand();

struct HandImpactMetrics : MetricTable {
  HandImpactMetrics() : MetricTable("hand-impact") {}
  MetricHandle settling_time_z =
      Declare("settling_time_z", "settling to 5 %, z", "s", Better::kLower);
  MetricHandle settling_time_2_z =
      Declare("settling_time_2_z", "settling to 2 %, z", "s", Better::kLower);
  MetricHandle band_power_z = Declare("band_power_z", "5–100 Hz, z", "m²", Better::kLower);
  MetricHandle band_power = Declare("band_power", "5–100 Hz, x + y + z", "m²", Better::kLower);
  MetricHandle band_power_before_z =
      Declare("band_power_before_z", "5–100 Hz, z, before", "m²", Better::kLower);
  MetricHandle peak_excursion_z =
      Declare("peak_excursion_z", "peak excursion, −z", "m", Better::kNeither);
  MetricHandle sag_z = Declare("sag_z", "sag under the weight", "m", Better::kNeither);
  MetricHandle peak_pull = Declare("peak_pull", "largest pull of the rope", "N", Better::kLower);
  MetricHandle final_pull =
      Declare("final_pull", "pull over the last second", "N", Better::kNeither);
};
const HandImpactMetrics& HandImpact();

struct FoamStepMetrics : MetricTable {
  FoamStepMetrics() : MetricTable("foam-step") {}
  MetricHandle gyro_rms = Declare("gyro_rms", "gyroscope RMS", "rad/s", Better::kLower);
  MetricHandle gyro_p95_p5 = Declare("gyro_p95_p5", "gyroscope P95−P5", "rad/s", Better::kLower);
  MetricHandle acc_rms = Declare("acc_rms", "accelerometer x, y RMS", "m/s²", Better::kLower);
  MetricHandle acc_p95_p5 =
      Declare("acc_p95_p5", "accelerometer x, y P95−P5", "m/s²", Better::kLower);
  MetricHandle compression =
      Declare("compression", "deepest mean compression", "m", Better::kNeither);
  MetricHandle on_pad = Declare("on_pad", "left foot on the pad", "%", Better::kNeither);
};
const FoamStepMetrics& FoamStep();

struct FrequencyMetrics : MetricTable {
  FrequencyMetrics() : MetricTable("frequency") {}
  /// What a shaker feels at one frequency.
  struct AtFrequency {
    double hz;
    MetricHandle stiffness, damping;
  };
  /// What it feels at one point, along one axis.
  struct Point {
    std::string name, label;  // "hand_in_world_z", "left hand in the world, z"
    MetricHandle error, residual;
    AtFrequency at_0_5hz, at_1hz, at_3hz, at_10hz;
    std::array<AtFrequency, 4> all() const { return {at_0_5hz, at_1hz, at_3hz, at_10hz}; }
  };
  Point hand_in_world_x = DeclarePoint("hand_in_world_x", "left hand in the world, x");
  Point hand_in_world_y = DeclarePoint("hand_in_world_y", "left hand in the world, y");
  Point hand_in_world_z = DeclarePoint("hand_in_world_z", "left hand in the world, z");
  Point com_x = DeclarePoint("com_x", "centre of mass, x");
  Point com_y = DeclarePoint("com_y", "centre of mass, y");
  std::array<const Point*, 5> points() const {
    return {&hand_in_world_x, &hand_in_world_y, &hand_in_world_z, &com_x, &com_y};
  }
  MetricHandle frequency_sigma =
      DeclareOfBudget("frequency_sigma", "largest σ(ω) up to 5 Hz, (S12)", "", Better::kLower);
  MetricHandle frequency_driving =
      DeclareOfBudget("frequency_driving", "largest ν(ω) up to 5 Hz, (S13)", "", Better::kLower);
  // (S13) says that it is not below zero, whatever the inertia
  MetricHandle least_damping =
      Declare("least_damping", "least Im/ω measured up to 5 Hz", "N·s/m", Better::kHigher);

 private:
  Point DeclarePoint(const std::string& name, const std::string& label);
};
const FrequencyMetrics& Frequency();

/// `com-load`: what a person feels who pushes the standing robot at its centre of mass.
struct ComLoadMetrics : MetricTable {
  ComLoadMetrics() : MetricTable("com-load") {}
  AxisMetrics measured_5n = DeclareAxes("measured_5n", "measured ±5 N", "N/m", Better::kNeither);
  AxisMetrics measured = DeclareAxes("measured", "measured ±10 N", "N/m", Better::kNeither);
  AxisMetrics measured_20n = DeclareAxes("measured_20n", "measured ±20 N", "N/m", Better::kNeither);
  AxisMetrics static_with_weight =
      DeclareAxes("static_with_weight", "K_s with weight", "N/m", Better::kNeither);
  AxisMetrics measured_over_model =
      DeclareAxes("measured_over_model", "measured/K_s with weight", "", Better::kNeither);
  // where the budget has a centre of mass
  AxisMetrics spec = DeclareAxesOfBudget("spec", "specified", "N/m", Better::kNeither);
  AxisMetrics measured_over_spec =
      DeclareAxesOfBudget("measured_over_spec", "measured/specified", "", Better::kNeither);
  MetricHandle sway = Declare("sway", "sway of the unpushed robot", "m", Better::kLower);
  MetricHandle action_loop_radius =
      Declare("action_loop_radius", "radius of the action loop, joints held", "", Better::kLower);
};
const ComLoadMetrics& ComLoad();

/// `com-load-walk`: the same of a robot that walks, in the walking frame (walking_shake.h),
/// averaged over cycles of its gait.
struct ComLoadWalkMetrics : MetricTable {
  ComLoadWalkMetrics() : MetricTable("com-load-walk") {}
  AxisMetrics measured_5n = DeclareAxes("measured_5n", "measured ±5 N", "N/m", Better::kNeither);
  AxisMetrics measured = DeclareAxes("measured", "measured ±10 N", "N/m", Better::kNeither);
  AxisMetrics measured_20n = DeclareAxes("measured_20n", "measured ±20 N", "N/m", Better::kNeither);
  // against its own soles: what is left where the robot walks away
  AxisMetrics over_feet =
      DeclareAxes("over_feet", "over its own feet, ±10 N", "N/m", Better::kNeither);
  AxisMetrics static_with_weight = DeclareAxes(
      "static_with_weight", "K_s with weight, mean over the gait", "N/m", Better::kNeither);
  AxisMetrics measured_over_model =
      DeclareAxes("measured_over_model", "measured/K_s with weight", "", Better::kNeither);
  // where the budget has a centre of mass
  AxisMetrics spec = DeclareAxesOfBudget("spec", "specified", "N/m", Better::kNeither);
  AxisMetrics measured_over_spec =
      DeclareAxesOfBudget("measured_over_spec", "measured/specified", "", Better::kNeither);
  AxisMetrics speed =
      DeclareAxes("speed", "walks away under 10 N, that fast", "m/s", Better::kNeither);
  MetricHandle refused =
      Declare("refused", "pairs of pushes without a stiffness", "%", Better::kNeither);
  MetricHandle modelled =
      Declare("modelled", "moments with a K_s with weight", "%", Better::kHigher);
};
const ComLoadWalkMetrics& ComLoadWalk();

/// `knob`: a commanded policy at the values of its command, and when the command steps.
struct KnobMetrics : MetricTable {
  KnobMetrics() : MetricTable("knob") {}
  /// What is measured at one point, over all values.
  struct Point {
    AxisMetrics most, least, span;  // the commanded axes' alone
    MetricHandle monotone, over_model, within_standing, within_walking;
  };
  Point com = DeclarePoint("com", "CoM");
  Point hand_on_base = DeclarePoint("hand_on_base", "hand on the base");
  /// Steps of the command in one situation.
  struct Steps {
    MetricHandle settling, settling_p95, falls;
  };
  Steps standing = DeclareSteps("standing");
  Steps walking = DeclareSteps("walking");
  Steps loaded = DeclareSteps("loaded");
  MetricHandle loaded_displacement = Declare(
      "loaded_displacement_time", "90 % of the loaded hand's displacement", "s", Better::kLower);

 private:
  Point DeclarePoint(const std::string& name, const std::string& label);
  Steps DeclareSteps(const std::string& situation);
};
const KnobMetrics& Knob();

/// `punch`: share of pushes after which the robot fell, by force.
struct PunchMetrics : MetricTable {
  PunchMetrics() : MetricTable("punch") {}
  static constexpr std::array<double, 6> kForces = {150, 300, 450, 600, 750, 900};  // [N]
  std::vector<MetricHandle> standing = DeclareForces("standing");
  std::vector<MetricHandle> walking = DeclareForces("walking");

 private:
  std::vector<MetricHandle> DeclareForces(const std::string& doing);
};
const PunchMetrics& Punch();

}  // namespace silc::metric
