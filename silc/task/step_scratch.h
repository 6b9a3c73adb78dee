// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "silc/task/task_state.h"
#include "silc/task/thread_group.h"

/// What the phases of a control step share: the base, and the scratch they leave for each other.
namespace silc::step {

/// Rotation of a unit quaternion wxyz, row-major.
SILC_HD void RotationOf(const float q[4], float R[9]) {
  const float w = q[0], x = q[1], y = q[2], z = q[3];
  R[0] = 1 - 2 * (y * y + z * z);
  R[1] = 2 * (x * y - w * z);
  R[2] = 2 * (x * z + w * y);
  R[3] = 2 * (x * y + w * z);
  R[4] = 1 - 2 * (x * x + z * z);
  R[5] = 2 * (y * z - w * x);
  R[6] = 2 * (x * z - w * y);
  R[7] = 2 * (y * z + w * x);
  R[8] = 1 - 2 * (x * x + y * y);
}
SILC_HD void Rotate(const float R[9], const float v[3], float out[3]) {
  for (int i = 0; i < 3; ++i) out[i] = R[3 * i] * v[0] + R[3 * i + 1] * v[1] + R[3 * i + 2] * v[2];
}
SILC_HD void RotateBack(const float R[9], const float v[3], float out[3]) {
  for (int i = 0; i < 3; ++i) out[i] = R[i] * v[0] + R[3 + i] * v[1] + R[6 + i] * v[2];
}
SILC_HD void Cross(const float a[3], const float b[3], float out[3]) {
  out[0] = a[1] * b[2] - a[2] * b[1];
  out[1] = a[2] * b[0] - a[0] * b[2];
  out[2] = a[0] * b[1] - a[1] * b[0];
}

struct BaseState {
  float p[3], quat[4], R[9], v_W[3], v_B[3], w_B[3], w_W[3], g_B[3], yaw;
};

SILC_HD void ReadBase(const TaskRobot& robot, const PhysicsView& view, int env, BaseState* b) {
  for (int k = 0; k < 3; ++k) {
    b->p[k] = view.qpos(env, robot.base_qpos + k);
    b->v_W[k] = view.qvel(env, robot.base_dof + k);
    b->w_B[k] = view.qvel(env, robot.base_dof + 3 + k);
  }
  for (int k = 0; k < 4; ++k) b->quat[k] = view.qpos(env, robot.base_qpos + 3 + k);
  RotationOf(b->quat, b->R);
  RotateBack(b->R, b->v_W, b->v_B);
  Rotate(b->R, b->w_B, b->w_W);
  for (int k = 0; k < 3; ++k) b->g_B[k] = -b->R[6 + k];
  b->yaw = atan2f(b->R[3], b->R[0]);
}

SILC_HD bool Finite(float x) { return fabsf(x) <= 3.0e38f; }

/// Whether this member's part of the state is one the learner may see.
template <class ThreadGroup>
SILC_HD bool IsSound(const TaskContext& t, const PhysicsView& view, int env, ThreadGroup threads) {
  bool sound = !threads.Does(0) || view.fault(env, 0) == 0;
  constexpr int kStep = ThreadGroup::kSize;
  for (int i = threads.first(); i < t.robot.nq; i += kStep) {
    sound = sound && Finite(view.qpos(env, i));
  }
  for (int i = threads.first(); i < t.robot.nv; i += kStep) {
    sound = sound && fabsf(view.qvel(env, i)) <= t.config.episode.max_speed;
  }
  for (int j = threads.first(); j < t.robot.num_joints; j += kStep) {
    sound = sound && Finite(view.torque(env, j));
  }
  for (int i = threads.first(); i < 6; i += kStep) {
    sound = sound && Finite(view.foot_force(env, i));
  }
  return sound;
}

/// What the phases of a step leave for each other, besides the robot's state. On a GPU it is the
/// shared memory of a group.
struct Scratch {
  BaseState base;
  float pose[12 * kNumTaskFrames], velocity[6 * kNumTaskFrames];
  RewardInput reward;
  float terms[kNumRewards];
  float values[kNumValues];  // ObservationSources
  float foot_height[2];      // [m] of the ankle
  float phase;               // of the gait clock after this step
  bool lost;                 // the physics lost the robot; false before the first phase
  bool refused;              // the action is not finite; false before the first phase
  std::uint8_t flag;         // StepFlag
  float survival;            // what EndStep() returns
};

/// The control step in which the present episode was reset: what its draws are keyed by.
SILC_HD std::uint32_t EpisodeOf(const TaskContext& t, const EnvState& s) {
  return t.progress->step - static_cast<std::uint32_t>(s.k - s.start_k);
}

}  // namespace silc::step
