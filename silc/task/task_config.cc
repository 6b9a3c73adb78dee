// SPDX-License-Identifier: Apache-2.0
#include "silc/task/task_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>

#include "silc/base/check.h"
#include "silc/base/data_folder.h"
#include "silc/base/error.h"
#include "silc/base/file.h"
#include "silc/base/nearest.h"
#include "silc/base/yaml.h"

namespace silc {
namespace {

std::string Number(const TaskField& field) {
  return std::visit([](auto* value) { return fmt::format("{}", *value); }, field.value);
}

double AsDouble(const TaskField& field) {
  return std::visit([](auto* value) { return static_cast<double>(*value); }, field.value);
}

void CheckRange(const TaskField& field, const std::string& place) {
  const double value = AsDouble(field);
  // the bounds are rounded as the value was, so that 0.9 is not above 0.9
  const bool is_float = std::holds_alternative<float*>(field.value);
  const double low = is_float ? static_cast<float>(field.low) : field.low;
  const double high = is_float ? static_cast<float>(field.high) : field.high;
  if (value >= low && value <= high) return;
  throw ConfigError(fmt::format("{}: {}: {} {} is outside [{}, {}]",
                                place,
                                field.path,
                                Number(field),
                                field.unit,
                                field.low,
                                field.high));
}

void Assign(const TaskField& field, double value) {
  if (auto* const* number = std::get_if<float*>(&field.value)) {
    **number = static_cast<float>(value);
  } else {
    *std::get<int*>(field.value) = static_cast<int>(value);
  }
}

std::pair<std::string, std::string> Split(const std::string& path) {
  const auto dot = path.find('.');
  return {path.substr(0, dot), path.substr(dot + 1)};
}

}  // namespace

std::vector<TaskField> TaskFields(TaskConfig* config) {
  TaskConfig& c = *config;
  const double huge = 1e6;
  std::vector<TaskField> fields = {
      {"episode.length", &c.episode.length, 0.1, 600, "s"},
      {"episode.min_height", &c.episode.min_height, 0, 5, "m"},
      {"episode.max_tilt", &c.episode.max_tilt, 0.01, 1, "1"},
      {"episode.max_speed", &c.episode.max_speed, 10, 1e4, "rad/s"},
      {"episode.start_height", &c.episode.start_height, 0.1, 5, "m"},
      {"episode.start_speed", &c.episode.start_speed, 0, 5, "m/s"},
      {"episode.start_legs", &c.episode.start_legs, 0, 1, "1"},
      {"commands.walk_prob", &c.commands.walk_prob, 0, 1, "1"},
      {"commands.vx_min", &c.commands.vx_min, -5, 5, "m/s"},
      {"commands.vx_max", &c.commands.vx_max, -5, 5, "m/s"},
      {"commands.vy_min", &c.commands.vy_min, -5, 5, "m/s"},
      {"commands.vy_max", &c.commands.vy_max, -5, 5, "m/s"},
      {"commands.min_speed", &c.commands.min_speed, 0, 5, "m/s"},
      {"commands.heading_max", &c.commands.heading_max, 0, 3.1416, "rad"},
      {"commands.heading_gain", &c.commands.heading_gain, 0, 10, "1/s"},
      {"commands.max_yaw_rate", &c.commands.max_yaw_rate, 0, 10, "rad/s"},
      {"commands.waist_yaw_max", &c.commands.waist_yaw_max, 0, 2.6, "rad"},
      {"commands.waist_yaw_prob", &c.commands.waist_yaw_prob, 0, 1, "1"},
      {"commands.height", &c.commands.height, 0.1, 5, "m"},
      {"commands.height_drop", &c.commands.height_drop, 0, 5, "m"},
      {"commands.resample", &c.commands.resample, 0.1, 600, "s"},
      {"gait.period", &c.gait.period, 0, 10, "s"},
      {"gait.stance", &c.gait.stance, 0.05, 1, "1"},
      {"gait.swing_height", &c.gait.swing_height, 0, 1, "m"},
      {"arms.duration_min", &c.arms.duration_min, 0.05, 60, "s"},
      {"arms.duration_max", &c.arms.duration_max, 0.05, 60, "s"},
      {"arms.rest_prob", &c.arms.rest_prob, 0, 1, "1"},
      {"arms.rest_min", &c.arms.rest_min, 0, 60, "s"},
      {"arms.rest_max", &c.arms.rest_max, 0, 60, "s"},
      {"arms.max_speed", &c.arms.max_speed, 0.1, 30, "rad/s"},
      {"arms.fixed_prob", &c.arms.fixed_prob, 0, 1, "1"},
      {"arms.blend", &c.arms.blend, 0.02, 10, "s"},
      {"observation.history", &c.observation.history, 0, 32, "frames"},
      {"action.clip", &c.action.clip, 0, 1e4, "1"},
      {"action.delay_max", &c.action.delay_max, 0, 64, "substeps"},
      {"noise.joint_pos", &c.noise.joint_pos, 0, 1, "rad"},
      {"noise.joint_vel", &c.noise.joint_vel, 0, 10, "rad/s"},
      {"noise.torque", &c.noise.torque, 0, 100, "N·m"},
      {"noise.base_ang_vel", &c.noise.base_ang_vel, 0, 10, "rad/s"},
      {"noise.gravity", &c.noise.gravity, 0, 1, "1"},
      {"noise.joint_pos_bias", &c.noise.joint_pos_bias, 0, 1, "rad"},
      {"noise.torque_bias", &c.noise.torque_bias, 0, 100, "N·m"},
      {"noise.base_ang_vel_bias", &c.noise.base_ang_vel_bias, 0, 10, "rad/s"},
      {"noise.gravity_bias", &c.noise.gravity_bias, 0, 1, "1"},
      {"randomisation.friction_min", &c.randomisation.friction_min, 0.01, 5, "1"},
      {"randomisation.friction_max", &c.randomisation.friction_max, 0.01, 5, "1"},
      {"randomisation.mass_min", &c.randomisation.mass_min, 0.1, 10, "1"},
      {"randomisation.mass_max", &c.randomisation.mass_max, 0.1, 10, "1"},
      {"randomisation.pelvis_mass_min", &c.randomisation.pelvis_mass_min, -3, 30, "kg"},
      {"randomisation.pelvis_mass_max", &c.randomisation.pelvis_mass_max, -3, 30, "kg"},
      {"randomisation.gain_min", &c.randomisation.gain_min, 0.1, 10, "1"},
      {"randomisation.gain_max", &c.randomisation.gain_max, 0.1, 10, "1"},
      {"randomisation.strength_min", &c.randomisation.strength_min, 0.1, 10, "1"},
      {"randomisation.strength_max", &c.randomisation.strength_max, 0.1, 10, "1"},
      {"randomisation.torso_mass_min", &c.randomisation.torso_mass_min, -5, 30, "kg"},
      {"randomisation.torso_mass_max", &c.randomisation.torso_mass_max, -5, 30, "kg"},
      {"randomisation.hand_mass_min", &c.randomisation.hand_mass_min, 0, 10, "kg"},
      {"randomisation.hand_mass_max", &c.randomisation.hand_mass_max, 0, 10, "kg"},
      {"randomisation.torso_com", &c.randomisation.torso_com, 0, 0.2, "m"},
      {"hand_force.max_x", &c.hand_force.max_x, 0, 1e3, "N"},
      {"hand_force.max_y", &c.hand_force.max_y, 0, 1e3, "N"},
      {"hand_force.max_up", &c.hand_force.max_up, 0, 1e3, "N"},
      {"hand_force.max_down", &c.hand_force.max_down, 0, 1e3, "N"},
      {"hand_force.effort_share", &c.hand_force.effort_share, 0, 1, "1"},
      {"hand_force.axis_off_prob", &c.hand_force.axis_off_prob, 0, 1, "1"},
      {"hand_force.noise", &c.hand_force.noise, 0, 100, "N"},
      {"hand_force.sweep_min", &c.hand_force.sweep_min, 0.1, 600, "s"},
      {"hand_force.sweep_max", &c.hand_force.sweep_max, 0.1, 600, "s"},
      {"push.force", &c.push.force, 0, 1e4, "N"},
      {"push.min_share", &c.push.min_share, 0, 1, "1"},
      {"push.duration", &c.push.duration, 0.005, 10, "s"},
      {"push.interval_min", &c.push.interval_min, 0.1, 600, "s"},
      {"push.interval_max", &c.push.interval_max, 0.1, 600, "s"},
      {"push.torso_share", &c.push.torso_share, 0, 1, "1"},
      {"push.kick_velocity", &c.push.kick_velocity, 0, 5, "m/s"},
      {"push.kick_turn", &c.push.kick_turn, 0, 10, "rad/s"},
      {"push.kick_interval", &c.push.kick_interval, 0.02, 600, "s"},
      {"push.recovery", &c.push.recovery, 0, 60, "s"},
      {"budget_command.change", &c.budget_command.change, 0, 600, "s"},
      {"budget_command.ramp_prob", &c.budget_command.ramp_prob, 0, 1, "1"},
      {"budget_command.ramp_min", &c.budget_command.ramp_min, 0.02, 60, "s"},
      {"budget_command.ramp_max", &c.budget_command.ramp_max, 0.02, 60, "s"},
      {"curriculum.penalty_start", &c.curriculum.penalty_start, 0, 1, "1"},
      {"curriculum.penalty_min", &c.curriculum.penalty_min, 0, 1, "1"},
      {"curriculum.penalty_rate", &c.curriculum.penalty_rate, 0, 1, "1"},
      {"curriculum.penalty_up", &c.curriculum.penalty_up, 0, 1, "1"},
      {"curriculum.penalty_down", &c.curriculum.penalty_down, 0, 1, "1"},
      {"curriculum.penalty_window", &c.curriculum.penalty_window, 0.01, 1e3, "episodes"},
      {"curriculum.force_start", &c.curriculum.force_start, 0, 1, "1"},
      {"curriculum.force_step", &c.curriculum.force_step, 0, 1, "1"},
      {"curriculum.height_start", &c.curriculum.height_start, 0, 1, "1"},
      {"curriculum.height_step_up", &c.curriculum.height_step_up, 0, 1, "1"},
      {"curriculum.height_step_down", &c.curriculum.height_step_down, 0, 1, "1"},
      {"curriculum.survive_up", &c.curriculum.survive_up, 0, 1, "1"},
      {"curriculum.survive_down", &c.curriculum.survive_down, 0, 1, "1"},
      {"limits.soft_range", &c.limits.soft_range, 0.1, 1, "1"},
      {"limits.feet_apart", &c.limits.feet_apart, 0, 2, "m"},
  };
  for (int i = 0; i < kNumRewards; ++i) {
    fields.push_back(
        {std::string("rewards.") + kRewardTerms[i].name, &c.rewards.weight[i], -huge, huge, "1/s"});
  }
  return fields;
}

void TaskConfig::Validate(const std::string& place) const {
  TaskConfig copy = *this;
  const std::vector<TaskField> fields = TaskFields(&copy);
  for (const TaskField& field : fields) CheckRange(field, place);
  // 0 leaves them to the layout
  const auto not_tiny = [&](const char* key, float value) {
    if (value == 0 || value >= 0.1f) return;
    throw ConfigError(
        fmt::format("{}: {}: {} is below 0.1; 0 takes the layout's", place, key, value));
  };
  not_tiny("gait.period", gait.period);
  not_tiny("action.clip", action.clip);
  // X_min and X_max are the ends of a range
  for (const TaskField& low : fields) {
    const auto at = low.path.rfind("_min");
    if (at == std::string::npos || at + 4 != low.path.size()) continue;
    const std::string high_path = low.path.substr(0, at) + "_max";
    for (const TaskField& high : fields) {
      if (high.path != high_path || AsDouble(low) <= AsDouble(high)) continue;
      throw ConfigError(fmt::format("{}: {}: {} {} is above {} = {}; swap them",
                                    place,
                                    low.path,
                                    Number(low),
                                    low.unit,
                                    high.path,
                                    Number(high)));
    }
  }
  const auto ordered = [&](const char* low, float a, const char* high, float b) {
    if (a <= b) return;
    throw ConfigError(fmt::format(
        "{}: curriculum.{}: {} is above curriculum.{} = {}: it would grow and shrink at once",
        place,
        low,
        a,
        high,
        b));
  };
  ordered("penalty_down", curriculum.penalty_down, "penalty_up", curriculum.penalty_up);
  ordered("survive_down", curriculum.survive_down, "survive_up", curriculum.survive_up);
}

void OverlayTaskFile(const YamlNode& root, TaskFile* task) {
  const std::vector<TaskField> fields = TaskFields(&task->config);
  std::vector<std::string> sections;
  for (const TaskField& field : fields) {
    const std::string section = Split(field.path).first;
    if (sections.empty() || sections.back() != section) sections.push_back(section);
  }
  std::vector<std::string> optional = sections;
  optional.insert(optional.end(), {"title", "layout", "robot", "gains"});
  root.Keys({}, optional);
  if (root.Has("robot")) task->robot = root["robot"].AsString();
  if (root.Has("layout")) task->layout = root["layout"].AsString();
  if (root.Has("gains")) task->gains = root["gains"].AsString();
  for (const std::string& section : sections) {
    if (!root.Has(section)) continue;
    const YamlNode node = root[section];
    std::vector<std::string> keys;
    for (const TaskField& field : fields) {
      const auto [its_section, key] = Split(field.path);
      if (its_section == section) keys.push_back(key);
    }
    node.Keys({}, keys);
    for (const TaskField& field : fields) {
      const auto [its_section, key] = Split(field.path);
      if (its_section != section || !node.Has(key)) continue;
      const bool whole = std::holds_alternative<int*>(field.value);
      Assign(field,
             whole ? node[key].AsIntIn(static_cast<int>(field.low), static_cast<int>(field.high))
                   : node[key].AsDoubleIn(field.low, field.high));
    }
  }
  task->config.Validate(root.file());
}

TaskFile ParseTaskFile(std::string_view text, const std::string& path) {
  TaskFile task;
  OverlayTaskFile(YamlNode::Parse(text, path), &task);
  return task;
}

TaskFile ReadTaskFile(const std::string& path) {
  return ParseTaskFile(ReadFile(path, kMaxYamlBytes), path);
}

void SetTaskField(TaskConfig* config, const std::string& path, const std::string& value) {
  TaskConfig changed = *config;
  const std::vector<TaskField> fields = TaskFields(&changed);
  const auto field = std::find_if(
      fields.begin(), fields.end(), [&](const TaskField& f) { return f.path == path; });
  if (field == fields.end()) {
    std::vector<std::string> known;
    for (const TaskField& f : fields) known.push_back(f.path);
    throw ConfigError("task: " + path + ": no such setting" + DidYouMean(path, known));
  }
  char* end = nullptr;
  const double number = std::strtod(value.c_str(), &end);
  const bool whole = std::holds_alternative<int*>(field->value);
  if (value.empty() || *end != '\0' || !std::isfinite(number) ||
      (whole && number != std::floor(number))) {
    throw ConfigError("task: " + path + ": '" + value + "' is no " +
                      (whole ? "whole number" : "number") + " [" + field->unit + "]");
  }
  // an int must be in range before it is cast
  if (whole && !(number >= field->low && number <= field->high)) {
    throw ConfigError(fmt::format(
        "task: {}: {} {} is outside [{}, {}]", path, value, field->unit, field->low, field->high));
  }
  Assign(*field, number);
  changed.Validate("task");
  *config = changed;
}

std::string TaskConfigYaml(const TaskConfig& config) {
  TaskConfig copy = config;
  std::string text, section;
  for (const TaskField& field : TaskFields(&copy)) {
    const auto [its_section, key] = Split(field.path);
    if (its_section != section) {
      section = its_section;
      text += section + ":\n";
    }
    text += fmt::format("  {}: {}  # [{}]\n", key, Number(field), field.unit);
  }
  return text;
}

std::string SensorErrors(const TaskConfig::Noise& noise) {
  std::string text;
  const auto add = [&](const char* name, float radius) {
    if (radius > 0) text += fmt::format("{}{}={:.6g}", text.empty() ? "" : ",", name, radius);
  };
  add("joint_pos", noise.joint_pos + noise.joint_pos_bias);
  add("joint_vel", noise.joint_vel);
  add("torque", noise.torque + noise.torque_bias);
  add("base_ang_vel", noise.base_ang_vel + noise.base_ang_vel_bias);
  add("gravity", noise.gravity + noise.gravity_bias);
  return text.empty() ? "none" : text;
}

std::string FindTaskFile(const std::string& name_or_path) {
  namespace fs = std::filesystem;
  if (name_or_path.find('/') != std::string::npos ||
      fs::path(name_or_path).extension() == ".yaml") {
    return name_or_path;
  }
  std::string name = name_or_path;
  std::replace(name.begin(), name.end(), '-', '_');
  std::vector<std::string> known;
  for (const std::string& folder : DataFolders("configs/tasks")) {
    const fs::path file = fs::path(folder) / (name + ".yaml");
    if (fs::is_regular_file(file)) return file.string();
    if (!fs::is_directory(folder)) continue;
    for (const auto& entry : fs::directory_iterator(folder)) {
      std::string task = entry.path().stem().string();
      std::replace(task.begin(), task.end(), '_', '-');
      known.push_back(task);
    }
  }
  std::sort(known.begin(), known.end());
  known.erase(std::unique(known.begin(), known.end()), known.end());
  throw ConfigError("task '" + name_or_path + "' is unknown" + DidYouMean(name_or_path, known));
}

}  // namespace silc
