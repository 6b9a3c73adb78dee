// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "silc/task/commands.h"
#include "silc/task/task_robot.h"

namespace silc {

inline constexpr int kActorFrame = 131;
inline constexpr int kCriticObs = 152;

/// Numbers the actors see: the frames of config.observation.history.
SILC_HD int ActorObs(const TaskConfig& config) { return kActorFrame * config.observation.history; }

/// What an observation is made of, without noise.
struct ObservationState {
  float action[kTaskJoints];  // last raw action, clipped
  float w_B[3], g_B[3];
  float q[kTaskJoints], qd[kTaskJoints], tau[kTaskJoints];
  float arm_ref[kUpperJoints];
  TaskCommand command;
  float phase;  // gait clock, [0, 1)
  // the critic's alone
  float v_B[3];
  float quat_xyzw[4];
  float height;              // [m]
  float hand_force_B[2][3];  // [N]
  float foot_height[2];      // [m] of the ankle
  float foot_force[2];       // [N] vertical
  float push_B[3];           // [N]
};

/// One frame of 131 numbers, the order and scales of layouts/g1_loco.yaml:
/// actions 29, base_ang_vel 3 (× 0.25), command_ang_vel 1, command_base_height 1 (× 2),
/// command_lin_vel 2, command_stand 1, command_waist_dofs 3, dof_pos 29 (− default), dof_vel 29
/// (× 0.05), projected_gravity 3, ref_upper_dof_pos 14, sin and cos of the gait clock,
/// upper_body_torque 14 (× 0.04). Noise is uniform and added before scaling. Clipped to ±100.
SILC_HD void ActorFrame(const TaskConfig::Noise& noise,
                        const TaskRobot& robot,
                        const ObservationState& s,
                        Draw& draw,
                        float* out) {
  int n = 0;
  const auto put = [&](float value) { out[n++] = Clamp(value, -100.0f, 100.0f); };
  const auto noisy = [&](float value, float amplitude) {
    return amplitude > 0 ? value + draw.Uniform(-amplitude, amplitude) : value;
  };
  for (int j = 0; j < kTaskJoints; ++j) put(s.action[j]);
  for (int k = 0; k < 3; ++k) put(0.25f * noisy(s.w_B[k], noise.base_ang_vel));
  put(s.command.yaw_rate);
  put(2.0f * s.command.height);
  put(s.command.vx);
  put(s.command.vy);
  put(s.command.walk);
  for (int k = 0; k < 3; ++k) put(s.command.waist[k]);
  for (int j = 0; j < kTaskJoints; ++j) put(noisy(s.q[j], noise.joint_pos) - robot.default_q[j]);
  for (int j = 0; j < kTaskJoints; ++j) put(0.05f * noisy(s.qd[j], noise.joint_vel));
  for (int k = 0; k < 3; ++k) put(noisy(s.g_B[k], noise.gravity));
  for (int j = 0; j < kUpperJoints; ++j) put(s.arm_ref[j]);
  put(sinf(6.283185307179586f * s.phase));
  put(cosf(6.283185307179586f * s.phase));
  for (int j = 0; j < kUpperJoints; ++j) put(0.04f * noisy(s.tau[kLowerJoints + j], noise.torque));
}

/// The critic's 152 numbers: an actor frame without noise, then what only a simulator knows:
/// base_lin_vel 3 (× 2), base orientation xyzw 4, height 1, hand forces in the pelvis frame 3 + 3
/// (× 0.1), ankle heights 2, feet's vertical forces 2 (÷ 300 N), push in the pelvis frame 3 (×
/// 0.05).
SILC_HD void CriticFrame(const TaskRobot& robot, const ObservationState& s, float* out) {
  Draw unused(0, 0, 0, DrawPurpose::kNoise);
  ActorFrame({.joint_pos = 0, .joint_vel = 0, .torque = 0, .base_ang_vel = 0, .gravity = 0},
             robot,
             s,
             unused,
             out);
  int n = kActorFrame;
  const auto put = [&](float value) { out[n++] = Clamp(value, -100.0f, 100.0f); };
  for (int k = 0; k < 3; ++k) put(2.0f * s.v_B[k]);
  for (int k = 0; k < 4; ++k) put(s.quat_xyzw[k]);
  put(s.height);
  for (int h = 0; h < 2; ++h) {
    for (int k = 0; k < 3; ++k) put(0.1f * s.hand_force_B[h][k]);
  }
  for (int f = 0; f < 2; ++f) put(s.foot_height[f]);
  for (int f = 0; f < 2; ++f) put(s.foot_force[f] / 300.0f);
  for (int k = 0; k < 3; ++k) put(0.05f * s.push_B[k]);
}

/// Appends a frame to a history of `frames`, oldest first. A fresh history is filled with the
/// frame.
SILC_HD void PushFrame(const float* frame, int frames, bool fresh, float* history) {
  if (fresh) {
    for (int f = 0; f < frames - 1; ++f) {
      for (int i = 0; i < kActorFrame; ++i) history[f * kActorFrame + i] = frame[i];
    }
  } else {
    for (int i = 0; i < kActorFrame * (frames - 1); ++i) history[i] = history[i + kActorFrame];
  }
  for (int i = 0; i < kActorFrame; ++i) history[kActorFrame * (frames - 1) + i] = frame[i];
}

}  // namespace silc
