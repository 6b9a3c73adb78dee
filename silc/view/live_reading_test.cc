// SPDX-License-Identifier: Apache-2.0
#include "silc/view/live_reading.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "silc/base/test_paths.h"
#include "silc/observe/load_policy.h"
#include "silc/observe/observation.h"
#include "silc/observe/shake.h"
#include "silc/robot/geometric_stiffness.h"
#include "silc/robot/kinematics.h"
#include "silc/stiffness/joint_stiffness.h"
#include "silc/stiffness/task_stiffness.h"
#include "silc/view/live_observer.h"
#include "silc/view/test_policies.h"

namespace silc {
namespace {

class LiveReadingTest : public ::testing::Test {
 protected:
  explicit LiveReadingTest(
      const std::string& policy = SourcePath("policies/g1_loco_silc_compliance.onnx"))
      : robot_(MakeRobot()), policy_(LoadPolicy(policy, "", robot_)) {}

  static RobotModel MakeRobot() {
    LoadOptions firm;
    firm.firm_contacts = true;
    return RobotModel::Load("g1", firm);
  }
  // standing, settled, asked and not yet moved on
  ClosedLoop Settled() {
    LoopOptions options;
    options.servo = ServoFor(robot_, policy_, "");
    ClosedLoop loop(robot_, policy_, options);
    for (int step = 0; step < 200; ++step) EXPECT_EQ(loop.Step(), LoopStatus::kRunning);
    EXPECT_EQ(loop.Decide(), LoopStatus::kRunning);
    return loop;
  }
  LiveReading Read(ClosedLoop* loop, const std::optional<HeldPoint>& held = {}) {
    auto setup = std::make_shared<ReadingSetup>();
    setup->number = 3;
    setup->servo = loop->options().servo;
    setup->budget = ReadBudget("compliance").spec;
    ObservedState state;
    CopyMoment(loop, ContactMode::kDoubleSupport, setup, held, &state);
    return LiveReader(robot_, setup).Read(&state);
  }

  RobotModel robot_;
  Policy policy_;
};

// The viewer's numbers are those of `silc observe`, found by its code along another way.
TEST_F(LiveReadingTest, SaysWhatObserveSays) {
  ClosedLoop loop = Settled();
  const LiveReading reading = Read(&loop);
  ObservationOptions options;
  options.budget = ReadBudget("compliance");
  options.random_directions = 0;
  MomentObserver observer(robot_, loop.options().servo, {loop.period(), 0}, options);
  const Moment moment =
      observer.Observe(&loop.policy(), loop.data(), ContactMode::kDoubleSupport, loop.time());
  ASSERT_EQ(moment.reading.quasi_static.status, StiffnessStatus::kOk);
  EXPECT_NEAR(reading.view.sigma, moment.reading.quasi_static.sigma, 1e-9);
  EXPECT_NEAR(reading.view.worst, moment.reading.quasi_static.worst, 1e-9);
  // one is exact, the other may be Arnoldi's estimate
  EXPECT_NEAR(reading.view.loop_radius, moment.reading.loop.rho, 0.02);
  EXPECT_EQ(reading.setup, 3u);
}

// What a lasting force finds is (S3) with every channel followed, whatever the budget holds, and
// the weight's stiffness beside it: put together here without an observer.
TEST_F(LiveReadingTest, TheFeltEllipsoidIsOfEveryChannelFollowed) {
  ClosedLoop loop = Settled();
  const LiveReading reading = Read(&loop);
  PolicyJacobians policy;
  ASSERT_EQ(loop.policy().Jacobians(&policy), PolicyStatus::kOk);
  BodyJacobians body;
  ComputeBodyJacobians(robot_, loop.data(), &body);
  ContactKinematics contact;
  ASSERT_EQ(ComputeContactKinematics(body, ContactMode::kDoubleSupport, nullptr, &contact),
            StiffnessStatus::kOk);
  PolicySums sums;
  SumPolicy(policy, robot_.num_joints(), &sums);
  ASSERT_TRUE(sums.sees_gravity);
  StaticStiffness felt;
  ASSERT_EQ(SolveQuasiStatic(loop.options().servo, sums, {.torque = true, .E = &contact.E}, &felt),
            StiffnessStatus::kOk);
  JointMatrix H;
  ASSERT_EQ(ComputeGeometricStiffness(robot_, *loop.data(), loop.tau(), contact, &H),
            StiffnessStatus::kOk);
  const ConstMatrix N(contact.N), added(H);
  const Jacobian3* const J[] = {
      &contact.com, &contact.hand_in_world[kLeft], &contact.hand_in_world[kRight]};
  for (int p = 0; p < 3; ++p) {
    TaskStiffness task;
    ASSERT_EQ(ComputeTaskStiffness(*J[p], felt.K, &N, &added, &task), StiffnessStatus::kOk);
    EXPECT_TRUE(reading.points[p].C_felt.isApprox(task.C_x, 1e-9)) << p;
  }
}

// (S6) is exact at the points it names: J M⁻¹ Jᵀ = K_x⁻¹.
TEST_F(LiveReadingTest, TheBudgetsEllipsoidIsTheBudgets) {
  ClosedLoop loop = Settled();
  const LiveReading reading = Read(&loop);
  const Eigen::Vector3d com = ReadBudget("compliance").spec.com.value();
  const Eigen::Matrix3d expected = com.cwiseInverse().asDiagonal();
  EXPECT_TRUE(reading.points[0].C_budget.isApprox(expected, 1e-9)) << reading.points[0].C_budget;
}

// A regulator, which comes to rest under any steady pull; a trained policy need not.
class RegulatorReadingTest : public LiveReadingTest {
 protected:
  RegulatorReadingTest() : LiveReadingTest(Written()) {}
  static std::string Written() {
    std::string file = ::testing::TempDir() + "silc_live_reading_regulator.onnx";
    WriteCommandedPolicy(file);
    return file;
  }
};

// What is drawn at the hand is what a push measures there.
TEST_F(RegulatorReadingTest, TheFeltEllipsoidIsWhatAShakeFinds) {
  ClosedLoop loop = Settled();
  const LiveReading reading = Read(&loop);
  LoopOptions options;
  options.servo = loop.options().servo;
  ShakeOptions shake;
  shake.forces = {2};  // some 3 cm: geometry bends what is linear by a few percent
  const ShakeResult result = Shake(ClosedLoop(robot_, policy_, options), shake);
  const Eigen::Matrix3d measured = result.levels[0].Compliance();
  const double error = (reading.points[1].C_felt - measured).norm() / measured.norm();
  EXPECT_LT(error, 0.1) << reading.points[1].C_felt << "\nmeasured\n" << measured;
}

// A point that is held is observed as the hand is when it is the hand.
TEST_F(LiveReadingTest, AHeldPointOnTheHandIsTheHand) {
  ClosedLoop loop = Settled();
  HeldPoint held;
  held.body = robot_.hand_body()[kRight];
  held.p_BP =
      Eigen::Map<const Eigen::Vector3d>(robot_.model()->site_pos + 3 * robot_.hand_site()[kRight]);
  const LiveReading reading = Read(&loop, held);
  EXPECT_TRUE(reading.points[kHeldPoint].C_felt.isApprox(reading.points[2].C_felt, 1e-6));
  EXPECT_TRUE(reading.points[kHeldPoint].C_budget.isApprox(reading.points[2].C_budget, 1e-6));
  EXPECT_NEAR(reading.points[kHeldPoint].worst, reading.points[2].worst, 1e-6);
  // and nothing is said of it while nothing is held
  EXPECT_FALSE(Read(&loop).points[kHeldPoint].C_felt.allFinite());
}

class UnstableReadingTest : public LiveReadingTest {
 protected:
  UnstableReadingTest() : LiveReadingTest(Written()) {}
  static std::string Written() {
    std::string file = ::testing::TempDir() + "silc_live_reading_unstable.onnx";
    WriteUnstablePolicy(file);
    return file;
  }
};

// (S3) is what the action loop settles at: where that loop is unstable nothing is said of what a
// lasting force would move, at the hands or at a point that is held.
TEST_F(UnstableReadingTest, AnUnstableActionLoopFeelsLikeNothingKnown) {
  ClosedLoop loop = Settled();
  HeldPoint held;
  held.body = robot_.hand_body()[kLeft];
  const LiveReading reading = Read(&loop, held);
  // by its making; Arnoldi's estimate
  EXPECT_NEAR(reading.view.loop_radius, 1.1, 0.02);
  ASSERT_EQ(reading.view.status, static_cast<int>(StiffnessStatus::kUnstableActionLoop));
  for (const PointView& point : reading.points) {
    EXPECT_TRUE(point.C_felt.array().isNaN().all()) << point.C_felt;
    EXPECT_TRUE(std::isnan(point.worst));
    EXPECT_TRUE(point.C_budget.allFinite()) << "the budget is known all the same";
  }
}

TEST_F(LiveReadingTest, TheThreadObservesTheNewestState) {
  ClosedLoop loop = Settled();
  auto setup = std::make_shared<ReadingSetup>();
  setup->number = 8;
  setup->servo = loop.options().servo;
  setup->budget = ReadBudget("compliance").spec;
  LiveObserver observer(robot_, 1);
  double last = 0;
  for (int step = 0; step < 50; ++step) {
    last = loop.time();
    observer.Offer(0, &loop, ContactMode::kDoubleSupport, setup, {});
    loop.Advance();
    loop.Decide();
  }
  std::optional<LiveReading> latest;
  for (int wait = 0; wait < 1000 && !(latest && latest->time == last); ++wait) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    latest = observer.Latest(0, 8);
  }
  ASSERT_TRUE(latest);
  EXPECT_EQ(latest->time, last) << "the last offered is observed, whatever was skipped";
  EXPECT_FALSE(observer.Latest(0, 9)) << "a reading under another budget is not shown";
  EXPECT_GE(observer.count(), 1u);
  EXPECT_LE(observer.count(), 50u);
}

}  // namespace
}  // namespace silc
