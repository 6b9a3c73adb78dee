// SPDX-License-Identifier: Apache-2.0
#include "silc/learn/penalty.h"

#include <gtest/gtest.h>

#include <cmath>

#include "silc/learn/test_penalty.h"
#include "silc/stiffness/row_rank.h"

namespace silc::penalty_test {
namespace {

// (S6): the factors are the reduced budget of silc/stiffness, in every contact mode and
// weight, whichever points are named.
TEST(BudgetFactors, AreTheReducedBudgetPulledBackToTheJoints) {
  for (int trial = 0; trial < 16; ++trial) {
    const int named = trial / 2;  // bits: centre of mass, left hand, right hand
    World world(trial % 2 == 0 ? NullWeight::kIdentity : NullWeight::kServo);
    BudgetSpec spec = world.spec;
    spec.hand[0] = Eigen::Vector3d(1000, 900, 800);
    if (!(named & 1)) spec.com.reset();
    if (!(named & 2)) spec.hand[0].reset();
    if (!(named & 4)) spec.hand[1].reset();
    const BudgetFactors budget =
        MakeBudgetFactors(spec, world.input.servo.kp, world.batch, at::kDouble);
    for (int i = 0; i < kBatch; ++i) {
      SCOPED_TRACE(testing::Message() << "trial " << trial << ", sample " << i);
      ReducedBudget reduced;
      ASSERT_EQ(ComputeReducedBudget(spec, world.servo, world.contact[i], &reduced),
                StiffnessStatus::kOk);
      const bool closed = world.contact[i].closed;
      const MatrixXd N =
          closed ? MatrixXd(world.contact[i].N) : MatrixXd::Identity(kJoints, kJoints);
      const MatrixXd expected = N * test::Inverse(reduced.M) * N.transpose();
      const MatrixXd P = ToEigen(budget.P[i]);
      // Jacobians with a condition of some hundred, squared in both ways
      EXPECT_LT((P * P.transpose() - expected).norm(), 1e-9 * expected.norm());
      const MatrixXd Pi = N * test::Inverse(N.transpose() * N) * N.transpose();
      EXPECT_LT((ToEigen(budget.Pi[i]) - Pi).norm(), 1e-9);
      // the projector on the rows of P: on a closed chain, nothing in the forbidden directions
      const MatrixXd unit = ToEigen(budget.unit[i]);
      EXPECT_LT((P * unit - P).norm(), 1e-9 * P.norm());
      EXPECT_LT((unit * unit - unit).norm() + (unit - unit.transpose()).norm(), 1e-9);
      EXPECT_NEAR(unit.trace(), static_cast<double>(N.cols()), 1e-9);
      EXPECT_TRUE(budget.ok[i].item<bool>());
    }
  }
}

// (B2): with a command per sample the factors are those of each sample's own budget: in every
// contact mode, weight, choice of what is commanded, with and without a floor.
TEST(BudgetFactors, OfACommandAreThoseOfEachSamplesOwnBudget) {
  Rng rng(29);
  for (int trial = 0; trial < 32; ++trial) {
    const int ranges = trial / 4;  // bits: centre of mass, hands, null space
    World world(trial % 2 == 0 ? NullWeight::kIdentity : NullWeight::kServo);
    BudgetSpec spec = world.spec;
    spec.hand[0] = Eigen::Vector3d(1000, 900, 800);
    if (trial % 4 >= 2) spec.hand_floor = Eigen::Vector3d(0.1, 0, 0.75);
    const double null_low = trial % 2 == 0 ? 20 : 0.1;
    if (ranges & 1) spec.command.range[kCommandCom] = {200, 3000};
    if (ranges & 2) spec.command.range[kCommandHands] = {100, 1000};
    if (ranges & 4) spec.command.range[kCommandNull] = {null_low, 15 * null_low};
    const Tensor command = at::zeros({kBatch, kNumCommanded}, at::kDouble);
    for (int i = 0; i < kBatch; ++i) {
      for (int k = 0; k < kNumCommanded; ++k) {
        // a number without a range is not read: rubbish there must not matter
        const auto& range = spec.command.range[k];
        command[i][k] = range ? rng.Uniform(std::log(range->low), std::log(range->high)) : NAN;
      }
    }
    const BudgetFactors budget =
        MakeBudgetFactors(spec, world.input.servo.kp, world.batch, at::kDouble, command);
    for (int i = 0; i < kBatch; ++i) {
      SCOPED_TRACE(testing::Message() << "trial " << trial << ", sample " << i);
      BudgetValues values = {};
      for (int k = 0; k < kNumCommanded; ++k) values[k] = std::exp(command[i][k].item<double>());
      const BudgetSpec own = BudgetAt(spec, values);
      ReducedBudget reduced;
      ASSERT_EQ(ComputeReducedBudget(own, world.servo, world.contact[i], &reduced),
                StiffnessStatus::kOk);
      const ContactKinematics& c = world.contact[i];
      const MatrixXd N = c.closed ? MatrixXd(c.N) : MatrixXd::Identity(kJoints, kJoints);
      // the band's lower end, where there is a floor
      MatrixXd m = MatrixXd::Zero(kJoints, kJoints);
      for (int side = 0; side < 2; ++side) {
        const Eigen::Vector3d k = own.hand_floor.cwiseProduct(*own.hand[side]);
        const MatrixXd J = c.hand_on_base[side];
        m += J.transpose() * k.asDiagonal() * J;
      }
      const MatrixXd M = MatrixXd(reduced.M) - N.transpose() * m * N;
      const MatrixXd expected = N * test::Inverse(M) * N.transpose();
      const MatrixXd P = ToEigen(budget.P[i]);
      EXPECT_LT((P * P.transpose() - expected).norm(), 1e-8 * expected.norm());
      EXPECT_EQ(budget.floor.defined(), own.HasFloor());
      if (own.HasFloor()) {
        EXPECT_LT((ToEigen(budget.floor[i]) - m).norm(), 1e-9 * m.norm());
      }
      EXPECT_TRUE(budget.ok[i].item<bool>());
    }
  }
}

// In flight the centre of mass drops out and nothing of its Jacobian matters; the hands stay.
TEST(BudgetFactors, LeaveTheCentreOfMassOutInFlight) {
  World world;
  const BudgetFactors before =
      MakeBudgetFactors(world.spec, world.input.servo.kp, world.batch, at::kDouble);
  world.batch.com[3].fill_(0);
  const BudgetFactors after =
      MakeBudgetFactors(world.spec, world.input.servo.kp, world.batch, at::kDouble);
  EXPECT_TRUE(after.ok.all().item<bool>());
  EXPECT_TRUE(at::equal(before.P, after.P));
  BudgetSpec posture = world.spec;
  posture.hand[0].reset();
  posture.hand[1].reset();
  const BudgetFactors none =
      MakeBudgetFactors(posture, world.input.servo.kp, world.batch, at::kDouble);
  EXPECT_FALSE(at::allclose(none.P[3], after.P[3]));
}

TEST(BudgetFactors, MarksASampleThatLostRank) {
  World world;
  world.batch.com[1][2].copy_(world.batch.com[1][0]);  // left support: z moves as x does
  const BudgetFactors factors =
      MakeBudgetFactors(world.spec, world.input.servo.kp, world.batch, at::kDouble);
  EXPECT_FALSE(factors.ok[1].item<bool>());
  EXPECT_EQ(factors.ok.sum().item<int>(), kBatch - 1);
  EXPECT_TRUE(at::isfinite(factors.P).all().item<bool>());
}

// The rank rule is that of silc/stiffness, close to its threshold, for the stacked points and for
// the closing constraint, whose rows have different units.
TEST(BudgetFactors, MarkWhatStiffnessCallsDependent) {
  BudgetSpec spec;
  spec.com = Eigen::Vector3d(200, 200, 20000);
  for (const double part :
       {0.5 * kRankTolerance, 0.99 * kRankTolerance, 1.01 * kRankTolerance, 2 * kRankTolerance}) {
    SCOPED_TRACE(part);
    World world;
    // the third row is the first, but for this part
    MatrixXd com = MatrixXd::Identity(3, kJoints);
    com.row(2) = com.row(0) + part * com.row(2);
    world.batch.com[1].copy_(ToTensor(com));
    MatrixXd closing = MatrixXd::Identity(6, kJoints);
    closing.row(5) = 40 * (closing.row(1) + part * closing.row(5));
    world.batch.closing[0].copy_(ToTensor(closing));
    const BudgetFactors factors =
        MakeBudgetFactors(spec, world.input.servo.kp, world.batch, at::kDouble);
    closing.rowwise().normalize();
    BudgetFactor plain;
    const MatrixXd K_x = spec.com->asDiagonal();
    EXPECT_EQ(factors.ok[1].item<bool>(),
              FactorBudget(com, K_x, 50, &plain) == StiffnessStatus::kOk);
    EXPECT_EQ(factors.ok[0].item<bool>(), RowsAreIndependent(closing));
    EXPECT_EQ(factors.ok[1].item<bool>(), part > kRankTolerance);
    EXPECT_EQ(factors.ok[0].item<bool>(), part > kRankTolerance);
  }
}

// The first sample of an episode: nothing is known of its contacts, whatever the budget looks at.
TEST(BudgetFactors, LeavesSamplesOfUnknownContactOut) {
  World world;
  world.batch.mode[2] = 255;
  BudgetSpec posture;  // no task rows whose rank could tell
  for (const BudgetSpec& spec : {world.spec, posture}) {
    const BudgetFactors factors =
        MakeBudgetFactors(spec, world.input.servo.kp, world.batch, at::kDouble);
    EXPECT_FALSE(factors.ok[2].item<bool>());
    EXPECT_EQ(factors.ok.sum().item<int>(), kBatch - 1);
  }
}

TEST(Singular, BothWaysGiveTheSingularValues) {
  at::manual_seed(2);
  const Tensor A = at::randn({6, 7, 9}, at::kDouble);
  const Singular all = SingularOf(A), top = LargestSingular(A);
  for (int i = 0; i < 6; ++i) {
    const Eigen::VectorXd singular = test::SingularValues(ToEigen(A[i]));
    for (int k = 0; k < 7; ++k) {
      EXPECT_NEAR(all.sigma[i][k].item<double>(), singular[k], 1e-12);
    }
    EXPECT_NEAR(top.sigma[i][0].item<double>(), singular[0], 1e-9);
    const double uAv = (ToEigen(top.u[i]) * ToEigen(A[i]) * ToEigen(top.v[i]).transpose())(0, 0);
    EXPECT_NEAR(uAv, singular[0], 1e-9);
  }
}

}  // namespace
}  // namespace silc::penalty_test
