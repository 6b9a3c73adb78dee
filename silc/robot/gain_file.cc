// SPDX-License-Identifier: Apache-2.0
#include "silc/robot/gain_file.h"

#include <fmt/format.h>

#include <cmath>
#include <filesystem>

#include "silc/base/error.h"
#include "silc/base/file.h"
#include "silc/base/yaml.h"

namespace silc {
namespace {

constexpr double kSameGain = 1e-3;  // relative: metadata of policies is rounded to four digits

bool SameNumbers(const Eigen::VectorXd& a, const Eigen::VectorXd& b) {
  if (a.size() != b.size()) return false;
  for (int i = 0; i < a.size(); ++i) {
    if (!(std::abs(a[i] - b[i]) <= kSameGain * std::abs(b[i]))) return false;
  }
  return true;
}

}  // namespace

GainSet ParseOneGainSet(const RobotSpec& spec, const YamlNode& gains) {
  const std::vector<std::string> names = gains.KeyNames();
  if (names.size() != 1) gains.Fail("must hold exactly one set of gains, under its name");
  return ParseGainSet(spec, gains[names[0]], names[0]);
}

GainSet ParseGainFile(const RobotSpec& spec, std::string_view text, const std::string& path) {
  const YamlNode root = YamlNode::Parse(text, path);
  root.Keys({"robot", "gains"}, {"title"});
  if (const std::string robot = root["robot"].AsString(); robot != spec.name) {
    root["robot"].Fail("these gains are of the robot '" + robot + "', not of '" + spec.name + "'");
  }
  GainSet set = ParseOneGainSet(spec, root["gains"]);
  // two servos under one name could not be told apart in any table
  for (const GainSet& known : spec.gains) {
    if (known.name != set.name) continue;
    if (SameNumbers(set.kp, known.kp) && SameNumbers(set.kd, known.kd)) continue;
    root["gains"].Fail("'" + set.name + "' is the name of a set of " + spec.file +
                       " with other numbers; give this one a name of its own");
  }
  return set;
}

GainSet FindGains(const RobotSpec& spec, const std::string& name_or_path) {
  const bool path = name_or_path.find('/') != std::string::npos ||
                    std::filesystem::path(name_or_path).extension() == ".yaml";
  if (!path) return spec.Gains(name_or_path);
  return ParseGainFile(spec, ReadFile(name_or_path, kMaxYamlBytes), name_or_path);
}

std::string GainSetYaml(const RobotSpec& spec, const GainSet& set) {
  std::string text = set.name + ":\n";
  const auto map = [&](const char* key, const Eigen::VectorXd& values) {
    text += std::string("  ") + key + ":\n";
    for (int i = 0; i < spec.num_joints(); ++i) {
      text += fmt::format("    {}: {}\n", spec.joints[i], values[i]);
    }
  };
  map("kp", set.kp);
  map("kd", set.kd);
  map("action_scale", set.action_scale);
  return text;
}

std::string GainsName(const RobotSpec& spec, const Eigen::VectorXd& kp, const Eigen::VectorXd& kd) {
  for (const GainSet& set : spec.gains) {
    if (SameNumbers(kp, set.kp) && SameNumbers(kd, set.kd)) return set.name;
  }
  return "own";
}

}  // namespace silc
