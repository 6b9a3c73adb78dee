// SPDX-License-Identifier: Apache-2.0
#include "silc/stiffness/budget.h"

#include <gtest/gtest.h>

#include <limits>

#include "silc/stiffness/test_support.h"

namespace silc {
namespace {

using namespace test::eager;
using test::MatrixXd;
using test::RandomMatrix;
using test::RandomSpd;
using test::VectorXd;

// C10, (S6): positive definite, and exact: the task sees K_x and nothing else, whatever W and b
// are.
TEST(JointBudget, GivesTheTaskItsStiffnessExactly) {
  Rng rng(1);
  for (int trial = 0; trial < 300; ++trial) {
    const int n = 6 + trial % 10, m = 1 + trial % 5;
    const MatrixXd J = RandomMatrix(m, n, &rng), K_x = RandomSpd(m, &rng, 100, 20000);
    const MatrixXd W = RandomSpd(n, &rng, 4, 300);
    JointMatrix M;
    ASSERT_EQ(JointBudget(J, K_x, W, rng.Uniform(0.1, 2), &M), StiffnessStatus::kOk);
    EXPECT_GT(test::MinEigenvalue(M), 0);
    const MatrixXd C_x = J * test::Inverse(M) * J.transpose();
    // M's condition is some 1e4, so an inverse has twelve digits
    EXPECT_TRUE(C_x.isApprox(test::Inverse(K_x), 1e-9)) << "trial " << trial;
  }
}

// With W = I it is the paper's null space, J⁺ and all; and its inverse is low rank plus a multiple
// of I.
TEST(JointBudget, WithIdentityWeightIsThePapers) {
  Rng rng(2);
  const int n = 9, m = 3;
  const double k = 50;
  const MatrixXd J = RandomMatrix(m, n, &rng), K_x = RandomSpd(m, &rng, 100, 2000);
  const MatrixXd I = MatrixXd::Identity(n, n);
  JointMatrix M;
  ASSERT_EQ(JointBudget(J, K_x, I, k, &M), StiffnessStatus::kOk);
  const MatrixXd J_plus = test::PseudoInverse(J);
  EXPECT_TRUE(MatrixXd(M).isApprox(J.transpose() * K_x * J + k * (I - J_plus * J), 1e-11));
  // the paper's C_q with Y = I/k
  const MatrixXd C_q = J_plus * test::Inverse(K_x) * J_plus.transpose() + (I - J_plus * J) / k;
  EXPECT_TRUE(test::Inverse(M).isApprox(C_q, 1e-10));
}

// Neutral point: b = 1, W = Kp and the task stiffness that the servo has anyway give M = Kp.
TEST(JointBudget, TheServosOwnStiffnessIsTheNeutralBudget) {
  Rng rng(3);
  const Servo servo = test::RandomServo(10, &rng);
  const MatrixXd Kp = servo.kp.asDiagonal(), J = RandomMatrix(3, 10, &rng);
  const MatrixXd K_x = test::Inverse(J * test::Inverse(Kp) * J.transpose());
  JointMatrix M;
  ASSERT_EQ(JointBudget(J, test::Sym(K_x), Kp, 1, &M), StiffnessStatus::kOk);
  EXPECT_TRUE(MatrixXd(M).isApprox(Kp, 1e-11));
}

// Several tasks: stacked rows, block-diagonal K_x, every marginal kept.
TEST(JointBudget, StackedTasksKeepTheirMarginals) {
  Rng rng(4);
  const MatrixXd J = RandomMatrix(9, 20, &rng);
  VectorXd k(9);
  k << 200, 200, 20000, 200, 200, 200, 1000, 1000, 1000;
  JointMatrix M;
  ASSERT_EQ(JointBudget(J, k.asDiagonal().toDenseMatrix(), MatrixXd::Identity(20, 20), 50, &M),
            StiffnessStatus::kOk);
  const MatrixXd C = J * test::Inverse(M) * J.transpose();
  for (int i = 0; i < 9; ++i) EXPECT_NEAR(1 / C(i, i), k[i], 1e-8 * k[i]);
}

// The general solution the paper gives, C_q = J⁺C_xJ⁺ᵀ + Y − J⁺J Y (J⁺J)ᵀ, meets J C_q Jᵀ = C_x for
// any symmetric Y and need not be positive: it is iff C_UU > Y_UV Y_VV⁻¹ Y_VU in bases of row and
// null space.
TEST(JointBudget, ThePapersGeneralSolutionNeedNotBePositive) {
  Rng rng(5);
  int positive = 0, indefinite = 0;
  for (int trial = 0; trial < 500; ++trial) {
    const int n = 6, m = 2;
    const MatrixXd J = RandomMatrix(m, n, &rng), C_x = RandomSpd(m, &rng, 0.1, 30);
    const MatrixXd Y = RandomSpd(n, &rng);
    const MatrixXd J_plus = test::PseudoInverse(J);
    const MatrixXd P = J_plus * J;
    const MatrixXd C_q = J_plus * C_x * J_plus.transpose() + Y - P * Y * P.transpose();
    EXPECT_TRUE((J * C_q * J.transpose()).isApprox(C_x, 1e-9));
    const MatrixXd any = test::Sym(RandomMatrix(n, n, &rng));  // no sign at all
    const MatrixXd C_any = J_plus * C_x * J_plus.transpose() + any - P * any * P.transpose();
    EXPECT_TRUE((J * C_any * J.transpose()).isApprox(C_x, 1e-9));

    const MatrixXd V = test::Kernel(J);
    const MatrixXd U = test::OrthonormalColumns(J.transpose());
    const MatrixXd schur =
        U.transpose() * J_plus * C_x * J_plus.transpose() * U -
        U.transpose() * Y * V * test::Inverse(V.transpose() * Y * V) * V.transpose() * Y * U;
    const bool predicted = test::MinEigenvalue(test::Sym(schur)) > 0;
    EXPECT_EQ(test::MinEigenvalue(test::Sym(C_q)) > 0, predicted) << "trial " << trial;
    (predicted ? positive : indefinite)++;
  }
  EXPECT_GT(positive, 20);
  EXPECT_GT(indefinite, 20);
}

// The factor is of the same M: L⁻ᵀ L⁻¹ is its inverse.
TEST(FactorBudget, IsAFactorOfTheJointBudget) {
  Rng rng(6);
  for (int m = 0; m <= 9; m += 3) {
    const int n = 14;
    const double b = 40;
    const MatrixXd J = RandomMatrix(m, n, &rng), I = MatrixXd::Identity(n, n);
    const MatrixXd K_x = m == 0 ? MatrixXd(0, 0) : RandomSpd(m, &rng, 100, 20000);
    BudgetFactor factor;
    ASSERT_EQ(FactorBudget(J, K_x, b, &factor), StiffnessStatus::kOk);
    MatrixXd L_inverse = I / std::sqrt(b);
    if (m > 0) L_inverse += factor.Q * factor.Z * factor.Q.transpose();
    JointMatrix M;
    ASSERT_EQ(JointBudget(J, K_x, I, b, &M), StiffnessStatus::kOk);
    EXPECT_TRUE((L_inverse * M * L_inverse.transpose()).isIdentity(1e-9)) << m;
  }
}

// The floor of a band stands under the hands alone, row by row of the stack.
TEST(StackBudgetRows, StacksThePointsThatHaveABoundInThisContactMode) {
  Rng rng(12);
  const BodyJacobians body = test::StickHumanoid::Jacobians(test::StickHumanoid::Stance(&rng));
  BudgetSpec spec;
  spec.com = Eigen::Vector3d(1, 2, 3);
  spec.hand[1] = Eigen::Vector3d(40, 50, 60);
  spec.hand_floor = Eigen::Vector3d(0, 0.5, 0.25);
  ContactKinematics contact;
  BudgetRows rows;
  ASSERT_EQ(ComputeContactKinematics(body, ContactMode::kLeftSupport, nullptr, &contact),
            StiffnessStatus::kOk);
  StackBudgetRows(spec, contact, &rows);
  ASSERT_EQ(rows.J.rows(), 6);
  EXPECT_EQ(MatrixXd(rows.J.topRows<3>()), MatrixXd(contact.com));
  EXPECT_EQ(MatrixXd(rows.J.bottomRows<3>()), MatrixXd(contact.hand_on_base[1]));
  VectorXd K_x(6), floor(6);
  K_x << 1, 2, 3, 40, 50, 60;
  floor << 0, 0, 0, 0, 25, 15;
  EXPECT_EQ(VectorXd(rows.K_x), K_x);
  EXPECT_EQ(VectorXd(rows.floor), floor);
  ASSERT_EQ(ComputeContactKinematics(body, ContactMode::kFlight, nullptr, &contact),
            StiffnessStatus::kOk);
  StackBudgetRows(spec, contact, &rows);
  ASSERT_EQ(rows.J.rows(), 3);
  EXPECT_EQ(VectorXd(rows.floor), VectorXd(floor.tail<3>()));
}

// In double support the fast way takes N as it is: one that is orthonormal in another weight than
// the budget's would be another budget.
TEST(FactorBudgetAtDeathTest, WantsTheMotionsOfTheBudgetsOwnWeight) {
  Rng rng(13);
  const Servo servo = test::RandomServo(test::StickHumanoid::kJoints, &rng);
  const BodyJacobians body = test::StickHumanoid::Jacobians(test::StickHumanoid::Stance(&rng));
  BudgetSpec spec;
  spec.weight = NullWeight::kServo;
  JointVector weight;
  NullWeightDiagonal(spec, servo, &weight);
  const JointVector scale = weight.cwiseSqrt().cwiseInverse();
  ContactKinematics contact;
  BudgetRows rows;
  TaskJacobian J_z;
  BudgetFactor factor;
  ASSERT_EQ(ComputeContactKinematics(body, ContactMode::kDoubleSupport, &weight, &contact),
            StiffnessStatus::kOk);
  EXPECT_EQ(FactorBudgetAt(spec, scale, contact, &rows, &J_z, &factor), StiffnessStatus::kOk);
  ASSERT_EQ(ComputeContactKinematics(body, ContactMode::kDoubleSupport, nullptr, &contact),
            StiffnessStatus::kOk);
  EXPECT_DEATH(FactorBudgetAt(spec, scale, contact, &rows, &J_z, &factor), "N_scale");
}

// The budget of a spec, mode by mode, on a robot, with either weight: every point it names keeps
// its stiffness exactly, the centre of mass on the feet, the hands on the base; in flight the hands
// alone.
TEST(ReducedBudget, RecoversTheSpecInEveryContactMode) {
  Rng rng(8);
  const int nv = test::StickHumanoid::kJoints;
  const Servo servo = test::RandomServo(nv, &rng);
  const BodyJacobians body = test::StickHumanoid::Jacobians(test::StickHumanoid::Stance(&rng));
  for (NullWeight weight : {NullWeight::kIdentity, NullWeight::kServo}) {
    for (int named = 0; named < 8; ++named) {        // bits: centre of mass, left hand, right hand
      BudgetSpec spec = test::PaperModes()[4].spec;  // hard-hand: all three tasks
      if (!(named & 1)) spec.com.reset();
      if (!(named & 2)) spec.hand[0].reset();
      if (!(named & 4)) spec.hand[1].reset();
      spec.weight = weight;
      if (weight == NullWeight::kServo) spec.null_stiffness = 0.5;
      JointVector W;
      NullWeightDiagonal(spec, servo, &W);
      for (ContactMode mode : {ContactMode::kDoubleSupport,
                               ContactMode::kLeftSupport,
                               ContactMode::kRightSupport,
                               ContactMode::kFlight}) {
        SCOPED_TRACE(testing::Message() << named << " " << Name(mode));
        ContactKinematics contact;
        ASSERT_EQ(ComputeContactKinematics(body, mode, nullptr, &contact), StiffnessStatus::kOk);
        const MatrixXd N = contact.closed ? MatrixXd(contact.N) : MatrixXd::Identity(nv, nv);
        MatrixXd J(0, N.cols());
        VectorXd want(0);
        const auto add = [&](const std::optional<Eigen::Vector3d>& k, const MatrixXd& J_i) {
          if (!k) return;
          want.conservativeResize(want.size() + 3);
          want.tail<3>() = *k;
          J.conservativeResize(want.size(), Eigen::NoChange);
          J.bottomRows<3>() = J_i * N;
        };
        if (mode != ContactMode::kFlight) add(spec.com, contact.com);
        for (int side = 0; side < 2; ++side) add(spec.hand[side], body.hand[side].rightCols(nv));
        ReducedBudget budget;
        ASSERT_EQ(ComputeReducedBudget(spec, servo, contact, &budget), StiffnessStatus::kOk);
        ASSERT_EQ(VectorXd(budget.K_x), want);
        ASSERT_EQ(budget.J.rows(), want.size());
        if (want.size() == 0) {
          const MatrixXd posture = spec.null_stiffness * N.transpose() * W.asDiagonal() * N;
          EXPECT_TRUE(MatrixXd(budget.M).isApprox(posture, 1e-13));
          continue;
        }
        const MatrixXd C = J * test::SolveSpd(budget.M, J.transpose());
        const MatrixXd root = want.cwiseSqrt().asDiagonal();
        EXPECT_TRUE((root * C * root).isIdentity(1e-6));
      }
    }
  }
}

TEST(BudgetSpec, NonsenseIsToldInWords) {
  BudgetSpec spec;
  spec.com = Eigen::Vector3d(200, 0, 200);
  EXPECT_EQ(spec.Validate(), "com: stiffness must be finite and above 0 N/m on every axis");
  spec.com.reset();
  spec.hand[1] = Eigen::Vector3d(200, NAN, 200);
  EXPECT_EQ(spec.Validate(), "right hand: stiffness must be finite and above 0 N/m on every axis");
  spec.hand[1].reset();
  spec.null_stiffness = -1;
  EXPECT_EQ(spec.Validate(), "null-space stiffness must be finite and positive");
}

TEST(JointBudget, IllPosedInputIsTold) {
  Rng rng(9);
  const MatrixXd J = RandomMatrix(3, 8, &rng), K_x = RandomSpd(3, &rng), W = RandomSpd(8, &rng);
  JointMatrix M;
  MatrixXd twins = J;
  twins.row(2) = 3 * twins.row(0);
  EXPECT_EQ(JointBudget(twins, K_x, W, 1, &M), StiffnessStatus::kRankDeficientJacobian);
  twins.row(2) += 1e-4 * RandomMatrix(1, 8, &rng);
  EXPECT_EQ(JointBudget(twins, K_x, W, 1, &M), StiffnessStatus::kOk);
  MatrixXd negative = K_x;
  negative(0, 0) = -5;
  EXPECT_EQ(JointBudget(J, negative, W, 1, &M), StiffnessStatus::kBudgetNotPositive);
  EXPECT_EQ(JointBudget(J, K_x, -W, 1, &M), StiffnessStatus::kBudgetNotPositive);
  EXPECT_EQ(JointBudget(J, K_x, W, 0, &M), StiffnessStatus::kBudgetNotPositive);
  MatrixXd skewed = W;
  skewed(1, 0) += 0.1;
  EXPECT_EQ(JointBudget(J, K_x, skewed, 1, &M), StiffnessStatus::kBudgetNotPositive);
  MatrixXd nan = J;
  nan(0, 0) = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(JointBudget(nan, K_x, W, 1, &M), StiffnessStatus::kNotFinite);
}

BudgetSpec CommandedSpec() {
  BudgetSpec spec;
  spec.com = Eigen::Vector3d(5, 5, 20000);
  spec.hand[0] = spec.hand[1] = Eigen::Vector3d(7, 7, 7);
  spec.hand_floor = Eigen::Vector3d(0, 0, 0.75);
  spec.gravity = Channel::kHeld;
  spec.command.range = {BudgetRange{200, 3000}, BudgetRange{100, 1000}, BudgetRange{20, 300}};
  return spec;
}

// (B2): the command's numbers on the axes it covers, everything else as the budget says it.
TEST(BudgetAt, PutsTheCommandIntoTheBudget) {
  const BudgetSpec spec = CommandedSpec();
  const BudgetSpec at = BudgetAt(spec, {400, 150, 60});
  EXPECT_FALSE(at.IsCommanded());
  EXPECT_EQ(*at.com, Eigen::Vector3d(400, 400, 20000));
  EXPECT_EQ(*at.hand[0], Eigen::Vector3d(150, 150, 150));
  EXPECT_EQ(*at.hand[1], Eigen::Vector3d(150, 150, 150));
  EXPECT_EQ(at.null_stiffness, 60);
  EXPECT_EQ(at.hand_floor, spec.hand_floor);
  EXPECT_EQ(at.gravity, Channel::kHeld);
  EXPECT_EQ(at.Validate(), "");
  // a number without a range stays as it is
  BudgetSpec some = spec;
  some.command.range[kCommandCom].reset();
  some.command.range[kCommandNull].reset();
  const BudgetSpec hands = BudgetAt(some, {400, 150, 60});
  EXPECT_EQ(hands.com, spec.com);
  EXPECT_EQ(hands.null_stiffness, spec.null_stiffness);
  EXPECT_EQ(*hands.hand[1], Eigen::Vector3d(150, 150, 150));
}

TEST(BudgetAt, TheMiddleIsAsFarFromBothEnds) {
  const BudgetCommand command = CommandedSpec().command;
  const BudgetValues middle = MiddleOf(command);
  for (int i = 0; i < kNumCommanded; ++i) {
    const BudgetRange& range = *command.range[i];
    EXPECT_NEAR(middle[i] / range.low, range.high / middle[i], 1e-12);
    EXPECT_TRUE(range.Contains(middle[i]) && range.Contains(range.low));
    EXPECT_FALSE(range.Contains(1.01 * range.high) || range.Contains(0.99 * range.low));
  }
}

TEST(BudgetAt, RangesAreValidated) {
  BudgetSpec spec = CommandedSpec();
  EXPECT_EQ(spec.Validate(), "");
  spec.command.range[kCommandHands] = BudgetRange{1000, 100};
  EXPECT_EQ(spec.Validate(), "hands: the range is upside down");
  spec.command.range[kCommandHands] = BudgetRange{0, 100};
  EXPECT_EQ(spec.Validate(), "hands: a range must be finite and above 0");
  spec = CommandedSpec();
  spec.hand[1].reset();
  EXPECT_EQ(spec.Validate(), "hands: a range is for both hands");
  spec = CommandedSpec();
  spec.com.reset();
  EXPECT_EQ(spec.Validate(), "com: has a range but no number along z");
}

}  // namespace
}  // namespace silc
