// SPDX-License-Identifier: Apache-2.0
#include "silc/task/task_layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "silc/base/error.h"
#include "silc/policy/layout_file.h"

namespace silc {
namespace {

// 0.8f as 0.8: the number that was written down, not its rounding
double Decimal(float value) { return std::stod(fmt::format("{}", value)); }

[[noreturn]] void Fail(const ObservationLayout& layout,
                       const std::string& key,
                       const std::string& what) {
  throw ConfigError(fmt::format("{}: {}: {}", layout.Place("task"), key, what));
}

// The servo and the pose are the robot's: the physics runs them. A layout that says otherwise
// would describe another robot than the one that is trained.
void TakeRobotsNumbers(const RobotSpec& robot, bool gains_named, ObservationLayout* layout) {
  const auto check =
      [&](const std::string& key, const std::string& joint, double given, double robots) {
        if (std::abs(given - robots) <= 1e-9 * std::max(1.0, std::abs(robots))) return;
        Fail(
            *layout,
            key,
            fmt::format(
                "{} for {}, but {} says {}, and the task trains the robot as that file "
                "describes it\n  Make the two agree, or name a gain set in the task (gains: NAME).",
                given,
                joint,
                robot.file,
                robots));
      };
  const GainSet& gains = robot.Gains();
  const Pose& pose = robot.StandingPose();
  const std::vector<int> joint = MapJoints(layout->joints, robot.joints, layout->Place("task"));
  check("control_dt", "the policy", layout->control_dt, robot.control_period);
  layout->control_dt = robot.control_period;
  if (!layout->effort_limit.empty()) {
    Fail(*layout, "effort_limit", "leave it out; the task trains with the robot's limits");
  }
  const bool has_gains = !layout->kp.empty();
  layout->kp.resize(joint.size());
  layout->kd.resize(joint.size());
  for (std::size_t i = 0; i < joint.size(); ++i) {
    const int j = joint[i];
    check("default_pose", layout->joints[i], layout->default_pose[i], pose.q[j]);
    layout->default_pose[i] = pose.q[j];
    if (has_gains && !gains_named) {
      check("kp", layout->joints[i], layout->kp[i], gains.kp[j]);
      check("kd", layout->joints[i], layout->kd[i], gains.kd[j]);
    }
    layout->kp[i] = gains.kp[j];
    layout->kd[i] = gains.kd[j];
  }
  const std::vector<double> scale = layout->action.scale;
  layout->action.scale.clear();
  const std::vector<int> order = TaskOrder(robot);
  for (std::size_t t = 0; t < order.size(); ++t) {
    const int j = order[t];
    const double given = scale[scale.size() == 1 ? 0 : t];
    if (!gains_named) check("action.scale", robot.joints[j], given, gains.action_scale[j]);
    layout->action.scale.push_back(gains.action_scale[j]);
  }
}

void CheckActions(const RobotSpec& robot, const ObservationLayout& layout) {
  const std::vector<std::string> joints = TaskJointNames(robot);
  if (layout.action.joints != joints) {
    std::string expected;
    for (const std::string& joint : joints) expected += (expected.empty() ? "" : ", ") + joint;
    Fail(layout,
         "action.joints",
         "the task's actions are the joints of the actors 'lower', then 'upper', of " + robot.file +
             ", in this order: " + expected);
  }
  const auto lower = static_cast<std::ptrdiff_t>(robot.Actor("lower").joints.size());
  std::vector<std::string> arms(joints.begin() + lower, joints.end());
  std::vector<std::string> residual = layout.action.residual_joints;
  std::sort(arms.begin(), arms.end());
  std::sort(residual.begin(), residual.end());
  if (residual != arms) {
    Fail(layout,
         "action.residual_joints",
         "the task's actions add to the reference of the arms' joints, all of them and no others");
  }
}

void CheckTerms(const RobotSpec& robot, const ObservationLayout& layout) {
  if (layout.clock.offsets.size() > kClockFeet) {
    Fail(layout,
         "clock.offsets",
         fmt::format("{} phases, the task has {} feet", layout.clock.offsets.size(), kClockFeet));
  }
  if (layout.clock.standing_zero) {
    Fail(layout, "clock.standing_phase", "'zero' is not what the task shows; give a phase [rad]");
  }
  bool walk = false;
  for (const ObservationTerm& term : layout.terms) {
    walk = walk || term.source == TermSource::kCommandWalk;
  }
  for (const ObservationTerm& term : layout.terms) {
    const std::string key = "terms." + term.name;
    if (term.source == TermSource::kBaseLinVel) {
      Fail(layout,
           key,
           "the task gives its actors no base_lin_vel, which a robot does not measure; only the "
           "critic sees it");
    }
    if (term.source == TermSource::kRefJointPos) {
      const std::vector<int>& lower = robot.Actor("lower").joints;
      for (const std::string& joint : TermJoints(layout, term)) {
        if (std::find(lower.begin(), lower.end(), robot.Joint(joint)) == lower.end()) continue;
        Fail(layout, key, "the task has references for the arms' joints alone, not for " + joint);
      }
    }
    if (term.source == TermSource::kPhaseSin || term.source == TermSource::kPhaseCos) {
      // else Policy starts and stops its clock by the velocity, which the task does not
      if (!walk) {
        Fail(layout,
             key,
             "the gait clock stands and runs by command_walk; add a term with that source");
      }
    }
  }
}

float NoiseOf(TermSource source, const TaskConfig::Noise& noise) {
  switch (source) {
    case TermSource::kJointPos:
      return noise.joint_pos;
    case TermSource::kJointVel:
      return noise.joint_vel;
    case TermSource::kJointTorque:
      return noise.torque;
    case TermSource::kBaseAngVel:
      return noise.base_ang_vel;
    case TermSource::kProjectedGravity:
      return noise.gravity;
    default:
      return 0;
  }
}

float BiasOf(TermSource source, const TaskConfig::Noise& noise) {
  switch (source) {
    case TermSource::kJointPos:
      return noise.joint_pos_bias;
    case TermSource::kJointTorque:
      return noise.torque_bias;
    case TermSource::kBaseAngVel:
      return noise.base_ang_vel_bias;
    case TermSource::kProjectedGravity:
      return noise.gravity_bias;
    default:
      return 0;
  }
}

// The kernels' positions are those of a robot with all the joints there may be.
ObservationEntry<float> InFloat(const ObservationEntry<double>& e, const ObservationSources& own) {
  ObservationSources kernels = TaskSources();
  kernels.feet = own.feet;
  return {.source = e.source,
          .index = e.index,
          .value = kernels.At(e.source) + e.value - own.At(e.source),
          .offset = static_cast<float>(e.offset),
          .scale = static_cast<float>(e.scale),
          .clip_input = static_cast<float>(e.clip_input),
          .clip = static_cast<float>(e.clip),
          .frames = e.frames,
          .newest = e.newest,
          .stride = e.stride};
}

}  // namespace

void MatchLayout(TaskConfig* config, ObservationLayout* layout) {
  if (config->observation.history > 0) layout->history = config->observation.history;
  config->observation.history = layout->history;

  constexpr double kShortest = 0.1, kLongest = 10;  // [s] as TaskConfig has them
  if (config->gait.period > 0) {
    if (layout->clock.period != 0) layout->clock.period = Decimal(config->gait.period);
  } else if (!(layout->clock.period >= kShortest && layout->clock.period <= kLongest)) {
    Fail(*layout,
         "clock.period",
         fmt::format("{} s is outside [{}, {}], and the task's gait.period is left to the layout",
                     layout->clock.period,
                     kShortest,
                     kLongest));
  } else {
    config->gait.period = static_cast<float>(layout->clock.period);
  }

  if (config->action.clip > 0) layout->action.clip = Decimal(config->action.clip);
  config->action.clip = static_cast<float>(layout->action.clip);
}

TaskObservation TaskLayout::view() const {
  TaskObservation o = {};
  o.entries = entries.data();
  o.frame_width = table.frame_width();
  o.frames = table.frames;
  o.width = table.width();
  o.whole_frames = table.whole_frames;
  o.newest_first = layout.newest_first;
  o.first_frame_fills = table.first_frame_fills;
  o.num_feet = table.sources.feet;
  for (int f = 0; f < o.num_feet; ++f) {
    o.foot_phase[f] = static_cast<float>(layout.clock.offsets[f]);
  }
  o.standing_phase = static_cast<float>(layout.clock.standing_phase);
  return o;
}

TaskLayout MakeTaskLayout(ObservationLayout layout,
                          const RobotSpec& robot,
                          TaskConfig* config,
                          bool gains_named) {
  TaskLayout out;
  CheckActions(robot, layout);
  TakeRobotsNumbers(robot, gains_named, &layout);
  MatchLayout(config, &layout);
  CheckTerms(robot, layout);
  layout.Validate(layout.Place("task"));
  out.layout = std::move(layout);
  out.table = CompileObservation(out.layout, TaskJointNames(robot), out.layout.Place("task"));
  int draws = 0;
  for (const ObservationEntry<double>& entry : out.table.entries) {
    const float noise = NoiseOf(entry.source, config->noise);
    out.entries.push_back({.read = InFloat(entry, out.table.sources),
                           .noise = noise,
                           .bias = BiasOf(entry.source, config->noise),
                           .draw = draws});
    if (noise > 0) ++draws;
  }
  return out;
}

ObservationLayout ReadTaskLayout(const std::string& name_or_path) {
  const std::string path = FindLayout(name_or_path, LayoutFolders());
  LayoutFile file = ReadLayoutFile(path);
  if (file.from_metadata) {
    throw ConfigError(path +
                      ": from_metadata: describes policies that exist already; a task needs a "
                      "layout with joints, terms and action, such as g1_loco");
  }
  return file.layout;
}

}  // namespace silc
