// SPDX-License-Identifier: Apache-2.0
#include "silc/task/reward.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>

namespace silc {
namespace {

// exponentials as a calculator gives them
constexpr float kE025 = 0.77880078f, kE05 = 0.60653066f, kE1 = 0.36787944f, kE14 = 0.24659696f;
constexpr float kTol = 2e-6f;  // a few roundings of float on numbers near one

TaskRobot Robot() {
  TaskRobot r = {};
  r.num_joints = kTaskJoints;
  r.num_lower = kLowerJoints;
  r.has_hands = true;
  r.feet_apart = 0.17f;
  r.swing_height = 0.12f;
  for (const LegRole role : {kHipPitch, kKnee, kAnklePitch}) r.mirror[role] = 1;
  for (const LegRole role : {kHipRoll, kHipYaw, kAnkleRoll}) r.mirror[role] = -1;
  r.knee_bend[0] = r.knee_bend[1] = 1;
  for (int s = 0; s < 2; ++s) {
    r.hip_pitch[s] = 6 * s;
    r.hip_roll[s] = 6 * s + 1;
    r.hip_yaw[s] = 6 * s + 2;
    r.knee[s] = 6 * s + 3;
    r.ankle_pitch[s] = 6 * s + 4;
    r.ankle_roll[s] = 6 * s + 5;
  }
  for (int k = 0; k < 3; ++k) r.waist[k] = 12 + k;
  for (int j = 0; j < kTaskJoints; ++j) {
    r.soft_low[j] = -1;
    r.soft_high[j] = 1;
    r.effort[j] = 2;
    r.max_velocity[j] = 1.5f;
  }
  return r;
}

// Left foot down, right foot in the air; small round numbers everywhere.
RewardInput Input(float walk) {
  RewardInput r = {};
  r.walk = walk;
  r.still = 1 - walk;
  r.vx_cmd = 0.5f;
  r.vy_cmd = -0.5f;
  r.yaw_rate_cmd = 0.5f;
  r.height_cmd = 0.75f;
  r.p_WB[1] = 0.03f;
  r.p_WB[2] = 0.70f;
  r.R_WB[0] = r.R_WB[4] = r.R_WB[8] = 1;
  r.v_B[0] = 0.25f;
  r.v_B[2] = 0.1f;
  r.w_B[0] = 0.3f;
  r.w_B[1] = 0.4f;
  r.v_W[0] = 0.3f;
  r.v_W[1] = 0.4f;
  r.w_W[2] = -0.7f;
  r.g_B[0] = 0.1f;
  r.g_B[1] = 0.2f;
  r.g_T[0] = -0.1f;
  r.g_T[1] = 0.2f;
  r.w_T[0] = 1;
  r.w_T[1] = 2;
  r.w_T[2] = 3;
  const float q[kLowerJoints] = {1.25f,
                                 0.1f,
                                 0.3f,
                                 0.1f,
                                 -0.2f,
                                 0.05f,
                                 -1.5f,
                                 -0.2f,
                                 0.1f,
                                 0.5f,
                                 -0.4f,
                                 -0.15f,
                                 0.1f,
                                 0,
                                 0.2f};
  for (int j = 0; j < kTaskJoints; ++j) {
    const bool low = j < kLowerJoints;
    r.q[j] = low ? q[j] : 0.1f;
    r.tau[j] = low ? 2.0f : -3.0f;
    r.qd[j] = low ? 1.0f : -2.0f;
    r.qd_prev[j] = low ? 0.9f : -2.04f;
    r.action[j] = low ? 1.0f : 0.0f;
    r.action_prev[j] = low ? 0.5f : 2.0f;
  }
  r.foot[0] = {.p_WF = {0.1f, 0.1f, 0.05f},
               .v_WF = {0.1f, 0.2f, 0},
               .g_F = {0.3f, 0.4f, -0.9f},
               .yaw = 0.1f,
               .force = {0, 0, 200},
               .air_time = 0.4f,
               .last_air_time = 0.4f,
               .first_contact = true,
               .want = true};
  r.foot[1] = {.p_WF = {0, -0.1f, 0.20f},
               .v_WF = {1, 1, 1},
               .g_F = {0, 0.1f, -1},
               .yaw = -0.2f,
               .force = {0, 0, 0},
               .air_time = 0.1f,
               .last_air_time = 0.3f,
               .first_contact = false,
               .want = true};
  r.hand_v[0][0] = 0.3f;
  r.hand_v[0][1] = 0.4f;
  r.hand_v[1][2] = r.hand_v_prev[1][2] = 5;
  r.hand_w[1][2] = 2;
  r.hand_w_prev[1][2] = 1;
  r.hand_force_sum = 25;
  r.dt = 0.02f;
  return r;
}

const TaskRobot kRobot = Robot();
const RewardInput kWalk = Input(1), kStand = Input(0);

TEST(Reward, TrackingTermsByHand) {
  // errors: vx 0.25, vy 0.5, yaw 0.5, height 0.05, waist² 0.01 + 0.04
  EXPECT_NEAR(reward::TrackingLinVelX(kRobot, kWalk), kE025, kTol);
  EXPECT_NEAR(reward::TrackingLinVelY(kRobot, kWalk), kE1, kTol);
  EXPECT_NEAR(reward::TrackingAngVel(kRobot, kWalk), kE1, kTol);
  // 25 N of 50 halve the strictness: exp(−0.05 · 0.5 / 0.05)
  EXPECT_NEAR(reward::TrackingWalkBaseHeight(kRobot, kWalk), kE05, kTol);
  EXPECT_EQ(reward::TrackingWalkBaseHeight(kRobot, kStand), 0);
  RewardInput loaded = kWalk;
  loaded.hand_force_sum = 80;
  EXPECT_EQ(reward::TrackingWalkBaseHeight(kRobot, loaded), 1);
  EXPECT_NEAR(reward::TrackingStanceBaseHeight(kRobot, kStand), kE1, kTol);
  EXPECT_EQ(reward::TrackingStanceBaseHeight(kRobot, kWalk), 0);
  EXPECT_NEAR(reward::TrackingWaistDofsTapping(kRobot, kWalk), kE1, kTol);
  EXPECT_EQ(reward::TrackingWaistDofsTapping(kRobot, kStand), 0);
  EXPECT_NEAR(reward::TrackingWaistDofsStance(kRobot, kStand), kE1, kTol);
  EXPECT_EQ(reward::TrackingWaistDofsStance(kRobot, kWalk), 0);
}

TEST(Reward, BaseAndTorsoTermsByHand) {
  EXPECT_NEAR(reward::PenaltyLinVelZ(kRobot, kWalk), 0.01f, kTol);
  EXPECT_EQ(reward::PenaltyLinVelZ(kRobot, kStand), 0);
  EXPECT_NEAR(reward::PenaltyAngVelXy(kRobot, kWalk), 0.25f, kTol);
  EXPECT_NEAR(reward::PenaltyAngVelXyTorso(kRobot, kWalk), 5, kTol);
  EXPECT_NEAR(reward::PenaltyOrientation(kRobot, kWalk), 0.05f, kTol);
  EXPECT_NEAR(reward::PenaltyTorsoOrientation(kRobot, kWalk), 0.3f, kTol);
  EXPECT_NEAR(reward::BaseHeight(kRobot, kWalk), 0.0025f, kTol);
  EXPECT_NEAR(reward::BaseHeight(kRobot, kStand), 0.0125f, kTol);
  EXPECT_EQ(reward::Termination(kRobot, kWalk), 0);
  RewardInput fallen = kWalk;
  fallen.failed = true;
  EXPECT_EQ(reward::Termination(kRobot, fallen), 1);
}

TEST(Reward, LowerJointTermsByHand) {
  EXPECT_NEAR(reward::PenaltyLowerBodyTorques(kRobot, kWalk), 60, kTol);       // 15 · 2²
  EXPECT_NEAR(reward::PenaltyLowerBodyDofVel(kRobot, kWalk), 15, kTol);        // 15 · 1²
  EXPECT_NEAR(reward::PenaltyLowerBodyDofAcc(kRobot, kWalk), 375, 1e-3);       // 15 · (0.1/0.02)²
  EXPECT_NEAR(reward::PenaltyLowerBodyActionRate(kRobot, kWalk), 3.75, kTol);  // 15 · 0.5²
  EXPECT_NEAR(reward::LimitsLowerBodyDofPos(kRobot, kWalk), 0.75, kTol);       // 0.25 + 0.5
  EXPECT_NEAR(reward::PenaltyHipPos(kRobot, kWalk), 0.15f, kTol);  // 0.01 + 0.09 + 0.04 + 0.01
  EXPECT_NEAR(reward::PenaltyHipPos(kRobot, kStand), 0.1125f, kTol);
  EXPECT_NEAR(reward::PenaltyAnkleRoll(kRobot, kWalk), 0.2f, kTol);
  EXPECT_EQ(reward::PenaltyNegativeKneeJoint(kRobot, kWalk), 1);  // 0.1 and 0.5
  EXPECT_NEAR(reward::PenaltyStanceDof(kRobot, kStand), 15, kTol);
  EXPECT_EQ(reward::PenaltyStanceDof(kRobot, kWalk), 0);
  // |1.25 + 1.5| + |0.1 − 0.5| + |−0.2 + 0.4| + |0.1 − 0.2| + |0.3 + 0.1| + |0.05 − 0.15|
  EXPECT_NEAR(reward::PenaltyStanceSymmetry(kRobot, kStand), 3.95f, kTol);
  EXPECT_EQ(reward::PenaltyStanceSymmetry(kRobot, kWalk), 0);
}

TEST(Reward, FeetTermsByHand) {
  EXPECT_NEAR(
      reward::PenaltyContactNoVel(kRobot, kWalk), 0.05f, kTol);  // the right one does not touch
  EXPECT_NEAR(reward::PenaltyContactNoVel(kRobot, kStand), 0.5f, kTol);
  EXPECT_NEAR(reward::PenaltyFeetOri(kRobot, kWalk), 0.6f, kTol);  // 0.5 + 0.1
  EXPECT_NEAR(reward::FeetAirTime(kRobot, kWalk), -0.1f, kTol);    // 0.4 − 0.5
  EXPECT_NEAR(reward::PenaltyDiffFeetAirTime(kRobot, kWalk), 0.1f, kTol);
  EXPECT_NEAR(reward::PenaltyFeetHeight(kRobot, kWalk), 0.05f, kTol);  // min(0.07, 0.08) − 0.02
  EXPECT_EQ(reward::PenaltyFeetHeight(kRobot, kStand), 0);
  EXPECT_NEAR(reward::PenaltyFeetSwingHeight(kRobot, kWalk), 0.0064f, kTol);     // 0.08²
  EXPECT_NEAR(reward::PenaltyFeetSwingHeight(kRobot, kStand), 0.030625f, kTol);  // 0.175²
  EXPECT_NEAR(reward::FeetHeadingAlignment(kRobot, kWalk), 0.3f, kTol);
  EXPECT_EQ(reward::PenaltyCloseFeetXy(kRobot, kWalk), 0);  // √0.05 = 0.22 m
  EXPECT_NEAR(reward::PenaltyStanceRoot(kRobot, kStand), 0.03f, kTol);
  EXPECT_EQ(reward::PenaltyStanceRoot(kRobot, kWalk), 0);
  EXPECT_NEAR(reward::PenaltyStanceTapFeet(kRobot, kStand), 0.1f, kTol);
  EXPECT_EQ(reward::PenaltyStanceTapFeet(kRobot, kWalk), 0);  // vx is commanded
  EXPECT_EQ(reward::PenaltyStandStill(kRobot, kStand), 1);
  EXPECT_EQ(reward::PenaltyStandStill(kRobot, kWalk), 0);

  RewardInput r = kWalk;
  r.vx_cmd = r.vy_cmd = 0;
  EXPECT_EQ(reward::FeetAirTime(kRobot, r), 0);
  EXPECT_NEAR(reward::PenaltyStanceTapFeet(kRobot, r), 0.1f, kTol);
  r.foot[0].p_WF[0] = 0;
  r.foot[0].p_WF[1] = 0.05f;
  EXPECT_EQ(reward::PenaltyCloseFeetXy(kRobot, r), 1);  // 0.15 m
  // facing 3 rad, feet at −3 rad: 2π − 6 each, not 6
  r.R_WB[0] = std::cos(3.0f);
  r.R_WB[3] = std::sin(3.0f);
  r.foot[0].yaw = r.foot[1].yaw = -3;
  EXPECT_NEAR(reward::FeetHeadingAlignment(kRobot, r), 2 * 0.2831853f, 1e-5);
}

TEST(Reward, FeetAreJudgedInThePelvisFrame) {
  RewardInput r = kStand;  // turned by 90°: x in B is y in W, y in B is −x in W
  const float R[9] = {0, -1, 0, 1, 0, 0, 0, 0, 1};
  for (int i = 0; i < 9; ++i) r.R_WB[i] = R[i];
  EXPECT_NEAR(reward::PenaltyStanceTapFeet(kRobot, r), 0.2f, kTol);  // p_L − p_R = (0.1, 0.2)
  EXPECT_NEAR(
      reward::PenaltyStanceRoot(kRobot, r), 0.05f, kTol);  // pelvis − middle = (−0.05, 0.03)
}

TEST(Reward, ARobotThatRecoversFromAPushMayStep) {
  RewardInput recovers = kStand;
  recovers.still = 0;
  using Term = float (*)(const TaskRobot&, const RewardInput&);
  for (const Term term : {Term(reward::PenaltyStanceDof),
                          Term(reward::PenaltyStanceTapFeet),
                          Term(reward::PenaltyStanceRoot),
                          Term(reward::PenaltyStandStill),
                          Term(reward::PenaltyStanceSymmetry),
                          Term(reward::PenaltyStandContact)}) {
    EXPECT_GT(term(kRobot, kStand), 0);
    EXPECT_EQ(term(kRobot, recovers), 0);
  }
  // it is still asked to stand: height and velocity count as before
  EXPECT_EQ(reward::TrackingStanceBaseHeight(kRobot, recovers),
            reward::TrackingStanceBaseHeight(kRobot, kStand));
}

TEST(Reward, ContactTermsByHand) {
  RewardInput none = kWalk, both = kWalk;
  none.foot[0].force[2] = 0;
  both.foot[1].force[2] = 150;
  RewardInput stand_both = both;
  stand_both.walk = 0;
  stand_both.still = 1;
  // FALCON's: walking wants exactly one foot, standing two
  EXPECT_EQ(reward::PenaltyContact(kRobot, none), 1);
  EXPECT_EQ(reward::PenaltyContact(kRobot, kWalk), 0);
  EXPECT_EQ(reward::PenaltyContact(kRobot, both), 1);
  EXPECT_EQ(reward::PenaltyContact(kRobot, kStand), 1);
  EXPECT_EQ(reward::PenaltyContact(kRobot, stand_both), 0);
  // ours
  EXPECT_EQ(reward::PhaseContact(kRobot, kWalk), 1);  // both wanted, one down
  EXPECT_EQ(reward::PhaseContact(kRobot, both), 2);
  EXPECT_EQ(reward::PhaseContact(kRobot, kStand), 0);
  EXPECT_EQ(reward::PenaltyDoubleSupport(kRobot, both), 0);  // the clock wants both
  both.foot[1].want = false;
  EXPECT_EQ(reward::PenaltyDoubleSupport(kRobot, both), 1);
  EXPECT_EQ(reward::PhaseContact(kRobot, both), 1);
  EXPECT_EQ(reward::PenaltyDoubleSupport(kRobot, kWalk), 0);
  EXPECT_EQ(reward::PenaltyFlight(kRobot, none), 1);
  EXPECT_EQ(reward::PenaltyFlight(kRobot, kWalk), 0);
  EXPECT_EQ(reward::PenaltyStandContact(kRobot, kStand), 1);
  EXPECT_EQ(reward::PenaltyStandContact(kRobot, stand_both), 0);
  EXPECT_EQ(reward::PenaltyStandContact(kRobot, none), 0);
}

TEST(Reward, ZeroCommandAndWalkVelocityTermsByHand) {
  EXPECT_EQ(reward::PenaltyShiftInZeroCommand(kRobot, kWalk), 0);
  EXPECT_EQ(reward::PenaltyAngShiftInZeroCommand(kRobot, kWalk), 0);
  RewardInput r = kWalk;
  r.vx_cmd = 0.1f;
  r.vy_cmd = 0;
  r.yaw_rate_cmd = -0.05f;
  EXPECT_NEAR(reward::PenaltyShiftInZeroCommand(kRobot, r), 0.5f, kTol);
  EXPECT_NEAR(reward::PenaltyAngShiftInZeroCommand(kRobot, r), 0.7f, kTol);
  EXPECT_NEAR(reward::WalkLinVelX(kRobot, kWalk), kE025, kTol);
  EXPECT_NEAR(reward::WalkLinVelY(kRobot, kWalk), kE1, kTol);
  EXPECT_NEAR(reward::WalkLinVelError(kRobot, kWalk), 0.5590170f, kTol);  // √(0.0625 + 0.25)
  EXPECT_EQ(reward::WalkLinVelX(kRobot, kStand), 0);
  EXPECT_EQ(reward::WalkLinVelY(kRobot, kStand), 0);
  EXPECT_EQ(reward::WalkLinVelError(kRobot, kStand), 0);
}

TEST(Reward, UpperTermsByHand) {
  EXPECT_NEAR(reward::TrackingUpperBodyDofs(kRobot, kWalk), kE14, kTol);     // 14 · 0.01 / 0.1
  EXPECT_NEAR(reward::PenaltyUpperBodyTorques(kRobot, kWalk), 126, kTol);    // 14 · 9
  EXPECT_NEAR(reward::PenaltyUpperBodyDofVel(kRobot, kWalk), 56, kTol);      // 14 · 4
  EXPECT_NEAR(reward::PenaltyUpperBodyDofAcc(kRobot, kWalk), 56, 1e-3);      // 14 · (0.04/0.02)²
  EXPECT_NEAR(reward::PenaltyUpperBodyActionRate(kRobot, kWalk), 56, kTol);  // 14 · 4
  EXPECT_EQ(reward::LimitsUpperBodyDofPos(kRobot, kWalk), 0);
  EXPECT_NEAR(reward::LimitsUpperBodyDofVel(kRobot, kWalk), 7, kTol);      // 14 · (2 − 1.5)
  EXPECT_NEAR(reward::LimitsUpperBodyTorque(kRobot, kWalk), 16.8f, 1e-5);  // 14 · (3 − 1.8)
  EXPECT_NEAR(reward::PenaltyEeLinAcc(kRobot, kWalk), 0.5f, kTol);
  EXPECT_NEAR(reward::PenaltyEeAngAcc(kRobot, kWalk), 1, kTol);
  RewardInput r = kWalk;
  r.q[20] = 1.5f;
  r.qd[20] = 40;
  EXPECT_NEAR(reward::LimitsUpperBodyDofPos(kRobot, r), 0.5f, kTol);
  EXPECT_NEAR(reward::LimitsUpperBodyDofVel(kRobot, r), 7.5f, kTol);  // one joint counts 1 at most
}

TEST(Reward, FalconsTermsAreAllThere) {
  int lower = 0, upper = 0;
  for (const RewardTermInfo& term : kRewardTerms) {
    if (term.origin == 'S') continue;
    ++(term.agent == RewardAgent::kLower ? lower : upper);
  }
  EXPECT_EQ(lower, 38);
  EXPECT_EQ(upper, 10);
}

// One term at a time: its weight, the control period, the agent, and the curriculum where it acts.
TEST(Reward, ASumIsWeightTimesValueTimesPeriod) {
  float full[kNumRewards], half[kNumRewards], sums[2], half_sums[2];
  RewardWeights ones;
  for (float& w : ones.weight) w = 1;
  ComputeRewards(ones, kRobot, kWalk, 1.0f, full, sums);
  ComputeRewards(ones, kRobot, kWalk, 0.5f, half, half_sums);
  EXPECT_NEAR(
      full[static_cast<int>(RewardTerm::kPenaltyLowerBodyTorques)], 1.2f, 1e-6);  // 60 · 0.02
  int curriculum = 0;
  double lower = 0, upper = 0;
  for (int i = 0; i < kNumRewards; ++i) {
    EXPECT_FLOAT_EQ(half[i], full[i] * (kRewardTerms[i].curriculum ? 0.5f : 1.0f))
        << kRewardTerms[i].name;
    curriculum += kRewardTerms[i].curriculum;
    (kRewardTerms[i].agent == RewardAgent::kLower ? lower : upper) += full[i];
  }
  EXPECT_EQ(curriculum, 12);
  EXPECT_NEAR(sums[0], lower, 1e-4);
  EXPECT_NEAR(sums[1], upper, 1e-4);
  EXPECT_LT(half_sums[0], sums[0]);
  for (float& w : ones.weight) w = 0;
  ComputeRewards(ones, kRobot, kWalk, 1.0f, full, sums);
  EXPECT_EQ(sums[0], 0);
  EXPECT_EQ(sums[1], 0);
}

}  // namespace
}  // namespace silc
