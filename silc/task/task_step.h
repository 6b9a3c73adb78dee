// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "silc/task/episode_start.h"
#include "silc/task/observed_values.h"
#include "silc/task/step_outcome.h"
#include "silc/task/stiffness_sample.h"

/// One robot's control step, before and after the physics. Plain functions on plain data: the CPU
/// calls them from a loop over robots, a GPU from kernels in which a group of threads
/// (thread_group.h) shares out each phase.
namespace silc {

namespace step {

// Before the physics: CheckAction(), Act().

/// Whether the action is finite.
template <class ThreadGroup>
SILC_HD void CheckAction(const TaskRobot& robot,
                         const float* action,
                         ThreadGroup threads,
                         Scratch* scratch) {
  for (int j = threads.first(); j < robot.num_joints; j += ThreadGroup::kSize) {
    if (!Finite(action[j])) scratch->refused = true;
  }
}

/// The action becomes joint targets, forces act. Not for a refused action.
template <class ThreadGroup>
SILC_HD void Act(const TaskContext& t,
                 const PhysicsView& view,
                 int env,
                 const float* action,
                 ThreadGroup threads,
                 EnvState* s) {
  const TaskConfig& c = t.config;
  const TaskRobot& robot = t.robot;
  for (int j = threads.first(); j < robot.num_joints; j += ThreadGroup::kSize) {
    s->action_prev[j] = s->action[j];
    s->action[j] = Clamp(action[j], -c.action.clip, c.action.clip);
    // (S1): legs and waist about the default pose, arms about their reference
    const float centre =
        j < robot.num_lower ? robot.default_q[j] : s->arms.ref[j - robot.num_lower];
    view.target(env, robot.actuator[j]) = centre + robot.action_scale[j] * s->action[j];
  }
  // the first step of an episode is without hand forces: where the hands are is not known yet
  for (int h = 0; h < 2; ++h) {
    if (s->fresh || !robot.has_hands || !threads.Does(h)) continue;
    BaseState base;
    ReadBase(robot, view, env, &base);
    LoadHand(t, view, env, h, base.yaw, s);
  }
  if (threads.Does(2)) {
    s->unsettled = Max(0, s->unsettled - robot.control_dt);
    UpdatePush(t, view, env, s);
    Kick(t, view, env, s);
  }
}

}  // namespace step

/// The first episode of a robot: curricula at their start, first observation. With `stagger` the
/// episode begins at a random age. The physics must not run between this and the next observation.
SILC_HD void StartEnv(const TaskContext& t,
                      const PhysicsView& view,
                      int env,
                      bool stagger,
                      EnvState* s,
                      StepOutput* out) {
  step::Scratch scratch;
  const SingleThread threads;
  step::StartScales(t, threads, s, &scratch);
  step::ClearEnv(t, view, env, threads, s);
  step::PlaceEnv(t, view, env, threads, s);
  step::StaggerEnv(t, env, stagger, threads, s);
  step::GatherValues(t, view, env, *s, true, threads, out, &scratch);
  step::ObserveValues(t, t.observation, env, *s, threads, out, scratch);
}

/// Before the physics: the action becomes joint targets, forces act. False when the action is not
/// finite; nothing is changed then.
SILC_HD bool BeginStep(
    const TaskContext& t, const PhysicsView& view, int env, const float* action, EnvState* s) {
  step::Scratch scratch;
  scratch.refused = false;
  step::CheckAction(t.robot, action, SingleThread(), &scratch);
  if (scratch.refused) return false;
  step::Act(t, view, env, action, SingleThread(), s);
  return true;
}

/// After the physics: rewards for what happened, a new episode where one ended, and the next
/// observation. Returns the share of the episode survived when one ended that says something about
/// the policy, else −1: a first episode that began old and timed out soon says nothing.
SILC_HD float EndStep(
    const TaskContext& t, const PhysicsView& view, int env, EnvState* s, StepOutput* out) {
  step::Scratch scratch;
  const SingleThread threads;
  scratch.lost = false;
  step::Look(t, view, env, *s, threads, &scratch);
  step::MoveOn(t, view, env, threads, &scratch, s);
  step::Judge(t, threads, out, &scratch);
  step::Settle(t, env, threads, out, &scratch, s);
  step::Sample(t, view, env, *s, threads, out, &scratch);
  const bool ended = scratch.flag != kRunning;
  if (ended) {
    step::ClearEnv(t, view, env, threads, s);
    step::PlaceEnv(t, view, env, threads, s);
  }
  step::GatherValues(t, view, env, *s, ended, threads, out, &scratch);
  step::ObserveValues(t, t.observation, env, *s, threads, out, scratch);
  return scratch.survival;
}

/// After the control step of all robots: curricula that follow the performance of all, and the next
/// step's number.
/// @param survival  sum of what EndStep() returned where that was not −1, @param ended how many
SILC_HD void EndStepOfAll(
    const TaskConfig::Curriculum& c, int num_envs, double survival, int ended, TaskProgress* p) {
  if (ended > 0) {
    const float share =
        static_cast<float>(ended) / (c.penalty_window * static_cast<float>(num_envs));
    const float mean = static_cast<float>(survival / ended);
    p->mean_survival = p->mean_survival < 0
                           ? mean
                           : p->mean_survival + Min(1.0f, share) * (mean - p->mean_survival);
  }
  if (p->mean_survival < 0) {
    // no episode has ended: nothing is known
  } else if (p->mean_survival > c.penalty_up) {
    p->penalty_scale = Min(1.0f, p->penalty_scale * (1 + c.penalty_rate));
  } else if (p->mean_survival < c.penalty_down) {
    p->penalty_scale =
        Max(Min(c.penalty_min, p->penalty_scale), p->penalty_scale * (1 - c.penalty_rate));
  }
  ++p->step;
}

}  // namespace silc
