// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "silc/physics/field_view.h"
#include "silc/stiffness/contact_mode.h"
#include "silc/task/arm_reference.h"
#include "silc/task/budget_draw.h"
#include "silc/task/hand_force.h"
#include "silc/task/observation.h"
#include "silc/task/reward.h"
#include "silc/task/thread_group.h"

/// One robot's control step, before and after the physics. Plain functions on plain data: the CPU
/// calls them from a loop over robots, a GPU from kernels in which a group of threads
/// (thread_group.h) shares out each phase.
namespace silc {

/// The fields the task reads and writes.
struct PhysicsView {
  FieldView qpos, qvel, qacc, fault, target, previous_target, delay, kp, kd, wrench, wrench_steps,
      torque, foot_force, pose, velocity, frame_jacobian, stance_jacobian;
  int nv;
};

/// What all robots share and a control step changes. On a GPU it lies there, so that steps can be
/// enqueued without the host knowing how the ones before went.
struct TaskProgress {
  std::uint32_t step;   // of the control step under way, from 1; the counter of all draws
  float penalty_scale;  // curriculum
  float mean_survival;  // of ended episodes; −1: none has ended
};

/// Constants of a task, by value: nothing in it changes but what `progress` points to.
struct TaskContext {
  TaskConfig config;
  TaskRobot robot;
  TaskObservation observation;
  ReachTable reaches;
  MotionTable motions;
  BudgetLimits budget;
  TaskProgress* progress;
  std::uint64_t seed;
  std::uint32_t first_env;  // number of robot 0 here among those of all processes
  int episode_steps;        // time-out
  int resample_steps;
  float physics_dt;  // [s]
};

/// What a robot's draws are keyed by: its number among the robots of all processes.
SILC_HD std::uint32_t RobotId(const TaskContext& t, int env) {
  return t.first_env + static_cast<std::uint32_t>(env);
}

/// What is remembered of a robot between control steps, besides its physics and its observations.
struct EnvState {
  int k;        // control steps of this episode
  int start_k;  // where it began to count (episodes of a fresh batch are staggered)
  bool fresh;   // nothing but a reset has happened in this episode: kinematics are not known
  TaskCommand command;
  float phase;  // gait clock
  ArmState arms;
  HandForceState hand_force;
  float force_scale;  // curriculum, survives episodes
  float height_scale;
  float push_wait;  // [s] until the next push
  int push_steps;   // control steps the present push lasts
  float push[3];    // [N] in W
  float unsettled;  // [s] that a standing robot may still step after a push or kick
  float action[kTaskJoints], action_prev[kTaskJoints];
  float qd_prev[kTaskJoints];
  float hand_v_prev[2][3], hand_w_prev[2][3];
  float air_time[2], last_air_time[2];
  bool down_prev[2];  // vertical force at the end of the last step
  bool stands[2];     // contact mode, with hysteresis
  float stands_since[2];
};

enum StepFlag : std::uint8_t {
  kRunning = 0,
  kFailed = 1,  // fell, or diverged
  kTimedOut = 2,
  kDiverged = 4,  // beside kFailed: the physics lost this robot; leave the sample out
};

/// Rows of a sample's Jacobians, each over the robot's joints in task order: where each block
/// begins. Writer, readers and tests use these names.
struct SampleRows {
  static constexpr int kCom = 0;         // 3 centre of mass (S5) [m/rad]
  static constexpr int kHandOnBase = 3;  // 2 × 3 left and right hand with the base at rest [m/rad]
  static constexpr int kClosing = 9;     // 6 closing constraint: the right foot's velocity with the
                                         //   left foot at rest, linear then angular
  static constexpr int kGravity = 15;    // 3 E = ∂g_B/∂q, gravity in the pelvis frame [1/rad]
  static constexpr int kEnd = 18;

  static constexpr int kComSize = kHandOnBase - kCom;
  static constexpr int kHandOnBaseSize = kClosing - kHandOnBase;
  static constexpr int kClosingSize = kGravity - kClosing;
  static constexpr int kGravitySize = kEnd - kGravity;
};
/// Numbers of a sample's Jacobians.
SILC_HD constexpr int SampleSize(int joints) { return SampleRows::kEnd * joints; }

/// Where one robot's step is written.
struct StepOutput {
  float* reward;              // 2: lower, upper
  std::uint8_t* flag;         // StepFlag
  float* actor_obs;           // TaskObservation::width, keeps the history between steps
  float* critic_obs;          // TaskObservation::critic_width()
  ContactMode* contact_mode;  // kModeUnknown after a reset: the kinematics are of the state before
  float* jacobian;            // SampleSize(), or null
  float* terms;               // kNumRewards, added to
  float* tracking;            // kNumTracking, added to
};

/// Sums kept per robot for logs.
enum Tracking : int {
  kTrackSteps,
  kTrackWalkSteps,
  kTrackWalkVelError,  // [m/s] |v_cmd − v| while walking
  kTrackWalkYawError,  // [rad/s]
  kTrackStandSpeed,    // [m/s] |v| while standing
  kTrackArmError2,     // [rad²] mean over joints
  kTrackHeightError,   // [m]
  kTrackPhaseMatch,    // [1] feet as the clock expects, walking
  kTrackEpisodes,
  kTrackFailures,
  kTrackDiverged,
  kTrackEpisodeSteps,  // of ended episodes
  kTrackSurvival,      // share survived, of ended episodes
  kTrackForceScale,    // curricula, per step
  kTrackHeightScale,
  kNumTracking
};

namespace step {

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

/// Batched twin of ComputeContactKinematics(), (S5) for the sample, out of the physics' fields:
/// single support as they are; double support with the left foot at rest, and the closing
/// constraint; flight with no CoM and gravity where it is. The hands are held against the base,
/// which is at rest for them in every mode.
template <class ThreadGroup = SingleThread>
SILC_HD void FillSample(const TaskRobot& robot,
                        const PhysicsView& view,
                        int env,
                        ContactMode mode,
                        float* out,
                        ThreadGroup threads = {}) {
  const int nv = view.nv, n = robot.num_joints;
  const int points = 1 + kNumTaskFrames;  // of a stance: centre of mass, frames
  const bool flight = mode == ContactMode::kFlight;
  const bool closed = mode == ContactMode::kDoubleSupport;
  const int foot = mode == ContactMode::kRightSupport ? 1 : 0;
  for (int row = 0; row < 3; ++row) {
    for (int j = threads.first(); j < n; j += ThreadGroup::kSize) {
      const int stance = 3 * nv * foot * points + nv * row + robot.dof[j];
      out[(SampleRows::kCom + row) * n + j] = flight ? 0.0f : view.stance_jacobian(env, stance);
    }
  }
  for (int hand = 0; hand < 2; ++hand) {
    for (int row = 0; row < 3; ++row) {
      for (int j = threads.first(); j < n; j += ThreadGroup::kSize) {
        const int frame = 6 * nv * (kFrameLeftHand + hand) + nv * row + robot.dof[j];
        out[(SampleRows::kHandOnBase + 3 * hand + row) * n + j] =
            robot.has_hands ? view.frame_jacobian(env, frame) : 0.0f;
      }
    }
  }
  for (int row = 0; row < 6; ++row) {
    for (int j = threads.first(); j < n; j += ThreadGroup::kSize) {
      float value = 0;
      if (closed && row < 3) {
        value = view.stance_jacobian(env, 3 * nv * (1 + kFrameRightFoot) + nv * row + robot.dof[j]);
      } else if (closed) {
        // with the left foot at rest the base turns against its leg
        value = view.frame_jacobian(env, 6 * nv * kFrameRightFoot + nv * row + robot.dof[j]) -
                view.frame_jacobian(env, 6 * nv * kFrameLeftFoot + nv * row + robot.dof[j]);
      }
      out[(SampleRows::kClosing + row) * n + j] = value;
    }
  }
  // E = [g_B]× w_B per q̇; the base turns against the leg that stands
  float quat[4], R[9];
  for (int k = 0; k < 4; ++k) quat[k] = view.qpos(env, robot.base_qpos + 3 + k);
  RotationOf(quat, R);
  const float g_B[3] = {-R[6], -R[7], -R[8]};
  for (int j = threads.first(); j < n; j += ThreadGroup::kSize) {
    float E[3] = {0, 0, 0};
    if (!flight) {
      float w_W[3], w_B[3];
      for (int k = 0; k < 3; ++k) {
        w_W[k] = -view.frame_jacobian(
            env, 6 * nv * (kFrameLeftFoot + foot) + nv * (3 + k) + robot.dof[j]);
      }
      RotateBack(R, w_W, w_B);
      Cross(g_B, w_B, E);
    }
    for (int k = 0; k < 3; ++k) out[(SampleRows::kGravity + k) * n + j] = E[k];
  }
}

/// One foot's two-state machine: stands above `enter`, lifted below `leave`, each for at least one
/// control step. The same rule as ContactModeTracker's.
SILC_HD void UpdateStance(const TaskRobot& robot, float force, bool* stands, float* since) {
  *since += robot.control_dt;
  const bool wants = *stands ? !(force < robot.foot_leave) : force > robot.foot_enter;
  if (wants != *stands && *since >= robot.control_dt) {
    *stands = wants;
    *since = 0;
  }
}

SILC_HD ContactMode ModeOf(const bool stands[2]) {
  if (stands[0]) return stands[1] ? ContactMode::kDoubleSupport : ContactMode::kLeftSupport;
  return stands[1] ? ContactMode::kRightSupport : ContactMode::kFlight;
}

}  // namespace step

namespace step {

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

/// Contact mode and Jacobians of the sample; unknown after a reset.
template <class ThreadGroup>
SILC_HD void Sample(const TaskContext& t,
                    const PhysicsView& view,
                    int env,
                    const EnvState& s,
                    ThreadGroup threads,
                    StepOutput* out,
                    Scratch* scratch) {
  if (scratch->flag != kRunning) {
    if (threads.Does(0)) {
      *out->contact_mode = kModeUnknown;
      PutStartingFeet(t.robot, scratch);
    }
    if (out->jacobian == nullptr) return;
    const int size = SampleSize(t.robot.num_joints);
    for (int i = threads.first(); i < size; i += ThreadGroup::kSize) out->jacobian[i] = 0;
    return;
  }
  const ContactMode mode = ModeOf(s.stands);
  if (threads.Does(0)) *out->contact_mode = mode;
  if (out->jacobian != nullptr) FillSample(t.robot, view, env, mode, out->jacobian, threads);
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
