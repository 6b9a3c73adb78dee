// SPDX-License-Identifier: Apache-2.0
#include "silc/observe/closed_loop.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "silc/base/error.h"
#include "silc/base/test_paths.h"
#include "silc/observe/load_policy.h"
#include "silc/observe/test_robot.h"
#include "silc/robot/pose.h"

namespace silc {
namespace {

class ClosedLoopTest : public ::testing::Test {
 protected:
  ClosedLoopTest() : robot_(RobotModel::Load("g1")), stand_(MakeStandPolicy(robot_)) {}

  RobotModel robot_;
  Policy stand_;
};

TEST_F(ClosedLoopTest, TheRegulatorStandsAndCarriesItsWeight) {
  ClosedLoop loop = MakeLoop(robot_, stand_);
  const Eigen::Vector3d start = loop.ComPosition();
  for (int step = 0; step < 250; ++step) ASSERT_EQ(loop.Step(), LoopStatus::kRunning);
  EXPECT_LT((loop.ComPosition() - start).norm(), 0.01);
}

TEST_F(ClosedLoopTest, PdAloneFallsAndIsToldSo) {
  ClosedLoop loop = MakeLoop(robot_, MakeConstantPolicy(robot_, 0));
  LoopStatus status = LoopStatus::kRunning;
  for (int step = 0; step < 250 && status == LoopStatus::kRunning; ++step) status = loop.Step();
  EXPECT_EQ(status, LoopStatus::kFallen);
}

TEST_F(ClosedLoopTest, ACopyIsATwin) {
  ClosedLoop loop = MakeLoop(robot_, stand_, 0.01);
  loop.SetPush({Push::Point::kLeftHand, {5, 3, 1}});
  for (int step = 0; step < 20; ++step) loop.Step();
  ClosedLoop twin(loop);
  for (int step = 0; step < 20; ++step) {
    loop.Step();
    twin.Step();
  }
  for (int i = 0; i < robot_.model()->nq; ++i)
    EXPECT_EQ(loop.data()->qpos[i], twin.data()->qpos[i]);
}

// [rad] How far two walks are apart after each second: the shipped policy, and the same with its
// base `higher` [m]. Both begin with their soles `depth` [m] inside the floor.
std::vector<double> ApartWalking(const RobotModel& robot, double depth, double higher) {
  const Policy policy = LoadPolicy(SourcePath("policies/g1_loco_baseline.onnx"), "", robot);
  LoopOptions options;
  options.servo = ServoFor(robot, policy, "");
  options.command.walk = 1;
  options.command.lin_vel.x() = 0.5;
  ClosedLoop one(robot, policy, options), two(robot, policy, options);
  for (ClosedLoop* loop : {&one, &two}) {
    loop->data()->qpos[robot.base_qpos_address() + 2] += kRestingDepth - depth;
    if (loop == &two) loop->data()->qpos[robot.base_qpos_address() + 2] += higher;
    mj_forward(robot.model(), loop->data());
  }
  std::vector<double> apart;
  for (int step = 1; step <= 250; ++step) {
    EXPECT_EQ(one.Step(), LoopStatus::kRunning);
    EXPECT_EQ(two.Step(), LoopStatus::kRunning);
    if (step % 50 != 0) continue;
    double largest = 0;
    for (int j = 0; j < robot.num_joints(); ++j) {
      const int q = robot.qpos_address()[j];
      largest = std::max(largest, std::abs(one.data()->qpos[q] - two.data()->qpos[q]));
    }
    apart.push_back(largest);
  }
  return apart;
}

// A rollout begins with the weight on its soles, where a little more or less height is a little
// more or less force. Where soles only touch, the same difference makes or unmakes contacts.
TEST_F(ClosedLoopTest, ATinyDifferenceAtTheStartOfAWalkStaysTiny) {
  for (const double higher : {1e-7, -1e-7}) {
    // the walk itself is stable and forgets: what is left is of the size of the difference
    for (const double apart : ApartWalking(robot_, kRestingDepth, higher)) EXPECT_LT(apart, 1e-5);
  }
  // a tenth of a micrometre off the floor is another walk: 0.007 rad after a second
  EXPECT_GT(ApartWalking(robot_, 0, 1e-7).front(), 1e-3);
}

// Around every physics step, in order; a copy is a robot of its own and has none.
TEST_F(ClosedLoopTest, HooksRunAroundEveryPhysicsStep) {
  ClosedLoop loop = MakeLoop(robot_, stand_);
  std::vector<double> before, after;
  loop.SetHooks([&] { before.push_back(loop.time()); }, [&] { after.push_back(loop.time()); });
  ClosedLoop twin(loop);
  for (int step = 0; step < 3; ++step) ASSERT_EQ(loop.Step(), LoopStatus::kRunning);
  const double dt = robot_.model()->opt.timestep;
  ASSERT_EQ(before.size(), static_cast<std::size_t>(std::lround(3 * loop.period() / dt)));
  ASSERT_EQ(after.size(), before.size());
  for (std::size_t k = 0; k < before.size(); ++k) EXPECT_NEAR(after[k] - before[k], dt, 1e-12);
  const std::size_t count = before.size();
  twin.Step();
  EXPECT_EQ(before.size(), count);
}

// A push set from a hook acts in the step it was set for.
TEST_F(ClosedLoopTest, APushShorterThanAControlPeriodGivesItsImpulse) {
  ClosedLoop loop = MakeLoop(robot_, stand_), twin(loop);
  loop.SetHooks(
      [&] {
        loop.SetPush(loop.time() < 0.005 - 1e-9 ? Push{Push::Point::kCom, {-100, 0, 0}} : Push{});
      },
      {});
  loop.Step();
  twin.Step();
  // 0.5 N·s on 33 kg for the 17.5 ms after its middle; feet and servos give some of it back
  const double moved = loop.ComPosition().x() - twin.ComPosition().x();
  const double free = -0.5 / robot_.mass() * 0.0175;
  EXPECT_LT(moved, 0.3 * free);
  EXPECT_GT(moved, 1.2 * free);
}

// (S1) by hand at one physics step: torque from the state before it, clipped.
TEST_F(ClosedLoopTest, TheServoIsPdWithLimits) {
  ClosedLoop loop = MakeLoop(robot_, MakeConstantPolicy(robot_, 1.0f));
  const Eigen::VectorXd before = loop.policy().default_pose();
  ASSERT_EQ(loop.Decide(), LoopStatus::kRunning);
  const Eigen::VectorXd target = loop.target();
  EXPECT_TRUE(target.isApprox(before + loop.options().servo.alpha, 1e-6));  // α a, a = 1
  ClosedLoop single(loop);
  single.HoldTarget();
  // at rest only the spring acts
  std::vector<double> qpos(loop.data()->qpos, loop.data()->qpos + robot_.model()->nq);
  std::vector<double> qvel(robot_.model()->nv, 0.0);
  single.SetState(qpos, qvel);
  for (int i = 0; i < robot_.num_joints(); ++i) {
    const double spring = loop.options().servo.kp[i] * (target[i] - before[i]);
    const double limit = robot_.effort_limit()[i];
    EXPECT_NEAR(single.tau()[i], std::clamp(spring, -limit, limit), 1e-6)
        << robot_.spec().joints[i];
  }
}

// With a latency of k physics steps the servo keeps the old target for exactly k steps.
TEST_F(ClosedLoopTest, LatencyDelaysTheTarget) {
  const Policy jump = MakeConstantPolicy(robot_, 1.0f);
  const auto saturated = [&](double latency) {
    ClosedLoop loop = MakeLoop(robot_, jump, latency);
    loop.Decide();
    loop.Advance();
    return loop.tau();
  };
  // at a full period of latency nothing of the first decision has arrived: the pose's own target
  // holds
  ClosedLoop late = MakeLoop(robot_, jump, 0.02);
  late.Decide();
  late.Advance();
  ClosedLoop held = MakeLoop(robot_, MakeConstantPolicy(robot_, 0.0f));
  held.Decide();
  held.Advance();
  EXPECT_TRUE(late.tau().isApprox(held.tau(), 1e-9));
  EXPECT_FALSE(saturated(0.015).isApprox(held.tau(), 1e-3));
}

TEST_F(ClosedLoopTest, AForceOnTheComSharesOutByMass) {
  // in the first step from rest the centre of mass accelerates by f/m whatever the joints do, feet
  // apart: compare with and without the push while both feet carry the same contact problem
  const Eigen::Vector3d f(0, 0, 300);  // nearly lifts the robot: contacts stay
  ClosedLoop pushed = MakeLoop(robot_, stand_);
  pushed.SetPush({Push::Point::kCom, f});
  pushed.Decide();
  pushed.Advance();
  Eigen::Vector3d total = Eigen::Vector3d::Zero();
  for (int body = 0; body < robot_.model()->nbody; ++body) {
    total += Eigen::Map<const Eigen::Vector3d>(pushed.data()->xfrc_applied + 6 * body);
  }
  EXPECT_TRUE(total.isApprox(f, 1e-12));
}

// The hand's site, named as a point of its body, is the hand.
TEST_F(ClosedLoopTest, APushOnAPointOfABodyIsThatOnItsSite) {
  const Eigen::Vector3d f_W(6, -4, 3);
  ClosedLoop by_hand = MakeLoop(robot_, stand_), by_body = MakeLoop(robot_, stand_);
  const int site = robot_.hand_site()[kRight];
  Push push{Push::Point::kBody, f_W};
  push.body = robot_.hand_body()[kRight];
  push.p_BP = Eigen::Map<const Eigen::Vector3d>(robot_.model()->site_pos + 3 * site);
  ASSERT_EQ(robot_.model()->site_bodyid[site], push.body);
  by_hand.SetPush({Push::Point::kRightHand, f_W});
  by_body.SetPush(push);
  const Eigen::Vector3d before = by_hand.HandPosition(kRight);
  for (int step = 0; step < 25; ++step) {
    by_hand.Step();
    by_body.Step();
  }
  EXPECT_GT((by_hand.HandPosition(kRight) - before).norm(), 0.005);
  // the point is found once through the site and once through the body: rounding alone
  EXPECT_LT((by_hand.HandPosition(kRight) - by_body.HandPosition(kRight)).norm(), 1e-9);
  EXPECT_LT((by_body.BodyPoint(push.body, push.p_BP) - by_body.HandPosition(kRight)).norm(), 1e-12);
}

TEST_F(ClosedLoopTest, ANanInThePolicyEndsTheRun) {
  ClosedLoop loop =
      MakeLoop(robot_, MakeConstantPolicy(robot_, std::numeric_limits<float>::quiet_NaN()));
  EXPECT_EQ(loop.Step(), LoopStatus::kPolicyNotFinite);
}

TEST_F(ClosedLoopTest, ALatencyBetweenPhysicsStepsIsRefused) {
  EXPECT_THROW(MakeLoop(robot_, stand_, 0.003), ConfigError);
  EXPECT_THROW(MakeLoop(robot_, stand_, -0.005), ConfigError);
}

// A layout that knows some of the joints, with gains of its own: the others have the robot's.
TEST_F(ClosedLoopTest, JointsTheLayoutDoesNotNameHaveTheRobotsGains) {
  StandPolicy stand = DesignStandPolicy(robot_);
  // everything but the wrists, which the regulator hardly needs
  std::vector<std::string> joints;
  std::vector<double> pose;
  for (int i = 0; i < robot_.num_joints(); ++i) {
    const std::string& name = robot_.spec().joints[i];
    if (name.find("wrist") != std::string::npos) continue;
    joints.push_back(name);
    pose.push_back(robot_.spec().StandingPose().q[i]);
  }
  ASSERT_LT(static_cast<int>(joints.size()), robot_.num_joints());
  ObservationLayout layout;
  layout.name = "some";
  layout.control_dt = stand.layout.control_dt;
  layout.joints = layout.action.joints = joints;
  layout.default_pose = pose;
  layout.kp.assign(joints.size(), 77);
  layout.kd.assign(joints.size(), 3);
  ObservationTerm term;
  term.name = "q";
  term.source = TermSource::kJointPos;
  layout.terms = {term};
  const int n = static_cast<int>(joints.size());
  MlpNetwork network;
  network.inputs = n;
  network.branches = {{{.inputs = n,
                        .outputs = n,
                        .weight = std::vector<float>(static_cast<std::size_t>(n) * n, 0.0f),
                        .bias = std::vector<float>(n, 0.0f)}}};
  const Policy policy(std::make_shared<const Graph>(MlpGraph(network, "obs", "actions")),
                      layout,
                      {robot_.spec().joints, robot_.spec().StandingPose().q});
  const Servo servo = ServoFor(robot_, policy, "");
  for (int i = 0; i < robot_.num_joints(); ++i) {
    const bool wrist = robot_.spec().joints[i].find("wrist") != std::string::npos;
    EXPECT_EQ(servo.kp[i], wrist ? robot_.spec().Gains().kp[i] : 77) << robot_.spec().joints[i];
    EXPECT_EQ(servo.kd[i], wrist ? robot_.spec().Gains().kd[i] : 3) << robot_.spec().joints[i];
  }
  ClosedLoop loop = MakeLoop(robot_, policy);
  EXPECT_EQ(loop.Step(), LoopStatus::kRunning);
  EXPECT_TRUE(loop.tau().allFinite());
}

TEST_F(ClosedLoopTest, TheLayoutsEffortLimitHoldsWhereItIsLess) {
  StandPolicy stand = DesignStandPolicy(robot_);
  stand.layout.effort_limit.assign(stand.layout.joints.size(), 5);
  const Policy weak(std::make_shared<const Graph>(MlpGraph(stand.network, "obs", "actions")),
                    stand.layout,
                    {robot_.spec().joints, robot_.spec().StandingPose().q});
  ClosedLoop loop = MakeLoop(robot_, weak);
  LoopStatus status = LoopStatus::kRunning;
  for (int step = 0; step < 250 && status == LoopStatus::kRunning; ++step) {
    status = loop.Step();
    EXPECT_LE(loop.tau().cwiseAbs().maxCoeff(), 5);
  }
  EXPECT_EQ(status, LoopStatus::kFallen) << "5 N·m carry no G1";
}

}  // namespace
}  // namespace silc
