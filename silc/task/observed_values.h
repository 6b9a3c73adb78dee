// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "silc/task/step_scratch.h"

/// The values of a control step that actor and critic see.
namespace silc::step {

/// The values an observation is made of, and the critic's numbers beside the frame.
/// @param restarted  the scratch's base is that of the state before the reset
template <class ThreadGroup>
SILC_HD void GatherValues(const TaskContext& t,
                          const PhysicsView& view,
                          int env,
                          const EnvState& s,
                          bool restarted,
                          ThreadGroup threads,
                          StepOutput* out,
                          Scratch* scratch) {
  const TaskRobot& robot = t.robot;
  float* values = scratch->values;
  const auto at = [&](TermSource source) { return values + TaskSources().At(source); };
  float *q = at(TermSource::kJointPos), *qd = at(TermSource::kJointVel),
        *tau = at(TermSource::kJointTorque), *action = at(TermSource::kPrevAction),
        *ref = at(TermSource::kRefJointPos);
  for (int j = threads.first(); j < robot.num_joints; j += ThreadGroup::kSize) {
    q[j] = view.qpos(env, robot.qpos[j]);
    qd[j] = view.qvel(env, robot.dof[j]);
    tau[j] = view.torque(env, robot.actuator[j]);
    action[j] = s.action[j];
    ref[j] = j < robot.num_lower ? robot.default_q[j] : s.arms.ref[j - robot.num_lower];
  }
  if (threads.Does(0)) {
    BaseState& base = scratch->base;
    if (restarted) ReadBase(robot, view, env, &base);
    for (int k = 0; k < 3; ++k) {
      at(TermSource::kBaseAngVel)[k] = base.w_B[k];
      at(TermSource::kBaseLinVel)[k] = base.v_B[k];
      at(TermSource::kProjectedGravity)[k] = base.g_B[k];
    }
    PrivilegedState p;
    for (int k = 0; k < 3; ++k) {
      p.v_B[k] = base.v_B[k];
      p.quat_xyzw[k] = base.quat[k + 1];
    }
    p.quat_xyzw[3] = base.quat[0];
    p.height = base.p[2];
    for (int h = 0; h < 2; ++h) {
      RotateBack(base.R, s.hand_force.force[h], p.hand_force_B[h]);
      p.foot_height[h] = scratch->foot_height[h];
      p.foot_force[h] = view.foot_force(env, 3 * h + 2);
    }
    RotateBack(base.R, s.push, p.push_B);
    ObservePrivileged(p, out->critic_obs + t.observation.frame_width);
  }
  if (threads.Does(1)) {
    for (int k = 0; k < 3; ++k) at(TermSource::kCommandWaist)[k] = s.command.waist[k];
    at(TermSource::kCommandLinVel)[0] = s.command.vx;
    at(TermSource::kCommandLinVel)[1] = s.command.vy;
    *at(TermSource::kCommandAngVel) = s.command.yaw_rate;
    *at(TermSource::kCommandHeight) = s.command.height;
    *at(TermSource::kCommandWalk) = s.command.walk;
    *at(TermSource::kConstant) = 0;
    PutPhases(t.observation, s.phase, s.command.walk, values);
  }
  if (threads.Does(2)) {
    float* u = at(TermSource::kBudgetCom);
    for (int i = 0; i < kNumCommanded; ++i) u[i] = 0;
    if (t.budget.used) {
      const BudgetKey key = {t.seed, RobotId(t, env), EpisodeOf(t, s)};
      DrawBudget(t.config.budget_command, t.budget, key, s.k, robot.control_dt, u);
    }
  }
}

/// Last phase: the values become the newest frame.
/// @param observation  the context's, perhaps with its entries somewhere nearer
template <class ThreadGroup>
SILC_HD void ObserveValues(const TaskContext& t,
                           const TaskObservation& observation,
                           int env,
                           const EnvState& s,
                           ThreadGroup threads,
                           StepOutput* out,
                           const Scratch& scratch) {
  Draw draw(t.seed, RobotId(t, env), t.progress->step, DrawPurpose::kNoise);
  const BiasKey bias = {t.seed, RobotId(t, env), EpisodeOf(t, s)};
  ObserveFrame(
      observation, scratch.values, s.fresh, bias, draw, out->actor_obs, out->critic_obs, threads);
}

}  // namespace silc::step
