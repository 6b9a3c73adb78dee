// SPDX-License-Identifier: Apache-2.0
#include "silc/robot/robot_spec.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <utility>

#include "silc/base/data_folder.h"
#include "silc/base/error.h"
#include "silc/base/limits.h"
#include "silc/base/nearest.h"
#include "silc/base/yaml.h"
#include "silc/stiffness/types.h"

namespace silc {
namespace {

namespace fs = std::filesystem;

constexpr int kFileVersion = 1;

std::string Quoted(std::string_view text) {
  std::string quoted = "'";
  quoted += text;
  quoted += '\'';
  return quoted;
}

// `pattern` with '*' for any run of characters, matched against the whole of `text`.
// Each piece between stars is taken where it comes first, which leaves the most for those after it:
// no trying again, so the work is at most the product of the two lengths.
bool Matches(std::string_view pattern, std::string_view text) {
  const std::size_t first = pattern.find('*');
  if (first == std::string_view::npos) return pattern == text;
  if (!text.starts_with(pattern.substr(0, first))) return false;
  text.remove_prefix(first);
  pattern.remove_prefix(first + 1);
  for (std::size_t star; (star = pattern.find('*')) != std::string_view::npos;) {
    const std::string_view piece = pattern.substr(0, star);
    const std::size_t at = text.find(piece);
    if (at == std::string_view::npos) return false;
    text.remove_prefix(at + piece.size());
    pattern.remove_prefix(star + 1);
  }
  return text.ends_with(pattern);
}

// The joints a name, a group or a pattern stands for, in robot order. `where` complains in its
// place.
std::vector<int> Select(const RobotSpec& spec, const std::string& selector, const YamlNode& where) {
  const auto joint = std::find(spec.joints.begin(), spec.joints.end(), selector);
  if (joint != spec.joints.end()) return {static_cast<int>(joint - spec.joints.begin())};
  for (const JointGroup& group : spec.groups) {
    if (group.name == selector) return group.joints;
  }
  std::vector<int> joints;
  if (selector.find('*') != std::string::npos) {
    for (int i = 0; i < spec.num_joints(); ++i) {
      if (Matches(selector, spec.joints[i])) joints.push_back(i);
    }
    if (joints.empty()) where.Fail(Quoted(selector) + " matches no joint of 'joints'");
    return joints;
  }
  std::vector<std::string> known = spec.joints;
  for (const JointGroup& group : spec.groups) known.push_back(group.name);
  where.Fail(Quoted(selector) + " is neither a joint nor a group defined above" +
             DidYouMean(selector, known));
}

JointGroup ReadGroup(const RobotSpec& spec, const YamlNode& node, const std::string& name) {
  JointGroup group{name, {}};
  for (int i = 0; i < node.size(); ++i) {
    const std::string selector = node[i].AsString();
    for (int joint : Select(spec, selector, node[i])) {
      if (std::find(group.joints.begin(), group.joints.end(), joint) != group.joints.end()) {
        node[i].Fail(Quoted(selector) + " names " + spec.joints[joint] + " a second time");
      }
      group.joints.push_back(joint);
    }
  }
  if (group.joints.empty()) node.Fail("must name at least one joint");
  return group;
}

// One number per joint: a single number, or selectors that together name every joint once. With
// `missing_is_zero` joints may be left out, but not named twice.
Eigen::VectorXd ReadPerJoint(
    const RobotSpec& spec, const YamlNode& node, double low, double high, bool missing_is_zero) {
  const int n = spec.num_joints();
  if (node.IsScalar()) return Eigen::VectorXd::Constant(n, node.AsDoubleIn(low, high));
  if (!node.IsMap()) {
    node.Fail(
        "must be one number for all joints, or a map from joints, groups or patterns to numbers");
  }
  Eigen::VectorXd values = Eigen::VectorXd::Zero(n);
  std::vector<std::string> named_by(n);
  for (const std::string& selector : node.KeyNames()) {
    const YamlNode entry = node[selector];
    const double value = entry.AsDoubleIn(low, high);
    for (int joint : Select(spec, selector, entry)) {
      if (!named_by[joint].empty()) {
        entry.Fail(spec.joints[joint] + " is also named by " + Quoted(named_by[joint]) +
                   "; name every joint once");
      }
      named_by[joint] = selector;
      values[joint] = value;
    }
  }
  if (!missing_is_zero) {
    std::string missing;
    for (int i = 0; i < n; ++i) {
      if (named_by[i].empty()) missing += (missing.empty() ? "" : ", ") + spec.joints[i];
    }
    if (!missing.empty()) node.Fail("gives no number for " + missing);
  }
  return values;
}

// Left and right, or one joint; each is named by its own name.
template <std::size_t N>
void ReadRole(const RobotSpec& spec, const YamlNode& node, std::array<int, N>* joints) {
  const auto joint = [&](const YamlNode& entry) {
    const std::string name = entry.AsString();
    const auto found = std::find(spec.joints.begin(), spec.joints.end(), name);
    if (found == spec.joints.end()) {
      entry.Fail(Quoted(name) + " is not among 'joints'" + DidYouMean(name, spec.joints));
    }
    return static_cast<int>(found - spec.joints.begin());
  };
  if (!node.IsList() || node.size() != static_cast<int>(N)) {
    node.Fail("must be a list of two joints, left and right");
  }
  for (std::size_t i = 0; i < N; ++i) (*joints)[i] = joint(node[static_cast<int>(i)]);
}

JointRoles ReadRoles(const RobotSpec& spec, const YamlNode& node) {
  JointRoles roles;
  const std::pair<const char*, std::array<int, 2>*> pairs[] = {{"hip_pitch", &roles.hip_pitch},
                                                               {"hip_roll", &roles.hip_roll},
                                                               {"hip_yaw", &roles.hip_yaw},
                                                               {"knee", &roles.knee},
                                                               {"ankle_pitch", &roles.ankle_pitch},
                                                               {"ankle_roll", &roles.ankle_roll}};
  const char* waist[3] = {"waist_yaw", "waist_roll", "waist_pitch"};
  std::vector<std::string> known(std::begin(waist), std::end(waist));
  for (const auto& [name, joints] : pairs) known.emplace_back(name);
  node.Keys({}, known);
  for (const auto& [name, joints] : pairs) {
    if (node.Has(name)) ReadRole(spec, node[name], joints);
  }
  for (int k = 0; k < 3; ++k) {
    if (!node.Has(waist[k])) continue;
    const YamlNode entry = node[waist[k]];
    const std::vector<int> joint = Select(spec, entry.AsString(), entry);
    if (joint.size() != 1) entry.Fail("must be one joint");
    roles.waist[k] = joint[0];
  }
  std::set<int> seen;
  const auto once = [&](int joint) {
    if (joint >= 0 && !seen.insert(joint).second) {
      node.Fail(spec.joints[joint] + " has two roles");
    }
  };
  for (const auto& [name, joints] : pairs) {
    for (const int joint : *joints) once(joint);
  }
  for (const int joint : roles.waist) once(joint);
  return roles;
}

std::vector<ReachRange> ReadReach(const RobotSpec& spec, const YamlNode& node) {
  std::vector<ReachRange> reach(spec.joints.size());
  for (const std::string& selector : node.KeyNames()) {
    const YamlNode entry = node[selector];
    if (!entry.IsList() || entry.size() != 2) entry.Fail("must be [lowest, highest] [rad]");
    const ReachRange range = {entry[0].AsDoubleIn(-kMaxAngle, kMaxAngle),
                              entry[1].AsDoubleIn(-kMaxAngle, kMaxAngle),
                              true};
    if (!(range.low <= range.high)) entry.Fail("the lowest angle is above the highest");
    for (const int joint : Select(spec, selector, entry)) {
      if (reach[joint].given) entry.Fail(spec.joints[joint] + " is named twice");
      reach[joint] = range;
    }
  }
  return reach;
}

std::vector<Eigen::Vector3d> ReadLoad(const YamlNode& node) {
  if (!node.IsList() || node.size() != 2) node.Fail("must be two points [m]");
  std::vector<Eigen::Vector3d> points;
  for (int i = 0; i < 2; ++i) {
    if (!node[i].IsList() || node[i].size() != 3) node[i].Fail("must be a point: x, y, z [m]");
    Eigen::Vector3d point;
    for (int k = 0; k < 3; ++k) point[k] = node[i][k].AsDoubleIn(-10, 10);
    points.push_back(point);
  }
  return points;
}

// `taken`: geoms that have a set already. A geom in two sets would be kept by one and removed by
// the other.
FootSpec ReadFoot(const YamlNode& node, std::set<std::string>* taken) {
  node.Keys({"body", "site", "geoms"});
  FootSpec foot;
  foot.body = node["body"].AsString();
  foot.site = node["site"].AsString();
  for (const std::string& name : node["geoms"].KeyNames()) {
    const YamlNode set = node["geoms"][name];
    foot.geom_sets.push_back({name, set.AsStrings()});
    const std::vector<std::string>& geoms = foot.geom_sets.back().geoms;
    if (geoms.empty()) set.Fail("must name at least one geom");
    for (const std::string& geom : geoms) {
      if (!taken->insert(geom).second) {
        set.Fail(Quoted(geom) + " is listed twice; a geom belongs to one set of one foot");
      }
    }
  }
  return foot;
}

void ReadFeet(const YamlNode& node, RobotSpec* spec) {
  node.Keys({"collision", "left", "right", "force"});
  std::set<std::string> taken;
  spec->left_foot = ReadFoot(node["left"], &taken);
  spec->right_foot = ReadFoot(node["right"], &taken);
  spec->foot_collision = node["collision"].AsString();
  for (const char* side : {"left", "right"}) {
    const FootSpec& foot = side == std::string("left") ? spec->left_foot : spec->right_foot;
    std::vector<std::string> sets;
    for (const FootGeoms& set : foot.geom_sets) sets.push_back(set.name);
    if (std::find(sets.begin(), sets.end(), spec->foot_collision) == sets.end()) {
      node["collision"].Fail(Quoted(spec->foot_collision) + " is not among feet." + side +
                             ".geoms" + DidYouMean(spec->foot_collision, sets));
    }
  }
  if (spec->left_foot.body == spec->right_foot.body) {
    node["right"]["body"].Fail(Quoted(spec->right_foot.body) + " is the left foot's body too");
  }
  const YamlNode force = node["force"];
  force.Keys({"enter", "leave"});
  spec->foot_force.enter = force["enter"].AsDoubleIn(1e-3, 1e6);
  spec->foot_force.leave = force["leave"].AsDoubleIn(1e-3, 1e6);
  if (spec->foot_force.leave >= spec->foot_force.enter) {
    force.Fail("leave must be below enter, or the contact mode flickers");
  }
}

template <typename T>
std::vector<std::string> NamesOf(const std::vector<T>& items) {
  std::vector<std::string> names;
  for (const T& item : items) names.push_back(item.name);
  return names;
}

// `name` among items that have names, for look-ups by what a user typed.
template <typename T>
const T& Find(const RobotSpec& spec,
              const std::vector<T>& items,
              std::string_view name,
              const char* what) {
  for (const T& item : items) {
    if (item.name == name) return item;
  }
  throw ConfigError(spec.file + ": the robot has no " + what + " " + Quoted(name) +
                    DidYouMean(name, NamesOf(items)));
}

// The keys of a map whose values are kept by their names.
std::vector<std::string> NamesIn(const YamlNode& node) {
  std::vector<std::string> names = node.KeyNames();
  if (names.size() > static_cast<std::size_t>(kMaxRobotNames)) {
    node.Fail(std::to_string(names.size()) + " names are more than " +
              std::to_string(kMaxRobotNames));
  }
  return names;
}

SafetySpec ReadSafety(const YamlNode& node) {
  node.Keys({"machine_modes",
             "command_period",
             "damping_kd",
             "stand_up_time",
             "blend_time",
             "softest",
             "soften_rate",
             "max_command",
             "faults"});
  SafetySpec safety;
  for (int i = 0; i < node["machine_modes"].size(); ++i) {
    safety.machine_modes.push_back(node["machine_modes"][i].AsIntIn(0, 255));
  }
  safety.command_period = node["command_period"].AsDoubleIn(1e-4, 0.1);
  safety.damping_kd = node["damping_kd"].AsDoubleIn(0.01, kMaxKd);
  safety.stand_up_time = node["stand_up_time"].AsDoubleIn(0.5, 60);
  safety.blend_time = node["blend_time"].AsDoubleIn(0, 10);
  safety.softest = node["softest"].AsDoubleIn(0.01, 1);
  safety.soften_rate = node["soften_rate"].AsDoubleIn(0.01, 100);
  safety.max_command = node["max_command"].AsDoubles();
  if (safety.max_command.size() != 3) {
    node["max_command"].Fail("must be three numbers: vx, vy [m/s], yaw rate [rad/s]");
  }
  for (int i = 0; i < 3; ++i) node["max_command"][i].AsDoubleIn(0, 100);
  for (const std::string& name : NamesIn(node["faults"])) {
    const YamlNode row = node["faults"][name];
    row.Keys({"limit", "ticks"}, {"reaction"});
    SafetyRule rule{
        name, row["limit"].AsDoubleIn(0, 1e9), row["ticks"].AsIntIn(1, 100'000), "stop"};
    if (row.Has("reaction")) rule.reaction = row["reaction"].AsChoice({"stop", "soften", "warn"});
    safety.rules.push_back(std::move(rule));
  }
  return safety;
}

RobotSpec FromYaml(const YamlNode& root, const std::string& path) {
  root.Keys({"version",
             "name",
             "title",
             "model",
             "joints",
             "groups",
             "actors",
             "base",
             "feet",
             "gains",
             "default_gains",
             "poses",
             "default_pose",
             "control_period",
             "physics_period"},
            {"imus", "hands", "velocity_limit", "roles", "reach", "safety"});
  if (const int version = root["version"].AsInt(); version != kFileVersion) {
    root["version"].Fail(std::to_string(version) + " is not a version this program reads; known: " +
                         std::to_string(kFileVersion));
  }
  RobotSpec spec;
  spec.file = path;
  spec.name = root["name"].AsString();
  spec.title = root["title"].AsString();
  // operator/ keeps an absolute model path as it is
  spec.model_file = (fs::path(path).parent_path() / root["model"].AsString()).string();

  const YamlNode joints = root["joints"];
  if (joints.size() > kMaxDofs) {
    joints.Fail(std::to_string(joints.size()) + " joints are more than " +
                std::to_string(kMaxDofs) +
                "\n  Raise kMaxDofs in silc/stiffness/types.h and build again.");
  }
  for (int i = 0; i < joints.size(); ++i) {
    const std::string name = joints[i].AsString();
    if (name.empty() || name.find('*') != std::string::npos) {
      joints[i].Fail(Quoted(name) + " is not a joint name; list every joint, the order matters");
    }
    if (std::find(spec.joints.begin(), spec.joints.end(), name) != spec.joints.end()) {
      joints[i].Fail(Quoted(name) + " is listed twice");
    }
    spec.joints.push_back(name);
  }
  if (spec.joints.empty()) joints.Fail("must list at least one joint");

  for (const std::string& name : NamesIn(root["groups"])) {
    const YamlNode node = root["groups"][name];
    if (std::find(spec.joints.begin(), spec.joints.end(), name) != spec.joints.end()) {
      node.Fail("is the name of a joint; call the group something else");
    }
    spec.groups.push_back(ReadGroup(spec, node, name));
  }

  std::vector<std::string> actor_of(spec.joints.size());
  for (const std::string& name : NamesIn(root["actors"])) {
    const YamlNode node = root["actors"][name];
    spec.actors.push_back(ReadGroup(spec, node, name));
    for (int joint : spec.actors.back().joints) {
      if (!actor_of[joint].empty()) {
        node.Fail(spec.joints[joint] + " already belongs to actor " + Quoted(actor_of[joint]));
      }
      actor_of[joint] = name;
    }
  }
  for (int i = 0; i < spec.num_joints(); ++i) {
    if (actor_of[i].empty()) root["actors"].Fail(spec.joints[i] + " belongs to no actor");
  }

  spec.has_roles = root.Has("roles");
  if (spec.has_roles) spec.roles = ReadRoles(spec, root["roles"]);
  spec.reach.resize(spec.joints.size());
  if (root.Has("reach")) spec.reach = ReadReach(spec, root["reach"]);
  spec.base = root["base"].AsString();
  ReadFeet(root["feet"], &spec);
  if (root.Has("hands")) {
    root["hands"].Keys({"left", "right"});
    for (const char* name : {"left", "right"}) {
      const YamlNode node = root["hands"][name];
      node.Keys({"body", "site"}, {"load"});
      spec.hands.push_back({name, node["body"].AsString(), node["site"].AsString(), {}});
      if (node.Has("load")) spec.hands.back().load = ReadLoad(node["load"]);
    }
  }
  if (root.Has("imus")) {
    for (const std::string& name : NamesIn(root["imus"])) {
      spec.imus.push_back({name, root["imus"][name].AsString()});
    }
  }

  for (const std::string& name : NamesIn(root["gains"])) {
    spec.gains.push_back(ParseGainSet(spec, root["gains"][name], name));
  }
  spec.default_gains = root["default_gains"].AsChoice(NamesOf(spec.gains));

  for (const std::string& name : NamesIn(root["poses"])) {
    const YamlNode node = root["poses"][name];
    node.Keys({"base_height", "joints"});
    spec.poses.push_back({name,
                          node["base_height"].AsDoubleIn(0, 10),
                          ReadPerJoint(spec, node["joints"], -kMaxAngle, kMaxAngle, true)});
  }
  spec.default_pose = root["default_pose"].AsChoice(NamesOf(spec.poses));

  spec.control_period = root["control_period"].AsDoubleIn(1e-4, 1);
  spec.physics_period = root["physics_period"].AsDoubleIn(1e-5, 0.1);
  const double steps = spec.control_period / spec.physics_period;
  if (steps < 0.5 || std::abs(steps - std::round(steps)) > 1e-6) {
    root["control_period"].Fail("must be a whole multiple of physics_period");
  }
  if (root.Has("velocity_limit")) {
    spec.velocity_limit = ReadPerJoint(spec, root["velocity_limit"], 0, 1e4, false);
  }
  spec.has_safety = root.Has("safety");
  if (spec.has_safety) spec.safety = ReadSafety(root["safety"]);
  return spec;
}

}  // namespace

int RobotSpec::physics_steps_per_control() const {
  return static_cast<int>(std::lround(control_period / physics_period));
}

int RobotSpec::Joint(std::string_view joint_name) const {
  const auto found = std::find(joints.begin(), joints.end(), joint_name);
  if (found == joints.end()) {
    throw ConfigError(file + ": the robot has no joint " + Quoted(joint_name) +
                      DidYouMean(joint_name, joints));
  }
  return static_cast<int>(found - joints.begin());
}

const JointGroup& RobotSpec::Group(std::string_view group_name) const {
  return Find(*this, groups, group_name, "joint group");
}

const JointGroup& RobotSpec::Actor(std::string_view actor_name) const {
  return Find(*this, actors, actor_name, "actor");
}

const GainSet& RobotSpec::Gains(std::string_view gains_name) const {
  return Find(*this, gains, gains_name.empty() ? default_gains : gains_name, "set of gains");
}

const Pose& RobotSpec::StandingPose(std::string_view pose_name) const {
  return Find(*this, poses, pose_name.empty() ? default_pose : pose_name, "pose");
}

const HandSpec& RobotSpec::Hand(std::string_view hand_name) const {
  return Find(*this, hands, hand_name, "hand");
}

void RobotSpec::UseGains(GainSet set) {
  default_gains = set.name;
  for (GainSet& known : gains) {
    if (known.name != set.name) continue;
    known = std::move(set);
    return;
  }
  gains.push_back(std::move(set));
}

GainSet ParseGainSet(const RobotSpec& spec, const YamlNode& node, const std::string& name) {
  node.Keys({"kp", "kd", "action_scale"});
  return {name,
          ReadPerJoint(spec, node["kp"], kMinKp, kMaxKp, false),
          ReadPerJoint(spec, node["kd"], 0, kMaxKd, false),
          ReadPerJoint(spec, node["action_scale"], 0, kMaxActionScale, false)};
}

RobotSpec ReadRobotSpec(const std::string& path) {
  return FromYaml(YamlNode::ParseFile(path), path);
}

RobotSpec ParseRobotSpec(std::string_view text, const std::string& path) {
  return FromYaml(YamlNode::Parse(text, path), path);
}

std::string FindRobotFile(const std::string& name_or_path) {
  const fs::path asked(name_or_path);
  std::error_code ignored;
  // anything that looks like a path is one: no searching, so that a typo is not answered by another
  // robot
  if (name_or_path.find('/') != std::string::npos || asked.extension() == ".yaml") {
    const fs::path file = fs::is_directory(asked, ignored) ? asked / "robot.yaml" : asked;
    if (!fs::is_regular_file(file, ignored)) {
      throw ConfigError("robot " + Quoted(name_or_path) + ": there is no file " + file.string());
    }
    return file.string();
  }

  std::vector<std::string> folders;
  if (const char* variable = std::getenv("SILC_ROBOTS")) {
    std::string rest = variable;
    while (!rest.empty()) {
      const std::size_t colon = rest.find(':');
      if (colon != 0) folders.push_back(rest.substr(0, colon));
      rest = colon == std::string::npos ? "" : rest.substr(colon + 1);
    }
  }
  for (std::string& folder : DataFolders("robots")) folders.push_back(std::move(folder));

  std::set<std::string> found;
  for (const std::string& folder : folders) {
    const fs::path file = fs::path(folder) / name_or_path / "robot.yaml";
    if (!name_or_path.empty() && fs::is_regular_file(file, ignored)) return file.string();
    for (fs::directory_iterator it(folder, ignored), end; it != end; it.increment(ignored)) {
      if (fs::is_regular_file(it->path() / "robot.yaml", ignored)) {
        found.insert(it->path().filename().string());
      }
    }
  }
  std::string tried;
  for (const std::string& folder : folders) tried += (tried.empty() ? "" : ", ") + folder;
  throw ConfigError(
      "robot " + Quoted(name_or_path) + ": no such robot in " + tried +
      DidYouMean(name_or_path, {found.begin(), found.end()}) +
      "\n  Set SILC_ROBOTS to the folder that holds it, or give the path of its robot.yaml.");
}

}  // namespace silc
