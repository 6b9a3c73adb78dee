// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "silc/task/draw.h"
#include "silc/task/scalar.h"
#include "silc/task/task_config.h"

namespace silc {

/// What is asked of the robot.
struct TaskCommand {
  float vx, vy;    // [m/s] in the heading frame
  float yaw_rate;  // [rad/s] from the heading error, every step
  float heading;   // [rad] in W
  float walk;      // 1 walk or step, 0 stand
  float waist[3];  // [rad] yaw, roll, pitch
  float height;    // [m] of the pelvis
};

/// Draws a command. Standing turns the waist and lowers the pelvis, by up to height_scale of the
/// drop; walking has a velocity (slower than min_speed becomes stepping in place) and a heading.
SILC_HD void SampleCommand(const TaskConfig::Commands& c,
                           float height_scale,
                           Draw& draw,
                           TaskCommand* out) {
  const bool walk = draw.Chance(c.walk_prob);
  out->walk = walk ? 1.0f : 0.0f;
  out->vx = draw.Uniform(c.vx_min, c.vx_max) * out->walk;
  out->vy = draw.Uniform(c.vy_min, c.vy_max) * out->walk;
  if (sqrtf(out->vx * out->vx + out->vy * out->vy) <= c.min_speed) out->vx = out->vy = 0;
  out->heading = draw.Uniform(-c.heading_max, c.heading_max);
  out->yaw_rate = 0;
  const float yaw = draw.Uniform(-c.waist_yaw_max, c.waist_yaw_max);
  out->waist[0] = !walk && draw.Chance(c.waist_yaw_prob) ? yaw : 0.0f;
  out->waist[1] = out->waist[2] = 0;
  const float drop = draw.Uniform() * c.height_drop * height_scale;
  out->height = c.height - (walk ? 0.0f : drop);
}

/// ω_cmd = clip(gain · wrap(ψ_cmd − ψ), ±max) when walking, 0 when standing.
SILC_HD void UpdateYawRate(const TaskConfig::Commands& c, float yaw, TaskCommand* command) {
  const float error = WrapAngle(command->heading - yaw);
  command->yaw_rate =
      Clamp(c.heading_gain * error, -c.max_yaw_rate, c.max_yaw_rate) * command->walk;
}

/// The gait clock's position in a period, in [0, 1), one control step on: runs while walking,
/// stands at 0 while standing, so that every walk sets off with the same foot.
SILC_HD float AdvanceGait(const TaskConfig::Gait& c, float phase, float walk, float dt) {
  if (walk < 0.5f) return 0;
  const float next = phase + dt / c.period;
  return next - floorf(next);
}

/// Whether a foot (0 left, 1 right) is expected on the ground: the first `stance` of its period,
/// the right foot half a period behind. Always when standing.
SILC_HD bool ExpectedContact(const TaskConfig::Gait& c, float phase, float walk, int foot) {
  if (walk < 0.5f) return true;
  const float own = phase + 0.5f * static_cast<float>(foot);
  return own - floorf(own) < c.stance;
}

}  // namespace silc
