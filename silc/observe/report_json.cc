// SPDX-License-Identifier: Apache-2.0
#include "silc/observe/report_json.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "silc/config/budget_json.h"

namespace silc {
namespace {

using Json = nlohmann::ordered_json;

// Seven digits: the weights are float32, and a run of 500 moments stays under 20 MB.
Json Number(double value) {
  if (!std::isfinite(value)) return nullptr;
  if (value == 0) return 0.0;
  const double unit = std::pow(10.0, 6 - std::floor(std::log10(std::abs(value))));
  const double rounded = std::round(value * unit) / unit;
  return std::isfinite(rounded) ? rounded : value;
}

template <typename Derived>
Json Vector(const Eigen::MatrixBase<Derived>& vector) {
  Json list = Json::array();
  for (Eigen::Index i = 0; i < vector.size(); ++i) list.push_back(Number(vector[i]));
  return list;
}

template <typename Derived>
Json Matrix(const Eigen::MatrixBase<Derived>& matrix) {
  Json rows = Json::array();
  for (Eigen::Index i = 0; i < matrix.rows(); ++i) {
    Json row = Json::array();
    for (Eigen::Index j = 0; j < matrix.cols(); ++j) row.push_back(Number(matrix(i, j)));
    rows.push_back(std::move(row));
  }
  return rows;
}

Json Status(StiffnessStatus status) {
  return status == StiffnessStatus::kOk ? Json("ok") : Json(Describe(status));
}

Json Units() {
  return {{"time", "s"},
          {"K_1, K_s, Re K(jw), kp, null_space.stiffness (weight identity)", "N*m/rad"},
          {"damping, kd, Im K(jw)/w", "N*m*s/rad"},
          {"K_x, one_axis, budget", "N/m"},
          {"C_x", "m/N"},
          {"sigma, condition, worst, share, violations, loop_radius, saturation", "1"},
          {"q", "rad"},
          {"qd", "rad/s"},
          {"tau", "N*m"},
          {"v_WB", "m/s"},
          {"w_WB_B", "rad/s"},
          {"quat_wxyz, observation, action", "1"},
          {"foot_force, force", "N"},
          {"p_WB, sway", "m"},
          {"velocity", "m/s, m/s, rad/s"}};
}

Json Point(const PointReading& point) {
  return {{"status", Status(point.status)},
          {"one_axis", Vector(point.one_axis)},
          {"K_x", Matrix(point.K_x)},
          {"C_x", Matrix(point.C_x)},
          {"worst", Number(point.worst)}};
}

Json Reading(const BudgetReading& reading) {
  return {{"status", Status(reading.status)},
          {"sigma", Number(reading.sigma)},
          {"worst", Number(reading.worst)}};
}

Json MomentJson(const Moment& moment) {
  const MomentReading& reading = moment.reading;
  Json damping = Json::array();
  for (std::size_t k = 0; k < kDampingHz.size(); ++k) {
    damping.push_back({{"hz", kDampingHz[k]}, {"diagonal", Vector(moment.damping[k])}});
  }
  return {{"time", Number(moment.time)},
          {"contact", Name(moment.mode)},
          {"contact_status", Status(reading.contact_status)},
          {"foot_force", {Number(moment.foot_force[0]), Number(moment.foot_force[1])}},
          {"p_WB", Vector(moment.p_WB)},
          {"quat_wxyz", Vector(moment.quat_wxyz)},
          {"v_WB", Vector(moment.v_WB)},
          {"w_WB_B", Vector(moment.w_WB_B)},
          {"saturation", Number(moment.saturation)},
          {"q", Vector(moment.q)},
          {"qd", Vector(moment.qd)},
          {"tau", Vector(moment.tau)},
          {"observation", Vector(moment.observation)},
          {"action", Vector(moment.action)},
          {"one_step_status", Status(reading.one_step_status)},
          {"static_status", Status(reading.static_status)},
          {"loop_radius", Number(reading.loop.rho)},
          {"loop_condition", Number(reading.loop_condition)},
          {"one_step", Reading(reading.one_step)},
          {"quasi_static", Reading(reading.quasi_static)},
          {"random_directions",
           {{"samples", moment.random_directions.samples},
            {"violations", moment.random_directions.violations},
            {"worst_ratio", Number(moment.random_directions.worst_ratio)}}},
          {"com", Point(reading.com)},
          {"left_hand_in_world", Point(reading.hand_in_world[0])},
          {"right_hand_in_world", Point(reading.hand_in_world[1])},
          {"left_hand_on_base", Point(reading.hand_on_base[0])},
          {"right_hand_on_base", Point(reading.hand_on_base[1])},
          {"damping", std::move(damping)},
          {"K_1", Matrix(reading.K_1)},
          {"K_s", Matrix(reading.K_s)}};
}

Json Summary(const RunSummary& summary) {
  Json joints = Json::array(), points = Json::array(), modes = Json::array();
  for (const JointSummary& joint : summary.joints) {
    Json damping = Json::array();
    for (const double value : joint.damping) damping.push_back(Number(value));
    joints.push_back({{"name", joint.name},
                      {"kp", Number(joint.kp)},
                      {"kd", Number(joint.kd)},
                      {"K_1", Number(joint.one_step)},
                      {"K_s", Number(joint.quasi_static)},
                      {"damping", std::move(damping)}});
  }
  for (const PointSummary& point : summary.points) {
    points.push_back({{"name", point.name},
                      {"one_axis", Vector(point.one_axis)},
                      {"K_x_diagonal", Vector(point.held)},
                      {"budget", Vector(point.budget)},
                      {"worst_median", Number(point.worst_median)},
                      {"worst_p99", Number(point.worst_p99)}});
  }
  for (std::size_t i = 0; i < summary.modes.size(); ++i) {
    const ModeSummary& mode = summary.modes[i];
    const bool all = i > 0 && i + 1 == summary.modes.size();
    modes.push_back({{"contact", all ? "all" : Name(mode.mode)},
                     {"moments", mode.moments},
                     {"share", Number(mode.share)},
                     {"judged_share", Number(mode.judged / static_cast<double>(mode.moments))},
                     {"condition_median", Number(mode.sigma_median)},
                     {"condition_p99", Number(mode.sigma_p99)},
                     {"condition_violations", Number(mode.violations)},
                     {"worst_median", Number(mode.worst_median)},
                     {"worst_p99", Number(mode.worst_p99)},
                     {"random_direction_violations", Number(mode.random_direction_violations)},
                     {"one_step_sigma_median", Number(mode.one_step_median)}});
  }
  return {{"joints", std::move(joints)},
          {"points", std::move(points)},
          {"contacts", std::move(modes)},
          {"loop_radius_median", Number(summary.loop_radius_median)},
          {"loop_radius_max", Number(summary.loop_radius_max)},
          {"loop_radius_is_bound", summary.loop_radius_is_bound},
          {"saturation", Number(summary.saturation)},
          {"velocity", Vector(summary.velocity)}};
}

Json Sweep(const FrequencySweep& sweep) {
  Json points = Json::array();
  for (std::size_t i = 0; i < sweep.hz.size(); ++i) {
    points.push_back({{"hz", Number(sweep.hz[i])},
                      {"re", Matrix(sweep.K[i].real())},
                      {"im", Matrix(sweep.K[i].imag())}});
  }
  return {{"time", Number(sweep.time)}, {"K", std::move(points)}};
}

Json ShakeJson(const ShakeResult& shake) {
  Json predictions = Json::array(), levels = Json::array();
  for (const ShakePrediction& prediction : shake.predictions) {
    predictions.push_back({{"name", prediction.name},
                           {"status", Status(prediction.status)},
                           {"one_axis", Vector(prediction.one_axis)},
                           {"C_x", Matrix(prediction.C_x)}});
  }
  for (const ShakeLevel& level : shake.levels) {
    levels.push_back({{"force", Number(level.force)},
                      {"one_axis", Vector(level.OneAxis())},
                      {"C_x", Matrix(level.Compliance())}});
  }
  return {{"point", shake.point},
          {"settled", Describe(shake.settled)},
          {"contact", Name(shake.mode)},
          {"sway", Number(shake.sway)},
          {"mode_changes", shake.mode_changes},
          {"friction_loss", Number(shake.friction_loss)},
          {"loop_radius", Number(shake.loop.rho)},
          {"model", std::move(predictions)},
          {"measured", std::move(levels)}};
}

}  // namespace

ObservationJsonWriter::ObservationJsonWriter(std::function<void(std::string_view)> write)
    : write_(std::move(write)) {
  write_("{\"format\":\"silc-observation\",\"version\":3,\"moments\":[");
}

void ObservationJsonWriter::Add(const Moment& moment) {
  write_((first_ ? "\n" : ",\n") + MomentJson(moment).dump());
  first_ = false;
}

void ObservationJsonWriter::Finish(const ObservationRun& run,
                                   const RunSummary& summary,
                                   const std::optional<ShakeResult>& shake) {
  const Json rest = {{"policy", run.policy},
                     {"robot", run.robot},
                     {"source", run.source},
                     {"end", Describe(run.end)},
                     {"units", Units()},
                     {"joints", run.joints},
                     {"gains",
                      {{"from", run.gains},
                       {"kp", Vector(run.servo.kp)},
                       {"kd", Vector(run.servo.kd)},
                       {"action_scale", Vector(run.servo.alpha)},
                       {"joint_damping", Vector(run.joint_damping)},
                       {"friction_loss", Vector(run.friction_loss)}}},
                     {"timing", {{"period", run.timing.period}, {"latency", run.timing.latency}}},
                     {"budget", BudgetJson(run.budget.name, run.budget.spec)},
                     {"summary", Summary(summary)},
                     {"shake", shake ? ShakeJson(*shake) : Json(nullptr)},
                     {"sweep", Sweep(run.sweep)}};
  // file names need not be UTF-8; a bad byte is replaced instead of losing the run
  const std::string text = rest.dump(-1, ' ', false, Json::error_handler_t::replace);
  write_("],\n" + text.substr(1) + "\n");
}

std::string ObservationJson(const ObservationRun& run,
                            const RunSummary& summary,
                            const std::optional<ShakeResult>& shake) {
  std::string out;
  ObservationJsonWriter writer([&](std::string_view text) { out += text; });
  for (const Moment& moment : run.moments) writer.Add(moment);
  writer.Finish(run, summary, shake);
  return out;
}

}  // namespace silc
