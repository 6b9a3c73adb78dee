// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "silc/task/disturbance.h"

/// How an episode begins.
namespace silc::step {

/// Draws before joint j's among those of a reset: when the first push comes, the base's velocity,
/// then three for each joint of the legs and two for each of the others; last the delay.
SILC_HD int ResetDraw(const TaskRobot& robot, int j) {
  int draws = 7 + 2 * j;
  for (int i = 0; i < j; ++i) draws += robot.is_leg[i] ? 1 : 0;
  return draws;
}

/// Starts an episode, first phase: command, arms, forces. The state is cleared.
template <class ThreadGroup>
SILC_HD void ClearEnv(
    const TaskContext& t, const PhysicsView& view, int env, ThreadGroup threads, EnvState* s) {
  const TaskConfig& c = t.config;
  const TaskRobot& robot = t.robot;
  const auto id = RobotId(t, env);
  const auto stream = [&](DrawPurpose purpose) {
    return Draw(t.seed, id, t.progress->step, purpose);
  };
  if (threads.Does(0)) {
    s->k = s->start_k = 0;
    s->fresh = true;
    s->phase = 0;
    Draw draw = stream(DrawPurpose::kCommand);
    SampleCommand(c.commands, s->height_scale, draw, &s->command);
    UpdateYawRate(c.commands, 0, &s->command);
  }
  if (threads.Does(1)) {
    Draw draw = stream(DrawPurpose::kArm);
    ResetArms(c.arms, t.reaches, t.motions, draw, &s->arms);
  }
  if (threads.Does(2)) {
    Draw draw = stream(DrawPurpose::kForce);
    ResetHandForce(c.hand_force, draw, &s->hand_force);
    ResampleHandForce(c.hand_force, draw, &s->hand_force);
  }
  if (threads.Does(3)) {
    Draw draw = stream(DrawPurpose::kReset);
    s->push_wait = draw.Uniform(c.push.interval_min, c.push.interval_max);
    s->push_steps = 0;
    s->unsettled = 0;
    for (int k = 0; k < 3; ++k) s->push[k] = 0;
    view.fault(env, 0) = 0;
    for (int i = 0; i < NumTaskPushes(c); ++i) view.wrench_steps(env, i) = 0;
  }
  if (threads.Does(4)) {
    for (int f = 0; f < 2; ++f) {
      s->air_time[f] = s->last_air_time[f] = 0;
      s->down_prev[f] = true;
      s->stands[f] = true;
      s->stands_since[f] = 1;
      for (int k = 0; k < 3; ++k) {
        s->hand_v_prev[f][k] = s->hand_w_prev[f][k] = 0;
        view.foot_force(env, 3 * f + k) = 0;
      }
    }
  }
  for (int i = threads.first(); i < robot.nq; i += ThreadGroup::kSize) view.qpos(env, i) = 0;
  for (int i = threads.first(); i < robot.nv; i += ThreadGroup::kSize) {
    view.qvel(env, i) = view.qacc(env, i) = 0;
  }
}

/// Second phase: base, joints, gains, delay.
template <class ThreadGroup>
SILC_HD void PlaceEnv(
    const TaskContext& t, const PhysicsView& view, int env, ThreadGroup threads, EnvState* s) {
  const TaskConfig& c = t.config;
  const TaskRobot& robot = t.robot;
  Draw draw(t.seed, RobotId(t, env), t.progress->step, DrawPurpose::kReset);
  if (threads.Does(0)) {
    view.qpos(env, robot.base_qpos + 2) = c.episode.start_height;
    view.qpos(env, robot.base_qpos + 3) = 1;
    draw.Seek(1);
    for (int i = 0; i < 6; ++i) {
      view.qvel(env, robot.base_dof + i) =
          draw.Uniform(-c.episode.start_speed, c.episode.start_speed);
    }
  }
  for (int j = threads.first(); j < robot.num_joints; j += ThreadGroup::kSize) {
    draw.Seek(ResetDraw(robot, j));
    float q = robot.default_q[j];
    if (robot.is_leg[j]) q *= draw.Uniform(1 - c.episode.start_legs, 1 + c.episode.start_legs);
    if (j >= robot.num_lower) q = s->arms.ref[j - robot.num_lower];
    view.qpos(env, robot.qpos[j]) = q;
    const int u = robot.actuator[j];
    view.target(env, u) = view.previous_target(env, u) = q;
    const float strength = MotorStrength(t, RobotId(t, env), j);
    view.kp(env, u) =
        robot.kp[j] * draw.Uniform(c.randomisation.gain_min, c.randomisation.gain_max) * strength;
    view.kd(env, u) =
        robot.kd[j] * draw.Uniform(c.randomisation.gain_min, c.randomisation.gain_max) * strength;
    view.torque(env, u) = 0;
    s->action[j] = s->action_prev[j] = s->qd_prev[j] = 0;
  }
  if (threads.Does(1)) {
    draw.Seek(ResetDraw(robot, robot.num_joints));
    view.delay(env, 0) = static_cast<float>(draw.Index(c.action.delay_max + 1));
  }
}

/// Where the ankles are at a reset: the kinematics are not known yet.
SILC_HD void PutStartingFeet(const TaskRobot& robot, Scratch* scratch) {
  for (int f = 0; f < 2; ++f) scratch->foot_height[f] = -robot.p_FS[f][2];
}

// The first episode of a robot: StartScales(), ClearEnv(), PlaceEnv() and StaggerEnv(),
// GatherValues(), ObserveValues().

/// Curricula at their start.
template <class ThreadGroup>
SILC_HD void StartScales(const TaskContext& t, ThreadGroup threads, EnvState* s, Scratch* scratch) {
  if (!threads.Does(0)) return;
  s->force_scale = t.config.curriculum.force_start;
  s->height_scale = t.config.curriculum.height_start;
  PutStartingFeet(t.robot, scratch);
}

/// The episode begins at a random age, so that a batch does not time out all at once.
template <class ThreadGroup>
SILC_HD void StaggerEnv(
    const TaskContext& t, int env, bool stagger, ThreadGroup threads, EnvState* s) {
  if (!stagger || !threads.Does(2)) return;
  Draw draw(t.seed, RobotId(t, env), t.progress->step, DrawPurpose::kPush);
  s->k = s->start_k = draw.Index(t.episode_steps);
}

}  // namespace silc::step
