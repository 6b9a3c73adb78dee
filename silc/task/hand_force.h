// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "silc/task/commands.h"
#include "silc/task/task_robot.h"

namespace silc {

/// The load on both hands of one robot. Drawn at each reset and command, it changes slowly while
/// standing and resists the commanded motion while walking.
struct HandForceState {
  float share[3];     // [1] Dirichlet(1, 1, 1): how the force is spread over the axes, both hands
  float on[2][3];     // [1] 0 switches an axis of a hand off for the episode
  float along[2];     // [1] where on the hand it acts: 0 wrist end, 1 tip
  float time[2];      // [1] of the sweep, in half periods
  float sweep;        // [s] half a period
  float backward;     // ±1: direction of the resistance without a velocity command
  float force[2][3];  // [N] in W, of this step
};

/// Once per episode: which axes, where, and how it is spread.
SILC_HD void ResetHandForce(const TaskConfig::HandForce& c, Draw& draw, HandForceState* s) {
  float sum = 0;
  for (int k = 0; k < 3; ++k) sum += s->share[k] = draw.Exponential();
  for (int k = 0; k < 3; ++k) s->share[k] = sum > 0 ? s->share[k] / sum : 1.0f / 3.0f;
  for (int h = 0; h < 2; ++h) {
    for (int k = 0; k < 3; ++k) {
      s->on[h][k] = draw.Chance(c.axis_off_prob) ? 0.0f : 1.0f;
      s->force[h][k] = 0;
    }
    s->along[h] = draw.Uniform();
  }
}

/// With each command: where the sweep stands.
SILC_HD void ResampleHandForce(const TaskConfig::HandForce& c, Draw& draw, HandForceState* s) {
  for (int h = 0; h < 2; ++h) s->time[h] = draw.Uniform(0, 2);
  s->sweep = draw.Uniform(c.sweep_min, c.sweep_max);
  s->backward = draw.Chance(0.5f) ? 1.0f : -1.0f;
}

/// Position of the force between its ends: the triangle wave |mod(t, 2) − 1|.
SILC_HD float SweepPhase(float time) { return fabsf(time - 2.0f * floorf(0.5f * time) - 1.0f); }

/// What the arm can bear along axis i:  min_j  share · τ_max,j / (|J_ij| + 0.01)               [N]
/// @param jacobian  value (i, j) of the hand's linear Jacobian over the joints of its arm, W
template <class Jacobian>
SILC_HD float BearableForce(
    const TaskRobot& robot, float effort_share, int hand, int axis, const Jacobian& jacobian) {
  float bearable = 1e30f;
  for (int j = 0; j < robot.arm_joints[hand]; ++j) {
    const float effort = robot.effort[robot.arm[hand][j]];
    bearable = Min(bearable, effort_share * effort / (fabsf(jacobian(axis, j)) + 0.01f));
  }
  return bearable;
}

/// The force on one hand for this control step, into s->force[hand].
///
///     F_i = on_i · (share_i · F_max,i · (2 phase − 1) · scale + noise),  clipped per axis
///
/// Walking: the horizontal part becomes |F_xy · d| d with d against the commanded direction, so
/// that a walking robot is only ever held back.
template <class Jacobian>
SILC_HD void UpdateHandForce(const TaskConfig::HandForce& c,
                             const TaskRobot& robot,
                             const TaskCommand& command,
                             float yaw,
                             float scale,
                             int hand,
                             const Jacobian& jacobian,
                             Draw& draw,
                             HandForceState* s) {
  float* force = s->force[hand];
  const float phase = SweepPhase(s->time[hand]);
  const float low[3] = {-c.max_x, -c.max_y, -c.max_down}, high[3] = {c.max_x, c.max_y, c.max_up};
  for (int i = 0; i < 3; ++i) {
    const float bearable = BearableForce(robot, c.effort_share, hand, i, jacobian);
    const float noise = draw.Uniform(-c.noise, c.noise) * scale;
    const float wanted = s->share[i] * bearable * (2.0f * phase - 1.0f) * scale + noise;
    force[i] = Clamp(wanted * s->on[hand][i], low[i], high[i]);
  }
  if (command.walk < 0.5f) {
    s->time[hand] += robot.control_dt / s->sweep;
    return;
  }
  float d[2] = {-command.vx, -command.vy};
  const float speed = sqrtf(d[0] * d[0] + d[1] * d[1]);
  if (speed > 0) {
    d[0] /= speed;
    d[1] /= speed;
  } else {
    d[0] = s->backward;
    d[1] = 0;
  }
  const float cos_yaw = cosf(yaw), sin_yaw = sinf(yaw);
  const float d_W[2] = {cos_yaw * d[0] - sin_yaw * d[1], sin_yaw * d[0] + cos_yaw * d[1]};
  const float along = fabsf(force[0] * d_W[0] + force[1] * d_W[1]);
  force[0] = along * d_W[0];
  force[1] = along * d_W[1];
}

}  // namespace silc
