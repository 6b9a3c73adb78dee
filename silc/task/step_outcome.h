// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "silc/task/disturbance.h"
#include "silc/task/stance.h"

/// What came of a control step: contacts, rewards, ends of episodes, the next command.
namespace silc::step {

// After the physics: Look(), MoveOn(), Judge(), Settle(), then for robots that end an episode
// ClearEnv() and PlaceEnv(), for all Sample(), GatherValues(), ObserveValues().

/// Reads the physics' results. Nothing is decided yet but whether they are sound.
template <class ThreadGroup>
SILC_HD void Look(const TaskContext& t,
                  const PhysicsView& view,
                  int env,
                  const EnvState& s,
                  ThreadGroup threads,
                  Scratch* scratch) {
  const TaskRobot& robot = t.robot;
  if (!IsSound(t, view, env, threads)) scratch->lost = true;
  RewardInput& r = scratch->reward;
  for (int j = threads.first(); j < robot.num_joints; j += ThreadGroup::kSize) {
    r.q[j] = view.qpos(env, robot.qpos[j]);
    r.qd[j] = view.qvel(env, robot.dof[j]);
    r.qd_prev[j] = s.fresh ? r.qd[j] : s.qd_prev[j];
    r.tau[j] = view.torque(env, robot.actuator[j]);
    r.action[j] = s.action[j];
    r.action_prev[j] = s.fresh ? s.action[j] : s.action_prev[j];
  }
  for (int i = threads.first(); i < 12 * kNumTaskFrames; i += ThreadGroup::kSize) {
    scratch->pose[i] = view.pose(env, i);
  }
  for (int i = threads.first(); i < 6 * kNumTaskFrames; i += ThreadGroup::kSize) {
    scratch->velocity[i] = view.velocity(env, i);
  }
  if (threads.Does(0)) ReadBase(robot, view, env, &scratch->base);
  if (threads.Does(1)) {
    scratch->phase = AdvanceGait(t.config.gait, s.phase, s.command.walk, robot.control_dt);
  }
}

/// One foot for the rewards, and what is remembered of it.
SILC_HD void MoveFoot(
    const TaskContext& t, const PhysicsView& view, int env, int f, Scratch* scratch, EnvState* s) {
  const TaskRobot& robot = t.robot;
  FootState& foot = scratch->reward.foot[f];
  const int frame = kFrameLeftFoot + f;
  const float *p = scratch->pose + 12 * frame, *R = p + 3;
  const float *v = scratch->velocity + 6 * frame, *w = v + 3;
  float offset[3], swing[3];
  const float minus[3] = {-robot.p_FS[f][0], -robot.p_FS[f][1], -robot.p_FS[f][2]};
  Rotate(R, minus, offset);  // from the sole's site to the ankle
  Cross(w, offset, swing);
  for (int k = 0; k < 3; ++k) {
    foot.p_WF[k] = p[k] + offset[k];
    foot.v_WF[k] = v[k] + swing[k];
    foot.g_F[k] = -R[6 + k];
    foot.force[k] = view.foot_force(env, 3 * f + k);
  }
  foot.yaw = atan2f(R[3], R[0]);
  // a foot is down in this step or the one before: single steps in the air are no swing
  const bool down = reward::Down(foot);
  const bool filtered = down || s->down_prev[f];
  foot.first_contact = s->air_time[f] > 0 && filtered;
  s->air_time[f] += robot.control_dt;
  foot.air_time = s->air_time[f];
  if (foot.first_contact) s->last_air_time[f] = s->air_time[f];
  foot.last_air_time = s->last_air_time[f];
  if (filtered) s->air_time[f] = 0;
  s->down_prev[f] = down;
  foot.want = ExpectedContact(t.config.gait, scratch->phase, s->command.walk, f);
}

/// One hand for the rewards.
SILC_HD void MoveHand(int h, const EnvState& s, Scratch* scratch) {
  RewardInput& r = scratch->reward;
  const float* v = scratch->velocity + 6 * (kFrameLeftHand + h);
  for (int k = 0; k < 3; ++k) {
    r.hand_v[h][k] = v[k];
    r.hand_w[h][k] = v[3 + k];
    r.hand_v_prev[h][k] = s.fresh ? v[k] : s.hand_v_prev[h][k];
    r.hand_w_prev[h][k] = s.fresh ? v[3 + k] : s.hand_w_prev[h][k];
  }
}

/// Command, base and torso for the rewards, and how the step ended.
SILC_HD void MoveBase(const TaskContext& t, const EnvState& s, Scratch* scratch) {
  RewardInput& r = scratch->reward;
  const BaseState& base = scratch->base;
  r.vx_cmd = s.command.vx;
  r.vy_cmd = s.command.vy;
  r.yaw_rate_cmd = s.command.yaw_rate;
  r.walk = s.command.walk;
  r.still = s.unsettled > 0 ? 0.0f : 1.0f - s.command.walk;
  r.height_cmd = s.command.height;
  for (int k = 0; k < 3; ++k) {
    r.waist_cmd[k] = s.command.waist[k];
    r.p_WB[k] = base.p[k];
    r.v_B[k] = base.v_B[k];
    r.w_B[k] = base.w_B[k];
    r.g_B[k] = base.g_B[k];
    r.v_W[k] = base.v_W[k];
    r.w_W[k] = base.w_W[k];
  }
  for (int k = 0; k < 9; ++k) r.R_WB[k] = base.R[k];
  const float* R = scratch->pose + 12 * kFrameTorso + 3;
  RotateBack(R, scratch->velocity + 6 * kFrameTorso + 3, r.w_T);
  for (int k = 0; k < 3; ++k) r.g_T[k] = -R[6 + k];
  float sum[3];
  for (int k = 0; k < 3; ++k) sum[k] = s.hand_force.force[0][k] + s.hand_force.force[1][k];
  r.hand_force_sum = reward::Norm3(sum);
  r.dt = t.robot.control_dt;
  const TaskConfig::Episode& c = t.config.episode;
  r.failed = fabsf(base.g_B[0]) > c.max_tilt || fabsf(base.g_B[1]) > c.max_tilt ||
             base.p[2] < c.min_height;
}

/// References go on by a control step, and the rewards' input is completed.
template <class ThreadGroup>
SILC_HD void MoveOn(const TaskContext& t,
                    const PhysicsView& view,
                    int env,
                    ThreadGroup threads,
                    Scratch* scratch,
                    EnvState* s) {
  const TaskConfig& c = t.config;
  if (threads.Does(0)) {
    ++s->k;
    // nothing of a state that is lost may be looked at: the fall's price, and a new start
    scratch->flag = kFailed | kDiverged;
    if (!scratch->lost) {
      MoveBase(t, *s, scratch);
      scratch->flag = scratch->reward.failed    ? kFailed
                      : s->k >= t.episode_steps ? kTimedOut
                                                : kRunning;
      s->phase = scratch->phase;
    }
  }
  if (scratch->lost) return;
  if (threads.Does(1)) {
    Draw draw(t.seed, RobotId(t, env), t.progress->step, DrawPurpose::kArm);
    AdvanceArms(c.arms, t.reaches, t.motions, t.robot.control_dt, draw, &s->arms);
    for (int j = 0; j < t.robot.num_upper(); ++j) scratch->reward.arm_ref[j] = s->arms.ref[j];
  }
  for (int f = 0; f < 2; ++f) {
    if (threads.Does(2 + f)) MoveFoot(t, view, env, f, scratch, s);
    if (threads.Does(4 + f)) MoveHand(f, *s, scratch);
  }
}

SILC_HD void Track(const TaskRobot& robot, const RewardInput& r, float* sum) {
  sum[kTrackSteps] += 1;
  const float speed_error =
      sqrtf(reward::Sq(r.vx_cmd - r.v_B[0]) + reward::Sq(r.vy_cmd - r.v_B[1]));
  sum[kTrackWalkSteps] += r.walk;
  sum[kTrackWalkVelError] += r.walk * speed_error;
  sum[kTrackWalkYawError] += r.walk * fabsf(r.yaw_rate_cmd - r.w_B[2]);
  sum[kTrackStandSpeed] += (1 - r.walk) * speed_error;
  if (robot.num_upper() > 0) {
    sum[kTrackArmError2] +=
        reward::SumSqDiff(r.q + robot.num_lower, r.arm_ref, 0, robot.num_upper(), 1.0f) /
        static_cast<float>(robot.num_upper());
  }
  sum[kTrackHeightError] += fabsf(r.height_cmd - r.p_WB[2]);
  sum[kTrackPhaseMatch] += r.walk * 0.5f *
                           static_cast<float>((reward::Down(r.foot[0]) == r.foot[0].want) +
                                              (reward::Down(r.foot[1]) == r.foot[1].want));
}

/// The terms of the rewards.
template <class ThreadGroup>
SILC_HD void Judge(const TaskContext& t, ThreadGroup threads, StepOutput* out, Scratch* scratch) {
  if (scratch->lost) return;
  const RewardInput& r = scratch->reward;
  const float scale = t.progress->penalty_scale;
  if constexpr (ThreadGroup::kSize == 1) {
    ComputeRewards(t.config.rewards, t.robot, r, scale, scratch->terms, out->reward);
  } else {
    for (int i = threads.first(); i < kNumRewards; i += ThreadGroup::kSize) {
      scratch->terms[i] = ComputeReward(t.config.rewards, t.robot, r, scale, i);
    }
  }
  if (threads.Does(7)) Track(t.robot, r, out->tracking);
}

/// Harder after a good episode, easier after a bad one.
SILC_HD void UpdateCurriculum(const TaskConfig::Curriculum& c, float survival, EnvState* s) {
  if (survival > c.survive_up) {
    s->force_scale = Min(s->force_scale + c.force_step, 1.0f);
    s->height_scale = Min(s->height_scale + c.height_step_up, 1.0f);
  } else if (survival < c.survive_down) {
    s->force_scale = Max(s->force_scale - c.force_step, 0.0f);
    s->height_scale = Max(s->height_scale - c.height_step_down, 0.0f);
  }
}

/// The command for the next step of an episode that goes on.
SILC_HD void NextCommand(const TaskContext& t, int env, float yaw, EnvState* s) {
  const TaskConfig& c = t.config;
  const auto id = RobotId(t, env);
  if (s->k % t.resample_steps == 0) {
    const float walked = s->command.walk;
    Draw command_draw(t.seed, id, t.progress->step, DrawPurpose::kCommand);
    Draw force_draw(t.seed, id, t.progress->step, DrawPurpose::kForce);
    SampleCommand(c.commands, s->height_scale, command_draw, &s->command);
    ResampleArms(c.arms, force_draw, &s->arms);
    ResampleHandForce(c.hand_force, force_draw, &s->hand_force);
    if (s->command.walk < 0.5f || walked < 0.5f) s->phase = 0;
  }
  UpdateYawRate(c.commands, yaw, &s->command);
}

/// Statistics of the step and of an episode that ended, and what its end means for the curricula.
SILC_HD void CountStep(const TaskContext& t, StepOutput* out, Scratch* scratch, EnvState* s) {
  const std::uint8_t flag = scratch->flag;
  if (scratch->lost) {
    out->reward[0] =
        t.config.rewards.weight[static_cast<int>(RewardTerm::kTermination)] * t.robot.control_dt;
    out->reward[1] = 0;
    out->tracking[kTrackSteps] += 1;
    out->tracking[kTrackDiverged] += 1;
  }
  *out->flag = flag;
  out->tracking[kTrackForceScale] += s->force_scale;
  out->tracking[kTrackHeightScale] += s->height_scale;
  scratch->survival = -1;
  if (flag == kRunning) return;
  const auto lived = static_cast<float>(s->k - s->start_k);
  const float survival = flag == kTimedOut ? 1.0f : lived / static_cast<float>(t.episode_steps);
  out->tracking[kTrackEpisodes] += 1;
  out->tracking[kTrackFailures] += flag == kTimedOut ? 0.0f : 1.0f;
  out->tracking[kTrackEpisodeSteps] += lived;
  out->tracking[kTrackSurvival] += survival;
  if (flag == kTimedOut && s->start_k > 0) return;
  UpdateCurriculum(t.config.curriculum, survival, s);
  scratch->survival = survival;
}

/// Sums of rewards, what is remembered for the next step, the next command.
template <class ThreadGroup>
SILC_HD void Settle(const TaskContext& t,
                    int env,
                    ThreadGroup threads,
                    StepOutput* out,
                    Scratch* scratch,
                    EnvState* s) {
  if (threads.Does(0)) CountStep(t, out, scratch, s);
  if (scratch->lost) return;
  const RewardInput& r = scratch->reward;
  if (ThreadGroup::kSize > 1 && threads.Does(1)) SumRewards(scratch->terms, out->reward);
  for (int i = threads.first(); i < kNumRewards; i += ThreadGroup::kSize)
    out->terms[i] += scratch->terms[i];
  for (int f = 0; f < 2; ++f) {
    if (!threads.Does(2 + f)) continue;
    scratch->foot_height[f] = r.foot[f].p_WF[2];
    UpdateStance(t.robot, r.foot[f].force[2], &s->stands[f], &s->stands_since[f]);
    for (int k = 0; k < 3; ++k) {
      s->hand_v_prev[f][k] = r.hand_v[f][k];
      s->hand_w_prev[f][k] = r.hand_w[f][k];
    }
  }
  for (int j = threads.first(); j < t.robot.num_joints; j += ThreadGroup::kSize)
    s->qd_prev[j] = r.qd[j];
  if (threads.Does(4)) s->fresh = false;
  if (scratch->flag == kRunning && threads.Does(5)) NextCommand(t, env, scratch->base.yaw, s);
}

}  // namespace silc::step
