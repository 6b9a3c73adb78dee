// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>

#include "silc/task/scalar.h"
#include "silc/task/task_robot.h"

namespace silc {

/// One foot after a control step. The point is the foot body's origin; the G1's is its ankle, 0.035
/// m above the sole.
struct FootState {
  float p_WF[3];        // [m]
  float v_WF[3];        // [m/s]
  float g_F[3];         // [1] unit gravity in the foot's frame
  float yaw;            // [rad]
  float force[3];       // [N] on the foot, in W, last substep
  float air_time;       // [s] in the air, the touching step included
  float last_air_time;  // [s] of the last completed swing
  bool first_contact;   // touched down in this step
  bool want;            // the gait clock expects it down
};

/// Everything the rewards look at, after one control step.
struct RewardInput {
  // command
  float vx_cmd, vy_cmd, yaw_rate_cmd;  // [m/s, rad/s]
  float walk;                          // 1 walk, 0 stand
  float still;                         // 1 stand and keep the feet where they are
  float waist_cmd[3];                  // [rad] yaw, roll, pitch
  float height_cmd;                    // [m]
  // base B (pelvis) and torso T
  float p_WB[3];  // [m]
  float R_WB[9];  // row-major
  float v_B[3], w_B[3], g_B[3];
  float v_W[3], w_W[3];
  float w_T[3], g_T[3];
  // joints, task order
  float q[kTaskJoints], qd[kTaskJoints], qd_prev[kTaskJoints], tau[kTaskJoints];
  float action[kTaskJoints], action_prev[kTaskJoints];
  float arm_ref[kUpperJoints];  // [rad] of those that follow one
  FootState foot[2];
  float hand_v[2][3], hand_w[2][3], hand_v_prev[2][3], hand_w_prev[2][3];
  float hand_force_sum;  // [N] |F_left + F_right|
  bool failed;
  float dt;  // [s] control period
};

namespace reward {

SILC_HD float Sq(float x) { return x * x; }
SILC_HD float Norm2(const float* v) { return sqrtf(v[0] * v[0] + v[1] * v[1]); }
SILC_HD float Norm3(const float* v) { return sqrtf(v[0] * v[0] + v[1] * v[1] + v[2] * v[2]); }
/// Component k in B of a vector given in W.
SILC_HD float InBase(const RewardInput& r, const float* v, int k) {
  return r.R_WB[k] * v[0] + r.R_WB[3 + k] * v[1] + r.R_WB[6 + k] * v[2];
}
SILC_HD float Stand(const RewardInput& r) { return 1.0f - r.walk; }
SILC_HD float SumSq(const float* x, int first, int count) {
  float sum = 0;
  for (int i = first; i < first + count; ++i) sum += x[i] * x[i];
  return sum;
}
SILC_HD float SumSqDiff(const float* x, const float* y, int first, int count, float scale) {
  float sum = 0;
  for (int i = first; i < first + count; ++i) sum += Sq((x[i] - y[i]) * scale);
  return sum;
}
SILC_HD float Excess(const TaskRobot& robot, const RewardInput& r, int first, int count) {
  float sum = 0;
  for (int i = first; i < first + count; ++i) {
    sum += Max(0, robot.soft_low[i] - r.q[i]) + Max(0, r.q[i] - robot.soft_high[i]);
  }
  return sum;
}
/// How far a joint is from the standing pose [rad]; 0 for one that the robot does not have.
SILC_HD float FromPose(const TaskRobot& robot, const RewardInput& r, int joint) {
  return joint < 0 ? 0.0f : r.q[joint] - robot.default_q[joint];
}
/// Any force of more than 1 N.
SILC_HD bool Touches(const FootState& f) { return Norm3(f.force) > 1.0f; }
/// A vertical force of more than 1 N.
SILC_HD bool Down(const FootState& f) { return f.force[2] > 1.0f; }
SILC_HD int FeetDown(const RewardInput& r) {
  return static_cast<int>(Down(r.foot[0])) + static_cast<int>(Down(r.foot[1]));
}
SILC_HD float CommandSpeed(const RewardInput& r) { return sqrtf(Sq(r.vx_cmd) + Sq(r.vy_cmd)); }

// ---------------------------------------------------------------- FALCON's, lower agent
// W = walk, S = 1 − W, S' = S but 0 while the robot recovers from a push (push.recovery); v, ω in
// the pelvis frame unless said otherwise; sums over the agent's joints.

/// exp(−(vx_cmd − vx)²/0.25)
SILC_HD float TrackingLinVelX(const TaskRobot&, const RewardInput& r) {
  return expf(-Sq(r.vx_cmd - r.v_B[0]) / 0.25f);
}
/// exp(−(vy_cmd − vy)²/0.25)
SILC_HD float TrackingLinVelY(const TaskRobot&, const RewardInput& r) {
  return expf(-Sq(r.vy_cmd - r.v_B[1]) / 0.25f);
}
/// exp(−(ω_cmd − ω_z)²/0.25)
SILC_HD float TrackingAngVel(const TaskRobot&, const RewardInput& r) {
  return expf(-Sq(r.yaw_rate_cmd - r.w_B[2]) / 0.25f);
}
/// W exp(−|h_cmd − z| (1 − clip(|F_L + F_R|/50, 0, 1))/0.05): load on the hands excuses height
SILC_HD float TrackingWalkBaseHeight(const TaskRobot&, const RewardInput& r) {
  const float strictness = 1.0f - Clamp(r.hand_force_sum / 50.0f, 0, 1);
  return r.walk * expf(-fabsf(r.height_cmd - r.p_WB[2]) * strictness / 0.05f);
}
/// S exp(−|h_cmd − z|/0.05)
SILC_HD float TrackingStanceBaseHeight(const TaskRobot&, const RewardInput& r) {
  return Stand(r) * expf(-fabsf(r.height_cmd - r.p_WB[2]) / 0.05f);
}
SILC_HD float WaistTracking(const TaskRobot& robot, const RewardInput& r) {
  float sum = 0;
  for (int k = 0; k < 3; ++k) {
    if (robot.waist[k] >= 0) sum += Sq(r.q[robot.waist[k]] - r.waist_cmd[k]);
  }
  return expf(-sum / 0.05f);
}
/// W exp(−Σ(q_waist − cmd)²/0.05)
SILC_HD float TrackingWaistDofsTapping(const TaskRobot& robot, const RewardInput& r) {
  return r.walk * WaistTracking(robot, r);
}
/// S exp(−Σ(q_waist − cmd)²/0.05)
SILC_HD float TrackingWaistDofsStance(const TaskRobot& robot, const RewardInput& r) {
  return Stand(r) * WaistTracking(robot, r);
}
/// W v_z²
SILC_HD float PenaltyLinVelZ(const TaskRobot&, const RewardInput& r) {
  return r.walk * Sq(r.v_B[2]);
}
/// ω_x² + ω_y² of the pelvis
SILC_HD float PenaltyAngVelXy(const TaskRobot&, const RewardInput& r) {
  return Sq(r.w_B[0]) + Sq(r.w_B[1]);
}
/// ω_x² + ω_y² of the torso, in its frame
SILC_HD float PenaltyAngVelXyTorso(const TaskRobot&, const RewardInput& r) {
  return Sq(r.w_T[0]) + Sq(r.w_T[1]);
}
/// g_x² + g_y² of the pelvis
SILC_HD float PenaltyOrientation(const TaskRobot&, const RewardInput& r) {
  return Sq(r.g_B[0]) + Sq(r.g_B[1]);
}
/// |g_x| + |g_y| of the torso
SILC_HD float PenaltyTorsoOrientation(const TaskRobot&, const RewardInput& r) {
  return fabsf(r.g_T[0]) + fabsf(r.g_T[1]);
}
/// Σ τ²
SILC_HD float PenaltyLowerBodyTorques(const TaskRobot& robot, const RewardInput& r) {
  return SumSq(r.tau, 0, robot.num_lower);
}
/// Σ q̇²
SILC_HD float PenaltyLowerBodyDofVel(const TaskRobot& robot, const RewardInput& r) {
  return SumSq(r.qd, 0, robot.num_lower);
}
/// Σ ((q̇ − q̇_prev)/dt)²
SILC_HD float PenaltyLowerBodyDofAcc(const TaskRobot& robot, const RewardInput& r) {
  return SumSqDiff(r.qd, r.qd_prev, 0, robot.num_lower, 1.0f / r.dt);
}
/// Σ (a − a_prev)²
SILC_HD float PenaltyLowerBodyActionRate(const TaskRobot& robot, const RewardInput& r) {
  return SumSqDiff(r.action, r.action_prev, 0, robot.num_lower, 1.0f);
}
/// Σ excess beyond the soft limits [rad]
SILC_HD float LimitsLowerBodyDofPos(const TaskRobot& robot, const RewardInput& r) {
  return Excess(robot, r, 0, robot.num_lower);
}
/// Σ_feet c |v_foot|², × 10 when standing; c: |F| > 1 N
SILC_HD float PenaltyContactNoVel(const TaskRobot&, const RewardInput& r) {
  float sum = 0;
  for (int f = 0; f < 2; ++f) {
    if (Touches(r.foot[f])) sum += SumSq(r.foot[f].v_WF, 0, 3);
  }
  return sum * (r.walk + 10.0f * Stand(r));
}
/// Σ_feet √(g_x² + g_y²) in the foot's frame
SILC_HD float PenaltyFeetOri(const TaskRobot&, const RewardInput& r) {
  return Norm2(r.foot[0].g_F) + Norm2(r.foot[1].g_F);
}
/// |q_L − q₀| + |q_R − q₀| of the ankle rolls, q₀ the standing pose
SILC_HD float PenaltyAnkleRoll(const TaskRobot& robot, const RewardInput& r) {
  return fabsf(FromPose(robot, r, robot.ankle_roll[0])) +
         fabsf(FromPose(robot, r, robot.ankle_roll[1]));
}
/// Σ_feet at touch-down (t_air − 0.5), with |v_cmd| > 0.1 only
SILC_HD float FeetAirTime(const TaskRobot&, const RewardInput& r) {
  if (!(CommandSpeed(r) > 0.1f)) return 0;
  float sum = 0;
  for (int f = 0; f < 2; ++f) {
    if (r.foot[f].first_contact) sum += r.foot[f].air_time - 0.5f;
  }
  return sum;
}
/// |last t_air,L − last t_air,R|
SILC_HD float PenaltyDiffFeetAirTime(const TaskRobot&, const RewardInput& r) {
  return fabsf(r.foot[0].last_air_time - r.foot[1].last_air_time);
}
/// (z − h_cmd)², × 5 when standing
SILC_HD float BaseHeight(const TaskRobot&, const RewardInput& r) {
  return Sq(r.p_WB[2] - r.height_cmd) * (r.walk + 5.0f * Stand(r));
}
/// 1 on failure, 0 on time-out
SILC_HD float Termination(const TaskRobot&, const RewardInput& r) { return r.failed ? 1.0f : 0.0f; }
/// W max(0, min_feet |z_f − h| − 0.02), h the swing height of the task
SILC_HD float PenaltyFeetHeight(const TaskRobot& robot, const RewardInput& r) {
  const float nearest = Min(fabsf(r.foot[0].p_WF[2] - robot.swing_height),
                            fabsf(r.foot[1].p_WF[2] - robot.swing_height));
  return r.walk * Max(0, nearest - 0.02f);
}
/// Σ_feet not touching (z_f − z*)², z* the task's swing height walking, 0.025 m standing
SILC_HD float PenaltyFeetSwingHeight(const TaskRobot& robot, const RewardInput& r) {
  const float target = robot.swing_height * r.walk + 0.025f * Stand(r);
  float sum = 0;
  for (int f = 0; f < 2; ++f) {
    if (!Touches(r.foot[f])) sum += Sq(r.foot[f].p_WF[2] - target);
  }
  return sum;
}
/// Σ_feet |wrap(yaw_foot − yaw_base)|
SILC_HD float FeetHeadingAlignment(const TaskRobot&, const RewardInput& r) {
  const float yaw = atan2f(r.R_WB[3], r.R_WB[0]);
  return fabsf(WrapAngle(r.foot[0].yaw - yaw)) + fabsf(WrapAngle(r.foot[1].yaw - yaw));
}
/// 1 when the feet are nearer to each other, horizontally, than the task allows
SILC_HD float PenaltyCloseFeetXy(const TaskRobot& robot, const RewardInput& r) {
  const float d[2] = {r.foot[0].p_WF[0] - r.foot[1].p_WF[0], r.foot[0].p_WF[1] - r.foot[1].p_WF[1]};
  return Norm2(d) < robot.feet_apart ? 1.0f : 0.0f;
}
/// Σ (q − q₀)² (W + S h_cmd) over hip roll and hip yaw, q₀ the standing pose
SILC_HD float PenaltyHipPos(const TaskRobot& robot, const RewardInput& r) {
  float sum = 0;
  for (int f = 0; f < 2; ++f) {
    sum += Sq(FromPose(robot, r, robot.hip_roll[f])) + Sq(FromPose(robot, r, robot.hip_yaw[f]));
  }
  return sum * (r.walk + Stand(r) * r.height_cmd);
}
/// S' Σ q̇²
SILC_HD float PenaltyStanceDof(const TaskRobot& robot, const RewardInput& r) {
  return r.still * SumSq(r.qd, 0, robot.num_lower);
}
/// |x of p_L − p_R in the pelvis frame| (S' + W [vx_cmd = 0]): feet beside each other
SILC_HD float PenaltyStanceTapFeet(const TaskRobot&, const RewardInput& r) {
  float d[3];
  for (int k = 0; k < 3; ++k) d[k] = r.foot[0].p_WF[k] - r.foot[1].p_WF[k];
  return fabsf(InBase(r, d, 0)) * (r.still + (r.vx_cmd != 0 ? 0.0f : r.walk));
}
/// S' |y of the pelvis over the feet's midpoint, in the pelvis frame|
SILC_HD float PenaltyStanceRoot(const TaskRobot&, const RewardInput& r) {
  float d[3];
  for (int k = 0; k < 3; ++k) d[k] = r.p_WB[k] - 0.5f * (r.foot[0].p_WF[k] + r.foot[1].p_WF[k]);
  return r.still * fabsf(InBase(r, d, 1));
}
/// S' [any foot's F_z < 0.1 N]
SILC_HD float PenaltyStandStill(const TaskRobot&, const RewardInput& r) {
  return r.foot[0].force[2] < 0.1f || r.foot[1].force[2] < 0.1f ? r.still : 0.0f;
}
/// S' Σ |q_L − m q_R| over the legs' joints; m, the sign of the mirror image, is 1 for pitches and
/// −1 for rolls and yaws where both sides turn about the same axis
SILC_HD float PenaltyStanceSymmetry(const TaskRobot& robot, const RewardInput& r) {
  const auto unlike = [&](const int* j, LegRole role) {
    return j[0] < 0 ? 0.0f : fabsf(r.q[j[0]] - robot.mirror[role] * r.q[j[1]]);
  };
  return r.still * (unlike(robot.hip_pitch, kHipPitch) + unlike(robot.knee, kKnee) +
                    unlike(robot.ankle_pitch, kAnklePitch) + unlike(robot.hip_roll, kHipRoll) +
                    unlike(robot.hip_yaw, kHipYaw) + unlike(robot.ankle_roll, kAnkleRoll));
}
/// Standing: 1 with fewer than two feet down; walking: 1 with none or both
SILC_HD float PenaltyContact(const TaskRobot&, const RewardInput& r) {
  const int down = FeetDown(r);
  return r.walk > 0.5f ? (down == 1 ? 0.0f : 1.0f) : (down == 2 ? 0.0f : 1.0f);
}
/// Knees bent by less than 0.2 rad
SILC_HD float PenaltyNegativeKneeJoint(const TaskRobot& robot, const RewardInput& r) {
  const auto straight = [&](int f) {
    const int knee = robot.knee[f];
    return knee >= 0 && robot.knee_bend[f] * r.q[knee] < 0.2f ? 1.0f : 0.0f;
  };
  return straight(0) + straight(1);
}
/// W [|v_cmd| < 0.2] |v_xy|, world
SILC_HD float PenaltyShiftInZeroCommand(const TaskRobot&, const RewardInput& r) {
  return CommandSpeed(r) < 0.2f ? r.walk * Norm2(r.v_W) : 0.0f;
}
/// W [|ω_cmd| < 0.1] |ω_z|, world
SILC_HD float PenaltyAngShiftInZeroCommand(const TaskRobot&, const RewardInput& r) {
  return fabsf(r.yaw_rate_cmd) < 0.1f ? r.walk * fabsf(r.w_W[2]) : 0.0f;
}

// ---------------------------------------------------------------- ours, lower agent

/// W exp(−(vx_cmd − vx)²/0.25): doubles the velocity terms when walking
SILC_HD float WalkLinVelX(const TaskRobot& robot, const RewardInput& r) {
  return r.walk * TrackingLinVelX(robot, r);
}
/// W exp(−(vy_cmd − vy)²/0.25)
SILC_HD float WalkLinVelY(const TaskRobot& robot, const RewardInput& r) {
  return r.walk * TrackingLinVelY(robot, r);
}
/// W |v_cmd − v|: does not flatten far from the command, where the exponentials do
SILC_HD float WalkLinVelError(const TaskRobot&, const RewardInput& r) {
  return r.walk * sqrtf(Sq(r.vx_cmd - r.v_B[0]) + Sq(r.vy_cmd - r.v_B[1]));
}
/// W × feet whose contact is what the gait clock expects
SILC_HD float PhaseContact(const TaskRobot&, const RewardInput& r) {
  return r.walk * ((Down(r.foot[0]) == r.foot[0].want ? 1.0f : 0.0f) +
                   (Down(r.foot[1]) == r.foot[1].want ? 1.0f : 0.0f));
}
/// W [both feet down while the clock expects one]
SILC_HD float PenaltyDoubleSupport(const TaskRobot&, const RewardInput& r) {
  return FeetDown(r) == 2 && !(r.foot[0].want && r.foot[1].want) ? r.walk : 0.0f;
}
/// W [no foot down]
SILC_HD float PenaltyFlight(const TaskRobot&, const RewardInput& r) {
  return FeetDown(r) == 0 ? r.walk : 0.0f;
}
/// S' [fewer than two feet down]
SILC_HD float PenaltyStandContact(const TaskRobot&, const RewardInput& r) {
  return FeetDown(r) < 2 ? r.still : 0.0f;
}

// ---------------------------------------------------------------- FALCON's, upper agent

/// exp(−Σ (q − q_ref)²/0.1)
SILC_HD float TrackingUpperBodyDofs(const TaskRobot& robot, const RewardInput& r) {
  if (robot.num_upper() == 0) return 0;
  const float error = SumSqDiff(r.q + robot.num_lower, r.arm_ref, 0, robot.num_upper(), 1.0f);
  return expf(-error / 0.1f);
}
/// Σ τ²
SILC_HD float PenaltyUpperBodyTorques(const TaskRobot& robot, const RewardInput& r) {
  return SumSq(r.tau, robot.num_lower, robot.num_upper());
}
/// Σ q̇²
SILC_HD float PenaltyUpperBodyDofVel(const TaskRobot& robot, const RewardInput& r) {
  return SumSq(r.qd, robot.num_lower, robot.num_upper());
}
/// Σ ((q̇ − q̇_prev)/dt)²
SILC_HD float PenaltyUpperBodyDofAcc(const TaskRobot& robot, const RewardInput& r) {
  return SumSqDiff(r.qd, r.qd_prev, robot.num_lower, robot.num_upper(), 1.0f / r.dt);
}
/// Σ (a − a_prev)²
SILC_HD float PenaltyUpperBodyActionRate(const TaskRobot& robot, const RewardInput& r) {
  return SumSqDiff(r.action, r.action_prev, robot.num_lower, robot.num_upper(), 1.0f);
}
/// Σ excess beyond the soft limits [rad]
SILC_HD float LimitsUpperBodyDofPos(const TaskRobot& robot, const RewardInput& r) {
  return Excess(robot, r, robot.num_lower, robot.num_upper());
}
/// Σ clip(|q̇| − q̇_max, 0, 1)
SILC_HD float LimitsUpperBodyDofVel(const TaskRobot& robot, const RewardInput& r) {
  float sum = 0;
  for (int i = robot.num_lower; i < robot.num_joints; ++i) {
    sum += Clamp(fabsf(r.qd[i]) - robot.max_velocity[i], 0, 1);
  }
  return sum;
}
/// Σ max(0, |τ| − 0.9 τ_max)
SILC_HD float LimitsUpperBodyTorque(const TaskRobot& robot, const RewardInput& r) {
  float sum = 0;
  for (int i = robot.num_lower; i < robot.num_joints; ++i) {
    sum += Max(0, fabsf(r.tau[i]) - 0.9f * robot.effort[i]);
  }
  return sum;
}
SILC_HD float Change(const float a[3], const float b[3]) {
  const float d[3] = {a[0] - b[0], a[1] - b[1], a[2] - b[2]};
  return Norm3(d);
}
/// Σ_hands |v − v_prev|, each hand against itself
SILC_HD float PenaltyEeLinAcc(const TaskRobot& robot, const RewardInput& r) {
  if (!robot.has_hands) return 0;
  return Change(r.hand_v[0], r.hand_v_prev[0]) + Change(r.hand_v[1], r.hand_v_prev[1]);
}
/// Σ_hands |ω − ω_prev|
SILC_HD float PenaltyEeAngAcc(const TaskRobot& robot, const RewardInput& r) {
  if (!robot.has_hands) return 0;
  return Change(r.hand_w[0], r.hand_w_prev[0]) + Change(r.hand_w[1], r.hand_w_prev[1]);
}

}  // namespace reward

/// Term i: weight · value · dt, times the penalty scale where the curriculum acts. A term of weight
/// 0 is not computed.
SILC_HD float ComputeReward(const RewardWeights& weights,
                            const TaskRobot& robot,
                            const RewardInput& in,
                            float penalty_scale,
                            int i) {
  const float w = weights.weight[i];
  if (w == 0) return 0;
  switch (static_cast<RewardTerm>(i)) {
#define SILC_REWARD_CASE(function, name, weight_, agent, curriculum, origin) \
  case RewardTerm::k##function:                                              \
    return w * in.dt * ((curriculum) ? penalty_scale : 1.0f) * reward::function(robot, in);
    SILC_REWARD_TERMS(SILC_REWARD_CASE)
#undef SILC_REWARD_CASE
    case RewardTerm::kCount:
      break;
  }
  return 0;
}

/// rewards[0] is the lower agent's sum, rewards[1] the upper's, in the order of the terms.
SILC_HD void SumRewards(const float terms[kNumRewards], float rewards[2]) {
  float lower = 0, upper = 0;
  int i = 0;
#define SILC_REWARD_SUM(function, name, weight_, agent, curriculum, origin) \
  (RewardAgent::agent == RewardAgent::kLower ? lower : upper) += terms[i++];
  SILC_REWARD_TERMS(SILC_REWARD_SUM)
#undef SILC_REWARD_SUM
  rewards[0] = lower;
  rewards[1] = upper;
}

/// All terms, ComputeReward() of each, and their sums.
SILC_HD void ComputeRewards(const RewardWeights& weights,
                            const TaskRobot& robot,
                            const RewardInput& in,
                            float penalty_scale,
                            float terms[kNumRewards],
                            float rewards[2]) {
  rewards[0] = rewards[1] = 0;
  int i = 0;
#define SILC_REWARD_EVAL(function, name, weight_, agent, curriculum, origin)                      \
  {                                                                                               \
    const float w = weights.weight[i];                                                            \
    terms[i] =                                                                                    \
        w == 0 ? 0.0f                                                                             \
               : w * in.dt * ((curriculum) ? penalty_scale : 1.0f) * reward::function(robot, in); \
    rewards[RewardAgent::agent == RewardAgent::kLower ? 0 : 1] += terms[i];                       \
    ++i;                                                                                          \
  }
  SILC_REWARD_TERMS(SILC_REWARD_EVAL)
#undef SILC_REWARD_EVAL
}

}  // namespace silc
