// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "silc/robot/robot_spec.h"

namespace silc {

class YamlNode;

/// The gain set that a task, a command line or a run names: one of the robot's by its name ("" for
/// the default), or a gain file by its path (anything with a slash or ending in .yaml).
///
/// A gain file holds one set, written as `gains` of a robot.yaml is:
///
///     robot: g1
///     gains:
///       soft: {kp: …, kd: …, action_scale: …}
///
/// Throws ConfigError: unknown names with the near misses, files of another robot, a set that bears
/// the name of one of the robot's with other numbers.
GainSet FindGains(const RobotSpec& spec, const std::string& name_or_path);
GainSet ParseGainFile(const RobotSpec& spec, std::string_view text, const std::string& path);
/// The one set of a map {NAME: {kp, kd, action_scale}}.
GainSet ParseOneGainSet(const RobotSpec& spec, const YamlNode& gains);

/// NAME: {kp, kd, action_scale}, every joint by its name and every number with all its digits, as
/// the map under `gains:` of a robot.yaml, a gain file and a run's config.yaml.
std::string GainSetYaml(const RobotSpec& spec, const GainSet& set);

/// The robot's set with these stiffnesses and dampings (to 0.1 %), or "own". Action scales are not
/// compared: they are units of the network's output, and the servo is the same with any.
std::string GainsName(const RobotSpec& spec, const Eigen::VectorXd& kp, const Eigen::VectorXd& kd);

}  // namespace silc
