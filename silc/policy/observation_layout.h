// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <Eigen/Core>

#include "silc/policy/term_source.h"
#include "silc/stiffness/budget_command.h"

namespace silc {

/// The names in term_source.h, in the order of the enum; what a layout file says.
const std::vector<std::string>& TermSourceNames();
const char* TermSourceName(TermSource source);
bool IsJointSource(TermSource source);
/// The number of a budget that a source tells the policy (B1); nothing for the other sources.
std::optional<CommandedNumber> CommandedBy(TermSource source);
/// The term that shows a policy this number.
TermSource TermOf(CommandedNumber number);

/// One entry of an observation frame:
///
///     o = clip( scale · clip_input(x − offset), clip )                                       per
///     element
struct ObservationTerm {
  std::string name;
  TermSource source = TermSource::kConstant;
  std::vector<std::string>
      joints;  // joint sources; empty: the layout's joints (prev_action: the action's)
  bool minus_default = false;         // offset = default pose (joint_pos, ref_joint_pos)
  double offset = 0;                  // in the quantity's own unit; not beside minus_default
  std::vector<double> scale = {1.0};  // one, or one per element
  double clip_input =
      std::numeric_limits<double>::infinity();            // symmetric, in the quantity's own unit
  double clip = std::numeric_limits<double>::infinity();  // symmetric, after scaling
  std::vector<double> constant;                           // the numbers of a constant term
  int history = 0;  // frames; 0: the layout's. Others than the layout's need term-major order
};

/// How actions become joint position targets (S1): q* = q_default + α a, or q* = q_ref + α a for
/// the joints listed as residual.
struct ActionMap {
  std::vector<std::string> joints;    // order of the network's output
  std::vector<double> scale = {1.0};  // α [rad], one, or one per action
  std::vector<std::string>
      residual_joints;  // these add to the reference instead of the default pose
  double clip = std::numeric_limits<double>::infinity();  // on the raw action, symmetric
};

/// Two-foot clock for policies that are told the phase of their gait. It stands while the robot is
/// told to: by command_walk where the policy observes that, else by commands below standing_speed.
struct GaitClock {
  double period = 0;             // [s]; 0: no clock
  std::vector<double> offsets;   // [rad] phase of each foot at the start
  double standing_phase = 0;     // [rad] of every foot while standing
  bool standing_zero = false;    // while standing sin = cos = 0 instead, which no phase has
  double standing_speed = 0.01;  // [m/s, rad/s] commands below this mean standing
};

enum class FrameOrder {
  kFrameMajor,  ///< whole frames one after the other
  kTermMajor,   ///< all frames of the first term, then of the second
};

enum class HistoryReset {
  kZeros,       ///< frames before the first are zero
  kFirstFrame,  ///< frames before the first repeat it
};

/// Everything that stands between a robot's state and a policy's input, and between its output and
/// joint targets, as data. Numbers per joint are in the order of `joints`.
struct ObservationLayout {
  std::string name;
  std::string
      file;  // the YAML it was read from, for messages; empty: the policy's own, or made here
  double control_dt = 0;               // [s]
  std::vector<std::string> joints;     // the policy's joints in its order
  std::vector<double> default_pose;    // [rad] per joint
  std::vector<double> kp;              // [N·m/rad] the policy was trained with; empty: the robot's
  std::vector<double> kd;              // [N·m·s/rad]
  std::vector<double> effort_limit;    // [N·m] where it is below the robot's; empty: the robot's
  std::vector<ObservationTerm> terms;  // in the order of the input
  int history = 1;                     // frames
  FrameOrder order = FrameOrder::kFrameMajor;
  bool newest_first = false;
  HistoryReset reset = HistoryReset::kZeros;
  ActionMap action;
  GaitClock clock;
  std::string input;  // of the graph; empty: its only one
  std::string output;

  /// Throws ConfigError ("PLACE: key: value: rule") when something is missing or does not fit.
  void Validate(const std::string& place) const;

  /// "layout 'name'", with the file it was read from.
  std::string Title() const;
  /// Where its mistakes are to be mended: the file it was read from, else the policy's.
  std::string Place(const std::string& policy_file) const;
};

/// The term's own joints, or all: the layout's (prev_action: the action's).
/// @pre IsJointSource(term.source)
const std::vector<std::string>& TermJoints(const ObservationLayout& layout,
                                           const ObservationTerm& term);
/// Elements one frame of the term has.
int TermWidth(const ObservationLayout& layout, const ObservationTerm& term);
/// Frames the term keeps: its own history, or the layout's.
int TermFrames(const ObservationLayout& layout, const ObservationTerm& term);
/// Elements of the whole observation.
int ObservationWidth(const ObservationLayout& layout);
/// One line per term: name, width, frames, first element. What an error about widths shows.
std::string DescribeTerms(const ObservationLayout& layout);

/// Adds a term for every number that is commanded and has none yet, at the end of the frame: ln of
/// the number, its range scaled to [−1, 1].                                                  (B3)
void AddBudgetTerms(const BudgetCommand& command, ObservationLayout* layout);

/// What was asked of the policy.
struct PolicyCommand {
  Eigen::Vector2d lin_vel = Eigen::Vector2d::Zero();  // [m/s] vx, vy in the heading frame
  double yaw_rate = 0;                                // [rad/s]
  double height = 0.75;                               // [m] of the base
  double walk = 0;                                    // [1] 1 walk or step, 0 stand
  Eigen::Vector3d waist = Eigen::Vector3d::Zero();    // [rad] yaw, roll, pitch
  /// The budget that a commanded policy is told; nothing: the middle of its ranges, which is where
  /// its layout has the terms' offsets.
  std::optional<BudgetValues> budget;
};

/// One control step as the robot reports it. Joint vectors are in the robot's order and as long as
/// it has joints; quantities the layout does not use may be left empty.
struct ObservationInput {
  Eigen::VectorXd q;    // [rad]
  Eigen::VectorXd qd;   // [rad/s]
  Eigen::VectorXd tau;  // [N·m] applied by the motors
  Eigen::VectorXd
      q_ref;  // [rad] commanded joint positions (FALCON's arms); empty: the default pose
  Eigen::Vector3d w_WB_B = Eigen::Vector3d::Zero();       // [rad/s]
  Eigen::Vector3d v_WB_B = Eigen::Vector3d::Zero();       // [m/s]
  Eigen::Vector3d g_B = Eigen::Vector3d(0.0, 0.0, -1.0);  // [1]
  PolicyCommand command;
  Eigen::VectorXd phase;  // [rad] per foot; empty: the policy's own clock
};

/// The layout's joints found in the robot: position of each in `robot_joints`. Throws ConfigError
/// ("PLACE: joint …") that names what is missing and the near misses.
std::vector<int> MapJoints(const std::vector<std::string>& joints,
                           const std::vector<std::string>& robot_joints,
                           const std::string& place);

}  // namespace silc
