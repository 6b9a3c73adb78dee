// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace silc {

/// Where the numbers of an observation term come from. Widths: joint sources one per joint, vectors
/// 3, lin_vel 2, scalars 1, phases one per foot of the gait clock.
enum class TermSource {
  kJointPos,          ///< joint_pos            q                                   [rad]
  kJointVel,          ///< joint_vel            q̇                                   [rad/s]
  kJointTorque,       ///< joint_torque         τ the motors applied                [N·m]
  kPrevAction,        ///< prev_action          raw action of the step before       [1]
  kRefJointPos,       ///< ref_joint_pos        commanded joint position            [rad]
  kBaseAngVel,        ///< base_ang_vel         w_WB_B                              [rad/s]
  kBaseLinVel,        ///< base_lin_vel         v_WB_B                              [m/s]
  kProjectedGravity,  ///< projected_gravity    unit gravity in B; upright (0,0,−1) [1]
  kCommandLinVel,     ///< command_lin_vel      vx, vy                              [m/s]
  kCommandAngVel,     ///< command_ang_vel      yaw rate                            [rad/s]
  kCommandTwist,      ///< command_twist        vx, vy, yaw rate
  kCommandHeight,     ///< command_height       base height                         [m]
  kCommandWalk,       ///< command_walk         1 walk or step, 0 stand             [1]
  kCommandWaist,      ///< command_waist        yaw, roll, pitch                    [rad]
  kBudgetCom,         ///< budget_com           ln of the CoM's stiffness, x and y  [ln N/m]
  kBudgetHands,       ///< budget_hands         ln of the hands' stiffness          [ln N/m]
  kBudgetNull,        ///< budget_null          ln of the null space's              [ln N·m/rad]
  kPhaseSin,          ///< phase_sin            sine of each foot's gait phase      [1]
  kPhaseCos,          ///< phase_cos            cosine                              [1]
  kConstant,          ///< constant             fixed numbers
};

}  // namespace silc
