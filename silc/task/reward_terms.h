// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace silc {

enum class RewardAgent { kLower, kUpper };

/// Every reward term: X(function, name, default weight, agent, curriculum, origin).
///   weight      per second: a term's contribution to one step is weight · value · control period
///   curriculum  1: also times the penalty scale, which grows with performance
///   origin      F: FALCON's, its weight. P: FALCON's, weight changed as the paper says. W:
///   FALCON's,
///               weight changed by us. S: ours. docs/task.md gives the reason of each W and S.
/// The formulas are in reward.h.
// clang-format off
#define SILC_REWARD_TERMS(X)                                                                        \
  X(TrackingLinVelX,             tracking_lin_vel_x,               2.0f,    kLower, 0, 'F')         \
  X(TrackingLinVelY,             tracking_lin_vel_y,               1.5f,    kLower, 0, 'F')         \
  X(TrackingAngVel,              tracking_ang_vel,                 4.0f,    kLower, 0, 'F')         \
  X(TrackingWalkBaseHeight,      tracking_walk_base_height,        1.0f,    kLower, 0, 'F')         \
  X(TrackingStanceBaseHeight,    tracking_stance_base_height,      4.0f,    kLower, 0, 'F')         \
  X(TrackingWaistDofsTapping,    tracking_waist_dofs_tapping,      0.5f,    kLower, 0, 'F')         \
  X(TrackingWaistDofsStance,     tracking_waist_dofs_stance,       3.0f,    kLower, 0, 'F')         \
  X(PenaltyLinVelZ,              penalty_lin_vel_z,               -2.0f,    kLower, 0, 'F')         \
  X(PenaltyAngVelXy,             penalty_ang_vel_xy,              -0.05f,   kLower, 0, 'F')         \
  X(PenaltyAngVelXyTorso,        penalty_ang_vel_xy_torso,        -0.5f,    kLower, 0, 'W')         \
  X(PenaltyOrientation,          penalty_orientation,             -1.5f,    kLower, 0, 'F')         \
  X(PenaltyTorsoOrientation,     penalty_torso_orientation,       -1.0f,    kLower, 0, 'F')         \
  X(PenaltyLowerBodyTorques,     penalty_lower_body_torques,      -1e-6f,   kLower, 1, 'P')         \
  X(PenaltyLowerBodyDofVel,      penalty_lower_body_dof_vel,      -1e-4f,   kLower, 1, 'P')         \
  X(PenaltyLowerBodyDofAcc,      penalty_lower_body_dof_acc,      -2.5e-8f, kLower, 1, 'P')         \
  X(PenaltyLowerBodyActionRate,  penalty_lower_body_action_rate,   0.0f,    kLower, 1, 'P')         \
  X(LimitsLowerBodyDofPos,       limits_lower_body_dof_pos,       -5.0f,    kLower, 1, 'F')         \
  X(PenaltyContactNoVel,         penalty_contact_no_vel,          -0.2f,    kLower, 0, 'F')         \
  X(PenaltyFeetOri,              penalty_feet_ori,                -2.0f,    kLower, 0, 'F')         \
  X(PenaltyAnkleRoll,            penalty_ankle_roll,              -2.0f,    kLower, 0, 'F')         \
  X(FeetAirTime,                 feet_air_time,                    0.0f,    kLower, 0, 'W')         \
  X(PenaltyDiffFeetAirTime,      penalty_diff_feet_air_time,       0.0f,    kLower, 0, 'W')         \
  X(BaseHeight,                  base_height,                    -10.0f,    kLower, 0, 'F')         \
  X(Termination,                 termination,                   -250.0f,    kLower, 0, 'F')         \
  X(PenaltyFeetHeight,           penalty_feet_height,             -5.0f,    kLower, 0, 'F')         \
  X(PenaltyFeetSwingHeight,      penalty_feet_swing_height,      -20.0f,    kLower, 0, 'F')         \
  X(FeetHeadingAlignment,        feet_heading_alignment,          -0.25f,   kLower, 0, 'F')         \
  X(PenaltyCloseFeetXy,          penalty_close_feet_xy,          -10.0f,    kLower, 0, 'F')         \
  X(PenaltyHipPos,               penalty_hip_pos,                 -2.5f,    kLower, 0, 'F')         \
  X(PenaltyStanceDof,            penalty_stance_dof,              -1e-3f,   kLower, 0, 'F')         \
  X(PenaltyStanceTapFeet,        penalty_stance_tap_feet,         -5.0f,    kLower, 0, 'F')         \
  X(PenaltyStanceRoot,           penalty_stance_root,             -5.0f,    kLower, 0, 'F')         \
  X(PenaltyStandStill,           penalty_stand_still,             -0.15f,   kLower, 0, 'F')         \
  X(PenaltyStanceSymmetry,       penalty_stance_symmetry,         -0.5f,    kLower, 0, 'F')         \
  X(PenaltyContact,              penalty_contact,                  0.0f,    kLower, 0, 'W')         \
  X(PenaltyNegativeKneeJoint,    penalty_negative_knee_joint,     -1.0f,    kLower, 0, 'F')         \
  X(PenaltyShiftInZeroCommand,   penalty_shift_in_zero_command,   -1.0f,    kLower, 0, 'F')         \
  X(PenaltyAngShiftInZeroCommand, penalty_ang_shift_in_zero_command, -1.0f, kLower, 0, 'F')         \
  X(WalkLinVelX,                 walk_lin_vel_x,                   2.0f,    kLower, 0, 'S')         \
  X(WalkLinVelY,                 walk_lin_vel_y,                   1.5f,    kLower, 0, 'S')         \
  X(WalkLinVelError,             walk_lin_vel_error,              -4.0f,    kLower, 0, 'S')         \
  X(PhaseContact,                phase_contact,                    2.0f,    kLower, 0, 'S')         \
  X(PenaltyDoubleSupport,        penalty_double_support,          -4.0f,    kLower, 0, 'S')         \
  X(PenaltyFlight,               penalty_flight,                  -4.0f,    kLower, 0, 'S')         \
  X(PenaltyStandContact,         penalty_stand_contact,           -4.0f,    kLower, 0, 'S')         \
  X(TrackingUpperBodyDofs,       tracking_upper_body_dofs,         4.0f,    kUpper, 0, 'F')         \
  X(PenaltyUpperBodyTorques,     penalty_upper_body_torques,      -1e-6f,   kUpper, 1, 'P')         \
  X(PenaltyUpperBodyDofVel,      penalty_upper_body_dof_vel,      -1e-4f,   kUpper, 1, 'P')         \
  X(PenaltyUpperBodyDofAcc,      penalty_upper_body_dof_acc,      -2.5e-8f, kUpper, 1, 'P')         \
  X(PenaltyUpperBodyActionRate,  penalty_upper_body_action_rate,   0.0f,    kUpper, 1, 'P')         \
  X(LimitsUpperBodyDofPos,       limits_upper_body_dof_pos,       -5.0f,    kUpper, 1, 'F')         \
  X(LimitsUpperBodyDofVel,       limits_upper_body_dof_vel,       -5.0f,    kUpper, 1, 'F')         \
  X(LimitsUpperBodyTorque,       limits_upper_body_torque,        -0.1f,    kUpper, 1, 'F')         \
  X(PenaltyEeLinAcc,             penalty_ee_lin_acc,              -0.1f,    kUpper, 0, 'F')         \
  X(PenaltyEeAngAcc,             penalty_ee_ang_acc,              -0.01f,   kUpper, 0, 'F')
// clang-format on

enum class RewardTerm : int {
#define SILC_REWARD_ENUM(function, name, weight, agent, curriculum, origin) k##function,
  SILC_REWARD_TERMS(SILC_REWARD_ENUM)
#undef SILC_REWARD_ENUM
      kCount
};
inline constexpr int kNumRewards = static_cast<int>(RewardTerm::kCount);

struct RewardTermInfo {
  const char* name;
  float weight;
  RewardAgent agent;
  bool curriculum;
  char origin;
};

inline constexpr RewardTermInfo kRewardTerms[kNumRewards] = {
#define SILC_REWARD_INFO(function, name, weight, agent, curriculum, origin) \
  {#name, weight, RewardAgent::agent, (curriculum) != 0, origin},
    SILC_REWARD_TERMS(SILC_REWARD_INFO)
#undef SILC_REWARD_INFO
};

}  // namespace silc
