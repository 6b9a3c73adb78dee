// SPDX-License-Identifier: Apache-2.0
#include "silc/stiffness/joint_stiffness.h"

#include <gtest/gtest.h>

#include <deque>
#include <limits>

#include "silc/stiffness/test_support.h"

namespace silc {
namespace {

using namespace test::eager;
using test::MatrixXd;
using test::VectorXd;

// The linear policy itself, step by step, with its history; the reference for (S2) and (S3). It
// knows the definition of PolicyJacobians and the servo (S1), and no stiffness.
class LinearLoop {
 public:
  LinearLoop(const Servo& servo, const PolicyJacobians& policy, const MatrixXd& E)
      : servo_(servo), policy_(policy), E_(E), n_(servo.nv()) {
    const int depth = static_cast<int>(
        std::max({policy.J_q.size(), policy.J_a.size(), policy.J_tau.size(), policy.J_g.size()}));
    q_.assign(depth, VectorXd::Zero(n_));
    tau_.assign(depth, VectorXd::Zero(n_));
    a_.assign(depth, VectorXd::Zero(n_));
  }

  /// One control step at rest in q: returns the torque after it.
  VectorXd Step(const VectorXd& q) {
    // what the motors do at the moment of observing: the new position, the old target
    Push(q, &q_);
    Push(Torque(a_.front(), q), &tau_);
    VectorXd a = VectorXd::Zero(n_);
    for (std::size_t i = 0; i < policy_.J_q.size(); ++i) a += policy_.J_q[i] * q_[i];
    for (std::size_t i = 0; i < policy_.J_a.size(); ++i) a += policy_.J_a[i] * a_[i];
    for (std::size_t i = 0; i < policy_.J_tau.size(); ++i) a += policy_.J_tau[i] * tau_[i];
    for (std::size_t i = 0; i < policy_.J_g.size(); ++i) a += policy_.J_g[i] * (E_ * q_[i]);
    Push(a, &a_);
    return Torque(a, q);
  }

 private:
  static void Push(const VectorXd& x, std::deque<VectorXd>* history) {
    history->push_front(x);
    history->pop_back();
  }
  VectorXd Torque(const VectorXd& a, const VectorXd& q) const {
    return servo_.kp.cwiseProduct(VectorXd(servo_.alpha.cwiseProduct(a)) - q);
  }

  const Servo& servo_;
  const PolicyJacobians& policy_;
  MatrixXd E_;
  int n_;
  std::deque<VectorXd> q_, tau_, a_;
};

// −∂τ/∂q after `steps` steps of standing in a joint moved by one
MatrixXd SimulatedStiffness(const Servo& servo,
                            const PolicyJacobians& policy,
                            const MatrixXd& E,
                            int steps) {
  const int n = servo.nv();
  MatrixXd K(n, n);
  for (int j = 0; j < n; ++j) {
    LinearLoop loop(servo, policy, E);
    for (int t = 0; t < steps; ++t) K.col(j) = -loop.Step(VectorXd::Unit(n, j));
  }
  return K;
}

// (S2): the first torque after the joints jump.
TEST(OneStepStiffness, IsTheTorqueOneStepAfterTheJump) {
  Rng rng(1);
  for (int trial = 0; trial < 10; ++trial) {
    const Servo servo = test::RandomServo(7, &rng);
    const PolicyJacobians policy = test::RandomPolicy(7, 5, &rng);
    JointMatrix K_1;
    ASSERT_EQ(OneStepStiffness(servo, policy.J_q[0], &K_1), StiffnessStatus::kOk);
    const MatrixXd reference = SimulatedStiffness(servo, policy, MatrixXd::Zero(3, 7), 1);
    EXPECT_TRUE(reference.isApprox(MatrixXd(K_1), 1e-13));
  }
}

// (S3): the torque once everything that follows the joints has settled. C11 with and without
// torque, and the gravity channel. The loop's modes decay at least as fast as 0.6 per step by
// construction, so that after 200 steps nothing is left but rounding.
TEST(QuasiStaticStiffness, IsTheTorqueOnceTheLoopHasSettled) {
  Rng rng(2);
  for (int trial = 0; trial < 24; ++trial) {
    const bool torque = trial % 2 == 1, base = trial % 3 == 2;
    const Servo servo = test::RandomServo(7, &rng);
    const PolicyJacobians policy = test::RandomPolicy(7, 1 + trial % 5, &rng, torque, base);
    const Jacobian3 E = test::RandomMatrix(3, 7, &rng);
    StaticChannels channels;
    if (base) channels.E = &E;
    StaticStiffness result;
    ActionLoopRadius radius;
    ASSERT_EQ(test::QuasiStaticStiffness(servo, policy, channels, &result, &radius),
              StiffnessStatus::kOk);
    ASSERT_LT(radius.rho, 0.9);
    const MatrixXd reference = SimulatedStiffness(servo, policy, E, 400);
    EXPECT_TRUE(reference.isApprox(MatrixXd(result.K), 1e-11)) << "trial " << trial;
  }
}

// The latest frame is not the static answer: on the same policies (S2) is far off.
TEST(QuasiStaticStiffness, DiffersFromTheLatestFrame) {
  Rng rng(3);
  const Servo servo = test::RandomServo(7, &rng);
  const PolicyJacobians policy = test::RandomPolicy(7, 5, &rng);
  JointMatrix K_1;
  StaticStiffness result;
  ASSERT_EQ(OneStepStiffness(servo, policy.J_q[0], &K_1), StiffnessStatus::kOk);
  ASSERT_EQ(test::QuasiStaticStiffness(servo, policy, {}, &result), StiffnessStatus::kOk);
  EXPECT_GT((K_1 - result.K).norm() / result.K.norm(), 0.1);
}

PolicyJacobians ScalarPolicy(const std::vector<double>& J_q, const std::vector<double>& J_a) {
  PolicyJacobians policy;
  for (double j : J_q) policy.J_q.push_back(MatrixXd::Constant(1, 1, j));
  for (double j : J_a) policy.J_a.push_back(MatrixXd::Constant(1, 1, j));
  return policy;
}

// One joint, Kp = 100, α = 0.25, worked by hand. The last one passes any latest-frame budget and is
// as stiff as the servo: two frames that take a difference.
TEST(QuasiStaticStiffness, OneJointByHand) {
  Servo servo;
  servo.kp.setConstant(1, 100);
  servo.alpha.setConstant(1, 0.25);
  const auto stiffness = [&](const PolicyJacobians& policy) {
    JointMatrix K_1;
    StaticStiffness result;
    EXPECT_EQ(OneStepStiffness(servo, policy.J_q[0], &K_1), StiffnessStatus::kOk);
    EXPECT_EQ(test::QuasiStaticStiffness(servo, policy, {}, &result), StiffnessStatus::kOk);
    return std::pair(K_1(0, 0), result.K(0, 0));
  };
  const auto pair_near = [](std::pair<double, double> got, double K_1, double K_s) {
    EXPECT_NEAR(got.first, K_1, 1e-12);
    EXPECT_NEAR(got.second, K_s, 1e-12);
  };
  pair_near(stiffness(ScalarPolicy({2}, {-0.999999})), 50, 100 * (1 - 0.5 / 1.999999));
  pair_near(stiffness(ScalarPolicy({2}, {-0.5})), 50, 100 * (1 - 0.5 / 1.5));
  pair_near(stiffness(ScalarPolicy({2}, {0.5})), 50, 0);
  pair_near(stiffness(ScalarPolicy({3.6, -3.6}, {})), 10, 100);
}

// A policy that adds up its own actions has no static answer; one that oscillates ever wider has
// none either, although the formula would give a number. (J_a = −1 is the border: 75 by the
// formula.)
TEST(QuasiStaticStiffness, IntegratorsAndUnstableLoopsAreTold) {
  Servo servo;
  servo.kp.setConstant(1, 100);
  servo.alpha.setConstant(1, 0.25);
  StaticStiffness result;
  EXPECT_EQ(test::QuasiStaticStiffness(servo, ScalarPolicy({2}, {1}), {}, &result),
            StiffnessStatus::kSingularActionLoop);
  EXPECT_EQ(test::QuasiStaticStiffness(servo, ScalarPolicy({2}, {0.5, 0.5}), {}, &result),
            StiffnessStatus::kSingularActionLoop);
  EXPECT_EQ(test::QuasiStaticStiffness(servo, ScalarPolicy({2}, {-1}), {}, &result),
            StiffnessStatus::kUnstableActionLoop);
  EXPECT_EQ(test::QuasiStaticStiffness(servo, ScalarPolicy({2}, {-1.5}), {}, &result),
            StiffnessStatus::kUnstableActionLoop);
  EXPECT_EQ(test::QuasiStaticStiffness(servo, ScalarPolicy({2}, {1.5}), {}, &result),
            StiffnessStatus::kUnstableActionLoop);
}

TEST(QuasiStaticStiffness, ConditionOfTheLoopIsReported) {
  Servo servo;
  servo.kp.setConstant(2, 100);
  servo.alpha.setConstant(2, 0.25);
  PolicyJacobians policy;
  policy.J_q = {MatrixXd::Zero(2, 2)};
  policy.J_a = {MatrixXd(Eigen::Vector2d(0.99, 0).asDiagonal())};
  StaticStiffness result;
  ASSERT_EQ(test::QuasiStaticStiffness(servo, policy, {}, &result), StiffnessStatus::kOk);
  EXPECT_NEAR(result.loop_condition, 100, 1e-9);
}

TEST(JointStiffness, NanIsToldWhereverItHides) {
  Rng rng(4);
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const Servo servo = test::RandomServo(4, &rng);
  const Jacobian3 E = test::RandomMatrix(3, 4, &rng);
  StaticChannels channels;
  channels.E = &E;
  const PolicyJacobians good = test::RandomPolicy(4, 2, &rng, true, true);
  StaticStiffness result;
  ASSERT_EQ(test::QuasiStaticStiffness(servo, good, channels, &result), StiffnessStatus::kOk);
  for (auto list : {&PolicyJacobians::J_q,
                    &PolicyJacobians::J_a,
                    &PolicyJacobians::J_tau,
                    &PolicyJacobians::J_g}) {
    PolicyJacobians bad = good;
    (bad.*list)[1](2, 1) = nan;
    EXPECT_EQ(test::QuasiStaticStiffness(servo, bad, channels, &result),
              StiffnessStatus::kNotFinite);
  }
  JointMatrix K_1;
  MatrixXd J_q = good.J_q[0];
  J_q(0, 0) = std::numeric_limits<double>::infinity();
  EXPECT_EQ(OneStepStiffness(servo, J_q, &K_1), StiffnessStatus::kNotFinite);
}

}  // namespace
}  // namespace silc
