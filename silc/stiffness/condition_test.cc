// SPDX-License-Identifier: Apache-2.0
#include "silc/stiffness/condition_reference.h"

#include <gtest/gtest.h>

#include <cstdio>

#include <limits>

#include "silc/stiffness/test_support.h"

namespace silc {
namespace {

using namespace test::eager;
using test::LoewnerLessEqual;
using test::LowerCholesky;
using test::MatrixXd;
using test::RandomMatrix;
using test::RandomSpd;
using test::Skew;
using test::SpectralNorm;
using test::Sym;
using test::VectorXd;

double Sigma(Condition condition, const MatrixXd& K, const MatrixXd& M) {
  double sigma = 0;
  EXPECT_EQ(LargestSigma(condition, K, M, &sigma), StiffnessStatus::kOk);
  return sigma;
}

// L⁻¹ K, L⁻¹ K L⁻ᵀ and 2 L⁻¹ K L⁻ᵀ − I as they are written, with inverses
MatrixXd Written(Condition condition, const MatrixXd& K, const MatrixXd& M) {
  const MatrixXd Li = test::Inverse(LowerCholesky(M));
  if (condition == Condition::kOneSided) return Li * K;
  if (condition == Condition::kTwoSided) return Li * K * Li.transpose();
  return 2 * Li * K * Li.transpose() - MatrixXd::Identity(K.rows(), K.cols());
}

constexpr Condition kConditions[] = {Condition::kOneSided, Condition::kTwoSided, Condition::kDisc};

// A random K scaled onto the border of a condition, σ = 1.
MatrixXd OnTheBorder(Condition condition, const MatrixXd& M, Rng* rng) {
  const int n = static_cast<int>(M.rows());
  const MatrixXd L = LowerCholesky(M);
  MatrixXd A = RandomMatrix(n, n, rng);
  A /= SpectralNorm(A);
  if (condition == Condition::kOneSided) return L * A;
  if (condition == Condition::kTwoSided) return L * A * L.transpose();
  return 0.5 * L * (A + MatrixXd::Identity(n, n)) * L.transpose();
}

TEST(Condition, SigmaIsTheSpectralNormOfTheWrittenMatrix) {
  Rng rng(1);
  for (int trial = 0; trial < 60; ++trial) {
    const int n = 2 + trial % 12;
    const MatrixXd M = RandomSpd(n, &rng), K = RandomMatrix(n, n, &rng, 3);
    for (Condition condition : kConditions) {
      // squares are taken on the way: half the digits of the smallest, all but a few of the largest
      EXPECT_NEAR(Sigma(condition, K, M) / SpectralNorm(Written(condition, K, M)), 1, 1e-11);
    }
  }
}

// σ with its vectors: A v = σ u, and the whole spectrum is that of the SVD.
TEST(Condition, TriplesAreSingularTriples) {
  Rng rng(2);
  for (int trial = 0; trial < 20; ++trial) {
    const int n = 3 + trial % 9;
    const MatrixXd M = RandomSpd(n, &rng), K = RandomMatrix(n, n, &rng, 3);
    for (Condition condition : kConditions) {
      const MatrixXd A = Written(condition, K, M);
      const VectorXd singular = test::SingularValues(A);
      SigmaTriple top;
      ASSERT_EQ(LargestSigma(condition, K, M, &top), StiffnessStatus::kOk);
      EXPECT_LT((A * top.v - top.sigma * top.u).norm(), 1e-10 * top.sigma);
      EXPECT_LT((A.transpose() * top.u - top.sigma * top.v).norm(), 1e-10 * top.sigma);
      SigmaSpectrum all;
      ASSERT_EQ(AllSigmas(condition, K, M, &all), StiffnessStatus::kOk);
      // √ of an eigenvalue of AᵀA: absolute error ε σ₁²/σ
      EXPECT_LT((all.sigma - singular).cwiseProduct(singular).norm(),
                1e-13 * n * top.sigma * top.sigma);
      EXPECT_LT((A * all.V - all.U * all.sigma.asDiagonal()).norm(), 1e-7 * top.sigma);
    }
  }
}

// (S9): dσ = leftᵀ dK right, against differences of the written norm.
TEST(Condition, DerivativeOfSigma) {
  Rng rng(3);
  for (int trial = 0; trial < 10; ++trial) {
    const int n = 4;
    const MatrixXd M = RandomSpd(n, &rng), K = RandomMatrix(n, n, &rng, 3);
    for (Condition condition : kConditions) {
      SigmaTriple top;
      ASSERT_EQ(LargestSigma(condition, K, M, &top), StiffnessStatus::kOk);
      const MatrixXd reference = test::Difference(
          [&](const MatrixXd& x) { return SpectralNorm(Written(condition, x, M)); }, K, 1e-6);
      // differences of a singular value: 1e-10 rounding, 1e-12/gap truncation
      EXPECT_LT((MatrixXd(top.left * top.right.transpose()) - reference).norm(),
                1e-6 * reference.norm())
          << Name(condition);
    }
  }
}

// C0: of two ellipsoids {xᵀKx ≤ c} the softer one is the larger one: K ≤ K_max means E(K) ⊇
// E(K_max). The paper asks for the opposite inclusion.
TEST(Condition, TheEllipsoidOfASofterRobotIsLarger) {
  Rng rng(4);
  for (int trial = 0; trial < 1000; ++trial) {
    const MatrixXd K = RandomSpd(3, &rng), K_max = K + RandomSpd(3, &rng);
    const Eigen::Vector3d d = RandomMatrix(3, 1, &rng).normalized();
    const Eigen::Vector3d edge_soft = d / std::sqrt(d.dot(K * d));
    const Eigen::Vector3d edge_stiff = d / std::sqrt(d.dot(K_max * d));
    EXPECT_LE(edge_stiff.dot(K * edge_stiff), 1);    // E(K_max) inside E(K)
    EXPECT_GT(edge_soft.dot(K_max * edge_soft), 1);  // and not the other way round
  }
}

// C1, (S7a): ‖L⁻¹K‖ ≤ 1 says K Kᵀ ≤ M, and not K ≤ M.
TEST(Condition, PrintedFormSaysKKtBelowM) {
  Rng rng(5);
  int inside = 0;
  for (int trial = 0; trial < 2000; ++trial) {
    const int n = 2 + trial % 4;
    const MatrixXd M = RandomSpd(n, &rng);
    const MatrixXd K = OnTheBorder(Condition::kOneSided, M, &rng) * rng.Uniform(0.5, 1.5);
    const double sigma = Sigma(Condition::kOneSided, K, M);
    if (std::abs(sigma - 1) < 1e-9) continue;
    const bool below = test::MinEigenvalue(M - K * K.transpose()) >= 0;
    EXPECT_EQ(sigma <= 1, below) << "trial " << trial;
    inside += below;
  }
  EXPECT_GT(inside, 500);
}

// The printed form caps a joint at the square root of its budget: 50 N·m/rad becomes 7.07, 500
// becomes 22.4.
TEST(Condition, PrintedFormBoundsAJointByTheSquareRoot) {
  for (double budget : {50.0, 100.0, 500.0}) {
    const MatrixXd M = MatrixXd::Constant(1, 1, budget);
    EXPECT_NEAR(
        Sigma(Condition::kOneSided, MatrixXd::Constant(1, 1, std::sqrt(budget)), M), 1, 1e-14);
    EXPECT_NEAR(Sigma(Condition::kTwoSided, MatrixXd::Constant(1, 1, budget), M), 1, 1e-14);
    EXPECT_NEAR(Sigma(Condition::kDisc, MatrixXd::Constant(1, 1, budget), M), 1, 1e-14);
  }
}

// For symmetric K ≥ 0 the printed form is K ≤ √M: the square root keeps Loewner's order.
TEST(Condition, PrintedFormBoundsSymmetricKByTheSquareRootOfM) {
  Rng rng(6);
  for (int trial = 0; trial < 300; ++trial) {
    const int n = 2 + trial % 4;
    const MatrixXd M = RandomSpd(n, &rng);
    MatrixXd K = RandomSpd(n, &rng);
    K /= Sigma(Condition::kOneSided, K, M);
    EXPECT_TRUE(LoewnerLessEqual(K, test::SqrtSpd(M))) << "trial " << trial;
  }
}

// For K that is not symmetric not even that: xᵀKx ≤ ‖x‖ √(xᵀMx) is all, and it can be met.
TEST(Condition, PrintedFormDoesNotBoundTheFormBySqrtM) {
  const MatrixXd M = Eigen::Vector2d(100, 1).asDiagonal();
  MatrixXd K(2, 2);
  K << 0, 10, 1, 0;
  const Eigen::Vector2d x(1, 3);
  EXPECT_LE(Sigma(Condition::kOneSided, K, M), 1 + 1e-14);
  EXPECT_NEAR(x.dot(K * x), 33, 1e-12);
  EXPECT_NEAR(x.dot(test::SqrtSpd(M) * x), 19, 1e-12);
  EXPECT_NEAR(x.norm() * std::sqrt(x.dot(M * x)), 33.015, 1e-3);
}

// C2: with torque in mN·m instead of N·m the printed σ changes by √1000; the other two do not.
TEST(Condition, PrintedFormDependsOnTheUnitOfTorque) {
  Rng rng(7);
  const MatrixXd M = RandomSpd(5, &rng), K = RandomMatrix(5, 5, &rng);
  const auto ratio = [&](Condition condition) {
    return Sigma(condition, 1000 * K, 1000 * M) / Sigma(condition, K, M);
  };
  EXPECT_NEAR(ratio(Condition::kOneSided), std::sqrt(1000), 1e-9);
  EXPECT_NEAR(ratio(Condition::kTwoSided), 1, 1e-12);
  EXPECT_NEAR(ratio(Condition::kDisc), 1, 1e-12);
}

// C3: two-sided gives −M ≤ sym K ≤ M always; printed gives sym K ≤ M exactly when λ_min(M) ≥ 1, in
// units.
TEST(Condition, WhichFormsBoundTheSymmetricPart) {
  Rng rng(8);
  int failures_below_one = 0;
  constexpr int kTrials = 1000;
  for (int trial = 0; trial < kTrials; ++trial) {
    const int n = 2 + trial % 4;
    const MatrixXd M = RandomSpd(n, &rng);
    const MatrixXd two = OnTheBorder(Condition::kTwoSided, M, &rng);
    EXPECT_TRUE(LoewnerLessEqual(two, M));
    EXPECT_TRUE(LoewnerLessEqual(-M, two));

    const MatrixXd above = RandomSpd(n, &rng, 1.0, 20), below = RandomSpd(n, &rng, 0.05, 0.95);
    EXPECT_TRUE(LoewnerLessEqual(OnTheBorder(Condition::kOneSided, above, &rng), above));
    failures_below_one += !LoewnerLessEqual(OnTheBorder(Condition::kOneSided, below, &rng), below);
  }
  EXPECT_GT(failures_below_one, kTrials / 2);
  // one eigenvalue μ < 1 is enough: K = √μ e eᵀ
  Eigen::Matrix2d M = Eigen::Vector2d(0.25, 9).asDiagonal();
  Eigen::Matrix2d K = Eigen::Vector2d(0.5, 0).asDiagonal();
  EXPECT_NEAR(Sigma(Condition::kOneSided, K, M), 1, 1e-14);
  EXPECT_GT(K(0, 0), M(0, 0));
}

// C4: sym(K⁻¹) = (S + A S⁻¹ Aᵀ)⁻¹: skewness makes a robot seem stiffer to a probing force.
TEST(Condition, SkewPartMakesComplianceSmaller) {
  Rng rng(9);
  for (int trial = 0; trial < 200; ++trial) {
    const int n = 2 + trial % 6;
    const MatrixXd S = RandomSpd(n, &rng), A = Skew(RandomMatrix(n, n, &rng, 2));
    const MatrixXd left = Sym(test::Inverse(S + A));
    const MatrixXd right = test::Inverse(S + A * test::Inverse(S) * A.transpose());
    EXPECT_TRUE(left.isApprox(right, 1e-10)) << "trial " << trial;
    EXPECT_TRUE(LoewnerLessEqual(left, test::Inverse(S)));
  }
}

// C7: four ways to say the disc (S7c). Each is evaluated by itself.
TEST(Condition, DiscHasFourEquivalentForms) {
  Rng rng(10);
  int inside = 0;
  for (int trial = 0; trial < 3000; ++trial) {
    const int n = 2 + trial % 4;
    const MatrixXd M = RandomSpd(n, &rng);
    // near the border, or the question is too easy
    const MatrixXd K = OnTheBorder(Condition::kDisc, M, &rng) * rng.Uniform(0.8, 1.2);
    const double sigma = Sigma(Condition::kDisc, K, M);
    if (std::abs(sigma - 1) < 1e-6) continue;
    const bool b = sigma <= 1;
    const bool a = test::MinEigenvalue(Sym(K) - K.transpose() * test::Inverse(M) * K) >= 0;
    const bool c = test::MinEigenvalue(Sym(test::Inverse(K)) - test::Inverse(M)) >= 0;
    EXPECT_EQ(a, b) << "trial " << trial;
    EXPECT_EQ(c, b) << "trial " << trial;
    inside += b;
  }
  EXPECT_GT(inside, 300);
}

// (d): δτᵀ M⁻¹ δτ ≤ −δτᵀ δq in every direction; and outside the disc a direction that breaks it
// exists and is the right singular vector.
TEST(Condition, DiscIsABoundOnEnergy) {
  Rng rng(11);
  for (int trial = 0; trial < 200; ++trial) {
    const int n = 3 + trial % 4;
    const MatrixXd M = RandomSpd(n, &rng);
    MatrixXd K = OnTheBorder(Condition::kDisc, M, &rng);
    const auto slack = [&](const VectorXd& dq) {  // [N·m·rad]
      const VectorXd tau = -K * dq;
      return -tau.dot(dq) - tau.dot(VectorXd(test::SolveSpd(M, tau)));
    };
    for (int k = 0; k < 50; ++k) {
      const VectorXd dq = RandomMatrix(n, 1, &rng).normalized();
      EXPECT_GE(slack(dq), -1e-9 * K.norm());
    }
    K *= 1.3;
    SigmaTriple top;
    ASSERT_EQ(LargestSigma(Condition::kDisc, K, M, &top), StiffnessStatus::kOk);
    if (top.sigma > 1 + 1e-9) {
      EXPECT_LT(slack(top.right), 0);
    }
  }
}

// σ² = 1 + 4 λ_max(K̃ᵀK̃ − sym K̃)
TEST(Condition, DiscSigmaFromOneSymmetricEigenvalue) {
  Rng rng(12);
  for (int trial = 0; trial < 100; ++trial) {
    const int n = 2 + trial % 10;
    const MatrixXd M = RandomSpd(n, &rng), K = RandomMatrix(n, n, &rng, 2);
    const MatrixXd Kt = Written(Condition::kTwoSided, K, M);
    const double v = test::MaxEigenvalue(Kt.transpose() * Kt - Sym(Kt));
    EXPECT_NEAR(SpectralNorm(Written(Condition::kDisc, K, M)), std::sqrt(1 + 4 * v), 1e-10);
  }
}

// What the disc gives for free: 0 ≤ sym K ≤ M and circulation at most one half.
TEST(Condition, DiscBoundsBothSidesAndTheSkewPart) {
  Rng rng(13);
  for (int trial = 0; trial < 1000; ++trial) {
    const int n = 2 + trial % 5;
    const MatrixXd M = RandomSpd(n, &rng);
    const MatrixXd K = OnTheBorder(Condition::kDisc, M, &rng);
    EXPECT_TRUE(LoewnerLessEqual(K, M));
    EXPECT_TRUE(LoewnerLessEqual(MatrixXd::Zero(n, n), K));
    EXPECT_LE(SpectralNorm(Skew(Written(Condition::kTwoSided, K, M))), 0.5 + 1e-12);
  }
}

// Closed chain: whatever the constraint, NᵀKN meets the disc against NᵀMN when K meets it against
// M.
TEST(Condition, DiscIsInheritedByConstrainedMotions) {
  Rng rng(14);
  for (int trial = 0; trial < 1000; ++trial) {
    const int n = 4 + trial % 4, nz = 1 + trial % 3;
    const MatrixXd M = RandomSpd(n, &rng), K = OnTheBorder(Condition::kDisc, M, &rng);
    const MatrixXd N = RandomMatrix(n, nz, &rng);
    EXPECT_LE(Sigma(Condition::kDisc, N.transpose() * K * N, N.transpose() * M * N), 1 + 1e-10);
  }
}

// Band: m ≤ sym K ≤ M and sym(K⁻¹) ≥ M⁻¹; with m = 0 it is the disc.
TEST(Condition, BandAddsAFloor) {
  Rng rng(15);
  for (int trial = 0; trial < 1000; ++trial) {
    const int n = 2 + trial % 4;
    const MatrixXd m = RandomSpd(n, &rng), M = m + RandomSpd(n, &rng);
    const MatrixXd Lh = LowerCholesky(0.5 * (M - m));
    MatrixXd A = RandomMatrix(n, n, &rng);
    A /= SpectralNorm(A);
    const MatrixXd K = 0.5 * (M + m) + Lh * A * Lh.transpose();
    SigmaTriple triple;
    ASSERT_EQ(LargestBandSigma(K, M, m, &triple), StiffnessStatus::kOk);
    EXPECT_NEAR(triple.sigma, 1, 1e-8);
    EXPECT_TRUE(LoewnerLessEqual(m, K));
    EXPECT_TRUE(LoewnerLessEqual(K, M));
    EXPECT_TRUE(LoewnerLessEqual(test::Inverse(M), test::Inverse(K)));
    ASSERT_EQ(LargestBandSigma(K, M, MatrixXd::Zero(n, n), &triple), StiffnessStatus::kOk);
    EXPECT_NEAR(triple.sigma, Sigma(Condition::kDisc, K, M), 1e-9 * triple.sigma);
  }
}

TEST(Condition, DerivativeOfTheBandSigma) {
  Rng rng(16);
  const MatrixXd m = RandomSpd(4, &rng), M = m + RandomSpd(4, &rng),
                 K = RandomMatrix(4, 4, &rng, 3);
  SigmaTriple top;
  ASSERT_EQ(LargestBandSigma(K, M, m, &top), StiffnessStatus::kOk);
  const MatrixXd Li = test::Inverse(LowerCholesky(0.5 * (M - m)));
  const MatrixXd reference = test::Difference(
      [&](const MatrixXd& x) { return SpectralNorm(Li * (x - 0.5 * (M + m)) * Li.transpose()); },
      K,
      1e-6);
  EXPECT_LT((MatrixXd(top.left * top.right.transpose()) - reference).norm(),
            1e-6 * reference.norm());
}

// The worst direction of the quadratic form: met by its eigenvector, passed by no random direction.
TEST(Condition, WorstEigenvalueIsTheWorstDirection) {
  Rng rng(17);
  for (int trial = 0; trial < 30; ++trial) {
    const int n = 3 + trial % 5;
    const MatrixXd M = RandomSpd(n, &rng), K = RandomMatrix(n, n, &rng, 2);
    double worst = 0;
    ASSERT_EQ(WorstEigenvalue(K, M, &worst), StiffnessStatus::kOk);
    EXPECT_NEAR(worst, test::Eigenvalues(Sym(K), M).maxCoeff(), 1e-10 * std::abs(worst));
    for (int k = 0; k < 200; ++k) {
      const VectorXd x = RandomMatrix(n, 1, &rng);
      EXPECT_LE(x.dot(K * x) / x.dot(M * x), worst + 1e-12);
    }
  }
}

// Power iteration from a random start gives a lower bound, and for the disc of a soft robot a poor
// one: the matrix is nearly −I and its singular values crowd together. Hence the eigenvalue
// problem. The robot here is 0.05 of its budget but for one direction that violates it by a tenth.
TEST(Condition, PowerIterationUnderestimates) {
  Rng rng(18);
  constexpr int kSteps[] = {5, 10, 20};
  double worst[] = {1, 1, 1};
  for (int trial = 0; trial < 200; ++trial) {
    const int n = 29;
    const MatrixXd M = RandomSpd(n, &rng);
    const MatrixXd L = LowerCholesky(M);
    const VectorXd top = RandomMatrix(n, 1, &rng).normalized();
    MatrixXd K_white = 0.05 * MatrixXd::Identity(n, n) + RandomMatrix(n, n, &rng, 0.01);
    K_white += 1.05 * top * top.transpose();
    const MatrixXd A = Written(Condition::kDisc, L * K_white * L.transpose(), M);
    VectorXd v = RandomMatrix(n, 1, &rng).normalized();
    int done = 0;
    for (int i = 0; i < 3; ++i) {
      for (; done < kSteps[i]; ++done) v = (A.transpose() * (A * v)).normalized();
      const double estimate = (A * v).norm() / SpectralNorm(A);
      EXPECT_LE(estimate, 1 + 1e-12);
      worst[i] = std::min(worst[i], estimate);
    }
  }
  std::printf(
      "[ figures  ] power iteration, worst estimate over sigma: %.3f (5), %.3f (10), %.3f (20)\n",
      worst[0],
      worst[1],
      worst[2]);
  // a tenth of violation is not seen at all in the worst of 200 starts, after any usual number
  EXPECT_LT(worst[0], 0.85);
  EXPECT_GT(worst[0], 0.5);
  EXPECT_LT(worst[1], 1);
  EXPECT_GE(worst[1], worst[0]);
  EXPECT_GE(worst[2], worst[1]);
}

// The largest eigenvalue alone, by another way than the solver for all of them; also where roots
// coincide or matrices are diagonal, zero or of one row.
TEST(Condition, LargestEigenvalueIsThatOfTheWholeSpectrum) {
  Rng rng(33);
  const auto check = [](const JointMatrix& S, const char* what) {
    double lambda = 0;
    ASSERT_EQ(LargestEigenvalue(S, &lambda), StiffnessStatus::kOk) << what;
    // both are backward stable: some n ε ‖S‖
    EXPECT_NEAR(lambda, test::MaxEigenvalue(S), 1e-13 * (S.norm() + 1e-300)) << what;
  };
  for (int trial = 0; trial < 200; ++trial) {
    const int n = 1 + trial % 29;
    const MatrixXd A = test::RandomMatrix(n, n, &rng);
    check(A + A.transpose(), "indefinite");
    check(A * A.transpose() * 1e8, "positive");
    check(-A * A.transpose() * 1e-8, "negative");
    const MatrixXd Q = test::OrthonormalColumns(A);
    VectorXd d = VectorXd::Constant(n, 3);
    d.tail(n / 2).setConstant(1 + 1e-9);
    check(Q * d.asDiagonal() * Q.transpose(), "clustered");
    check(MatrixXd(d.asDiagonal()), "diagonal");
  }
  check(MatrixXd::Zero(5, 5), "zero");
}

TEST(Condition, IllPosedInputIsTold) {
  const MatrixXd good = MatrixXd::Identity(3, 3);
  MatrixXd nan = good, indefinite = good;
  nan(1, 2) = std::numeric_limits<double>::quiet_NaN();
  indefinite(2, 2) = -1;
  for (Condition condition : kConditions) {
    double sigma = 0;
    SigmaTriple triple;
    SigmaSpectrum spectrum;
    EXPECT_EQ(LargestSigma(condition, nan, good, &sigma), StiffnessStatus::kNotFinite);
    EXPECT_EQ(LargestSigma(condition, good, nan, &triple), StiffnessStatus::kNotFinite);
    EXPECT_EQ(LargestSigma(condition, good, indefinite, &sigma),
              StiffnessStatus::kBudgetNotPositive);
    EXPECT_EQ(AllSigmas(condition, good, MatrixXd::Zero(3, 3), &spectrum),
              StiffnessStatus::kBudgetNotPositive);
  }
  SigmaTriple triple;
  EXPECT_EQ(LargestBandSigma(good, good, 2 * good, &triple), StiffnessStatus::kBudgetNotPositive);
  EXPECT_EQ(LargestBandSigma(good, good, indefinite, &triple), StiffnessStatus::kBudgetNotPositive);
  EXPECT_EQ(LargestBandSigma(good, good, nan, &triple), StiffnessStatus::kNotFinite);
  double worst = 0;
  EXPECT_EQ(WorstEigenvalue(good, indefinite, &worst), StiffnessStatus::kBudgetNotPositive);
}

}  // namespace
}  // namespace silc
