// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "silc/base/host_device.h"
#include "silc/task/task_config.h"

namespace silc {

class RobotModel;
struct BatchModelOptions;

// The task is written for a humanoid of 29 joints in this order: legs and waist (the lower agent),
// then both arms (the upper agent). MakeTaskRobot() refuses others.
inline constexpr int kTaskJoints = 29;
inline constexpr int kLowerJoints = 15;
inline constexpr int kUpperJoints = 14;
inline constexpr int kArmJoints = 7;

/// Frames the batch reports, in this order (BatchModelOptions::frames).
enum TaskFrame : int {
  kFrameLeftFoot,
  kFrameRightFoot,
  kFrameTorso,
  kFrameLeftHand,
  kFrameRightHand,
  kNumTaskFrames
};
/// Bodies that may be pushed, in this order (BatchModelOptions::pushes).
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

/// What the task reads of the robot: constants without pointers. Joint arrays are in robot order.
struct TaskRobot {
  int nq, nv;
  int base_qpos, base_dof;
  int qpos[kTaskJoints], dof[kTaskJoints], actuator[kTaskJoints];
  float default_q[kTaskJoints];                         // [rad]
  float soft_low[kTaskJoints], soft_high[kTaskJoints];  // [rad] share of the range about its centre
  float effort[kTaskJoints];                            // [N·m]
  float max_velocity[kTaskJoints];                      // [rad/s]
  float kp[kTaskJoints], kd[kTaskJoints];               // [N·m/rad], [N·m·s/rad]
  float action_scale[kTaskJoints];                      // [rad]
  // joints by role, left then right
  int hip_pitch[2], hip_roll[2], hip_yaw[2], knee[2], ankle_pitch[2], ankle_roll[2];
  int waist[3];            // yaw, roll, pitch
  float p_FS[2][3];        // sole site in the foot body's frame [m]
  float p_HC[2][3];        // hand body's centre of mass in its frame [m]
  float force_near[2][3];  // a hand force acts between these two points of the hand body [m]
  float force_far[2][3];
  float foot_enter, foot_leave;  // [N]
  float sole_friction;           // of the model [1]
  float control_dt;              // [s]
  int substeps;
};

/// Throws ConfigError when the robot is not of the kind above.
TaskRobot MakeTaskRobot(const RobotModel& robot, const TaskConfig& config);

/// The body that carries the second IMU.
std::string TorsoBody(const RobotModel& robot);

/// What CompileBatchModel() must be asked for, in the order of TaskFrame and TaskPush.
BatchModelOptions TaskBatchOptions(const RobotModel& robot, const TaskConfig& config);

}  // namespace silc
