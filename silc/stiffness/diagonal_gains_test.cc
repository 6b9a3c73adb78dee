// SPDX-License-Identifier: Apache-2.0
#include "silc/stiffness/diagonal_gains.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "silc/stiffness/test_support.h"

namespace silc {
namespace {

using test::MatrixXd;
using test::VectorXd;
using namespace test::eager;

MatrixXd RandomSpd(int n, std::mt19937* rng) {
  std::normal_distribution<double> normal;
  const MatrixXd A = MatrixXd::NullaryExpr(n, n, [&] { return normal(*rng); });
  return 10 * A * A.transpose() + MatrixXd::Identity(n, n);
}

// an open robot, or one whose nv joints are tied together down to nz motions
GainCeiling RandomCeiling(int nv, int nz, std::mt19937* rng) {
  std::normal_distribution<double> normal;
  GainCeiling c;
  if (nz == nv) {
    c.N = MatrixXd::Identity(nv, nv);
  } else {
    c.N = MatrixXd::NullaryExpr(nv, nz, [&] { return normal(*rng); });
  }
  c.M = RandomSpd(nz, rng);
  return c;
}

bool Fits(const std::vector<GainCeiling>& ceilings, const VectorXd& limit, const VectorXd& kp) {
  if (!((kp.array() > 0).all() && (kp.array() <= limit.array() * (1 + 1e-9)).all())) return false;
  for (const GainCeiling& c : ceilings) {
    const MatrixXd slack = c.M - c.N.transpose() * kp.asDiagonal() * c.N;
    const double least = test::Eigenvalues(slack)[0];
    if (least < -1e-9 * c.M.norm()) return false;
  }
  return true;
}

double Objective(const VectorXd& kp) { return kp.array().log().sum(); }

// closed forms; the objective is good to 1e-6, a gain to its root where the optimum is flat
TEST(DiagonalGains, OneJointTakesWhatItMay) {
  const GainCeiling c = {MatrixXd::Identity(1, 1), MatrixXd::Constant(1, 1, 40)};
  EXPECT_NEAR(SolveDiagonalGains({c}, VectorXd::Constant(1, 100)).kp[0], 40, 40e-5);
  EXPECT_NEAR(SolveDiagonalGains({c}, VectorXd::Constant(1, 30)).kp[0], 30, 30e-5);
  // a motion of two joints tied together, d₁ + d₂ ≤ 40: half each
  const GainCeiling tied = {MatrixXd::Ones(2, 1), MatrixXd::Constant(1, 1, 40)};
  const DiagonalGains both = SolveDiagonalGains({tied}, VectorXd::Constant(2, 100));
  EXPECT_NEAR(both.kp[0], 20, 20e-4);
  EXPECT_NEAR(both.kp[1], 20, 20e-4);
  // and where one has a limit of its own the other takes the rest
  const DiagonalGains rest = SolveDiagonalGains({tied}, Eigen::Vector2d(5, 100));
  EXPECT_NEAR(rest.kp[0], 5, 5e-4);
  EXPECT_NEAR(rest.kp[1], 35, 35e-4);
  EXPECT_NEAR(rest.pressure[1], 1, 1e-3);
  EXPECT_NEAR(rest.pressure[0], 5.0 / 35, 1e-3);  // the multiplier 1/35 times 5
}

// No point of a fine grid that fits is better, and the best of them is nearly as good.
TEST(DiagonalGains, IsTheBestOfAGrid) {
  std::mt19937 rng(5);
  for (int trial = 0; trial < 12; ++trial) {
    const int n = trial % 2 == 0 ? 2 : 3;
    const std::vector<GainCeiling> ceilings = {RandomCeiling(n, n, &rng),
                                               RandomCeiling(n, n - 1, &rng)};
    const VectorXd limit = VectorXd::LinSpaced(n, 8, 20);
    const DiagonalGains found = SolveDiagonalGains(ceilings, limit);
    ASSERT_TRUE(found.ok) << found.why;
    EXPECT_LE(found.gap, 1.001e-6);
    EXPECT_TRUE(Fits(ceilings, limit, found.kp));
    // logarithmic about the answer, 6 % a step: so is the loss of rounding down to the grid
    constexpr int kSteps = 40;
    const double step = 1.06;
    double best = -HUGE_VAL;
    const long points = std::lround(std::pow(kSteps, n));
    for (long p = 0; p < points; ++p) {
      VectorXd kp(n);
      long rest = p;
      for (int i = 0; i < n; ++i, rest /= kSteps) {
        const long steps = rest % kSteps - kSteps / 2;
        kp[i] = found.kp[i] * std::pow(step, static_cast<double>(steps));
      }
      if (Fits(ceilings, limit, kp)) best = std::max(best, Objective(kp));
    }
    EXPECT_LE(best, Objective(found.kp) + found.gap);
    EXPECT_GE(best, Objective(found.kp) - n * std::log(step) - found.gap);
  }
}

// In 29 joints: nothing that fits is better, whichever way one leaves the answer; and the gap says
// so by itself, through multipliers that are worked out here from the answer alone.
TEST(DiagonalGains, NothingThatFitsIsBetterInManyJoints) {
  std::mt19937 rng(6);
  std::normal_distribution<double> normal;
  for (int trial = 0; trial < 4; ++trial) {
    constexpr int kMany = 29;
    std::vector<GainCeiling> ceilings;
    for (int k = 0; k < 6; ++k) {
      ceilings.push_back(RandomCeiling(kMany, k % 2 == 0 ? kMany : kMany - 6, &rng));
    }
    const VectorXd limit = VectorXd::Constant(kMany, 60);
    const DiagonalGains found = SolveDiagonalGains(ceilings, limit);
    ASSERT_TRUE(found.ok) << found.why;
    ASSERT_TRUE(Fits(ceilings, limit, found.kp));
    for (int k = 0; k < 300; ++k) {
      const double size = std::pow(10.0, -1 - k % 5);
      VectorXd kp = found.kp;
      for (double& x : kp) x *= std::exp(size * normal(rng));
      // back inside, if need be: a servo that fits after all, and is not better
      double over = (kp.array() / limit.array()).maxCoeff();
      for (const GainCeiling& c : ceilings) over = std::max(over, WorstOfServo(c, kp));
      kp /= std::max(1.0, over);
      EXPECT_LE(Objective(kp), Objective(found.kp) + found.gap) << size;
    }
    // pressed by budgets and limits together: stationarity of (G1)
    for (int i = 0; i < kMany; ++i) {
      EXPECT_LE(found.pressure[i], 1 + 1e-3);
      if (found.kp[i] >= 0.999 * limit[i]) continue;
      EXPECT_NEAR(found.pressure[i], 1, 1e-3) << i;
    }
  }
}

TEST(DiagonalGains, OtherUnitsGiveTheSameServo) {
  std::mt19937 rng(7);
  std::vector<GainCeiling> ceilings = {RandomCeiling(5, 5, &rng), RandomCeiling(5, 3, &rng)};
  const VectorXd limit = VectorXd::Constant(5, 50);
  const DiagonalGains metres = SolveDiagonalGains(ceilings, limit);
  for (GainCeiling& c : ceilings) c.M *= 1000;  // mN·m
  const DiagonalGains milli = SolveDiagonalGains(ceilings, 1000 * limit);
  EXPECT_TRUE((milli.kp / 1000).isApprox(metres.kp, 1e-4));
}

TEST(DiagonalGains, SigmaIsTheDiscsForASymmetricServo) {
  std::mt19937 rng(8);
  for (int trial = 0; trial < 20; ++trial) {
    const GainCeiling c = RandomCeiling(6, 4, &rng);
    const VectorXd kp = VectorXd::LinSpaced(6, 1, 30);
    const MatrixXd L_inverse = test::Inverse(test::LowerCholesky(c.M));
    const MatrixXd K = c.N.transpose() * kp.asDiagonal() * c.N;
    const MatrixXd disc = 2 * (L_inverse * K * L_inverse.transpose()) - MatrixXd::Identity(4, 4);
    // ‖2 L⁻¹KL⁻ᵀ − I‖₂ as it is written
    const double sigma = test::SpectralNorm(disc);
    const double worst = WorstOfServo(c, kp);
    ASSERT_GT(worst, 1);
    EXPECT_NEAR(SigmaOfServo(worst), sigma, 1e-9 * sigma);
    EXPECT_EQ(SigmaOfServo(0.3), 1);
  }
}

TEST(DiagonalGains, BadProblemsAreTold) {
  const GainCeiling c = {MatrixXd::Identity(2, 2), MatrixXd::Identity(2, 2)};
  EXPECT_FALSE(SolveDiagonalGains({c}, Eigen::Vector2d(1, 0)).ok);
  GainCeiling bad = c;
  bad.M(0, 0) = -1;
  EXPECT_EQ(SolveDiagonalGains({bad}, Eigen::Vector2d(1, 1)).why, "a budget is not positive");
  bad.M(0, 0) = NAN;
  EXPECT_FALSE(SolveDiagonalGains({bad}, Eigen::Vector2d(1, 1)).ok);
}

}  // namespace
}  // namespace silc
