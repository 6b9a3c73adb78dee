// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "silc/task/step_scratch.h"

/// What acts on a robot besides its motors: pushes, kicks, loads on the hands, weak motors.
namespace silc::step {

/// Torque of a motor relative to its servo's, drawn at a reset. It scales kp and kd together: the
/// effort limits stay the model's.
SILC_HD float MotorStrength(const TaskContext& t, std::uint32_t env, int joint) {
  const auto& c = t.config.randomisation;
  if (c.strength_min == 1 && c.strength_max == 1) return 1;
  return Draw(t.seed,
              env,
              t.progress->step,
              DrawPurpose::kStrength,
              static_cast<std::uint32_t>(joint))
      .Uniform(c.strength_min, c.strength_max);
}

/// Counts down to the next push and begins it: a horizontal force on the pelvis or the torso.
SILC_HD void UpdatePush(const TaskContext& t, const PhysicsView& view, int env, EnvState* s) {
  const TaskConfig::Push& c = t.config.push;
  if (!(c.force > 0)) return;
  s->push_wait -= t.robot.control_dt;
  if (s->push_steps > 0 && --s->push_steps == 0) {
    for (int k = 0; k < 3; ++k) s->push[k] = 0;
  }
  if (s->push_wait > 0) return;
  s->unsettled = c.recovery;
  Draw draw(t.seed, RobotId(t, env), t.progress->step, DrawPurpose::kPush);
  const float size = c.force * s->force_scale * draw.Uniform(c.min_share, 1);
  const float angle = draw.Uniform(0, 6.283185307179586f);
  s->push[0] = size * cosf(angle);
  s->push[1] = size * sinf(angle);
  s->push_wait = draw.Uniform(c.interval_min, c.interval_max);
  const bool torso = c.torso_share > 0 && draw.Chance(c.torso_share);
  const int body = torso ? kPushTorso : kPushBase;
  const float steps = floorf(c.duration / t.physics_dt + 0.5f);
  s->push_steps = static_cast<int>(ceilf(steps / static_cast<float>(t.robot.substeps)));
  for (int k = 0; k < 3; ++k) {
    view.wrench(env, 6 * body + k) = s->push[k];
    view.wrench(env, 6 * body + 3 + k) = 0;
  }
  view.wrench_steps(env, body) = steps;
}

/// Once in kick_interval on average, the base's velocity jumps: a blow that is over at once. Kicks
/// come without memory, so nothing must be remembered between them.
SILC_HD void Kick(const TaskContext& t, const PhysicsView& view, int env, EnvState* s) {
  const TaskConfig::Push& c = t.config.push;
  if (!(c.kick_velocity > 0 || c.kick_turn > 0)) return;
  Draw draw(t.seed, RobotId(t, env), t.progress->step, DrawPurpose::kKick);
  if (!draw.Chance(t.robot.control_dt / c.kick_interval)) return;
  s->unsettled = c.recovery;
  const float size = c.kick_velocity * s->force_scale * draw.Uniform();
  const float angle = draw.Uniform(0, 6.283185307179586f);
  const int dof = t.robot.base_dof;
  view.qvel(env, dof) += size * cosf(angle);
  view.qvel(env, dof + 1) += size * sinf(angle);
  const float turn = c.kick_turn * s->force_scale;
  for (int k = 3; k < 6; ++k) view.qvel(env, dof + k) += draw.Uniform(-turn, turn);
}

/// The load on one hand for this step, as the physics takes it.
SILC_HD void LoadHand(
    const TaskContext& t, const PhysicsView& view, int env, int h, float yaw, EnvState* s) {
  const TaskRobot& robot = t.robot;
  const int frame = kFrameLeftHand + h;
  Draw draw(t.seed, RobotId(t, env), t.progress->step, DrawPurpose::kForceNoise);
  draw.Seek(3 * h);
  const auto jacobian = [&](int axis, int joint) {
    const int dof = robot.dof[robot.arm[h][joint]];
    return view.frame_jacobian(env, 6 * view.nv * frame + view.nv * axis + dof);
  };
  UpdateHandForce(t.config.hand_force,
                  robot,
                  s->command,
                  yaw,
                  s->force_scale,
                  h,
                  jacobian,
                  draw,
                  &s->hand_force);
  float R_WH[9], arm_H[3], arm_W[3], moment[3];
  for (int i = 0; i < 9; ++i) R_WH[i] = view.pose(env, 12 * frame + 3 + i);
  for (int k = 0; k < 3; ++k) {
    const float along = s->hand_force.along[h];
    arm_H[k] = robot.force_near[h][k] + along * (robot.force_far[h][k] - robot.force_near[h][k]) -
               robot.p_HC[h][k];
  }
  Rotate(R_WH, arm_H, arm_W);
  Cross(arm_W, s->hand_force.force[h], moment);
  const int push = kPushLeftHand + h;
  for (int k = 0; k < 3; ++k) {
    view.wrench(env, 6 * push + k) = s->hand_force.force[h][k];
    view.wrench(env, 6 * push + 3 + k) = moment[k];
  }
  view.wrench_steps(env, push) = static_cast<float>(robot.substeps);
}

}  // namespace silc::step
