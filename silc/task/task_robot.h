// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "silc/base/host_device.h"
#include "silc/task/task_config.h"

namespace silc {

class RobotModel;
struct RobotSpec;
struct BatchModelOptions;

// The task takes any robot with two feet. It numbers the joints in *task order*: those of the actor
// `lower` of robot.yaml as listed there, then those of `upper`, which follow a reference; a robot
// without arms has no `upper`. The G1's task order is its robot order.
//
// Kernels hold joints in arrays of fixed size. These are the sizes; MakeTaskRobot() refuses robots
// with more, and TaskRobot says how many there are.
inline constexpr int kTaskJoints = 29;   // at most, of the robot
inline constexpr int kUpperJoints = 14;  // at most, of those that follow a reference
// The G1's own numbers, for what knows no other robot: AMASS files, `eval stand` and `eval walk`.
inline constexpr int kLowerJoints = 15;
inline constexpr int kArmJoints = 7;

/// Frames the batch reports, in this order (BatchModelOptions::frames). A robot without hands has
/// the torso's frame in their place, and nothing looks at it.
enum TaskFrame : int {
  kFrameLeftFoot,
  kFrameRightFoot,
  kFrameTorso,
  kFrameLeftHand,
  kFrameRightHand,
  kNumTaskFrames
};
/// Bodies that may be pushed, in this order (BatchModelOptions::pushes). A robot without hands has
/// its base in their place, and nothing pushes there.
enum TaskPush : int {
  kPushBase,
  kPushLeftHand,
  kPushRightHand,
  kPushTorso,  // where push.torso_share asks for it alone: saved states of other tasks lack it
  kMaxTaskPushes
};
/// How many of them a task has.
SILC_HD int NumTaskPushes(const TaskConfig& config) {
  return config.push.torso_share > 0 ? kMaxTaskPushes : static_cast<int>(kPushTorso);
}

/// Pairs of leg joints, as TaskRobot::mirror lists them.
enum LegRole : int { kHipPitch, kHipRoll, kHipYaw, kKnee, kAnklePitch, kAnkleRoll, kNumLegRoles };

/// What the task reads of the robot: constants without pointers. Joint arrays are in task order,
/// and the first num_joints entries count.
struct TaskRobot {
  int num_joints, num_lower;  // the others, num_upper(), follow a reference
  bool has_hands;
  int nq, nv;
  int base_qpos, base_dof;
  int qpos[kTaskJoints], dof[kTaskJoints], actuator[kTaskJoints];
  float default_q[kTaskJoints];                         // [rad]
  float soft_low[kTaskJoints], soft_high[kTaskJoints];  // [rad] share of the range about its centre
  float effort[kTaskJoints];                            // [N·m]
  float max_velocity[kTaskJoints];                      // [rad/s]
  float kp[kTaskJoints], kd[kTaskJoints];               // [N·m/rad], [N·m·s/rad]
  float action_scale[kTaskJoints];                      // [rad]
  // joints by role, left then right; −1: the robot has none
  int hip_pitch[2], hip_roll[2], hip_yaw[2], knee[2], ankle_pitch[2], ankle_roll[2];
  int waist[3];  // yaw, roll, pitch
  float
      mirror[kNumLegRoles];  // ±1: the mirror image of a left angle q is the right angle mirror · q
  float knee_bend[2];        // ±1: the sign of a bent knee
  bool is_leg[kTaskJoints];        // has one of the legs' roles
  int arm[2][kUpperJoints];        // joints between the base and each hand that follow a reference
  int arm_joints[2];               // how many
  float feet_apart, swing_height;  // [m] of the task, for its rewards
  float p_FS[2][3];        // sole site against the foot body's origin, in the site's frame [m]
  float p_HC[2][3];        // hand body's centre of mass in its frame [m]
  float force_near[2][3];  // a hand force acts between these two points of the hand body [m]
  float force_far[2][3];
  float foot_enter, foot_leave;  // [N]
  float sole_friction;           // of the model [1]
  float control_dt;              // [s]
  int substeps;

  SILC_HD int num_upper() const { return num_joints - num_lower; }
};

/// Task order: the robot's joint of each of the task's. Throws ConfigError when `actors` is not as
/// above, or holds too many.
std::vector<int> TaskOrder(const RobotSpec& spec);
/// The names, in task order.
std::vector<std::string> TaskJointNames(const RobotSpec& spec);

/// Throws ConfigError when the robot is not of the kind above.
TaskRobot MakeTaskRobot(const RobotModel& robot, const TaskConfig& config);

/// The body that carries the second IMU; empty where the robot has no torso that moves against its
/// base.
std::string TorsoBody(const RobotModel& robot);

/// What CompileBatchModel() must be asked for, in the order of TaskFrame and TaskPush. Throws
/// ConfigError when the task disturbs a torso or hands that the robot does not have.
BatchModelOptions TaskBatchOptions(const RobotModel& robot, const TaskConfig& config);

}  // namespace silc
