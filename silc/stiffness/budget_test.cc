// SPDX-License-Identifier: Apache-2.0
#include "silc/stiffness/budget.h"

#include <gtest/gtest.h>

#include <limits>

#include "silc/stiffness/test_support.h"

namespace silc {
namespace {

using test::LoewnerLessEqual;
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
    const MatrixXd C_x = J * MatrixXd(M).inverse() * J.transpose();
    // M's condition is some 1e4, so an inverse has twelve digits
    EXPECT_TRUE(C_x.isApprox(K_x.inverse(), 1e-9)) << "trial " << trial;
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
  const MatrixXd J_plus = J.completeOrthogonalDecomposition().pseudoInverse();
  EXPECT_TRUE(MatrixXd(M).isApprox(J.transpose() * K_x * J + k * (I - J_plus * J), 1e-11));
  // the paper's C_q with Y = I/k
  const MatrixXd C_q = J_plus * K_x.inverse() * J_plus.transpose() + (I - J_plus * J) / k;
  EXPECT_TRUE(MatrixXd(M).inverse().isApprox(C_q, 1e-10));
}

// Neutral point: b = 1, W = Kp and the task stiffness that the servo has anyway give M = Kp.
TEST(JointBudget, TheServosOwnStiffnessIsTheNeutralBudget) {
  Rng rng(3);
  const Servo servo = test::RandomServo(10, &rng);
  const MatrixXd Kp = servo.kp.asDiagonal(), J = RandomMatrix(3, 10, &rng);
  const MatrixXd K_x = (J * Kp.inverse() * J.transpose()).inverse();
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
  const MatrixXd C = J * MatrixXd(M).inverse() * J.transpose();
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
    const MatrixXd J_plus = J.completeOrthogonalDecomposition().pseudoInverse();
    const MatrixXd P = J_plus * J;
    const MatrixXd C_q = J_plus * C_x * J_plus.transpose() + Y - P * Y * P.transpose();
    EXPECT_TRUE((J * C_q * J.transpose()).isApprox(C_x, 1e-9));
    const MatrixXd any = test::Sym(RandomMatrix(n, n, &rng));  // no sign at all
    const MatrixXd C_any = J_plus * C_x * J_plus.transpose() + any - P * any * P.transpose();
    EXPECT_TRUE((J * C_any * J.transpose()).isApprox(C_x, 1e-9));

    const MatrixXd V = test::Kernel(J);
    const MatrixXd U =
        Eigen::HouseholderQR<MatrixXd>(J.transpose()).householderQ() * MatrixXd::Identity(n, m);
    const MatrixXd schur =
        U.transpose() * J_plus * C_x * J_plus.transpose() * U -
        U.transpose() * Y * V * (V.transpose() * Y * V).inverse() * V.transpose() * Y * U;
    const bool predicted = test::MinEigenvalue(test::Sym(schur)) > 0;
    EXPECT_EQ(test::MinEigenvalue(test::Sym(C_q)) > 0, predicted) << "trial " << trial;
    (predicted ? positive : indefinite)++;
  }
  EXPECT_GT(positive, 20);
  EXPECT_GT(indefinite, 20);
}

// Shape and scale: the worst task eigenvalue is exactly one, for any shape, also after a reduction.
TEST(ShapeAndScaleBudget, MeetsTheTaskBoundExactly) {
  Rng rng(6);
  for (int trial = 0; trial < 100; ++trial) {
    const int n = 8, m = 3;
    const MatrixXd J = RandomMatrix(m, n, &rng), K_x = RandomSpd(m, &rng, 100, 20000);
    double eta = 0;
    JointMatrix M;
    ASSERT_EQ(ShapeAndScaleBudget(J, K_x, RandomSpd(n, &rng, 4, 300), &eta, &M),
              StiffnessStatus::kOk);
    const MatrixXd K_task = (J * MatrixXd(M).inverse() * J.transpose()).inverse();
    const Eigen::GeneralizedSelfAdjointEigenSolver<MatrixXd> solver(test::Sym(K_task), K_x);
    EXPECT_NEAR(solver.eigenvalues().maxCoeff(), 1, 1e-9);
  }
}

// Damping (J W⁻¹ Jᵀ + ε²)⁻¹ near a singularity enlarges M and breaks the bound; scaling by η mends
// it.
TEST(ShapeAndScaleBudget, MendsADampedInverse) {
  Rng rng(7);
  for (int trial = 0; trial < 50; ++trial) {
    const int n = 8, m = 3;
    MatrixXd J = RandomMatrix(m, n, &rng);
    J.row(2) = J.row(1) + 1e-3 * RandomMatrix(1, n, &rng);
    const MatrixXd K_x = RandomSpd(m, &rng, 100, 2000), W = RandomSpd(n, &rng);
    const MatrixXd gram = J * W.inverse() * J.transpose();
    const MatrixXd damped = (gram + 0.01 * MatrixXd::Identity(m, m)).inverse();
    const MatrixXd M_damped =
        test::Sym(J.transpose() * K_x * J + 20 * (W - J.transpose() * damped * J));
    JointMatrix M, M_scaled;
    ASSERT_EQ(JointBudget(J, K_x, W, 20, &M), StiffnessStatus::kOk);
    EXPECT_TRUE(LoewnerLessEqual(M, M_damped, 1e-8));
    const auto compliance_slack = [&](const MatrixXd& budget) {
      const MatrixXd L = test::LowerCholesky(K_x);
      return test::MinEigenvalue(
          test::Sym(L.transpose() * J * budget.inverse() * J.transpose() * L));
    };
    EXPECT_LT(compliance_slack(M_damped), 0.99);
    double eta = 0;
    ASSERT_EQ(ShapeAndScaleBudget(J, K_x, M_damped, &eta, &M_scaled), StiffnessStatus::kOk);
    EXPECT_LT(eta, 1);
    EXPECT_NEAR(compliance_slack(M_scaled), 1, 1e-6);
  }
}

// Points of a random stack: three rows each, a K_i each.
struct Points {
  Points(int points, int n, Rng* rng)
      : J(RandomMatrix(3 * points, n, rng)), K_x(MatrixXd::Zero(3 * points, 3 * points)) {
    for (int i = 0; i < points; ++i) K_x.block<3, 3>(3 * i, 3 * i) = RandomSpd(3, rng, 200, 20000);
  }
  int count() const { return static_cast<int>(J.rows()) / 3; }
  MatrixXd J_i(int i) const { return J.middleRows<3>(3 * i); }
  MatrixXd K_i(int i) const { return K_x.block<3, 3>(3 * i, 3 * i); }
  MatrixXd J;    // [m/rad]
  MatrixXd K_x;  // [N/m]
};

// d² of (S6p)
double DampingSquared(const MatrixXd& J, const MatrixXd& W) {
  const MatrixXd gram = J * W.inverse() * J.transpose();
  return kStackDamping * kStackDamping * gram.trace() / static_cast<double>(J.rows());
}

// (S6p) as it is written, with dense inverses.
MatrixXd PerPointInverse(const Points& p, const MatrixXd& W, double b) {
  const MatrixXd root = test::SqrtSpd(W).inverse(), J = p.J * root;
  const int m = static_cast<int>(J.rows()), n = static_cast<int>(J.cols());
  const MatrixXd damped = J * J.transpose() + DampingSquared(p.J, W) * MatrixXd::Identity(m, m);
  MatrixXd C = root * (MatrixXd::Identity(n, n) - J.transpose() * damped.inverse() * J) * root / b;
  for (int i = 0; i < p.count(); ++i) {
    const MatrixXd WJ = W.inverse() * p.J_i(i).transpose();
    const MatrixXd J_bar = WJ * (p.J_i(i) * WJ).inverse();
    C += J_bar * p.K_i(i).inverse() * J_bar.transpose();
  }
  return C;
}

// The compliance a budget leaves a point, relative to what was asked: L_iᵀ J_i M⁻¹ J_iᵀ L_i.
MatrixXd PointCompliance(const Points& p, int i, const MatrixXd& M) {
  const MatrixXd L = test::LowerCholesky(p.K_i(i));
  return test::Sym(L.transpose() * p.J_i(i) * M.ldlt().solve(p.J_i(i).transpose() * L));
}

// (S6p): the low-rank way is the formula, for any W, also with more rows than joints.
TEST(PerPointBudget, IsItsFormula) {
  Rng rng(21);
  for (int trial = 0; trial < 200; ++trial) {
    const int n = 8 + trial % 12;
    const Points p(1 + trial % 4, n, &rng);
    const MatrixXd W = RandomSpd(n, &rng, 4, 300);
    const double b = rng.Uniform(0.1, 2);
    JointMatrix M;
    ASSERT_EQ(PerPointBudget(p.J, p.K_x, W, b, &M), StiffnessStatus::kOk);
    EXPECT_GT(test::MinEigenvalue(M), 0);
    // condition of some 1e5, and of J_i where n is small
    const MatrixXd want = PerPointInverse(p, W, b);
    EXPECT_TRUE(MatrixXd(M).inverse().isApprox(want, 1e-8)) << "trial " << trial;
  }
}

// Every point is at least as soft as asked, J_i M⁻¹ J_iᵀ ≥ K_i⁻¹; random points overlap, so they
// come out softer.
TEST(PerPointBudget, IsSoundPointByPointAndTighterWherePointsOverlap) {
  Rng rng(22);
  for (int trial = 0; trial < 200; ++trial) {
    const int n = 12 + trial % 10;
    const Points p(2 + trial % 2, n, &rng);
    JointMatrix M;
    ASSERT_EQ(PerPointBudget(p.J, p.K_x, RandomSpd(n, &rng, 4, 300), rng.Uniform(0.1, 2), &M),
              StiffnessStatus::kOk);
    for (int i = 0; i < p.count(); ++i) {
      const MatrixXd C_i = PointCompliance(p, i, M);
      EXPECT_GT(test::MinEigenvalue(C_i), 1 - 1e-9) << "trial " << trial;
      EXPECT_GT(test::MaxEigenvalue(C_i), 1.001) << "trial " << trial;
    }
  }
}

// Points that share no motion (J_i W⁻¹ J_jᵀ = 0) pay for the damping alone: d²/b at most.
TEST(PerPointBudget, CostsPointsApartTheDampingOnly) {
  Rng rng(23);
  for (int trial = 0; trial < 50; ++trial) {
    const int n = 14;
    Points p(3, n, &rng);
    const MatrixXd W = RandomSpd(n, &rng, 4, 300), root = test::SqrtSpd(W);
    const MatrixXd Q = Eigen::HouseholderQR<MatrixXd>(RandomMatrix(n, n, &rng)).householderQ();
    for (int i = 0; i < 3; ++i) {
      p.J.middleRows<3>(3 * i) =
          RandomMatrix(3, 3, &rng) * Q.middleCols<3>(3 * i).transpose() * root;
    }
    const double b = 0.5, d2 = DampingSquared(p.J, W);
    JointMatrix M;
    ASSERT_EQ(PerPointBudget(p.J, p.K_x, W, b, &M), StiffnessStatus::kOk);
    for (int i = 0; i < 3; ++i) {
      const MatrixXd C_i = p.J_i(i) * MatrixXd(M).ldlt().solve(p.J_i(i).transpose());
      const MatrixXd extra = test::Sym(C_i - p.K_i(i).inverse());
      EXPECT_GT(test::MinEigenvalue(extra), -1e-9 * C_i.norm());
      EXPECT_LT(test::MaxEigenvalue(extra), d2 / b + 1e-9 * C_i.norm());
    }
  }
}

// One point: (S6) and the damping, b⁻¹ d² Ĵᵀ G⁻¹ (G + d² I)⁻¹ Ĵ with G = Ĵ Ĵᵀ, nothing else.
TEST(PerPointBudget, OfOnePointIsTheJointBudgetButForTheDamping) {
  Rng rng(24);
  for (int trial = 0; trial < 100; ++trial) {
    const int n = 6 + trial % 10;
    const Points p(1, n, &rng);
    const MatrixXd W = RandomSpd(n, &rng, 4, 300);
    const double b = rng.Uniform(0.1, 2), d2 = DampingSquared(p.J, W);
    JointMatrix exact, M;
    ASSERT_EQ(JointBudget(p.J, p.K_x, W, b, &exact), StiffnessStatus::kOk);
    ASSERT_EQ(PerPointBudget(p.J, p.K_x, W, b, &M), StiffnessStatus::kOk);
    const MatrixXd WJ = W.inverse() * p.J.transpose(), G = p.J * WJ;
    const MatrixXd damping = d2 / b * G.inverse() * (G + d2 * MatrixXd::Identity(3, 3)).inverse();
    const MatrixXd undamped = MatrixXd(M).inverse() - WJ * damping * WJ.transpose();
    EXPECT_TRUE(undamped.isApprox(MatrixXd(exact).inverse(), 1e-9)) << "trial " << trial;
  }
}

// The stack loses rank, none of its points does: (S6) asks for ever less stiffness along a motion
// that hardly moves any of them, (S6p) stays between bounds that do not know the lost singular
// value, goes to b W there and keeps every point.
TEST(PerPointBudget, StaysBoundedWhereTheStackLosesRank) {
  Rng rng(25);
  const int n = 20, m = 9;
  const double b = 50;
  const MatrixXd I = MatrixXd::Identity(n, n);
  const Points full(3, n, &rng);
  const Eigen::JacobiSVD<MatrixXd> svd(full.J, Eigen::ComputeThinU | Eigen::ComputeThinV);
  const VectorXd v = svd.matrixV().col(m - 1);  // the motion nobody sees in the end
  for (const double s : {1e-1, 1e-2, 1e-3, 1e-4, 0.0}) {
    Points p = full;
    VectorXd sigma = svd.singularValues();
    sigma[m - 1] = s;
    p.J = svd.matrixU() * sigma.asDiagonal() * svd.matrixV().transpose();
    // M⁻¹ ≤ I/b + Σ J̄_i K_i⁻¹ J̄_iᵀ, and ‖J̄_i‖ = 1/σ_min(J_i)
    double softest = 1 / b;
    for (int i = 0; i < 3; ++i) {
      const double weakest = Eigen::JacobiSVD<MatrixXd>(p.J_i(i)).singularValues()[2];
      softest += 1 / (test::MinEigenvalue(p.K_i(i)) * weakest * weakest);
    }
    JointMatrix M, stacked;
    ASSERT_EQ(PerPointBudget(p.J, p.K_x, I, b, &M), StiffnessStatus::kOk) << s;
    EXPECT_GT(test::MinEigenvalue(M), (1 - 1e-9) / softest) << s;
    // and no stiffer than b (1 + m/e²): the largest singular value is at most √trace
    EXPECT_LT(test::MaxEigenvalue(M), b * (1 + m / (kStackDamping * kStackDamping))) << s;
    for (int i = 0; i < 3; ++i) {
      EXPECT_GT(test::MinEigenvalue(PointCompliance(p, i, M)), 1 - 1e-9) << s;
    }
    // M v → b v with s, at a rate that goes with stiffnesses of 1e4
    EXPECT_LT((M * v - b * v).norm(), 1e-9 * b + 1e4 * s) << s;

    const StiffnessStatus status = JointBudget(p.J, p.K_x, I, b, &stacked);
    if (s == 0) {
      EXPECT_EQ(status, StiffnessStatus::kRankDeficientJacobian);
    } else {
      ASSERT_EQ(status, StiffnessStatus::kOk);
      // vᵀ M v = s² uᵀ K_x u
      EXPECT_LT(test::MinEigenvalue(stacked), 20000 * s * s * (1 + 1e-6));
      if (s <= 1e-2) {
        EXPECT_LT(test::MinEigenvalue(stacked), 0.2 / softest) << s;
      }
    }
  }
}

TEST(PerPointBudget, IllPosedInputIsTold) {
  Rng rng(26);
  const Points p(3, 12, &rng);
  const MatrixXd W = RandomSpd(12, &rng);
  JointMatrix M;
  // one point moves in a plane
  MatrixXd flat = p.J;
  flat.row(5) = 3 * flat.row(4);
  EXPECT_EQ(PerPointBudget(flat, p.K_x, W, 1, &M), StiffnessStatus::kRankDeficientJacobian);
  flat.row(5) += 1e-4 * RandomMatrix(1, 12, &rng);
  EXPECT_EQ(PerPointBudget(flat, p.K_x, W, 1, &M), StiffnessStatus::kOk);
  EXPECT_EQ(PerPointBudget(0 * p.J, p.K_x, W, 1, &M), StiffnessStatus::kRankDeficientJacobian);
  // two points that are one: each has its bound, and keeps it
  MatrixXd same = p.J;
  same.bottomRows<3>() = same.topRows<3>();
  EXPECT_EQ(PerPointBudget(same, p.K_x, W, 1, &M), StiffnessStatus::kOk);
  EXPECT_EQ(JointBudget(same, p.K_x, W, 1, &M), StiffnessStatus::kRankDeficientJacobian);

  MatrixXd bad = p.K_x;
  bad(4, 4) = -5;
  EXPECT_EQ(PerPointBudget(p.J, bad, W, 1, &M), StiffnessStatus::kBudgetNotPositive);
  bad = p.K_x;
  bad(0, 1) += 0.1 * bad.norm();
  EXPECT_EQ(PerPointBudget(p.J, bad, W, 1, &M), StiffnessStatus::kBudgetNotPositive);
  EXPECT_EQ(PerPointBudget(p.J, p.K_x, -W, 1, &M), StiffnessStatus::kBudgetNotPositive);
  EXPECT_EQ(PerPointBudget(p.J, p.K_x, W, 0, &M), StiffnessStatus::kBudgetNotPositive);
  MatrixXd skewed = W;
  skewed(1, 0) += 0.1;
  EXPECT_EQ(PerPointBudget(p.J, p.K_x, skewed, 1, &M), StiffnessStatus::kBudgetNotPositive);
  MatrixXd nan = p.J;
  nan(0, 0) = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(PerPointBudget(nan, p.K_x, W, 1, &M), StiffnessStatus::kNotFinite);
  EXPECT_EQ(PerPointBudget(p.J, p.K_x, W, INFINITY, &M), StiffnessStatus::kNotFinite);
  bad = p.K_x;
  bad(0, 8) = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(PerPointBudget(p.J, bad, W, 1, &M), StiffnessStatus::kNotFinite);
  // no point: posture alone
  EXPECT_EQ(PerPointBudget(MatrixXd(0, 12), MatrixXd(0, 0), W, 3, &M), StiffnessStatus::kOk);
  EXPECT_TRUE(MatrixXd(M).isApprox(3 * W, 1e-14));
  // rows that are no points, stiffness between points: the caller's slip
  EXPECT_DEATH(PerPointBudget(p.J.topRows(4), p.K_x.topLeftCorner(4, 4), W, 1, &M), "m % 3");
  bad = p.K_x;
  bad(0, 8) = bad(8, 0) = 1;
  EXPECT_DEATH(PerPointBudget(p.J, bad, W, 1, &M), "K_x");
}

// The budget of a spec, mode by mode, on a robot, with either weight: one point is recovered in
// single and in double support, several are sound each; flight is posture alone.
TEST(ReducedBudget, RecoversTheSpecInEveryContactMode) {
  Rng rng(8);
  const int nv = test::StickHumanoid::kJoints;
  const Servo servo = test::RandomServo(nv, &rng);
  const BodyJacobians body = test::StickHumanoid::Jacobians(test::StickHumanoid::Stance(&rng));
  for (NullWeight weight : {NullWeight::kIdentity, NullWeight::kServo}) {
    for (int named = 1; named < 8; ++named) {  // bits: centre of mass, left hand, right hand
      BudgetSpec spec = PaperModes()[4].spec;  // hard-hand: all three tasks
      if (!(named & 1)) spec.com.reset();
      if (!(named & 2)) spec.hand[0].reset();
      if (!(named & 4)) spec.hand[1].reset();
      spec.weight = weight;
      if (weight == NullWeight::kServo) spec.null_stiffness = 0.5;
      JointVector W;
      NullWeightDiagonal(spec, servo, &W);
      for (ContactMode mode :
           {ContactMode::kDoubleSupport, ContactMode::kLeftSupport, ContactMode::kRightSupport}) {
        SCOPED_TRACE(testing::Message() << named << " " << Name(mode));
        ContactKinematics contact;
        ASSERT_EQ(ComputeContactKinematics(body, mode, nullptr, &contact), StiffnessStatus::kOk);
        ReducedBudget budget;
        ASSERT_EQ(ComputeReducedBudget(spec, servo, contact, &budget), StiffnessStatus::kOk);
        VectorXd want(0);
        const auto add = [&](const std::optional<Eigen::Vector3d>& k) {
          if (!k) return;
          want.conservativeResize(want.size() + 3);
          want.tail<3>() = *k;
        };
        add(spec.com);
        add(spec.hand[0]);
        add(spec.hand[1]);
        ASSERT_EQ(VectorXd(budget.K_x), want);
        ASSERT_EQ(budget.J.rows(), want.size());
        const MatrixXd C = budget.J * MatrixXd(budget.M).ldlt().solve(budget.J.transpose());
        for (int i = 0; i < want.size(); i += 3) {
          const MatrixXd root = want.segment<3>(i).cwiseSqrt().asDiagonal();
          const MatrixXd C_i = test::Sym(root * C.block<3, 3>(i, i) * root);
          EXPECT_GT(test::MinEigenvalue(C_i), 1 - 1e-6);
          if (want.size() == 3) {
            EXPECT_LT(test::MaxEigenvalue(C_i), 1 + 1e-6);
          }
        }
      }
      ContactKinematics contact;
      ASSERT_EQ(ComputeContactKinematics(body, ContactMode::kFlight, nullptr, &contact),
                StiffnessStatus::kOk);
      ReducedBudget budget;
      ASSERT_EQ(ComputeReducedBudget(spec, servo, contact, &budget), StiffnessStatus::kOk);
      EXPECT_EQ(budget.J.rows(), 0);
      const MatrixXd posture = spec.null_stiffness * W.asDiagonal().toDenseMatrix();
      EXPECT_TRUE(MatrixXd(budget.M).isApprox(posture, 1e-14));
    }
  }
}

// One point: (S6) to the last bit, several: (S6p).
TEST(ReducedBudget, ChoosesByTheNumberOfPoints) {
  Rng rng(10);
  const Servo servo = test::RandomServo(test::StickHumanoid::kJoints, &rng);
  const BodyJacobians body = test::StickHumanoid::Jacobians(test::StickHumanoid::Stance(&rng));
  ContactKinematics contact;
  ASSERT_EQ(ComputeContactKinematics(body, ContactMode::kLeftSupport, nullptr, &contact),
            StiffnessStatus::kOk);
  const MatrixXd W = MatrixXd::Identity(servo.nv(), servo.nv());
  for (int mode : {1, 3}) {
    const BudgetSpec& spec = PaperModes()[mode].spec;
    ReducedBudget budget;
    ASSERT_EQ(ComputeReducedBudget(spec, servo, contact, &budget), StiffnessStatus::kOk);
    const MatrixXd K_x = budget.K_x.asDiagonal();
    const auto function = mode == 1 ? &JointBudget : &PerPointBudget;
    JointMatrix M;
    ASSERT_EQ(function(budget.J, K_x, W, spec.null_stiffness, &M), StiffnessStatus::kOk);
    EXPECT_EQ(M, budget.M);
  }
}

TEST(PaperModes, AreTheFiveOfThePaper) {
  ASSERT_EQ(PaperModes().size(), 5u);
  EXPECT_STREQ(PaperModes()[1].name, "compliance");
  EXPECT_EQ(*PaperModes()[1].spec.com, Eigen::Vector3d(200, 200, 20000));
  EXPECT_EQ(PaperModes()[2].spec.null_stiffness, 500);
  EXPECT_FALSE(PaperModes()[0].spec.hand[0].has_value());
  EXPECT_EQ(*PaperModes()[3].spec.hand[1], Eigen::Vector3d::Constant(200));
  for (const NamedBudget& mode : PaperModes()) EXPECT_EQ(mode.spec.Validate(), "");
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
  double eta = 0;
  MatrixXd twins = J;
  twins.row(2) = 3 * twins.row(0);
  EXPECT_EQ(JointBudget(twins, K_x, W, 1, &M), StiffnessStatus::kRankDeficientJacobian);
  EXPECT_EQ(ShapeAndScaleBudget(twins, K_x, W, &eta, &M), StiffnessStatus::kRankDeficientJacobian);
  twins.row(2) += 1e-4 * RandomMatrix(1, 8, &rng);
  EXPECT_EQ(JointBudget(twins, K_x, W, 1, &M), StiffnessStatus::kOk);
  MatrixXd negative = K_x;
  negative(0, 0) = -5;
  EXPECT_EQ(JointBudget(J, negative, W, 1, &M), StiffnessStatus::kBudgetNotPositive);
  EXPECT_EQ(JointBudget(J, K_x, -W, 1, &M), StiffnessStatus::kBudgetNotPositive);
  EXPECT_EQ(JointBudget(J, K_x, W, 0, &M), StiffnessStatus::kBudgetNotPositive);
  EXPECT_EQ(ShapeAndScaleBudget(J, K_x, -W, &eta, &M), StiffnessStatus::kBudgetNotPositive);
  MatrixXd skewed = W;
  skewed(1, 0) += 0.1;
  EXPECT_EQ(JointBudget(J, K_x, skewed, 1, &M), StiffnessStatus::kBudgetNotPositive);
  MatrixXd nan = J;
  nan(0, 0) = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(JointBudget(nan, K_x, W, 1, &M), StiffnessStatus::kNotFinite);
  EXPECT_EQ(ShapeAndScaleBudget(nan, K_x, W, &eta, &M), StiffnessStatus::kNotFinite);
}

}  // namespace
}  // namespace silc
