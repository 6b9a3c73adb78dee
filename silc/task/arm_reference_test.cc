// SPDX-License-Identifier: Apache-2.0
#include "silc/task/arm_reference.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "silc/robot/pose.h"
#include "silc/task/hand_force.h"
#include "silc/task/reach_table.h"

namespace silc {
namespace {

TEST(MinimumJerk, StartsAndEndsAtRestWithoutAcceleration) {
  const auto s = [](double x) {
    return 10 * x * x * x - 15 * x * x * x * x + 6 * x * x * x * x * x;
  };
  EXPECT_EQ(MinimumJerk(0), 0);
  EXPECT_EQ(MinimumJerk(1), 1);
  EXPECT_EQ(MinimumJerk(2), 1);
  EXPECT_EQ(MinimumJerk(-1), 0);
  double peak = 0;
  for (int i = 0; i < 1000; ++i) {
    const double x = i / 1000.0;
    EXPECT_NEAR(MinimumJerk(static_cast<float>(x)), s(x), 1e-6);
    peak = std::max(peak, (s(x + 1e-3) - s(x)) * 1e3);
  }
  EXPECT_NEAR(peak, kMinimumJerkPeak, 1e-4);
  // first and second differences vanish at both ends like h and h²
  EXPECT_LT(s(0.01) / 0.01, 1.1e-3);
  EXPECT_LT((1 - s(0.99)) / 0.01, 1.1e-3);
}

class Reaches : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    robot_ = new RobotModel(RobotModel::Load("g1"));
    table_ = new OwnedReachTable(MakeReachTable(*robot_));
  }
  static void TearDownTestSuite() {
    delete table_;
    delete robot_;
  }
  static RobotModel* robot_;
  static OwnedReachTable* table_;
};
RobotModel* Reaches::robot_ = nullptr;
OwnedReachTable* Reaches::table_ = nullptr;

// Independent of ArmClearance: MuJoCo's distance between each arm shape and every other shape.
double NearestDistance(const RobotModel& robot,
                       mjData* d,
                       const float* arms,
                       const std::vector<char>& skip) {
  const mjModel& m = *robot.model();
  for (int j = 0; j < kUpperJoints; ++j) d->qpos[robot.qpos_address()[kLowerJoints + j]] = arms[j];
  mj_kinematics(&m, d);
  double nearest = 1;
  for (int a = 0; a < m.ngeom; ++a) {
    for (int b = 0; b < m.ngeom; ++b) {
      if (skip[a * m.ngeom + b]) continue;
      nearest = std::min(nearest, mj_geomDistance(&m, d, a, b, 0.1, nullptr));
    }
  }
  return nearest;
}

TEST_F(Reaches, StayInsideTheJointsAndClearOfTheBody) {
  const ReachTable t = table_->view();
  ASSERT_EQ(t.num_poses, 128);
  const mjModel& m = *robot_->model();
  const MjDataPtr data = robot_->MakeData();
  StandInPose(*robot_, robot_->spec().StandingPose(), data.get());
  // forearms, wrists and hands against torso, pelvis, thighs and the other arm
  std::vector<char> skip(static_cast<std::size_t>(m.ngeom) * m.ngeom, 1);
  const auto named = [&](int g, const char* part) {
    const char* name = mj_id2name(&m, mjOBJ_GEOM, g);
    return name != nullptr && std::string(name).find(part) != std::string::npos;
  };
  int pairs = 0;
  for (int a = 0; a < m.ngeom; ++a) {
    for (int b = 0; b < m.ngeom; ++b) {
      const bool distal = named(a, "forearm") || named(a, "wrist_coll") || named(a, "hand_coll");
      const bool body = named(b, "torso_coll") || named(b, "pelvis_coll") || named(b, "thigh") ||
                        named(b, "head_coll");
      const bool other = distal && named(a, "left") && named(b, "right") &&
                         (named(b, "forearm") || named(b, "wrist_coll") || named(b, "hand_coll"));
      if (!(distal && body) && !other) continue;
      skip[a * m.ngeom + b] = 0;
      ++pairs;
    }
  }
  ASSERT_GT(pairs, 30);
  double nearest = 1;
  for (int p = 0; p < t.num_poses; ++p) {
    for (int j = 0; j < kUpperJoints; ++j) {
      const float q = t.poses[p * kUpperJoints + j];
      ASSERT_GT(q, robot_->q_min()[kLowerJoints + j]);
      ASSERT_LT(q, robot_->q_max()[kLowerJoints + j]);
    }
    nearest =
        std::min(nearest, NearestDistance(*robot_, data.get(), t.poses + p * kUpperJoints, skip));
  }
  EXPECT_GE(nearest, 0.02 - 1e-6);
  // reaches at points between those that were checked; shapes come closer there by less than the
  // clearance, so they do not touch
  float pose[kUpperJoints];
  nearest = 1;
  for (int p = 0; p < t.num_poses; p += 8) {
    const float* a = t.poses + p * kUpperJoints;
    const float* b = t.poses + t.next[p * t.num_next] * kUpperJoints;
    for (int i = 0; i < 16; ++i) {
      const float x = (static_cast<float>(i) + 0.5f) / 16;
      for (int j = 0; j < kUpperJoints; ++j) pose[j] = a[j] + x * (b[j] - a[j]);
      nearest = std::min(nearest, NearestDistance(*robot_, data.get(), pose, skip));
    }
  }
  EXPECT_GT(nearest, 0);
}

TEST_F(Reaches, AreSmoothNoFasterThanAllowedAndSometimesRest) {
  TaskConfig::Arms c;
  c.fixed_prob = 0;
  ArmState s = {};
  Draw reset(1, 0, 0, DrawPurpose::kArm);
  ResetArms(c, table_->view(), {}, reset, &s);
  float last[kUpperJoints];
  double fastest = 0;
  int still = 0;
  constexpr int kSteps = 5000;
  for (int t = 0; t < kSteps; ++t) {
    std::copy(s.ref, s.ref + kUpperJoints, last);
    Draw draw(1, 0, static_cast<std::uint32_t>(t), DrawPurpose::kArm);
    AdvanceArms(c, table_->view(), {}, 0.02f, draw, &s);
    double moved = 0;
    for (int j = 0; j < kUpperJoints; ++j)
      moved = std::max(moved, std::fabs(double(s.ref[j]) - last[j]));
    fastest = std::max(fastest, moved / 0.02);
    still += moved == 0;
  }
  EXPECT_LE(fastest, c.max_speed * 1.001);
  EXPECT_GT(fastest, 1.5);
  // reaches of 1.75 s, then with probability 0.3 a rest of 1.1 s: 16 % of the time
  EXPECT_GT(still, 0.05 * kSteps);
  EXPECT_LT(still, 0.35 * kSteps);

  s.fixed = true;
  std::copy(s.ref, s.ref + kUpperJoints, last);
  Draw draw(1, 0, 0, DrawPurpose::kArm);
  AdvanceArms(c, table_->view(), {}, 0.02f, draw, &s);
  for (int j = 0; j < kUpperJoints; ++j) EXPECT_EQ(s.ref[j], last[j]);
}

TEST(Clips, AreFollowedAndBlendedWithoutAJump) {
  // two clips of constant poses 0 and 1
  std::vector<float> frames(200 * kUpperJoints, 0.0f);
  std::fill(frames.begin() + 100 * kUpperJoints, frames.end(), 1.0f);
  const std::vector<int> first = {0, 100, 200};
  const MotionTable motions = {frames.data(), first.data(), 2};
  TaskConfig::Arms c;
  c.fixed_prob = 0;
  ArmState s = {};
  Draw reset(2, 0, 0, DrawPurpose::kArm);
  ResetArms(c, {}, motions, reset, &s);
  EXPECT_TRUE(s.ref[0] == 0 || s.ref[0] == 1);
  float low = 1, high = 0;
  for (int t = 0; t < 3000; ++t) {
    const float last = s.ref[3];
    Draw draw(2, 0, static_cast<std::uint32_t>(t), DrawPurpose::kArm);
    AdvanceArms(c, {}, motions, 0.02f, draw, &s);
    ASSERT_LE(std::fabs(s.ref[3] - last), kMinimumJerkPeak * 0.02f / c.blend * 1.001f);
    ASSERT_LT(s.frame, 200);
    low = std::min(low, s.ref[3]);
    high = std::max(high, s.ref[3]);
  }
  EXPECT_LT(low, 0.01f);
  EXPECT_GT(high, 0.99f);
}

// Two arms of seven joints after fifteen others.
TaskRobot TwoArms() {
  TaskRobot robot = {};
  for (float& e : robot.effort) e = 25;
  for (int hand = 0; hand < 2; ++hand) {
    robot.arm_joints[hand] = kArmJoints;
    for (int j = 0; j < kArmJoints; ++j) robot.arm[hand][j] = kLowerJoints + hand * kArmJoints + j;
  }
  return robot;
}

TEST(HandForce, IsWhatTheWeakestMotorBears) {
  TaskRobot robot = TwoArms();
  robot.effort[kLowerJoints + 5] = 5;
  const auto jacobian = [](int axis, int joint) {
    return axis == 0 ? 0.1f * static_cast<float>(joint) : 0.0f;
  };
  // x: joint 5 bears 0.9·5/(0.5 + 0.01) = 8.8235 N, joint 6 0.9·25/0.61 = 36.9; y: 0.9·5/0.01
  EXPECT_NEAR(BearableForce(robot, 0.9f, 0, 0, jacobian), 8.823529f, 1e-5);
  EXPECT_NEAR(BearableForce(robot, 0.9f, 0, 1, jacobian), 450, 1e-3);
}

TEST(HandForce, SweepsBetweenItsEndsWhenStandingAndResistsWhenWalking) {
  TaskConfig::HandForce c;
  c.noise = 0;
  TaskRobot robot = TwoArms();
  robot.control_dt = 0.02f;
  HandForceState s = {};
  s.share[0] = s.share[1] = 0.25f;
  s.share[2] = 0.5f;
  for (auto& hand : s.on) hand[0] = hand[1] = hand[2] = 1;
  s.sweep = 4;
  const auto jacobian = [](int, int) { return 0.44f; };  // bears 0.9·25/0.45 = 50 N
  TaskCommand command = {};
  Draw draw(1, 0, 0, DrawPurpose::kForce);
  // time 0: phase 1, upper end: 12.5, 12.5, 25 → clipped to +5
  UpdateHandForce(c, robot, command, 0, 1, 0, jacobian, draw, &s);
  EXPECT_NEAR(s.force[0][0], 12.5f, 1e-4);
  EXPECT_NEAR(s.force[0][1], 12.5f, 1e-4);
  EXPECT_EQ(s.force[0][2], 5);
  EXPECT_NEAR(s.time[0], 0.005f, 1e-7);  // 0.02 s of a half period of 4 s
  // time 1: phase 0, lower end, at half scale
  s.time[0] = 1;
  UpdateHandForce(c, robot, command, 0, 0.5f, 0, jacobian, draw, &s);
  EXPECT_NEAR(s.force[0][0], -6.25f, 1e-4);
  EXPECT_NEAR(s.force[0][2], -12.5f, 1e-4);
  // an axis switched off
  s.on[0][0] = 0;
  s.time[0] = 0;
  UpdateHandForce(c, robot, command, 0, 1, 0, jacobian, draw, &s);
  EXPECT_EQ(s.force[0][0], 0);
  // walking along +y of a robot that faces +y of the world: the world's −x, so +x holds it back
  s.on[0][0] = 1;
  s.time[0] = 0;
  command.walk = 1;
  command.vy = 0.7f;
  UpdateHandForce(c, robot, command, 1.5707963f, 1, 0, jacobian, draw, &s);
  EXPECT_NEAR(s.force[0][0], 12.5f, 1e-4);
  EXPECT_NEAR(s.force[0][1], 0, 1e-4);
  EXPECT_EQ(s.force[0][2], 5);
  EXPECT_EQ(s.time[0], 0);  // does not sweep
  // without a velocity command along the body's x, either way
  command.vy = 0;
  s.backward = -1;
  UpdateHandForce(c, robot, command, 0, 1, 0, jacobian, draw, &s);
  EXPECT_NEAR(s.force[0][0], -12.5f, 1e-4);
}

}  // namespace
}  // namespace silc
