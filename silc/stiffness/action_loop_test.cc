// SPDX-License-Identifier: Apache-2.0
#include "silc/stiffness/action_loop.h"

#include <gtest/gtest.h>

#include <limits>

#include "silc/stiffness/test_support.h"

namespace silc {
namespace {

using namespace test::eager;
using test::MatrixXd;
using test::VectorXd;

// The largest of the moduli, by running the recursion itself: growth per step once the start is
// forgotten. Slow modes of nearly equal size leave a beat, hence the average over many steps.
double SimulatedRadius(const std::vector<MatrixXd>& A, Rng* rng) {
  const int n = static_cast<int>(A[0].rows());
  std::vector<VectorXd> history;
  for (std::size_t i = 0; i < A.size(); ++i) history.push_back(test::RandomMatrix(n, 1, rng));
  constexpr int kForget = 3000, kCount = 3000;
  double growth = 0;
  for (int t = 0; t < kForget + kCount; ++t) {
    VectorXd next = VectorXd::Zero(n);
    for (std::size_t i = 0; i < A.size(); ++i) next += A[i] * history[i];
    history.insert(history.begin(), next);
    history.pop_back();
    double norm = 0;
    for (const VectorXd& a : history) norm += a.squaredNorm();
    norm = std::sqrt(norm);
    for (VectorXd& a : history) a /= norm;
    if (t >= kForget) growth += std::log(norm) / kCount;
  }
  return std::exp(growth);
}

TEST(ActionLoop, ExactRadiusIsTheGrowthOfTheRecursion) {
  Rng rng(11);
  for (int trial = 0; trial < 6; ++trial) {
    const int n = 4, frames = 1 + trial % 3;
    PolicyJacobians policy;
    for (int i = 0; i < frames; ++i) policy.J_a.push_back(test::RandomMatrix(n, n, &rng, 0.35));
    ActionLoop loop(n, frames);
    const ActionLoopRadius radius = loop.Exact(test::RandomServo(n, &rng), policy, true);
    EXPECT_EQ(radius.method, ActionLoopMethod::kExact);
    // the beat of a complex pair over 3000 steps is worth about 1/3000
    EXPECT_NEAR(radius.rho, SimulatedRadius(policy.J_a, &rng), 2e-3) << "trial " << trial;
    EXPECT_EQ(radius.status == StiffnessStatus::kOk, radius.rho < 1);
  }
}

// What the policy sees as torque is made by its last action: that is feedback of the action too.
TEST(ActionLoop, TorqueClosesTheLoopAsWell) {
  Servo servo;
  servo.kp.setConstant(1, 100);
  servo.alpha.setConstant(1, 0.25);
  PolicyJacobians policy;
  policy.J_a = {MatrixXd::Constant(1, 1, 0.3)};
  policy.J_tau = {MatrixXd::Constant(1, 1, 0.01)};
  ActionLoop loop(1, 1);
  EXPECT_NEAR(loop.Exact(servo, policy, true).rho, 0.3 + 0.01 * 25, 1e-12);
  EXPECT_NEAR(loop.Exact(servo, policy, false).rho, 0.3, 1e-12);
  policy.J_tau = {MatrixXd::Constant(1, 1, 0.03)};
  EXPECT_EQ(loop.Exact(servo, policy, true).status, StiffnessStatus::kUnstableActionLoop);
}

// Fast() and Exact() on one loop; counts by which way Fast() went.
struct Tally {
  int bound = 0, arnoldi = 0, schur = 0, unstable = 0;

  void Compare(const std::vector<MatrixXd>& A, ActionLoop* loop, const std::string& what) {
    Rng rng(1);
    PolicyJacobians policy;
    policy.J_a = A;
    const Servo servo = test::RandomServo(static_cast<int>(A[0].rows()), &rng);
    const ActionLoopRadius exact = loop->Exact(servo, policy, true),
                           fast = loop->Fast(servo, policy, true);
    EXPECT_EQ(fast.status, exact.status) << what << " rho " << exact.rho << " said " << fast.rho;
    switch (fast.method) {
      case ActionLoopMethod::kBound:
        ++bound;
        EXPECT_GE(fast.rho, exact.rho * (1 - 1e-12));
        EXPECT_LT(fast.rho, 1);
        break;
      case ActionLoopMethod::kArnoldi:
        ++arnoldi;
        // of an unstable loop some mode outside is told, the largest or not
        EXPECT_LT(fast.rho, exact.rho + 0.5 * std::abs(1 - exact.rho));
        if (exact.rho < 1) {
          EXPECT_GT(fast.rho, exact.rho - 0.5 * (1 - exact.rho));
        }
        break;
      case ActionLoopMethod::kExact:
        ++schur;
        EXPECT_EQ(fast.rho, exact.rho);
        break;
      case ActionLoopMethod::kNone:
        FAIL();
    }
    unstable += exact.status == StiffnessStatus::kUnstableActionLoop;
  }
};

TEST(ActionLoop, FastNeverDisagreesWithExact) {
  Rng rng(5);
  Tally tally;
  ActionLoop loop(6, 3);
  for (int trial = 0; trial < 200; ++trial) {
    const double gain = rng.Uniform(0.02, 0.5);
    std::vector<MatrixXd> A;
    for (int i = 0; i < 3; ++i) A.push_back(test::RandomMatrix(6, 6, &rng, gain));
    tally.Compare(A, &loop, "trial " + std::to_string(trial));
  }
  // both ways were taken, or this test shows less than it says
  EXPECT_GT(tally.bound, 5);
  EXPECT_GT(tally.arnoldi, 50);
  EXPECT_GT(tally.unstable, 20);
}

// What trained policies look like: several modes crowded just inside the circle at z = 1, a wide
// field of others well inside, and anywhere on the circle, now and then, one that has got out. The
// crowd must hide neither that one nor a member of its own.
TEST(ActionLoop, FastSeesPastACrowdOfSlowModes) {
  Rng rng(12);
  const int n = 29, frames = 5;
  Tally tally;
  ActionLoop loop(n, frames);
  for (int trial = 0; trial < 60; ++trial) {
    std::vector<MatrixXd> A;
    for (int i = 0; i < frames; ++i) A.push_back(test::RandomMatrix(n, n, &rng, 0.02));
    // slow modes: gains near one spread over the frames, along a basis that is not orthogonal
    const MatrixXd V = MatrixXd::Identity(n, n) + test::RandomMatrix(n, n, &rng, 0.05);
    VectorXd gain = VectorXd::LinSpaced(n, 0.6, -0.4);
    const double slowest = std::pow(10, rng.Uniform(-3.5, -1.5));  // distance from the circle
    for (int k = 0; k < 4; ++k) gain[k] = 1 - slowest * (1 + 2 * k);
    const MatrixXd slow = V * gain.asDiagonal() * test::Inverse(V);
    A[0] += 0.7 * slow;
    A[1] += 0.3 * slow;
    // one more, of any delay and sign: on the circle at any angle, or not
    const VectorXd mode = test::RandomMatrix(n, 1, &rng).normalized();
    A[trial % frames] += rng.Uniform(-1.2, 0.6) * mode * mode.transpose();
    tally.Compare(A, &loop, "trial " + std::to_string(trial));
  }
  EXPECT_GT(tally.arnoldi, 20);
  EXPECT_GT(tally.schur, 0);  // a mode too near to the circle for an estimate
  EXPECT_GT(tally.unstable, 10);
  EXPECT_LT(tally.unstable, 55);
}

// What policies trained to keep ‖Σ A_i‖ under one look like (measured on a shipped one): that norm
// is below one, the norm elsewhere on the circle is well above it, and the slowest mode, 0.96,
// turns by half a radian a step. No norm says stable, the crowd at z = 1 is not what matters, and
// an answer is wanted without the Schur decomposition all the same.
TEST(ActionLoop, FastDecidesWhereTheSlowestModeTurns) {
  Rng rng(21);
  const int n = 29, frames = 5;
  Tally tally;
  ActionLoop loop(n, frames);
  for (int trial = 0; trial < 40; ++trial) {
    // each action its own recursion, by the roots of its polynomial, in a basis that is not
    // orthogonal
    std::vector<VectorXd> gain(frames, VectorXd::Zero(n));
    for (int k = 0; k < n; ++k) {
      VectorXd polynomial = VectorXd::Unit(frames + 1, 0);
      const auto times = [&](double b, double c) {  // z² + b z + c
        const VectorXd before = polynomial;
        polynomial.tail(frames) += b * before.head(frames);
        polynomial.tail(frames - 1) += c * before.head(frames - 1);
      };
      const auto pair = [&](double modulus, double angle) {
        times(-2 * modulus * std::cos(angle), modulus * modulus);
      };
      const double slowest = trial % 4 == 3 ? 1.02 : rng.Uniform(0.93, 0.975);
      if (k == 0) {
        pair(slowest, rng.Uniform(0.4, 0.5));
      } else if (k < 4) {
        times(-rng.Uniform(0.87, 0.92), 0);
      } else {
        // more of them at the same side of the circle, and a ring all around
        const bool near = k < 12;
        pair(near ? rng.Uniform(0.84, 0.9) : rng.Uniform(0.7, 0.82),
             near ? rng.Uniform(0.4, 0.8) : rng.Uniform(0.3, 3));
      }
      pair(rng.Uniform(0.2, 0.6), rng.Uniform(0, 3));
      for (int i = 0; i < frames; ++i) gain[i][k] = -polynomial[i + 1];
    }
    const MatrixXd V = MatrixXd::Identity(n, n) + test::RandomMatrix(n, n, &rng, 0.1);
    std::vector<MatrixXd> A;
    for (int i = 0; i < frames; ++i) A.push_back(V * gain[i].asDiagonal() * V.inverse());
    tally.Compare(A, &loop, "trial " + std::to_string(trial));
  }
  EXPECT_EQ(tally.bound, 0);
  EXPECT_EQ(tally.unstable, 10);
  EXPECT_LE(tally.schur, 8);  // of 40
}

// What was asked before does not matter: the same loop gets the same answer, bit for bit.
TEST(ActionLoop, FastHasNoMemory) {
  Rng rng(8);
  const int n = 29, frames = 5;
  const Servo servo = test::RandomServo(n, &rng);
  ActionLoop used(n, frames), fresh(n, frames);
  PolicyJacobians policy;
  for (int i = 0; i < frames; ++i) policy.J_a.push_back(test::RandomMatrix(n, n, &rng, 0.01));
  policy.J_a[0].diagonal().setLinSpaced(0.9, -0.5);
  for (int step = 0; step < 20; ++step) {
    EXPECT_EQ(used.Fast(servo, policy, true).status, StiffnessStatus::kOk);
  }
  const VectorXd mode = test::RandomMatrix(n, 1, &rng).normalized();
  policy.J_a[0] += 1.1 * mode * mode.transpose();
  EXPECT_EQ(used.Exact(servo, policy, true).status, StiffnessStatus::kUnstableActionLoop);
  const ActionLoopRadius after = used.Fast(servo, policy, true);
  EXPECT_EQ(after.status, StiffnessStatus::kUnstableActionLoop);
  EXPECT_EQ(after.rho, fresh.Fast(servo, policy, true).rho);
}

TEST(ActionLoop, AnIntegratorIsNotStable) {
  PolicyJacobians policy;
  policy.J_a = {MatrixXd::Identity(3, 3)};
  Rng rng(1);
  ActionLoop loop(3, 1);
  const Servo servo = test::RandomServo(3, &rng);
  EXPECT_EQ(loop.Exact(servo, policy, true).status, StiffnessStatus::kUnstableActionLoop);
  EXPECT_EQ(loop.Fast(servo, policy, true).status, StiffnessStatus::kUnstableActionLoop);
}

TEST(ActionLoop, NoPreviousActionsMeansNoLoop) {
  Rng rng(1);
  ActionLoop loop(3, 1);
  const ActionLoopRadius radius = loop.Fast(test::RandomServo(3, &rng), {}, true);
  EXPECT_EQ(radius.status, StiffnessStatus::kOk);
  EXPECT_EQ(radius.method, ActionLoopMethod::kNone);
}

// A thousand frames of 29 joints would be matrices of 29,000 rows.
TEST(ActionLoop, AHistoryWithoutEndIsNotJudged) {
  constexpr int kJoints = 29;
  Rng rng(5);
  const Servo servo = test::RandomServo(kJoints, &rng);
  PolicyJacobians policy;
  policy.J_a.assign(1000, MatrixXd::Identity(kJoints, kJoints) * 1e-3);
  for (const int frames : {5, 1000}) {
    ActionLoop loop(kJoints, frames);
    for (const ActionLoopRadius& radius :
         {loop.Exact(servo, policy, true), loop.Fast(servo, policy, true)}) {
      EXPECT_EQ(radius.status, StiffnessStatus::kLongActionLoop);
      EXPECT_TRUE(std::isnan(radius.rho));
    }
  }
  // what the policy sees of its torques counts as well, where they are followed
  std::swap(policy.J_a, policy.J_tau);
  ActionLoop loop(kJoints, 1);
  EXPECT_EQ(loop.Fast(servo, policy, true).status, StiffnessStatus::kLongActionLoop);
  EXPECT_EQ(loop.Fast(servo, policy, false).method, ActionLoopMethod::kNone);
  // the policies there are have ten frames at most
  EXPECT_GE(kMaxActionLoop, 10 * kMaxDofs);
}

TEST(ActionLoop, NanIsToldAndALongerHistoryIsTaken) {
  Rng rng(1);
  ActionLoop loop(3, 1);
  const Servo servo = test::RandomServo(3, &rng);
  PolicyJacobians policy = test::RandomPolicy(3, 4, &rng);
  EXPECT_EQ(loop.Fast(servo, policy, true).status, StiffnessStatus::kOk);
  policy.J_a[3](1, 1) = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(loop.Fast(servo, policy, true).status, StiffnessStatus::kNotFinite);
  EXPECT_EQ(loop.Exact(servo, policy, true).status, StiffnessStatus::kNotFinite);
}

}  // namespace
}  // namespace silc
