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

/// What a task is made of: constants, what is remembered of a robot, where a step is written.
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

}  // namespace silc
