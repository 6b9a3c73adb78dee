// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <Eigen/Core>
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "silc/robot/default_robot.h"

namespace silc {

class YamlNode;

/// Joints that belong together, by index in RobotSpec::joints, in the order the file lists them.
struct JointGroup {
  std::string name;
  std::vector<int> joints;
};

/// One set of geoms a foot may stand on; the loader keeps one set and removes the others.
struct FootGeoms {
  std::string name;                // "spheres", "box"
  std::vector<std::string> geoms;  // named geoms of the MJCF
};

struct FootSpec {
  std::string body;
  std::string site;  // sole centre: the point the foot's Jacobian and pose are taken at
  std::vector<FootGeoms> geom_sets;
};

struct HandSpec {
  std::string name;
  std::string body;
  std::string site;  // where a stiffness at the hand is felt
  // [m] in the body's frame: a training's forces act between these two points. Empty: at the site.
  std::vector<Eigen::Vector3d> load;
};

struct ImuSpec {
  std::string name;
  std::string site;
};

/// Gains of the joint servo (S1), one entry per joint of RobotSpec::joints.
struct GainSet {
  std::string name;
  Eigen::VectorXd kp;            // [N·m/rad]
  Eigen::VectorXd kd;            // [N·m·s/rad]
  Eigen::VectorXd action_scale;  // [rad] α of (S1): q* = q_ref + α a
};

struct Pose {
  std::string name;
  double base_height =
      0;              // [m] nominal height of the base body's origin when standing on flat ground
  Eigen::VectorXd q;  // [rad] one entry per joint; those the file leaves out are zero
};

/// Which joint does what: indices into RobotSpec::joints, left then right; −1 where the robot has
/// no such joint. A training needs them; nothing else does.
struct JointRoles {
  std::array<int, 2> hip_pitch{-1, -1}, hip_roll{-1, -1}, hip_yaw{-1, -1};
  std::array<int, 2> knee{-1, -1}, ankle_pitch{-1, -1}, ankle_roll{-1, -1};
  std::array<int, 3> waist{-1, -1, -1};  // yaw, roll, pitch
};

/// Where generated arm motions take a joint.
struct ReachRange {
  double low = 0, high = 0;  // [rad]
  bool given = false;        // else: about the standing pose
};

/// Normal force at which a foot counts as standing, and as lifted. The gap keeps the contact mode
/// from flickering at touch-down.
struct FootForceThresholds {
  double enter = 0;  // [N]
  double leave = 0;  // [N] below enter
};

/// When a fault of docs/deploy.md trips.
struct SafetyRule {
  std::string fault;
  double limit = 0;      // in the fault's unit
  int ticks = 1;         // of the command thread, in a row
  std::string reaction;  // "stop", "soften", "warn"
};

/// What `silc deploy` holds the robot to. docs/deploy.md has the faults, with where limits come
/// from.
struct SafetySpec {
  std::vector<int> machine_modes;   // that the robot may report
  double command_period = 0.002;    // [s]
  double damping_kd = 0;            // [N·m·s/rad] while damping, less where a joint is weak
  double stand_up_time = 0;         // [s]
  double blend_time = 0;            // [s] over which a policy takes over
  double softest = 0;               // [1] least factor on kp of a fault that softens
  double soften_rate = 0;           // [1/s]
  std::vector<double> max_command;  // [m/s], [m/s], [rad/s] of a full stick
  std::vector<SafetyRule> rules;    // in the file's order
};

/// What silc needs to know about a robot beyond its MJCF: the contents of a robot.yaml, checked for
/// everything that can be checked without compiling the model. docs/robots.md describes the file.
///
/// "Robot order" everywhere in silc is the order of `joints`: rows and columns of every joint-space
/// matrix, entries of q, kp, action_scale. Nothing else may be assumed about it, least of all that
/// it is the MJCF's.
struct RobotSpec {
  std::string file;        // the robot.yaml
  std::string name;        // "g1"
  std::string title;       // for people
  std::string model_file;  // MJCF, path resolved against the yaml's folder

  std::vector<std::string> joints;  // robot order
  std::vector<JointGroup> groups;   // "left_leg", "legs", …
  std::vector<JointGroup> actors;   // every joint is in exactly one
  std::string base;                 // the body with the free joint
  bool has_roles = false;           // whether the file has `roles`
  JointRoles roles;
  std::vector<ReachRange> reach;  // one entry per joint

  FootSpec left_foot;
  FootSpec right_foot;
  std::string foot_collision;  // the geom set the feet stand on, "spheres"
  FootForceThresholds foot_force;
  std::vector<HandSpec> hands;  // none, or left and right in this order
  std::vector<ImuSpec> imus;    // the first is the base's

  std::vector<GainSet> gains;
  std::string default_gains;
  std::vector<Pose> poses;
  std::string default_pose;

  double control_period = 0;       // [s] one action
  double physics_period = 0;       // [s] one simulation step; control_period is a multiple of it
  Eigen::VectorXd velocity_limit;  // [rad/s] one entry per joint; empty when the file gives none
  bool has_safety = false;         // whether the file has `safety`
  SafetySpec safety;

  int num_joints() const { return static_cast<int>(joints.size()); }
  int physics_steps_per_control() const;

  /// Look-ups by the name a user typed. An unknown name throws a ConfigError that names the file
  /// and the near misses. Gains("") and StandingPose("") are the file's defaults.
  int Joint(std::string_view joint_name) const;
  const JointGroup& Group(std::string_view group_name) const;
  const JointGroup& Actor(std::string_view actor_name) const;
  const GainSet& Gains(std::string_view gains_name = "") const;
  const Pose& StandingPose(std::string_view pose_name = "") const;
  const HandSpec& Hand(std::string_view hand_name) const;

  /// Makes `set` the default, in the place of a set of the same name.
  void UseGains(GainSet set);
};

/// kp, kd and action_scale of a map, as robot.yaml and gain files have them: one number for all
/// joints, or joints, patterns and groups of `spec`. Throws ConfigError with file and line.
GainSet ParseGainSet(const RobotSpec& spec, const YamlNode& node, const std::string& name);

/// Reads and checks a robot.yaml. Throws ConfigError: unknown keys, joints named twice or not at
/// all, lists of the wrong length, values out of range.
RobotSpec ReadRobotSpec(const std::string& path);

/// The same from text; `path` stands for the file in messages and for resolving the model's path.
RobotSpec ParseRobotSpec(std::string_view text, const std::string& path);

/// The robot.yaml that "g1" or "path/to/robot.yaml" (or its folder) means. A bare name is looked
/// for as NAME/robot.yaml in $SILC_ROBOTS (folders separated by ':'), in ./robots, in the source
/// tree silc was built from and in the installed share folder, in this order. Throws ConfigError
/// naming the folders tried and the robots found there.
std::string FindRobotFile(const std::string& name_or_path);

}  // namespace silc
