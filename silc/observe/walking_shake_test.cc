// SPDX-License-Identifier: Apache-2.0
#include "silc/observe/walking_shake.h"

#include <gtest/gtest.h>

#include <cmath>

#include "silc/observe/shake.h"
#include "silc/observe/test_robot.h"

namespace silc {
namespace {

using Eigen::Vector3d;

const RobotModel& FirmG1() {
  static const RobotModel robot = RobotModel::Load("g1", {.firm_contacts = true});
  return robot;
}

// The regulator after 4 s of standing, the whole robot turned by `yaw` before.
ClosedLoop Standing(double yaw) {
  ClosedLoop loop = MakeLoop(FirmG1(), MakeStandPolicy(FirmG1()));
  const mjModel* model = FirmG1().model();
  std::vector<double> qpos(loop.data()->qpos, loop.data()->qpos + model->nq);
  const int base = model->jnt_qposadr[model->body_jntadr[FirmG1().base_body()]];
  double* at = qpos.data() + base;
  const double turn[4] = {std::cos(yaw / 2), 0, 0, std::sin(yaw / 2)};
  const double position[3] = {at[0], at[1], at[2]}, quat_wxyz[4] = {at[3], at[4], at[5], at[6]};
  mju_rotVecQuat(at, position, turn);
  mju_mulQuat(at + 3, turn, quat_wxyz);
  loop.SetState(qpos, std::vector<double>(model->nv, 0.0));
  for (int step = 0; step < 200; ++step) EXPECT_EQ(loop.Step(), LoopStatus::kRunning);
  return loop;
}

// The regulator has no clock: its cycles are seconds, and with 2 s of settling the first of them is
// the second over which Shake() averages.
WalkingShakeOptions TenNewtons() {
  WalkingShakeOptions options;
  options.forces = {10};
  options.settle = 2;
  options.cycles = 2;
  return options;
}

// A robot that stands is one that walks at no speed: the mean over cycles is the static
// displacement that Shake() measures, K_s of every moment is that of the settled one, and soles
// that stay where they are make leaning and moving nearly the same.
TEST(ShakeWalking, AStandingRobotHasItsStaticStiffness) {
  const ClosedLoop settled = Standing(0);
  const WalkingShakeResult walking = ShakeWalking(settled, TenNewtons());
  ASSERT_EQ(walking.twin, LoopStatus::kRunning);
  ShakeOptions options;
  options.point = Push::Point::kCom;
  options.forces = {10};
  const ShakeResult standing = Shake(settled, options);
  EXPECT_EQ(walking.cycle, 1);
  EXPECT_EQ(walking.modelled, walking.moments);
  for (int axis = 0; axis < 3; ++axis) {
    const double still = RestingStiffness(standing, 0, axis);
    const CycleMeans& moved = walking.levels.at(0).moved[axis];
    // the same second of the same push: what is left is a heading of a few tenths of a milliradian
    const double plus = standing.levels[0].plus(axis, axis);
    EXPECT_NEAR(moved[0].at(0), plus, 0.002 * plus) << axis;
    EXPECT_NEAR(moved[1].at(0), standing.levels[0].minus(axis, axis), 0.002 * plus) << axis;
    // the next second: the soles creep, by 0.02 mm of 1.4 mm along y when measured
    EXPECT_NEAR(WalkingStiffness(moved, 10), still, 0.02 * still) << axis;
    EXPECT_NEAR(ResponseOf(moved, walking.cycle).speed, 0, 1e-4) << axis;
    EXPECT_NEAR(WalkingStiffness(walking.levels[0].leaned[axis], 10), still, 0.05 * still) << axis;
    EXPECT_NEAR(1 / walking.model_compliance[axis],
                PredictedStiffness(standing, ShakeModel::kStaticWithWeight, axis),
                0.01 * still)
        << axis;
  }
}

// The axes are the robot's, not the world's: a robot that faces another way is as stiff forward and
// sideways as before, and the two differ by more than a quarter.
TEST(ShakeWalking, TheFrameTurnsWithTheRobot) {
  const WalkingShakeResult ahead = ShakeWalking(Standing(0), TenNewtons());
  const WalkingShakeResult turned = ShakeWalking(Standing(1.2), TenNewtons());
  const auto stiffness = [](const WalkingShakeResult& result, int axis) {
    return WalkingStiffness(result.levels.at(0).moved[axis], 10);
  };
  EXPECT_GT(std::abs(stiffness(ahead, 0) / stiffness(ahead, 1) - 1), 0.25);
  for (int axis = 0; axis < 3; ++axis) {
    const double before = stiffness(ahead, axis);
    EXPECT_NEAR(stiffness(turned, axis), before, 0.02 * before) << axis;
    EXPECT_NEAR(turned.model_compliance[axis],
                ahead.model_compliance[axis],
                0.02 * ahead.model_compliance[axis]);
  }
}

TEST(ShakeWalking, ARobotThatFallsIsNotMeasured) {
  const WalkingShakeResult result =
      ShakeWalking(MakeLoop(FirmG1(), MakeConstantPolicy(FirmG1(), 0)));
  EXPECT_EQ(result.twin, LoopStatus::kFallen);
  EXPECT_TRUE(result.levels.empty());
}

// Displacements by hand: 2 cm under 10 N are 500 N/m. What grows steadily from the beginning of the
// push is refused and has its speed; so is a pair of which one fell.
TEST(WalkingResponse, RefusesWhatWalksAway) {
  const CycleMeans rests = {{{0.021, 0.019, 0.02}, {-0.02, -0.02, -0.02}}};
  EXPECT_NEAR(WalkingStiffness(rests, 10), 500, 1e-9);
  EXPECT_NEAR(ResponseOf(rests, 0.8).growth, 0.002, 1e-12);

  // 5 mm/s from 0.75 s on (half of the ramp), cycles of 0.8 s from 4.5 s on
  CycleMeans away;
  for (int k = 0; k < 4; ++k) {
    const double d = 0.005 * (4.5 + 0.8 * (k + 0.5) - 0.75);
    away[0].push_back(d);
    away[1].push_back(-d);
  }
  const WalkingResponse response = ResponseOf(away, 0.8);
  EXPECT_NEAR(response.speed, 0.005, 1e-12);
  EXPECT_NEAR(response.growth / response.mean, 0.449, 1e-3);
  EXPECT_TRUE(std::isnan(WalkingStiffness(away, 10)));

  // both walk off to one side: half their difference rests, and neither of them does
  const CycleMeans aside = {{{0.03, 0.05, 0.07}, {-0.01, 0.01, 0.03}}};
  EXPECT_NEAR(ResponseOf(aside, 1).speed, 0, 1e-12);
  EXPECT_TRUE(std::isnan(WalkingStiffness(aside, 10)));

  const CycleMeans fell = {{{0.02, 0.02}, {}}};
  EXPECT_TRUE(std::isnan(WalkingStiffness(fell, 10)));
}

}  // namespace
}  // namespace silc
