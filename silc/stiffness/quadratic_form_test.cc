// SPDX-License-Identifier: Apache-2.0
#include "silc/stiffness/quadratic_form.h"

#include <gtest/gtest.h>

#include <cmath>

#include "silc/stiffness/condition_reference.h"
#include "silc/stiffness/test_support.h"

namespace silc {
namespace {

using namespace test::eager;
using test::MatrixXd;

// Chance that a random unit vector in n dimensions has x₁² > s: the tail of Beta(1/2, (n−1)/2),
// summed up over the angle to the axis, density sin^{n−2}.
double TailOfOneAxis(int n, double s) {
  const double edge = std::acos(std::sqrt(s));
  constexpr int kCells = 200000;
  double inside = 0, all = 0;
  for (int k = 0; k < kCells; ++k) {
    const double angle = (k + 0.5) / kCells * M_PI / 2;
    const double density = std::pow(std::sin(angle), n - 2);
    all += density;
    if (angle < edge) inside += density;
  }
  return inside / all;
}

// C17: one direction of 29 at r times the budget, the others at 0.2 of it. The chance of a draw to
// see it.
TEST(QuadraticForm, RandomDirectionsHardlySeeAViolation) {
  constexpr int n = 29;
  const MatrixXd M = MatrixXd::Identity(n, n);
  const double figures[][2] = {{2, 5.8e-5}, {5, 0.025}, {10, 0.126}};
  for (const auto& [ratio, chance] : figures) {
    const double exact = TailOfOneAxis(n, 0.8 / (ratio - 0.2));
    EXPECT_NEAR(exact / chance, 1, 0.05) << ratio;  // figures of docs/math/stiffness.md, two digits

    MatrixXd K = 0.2 * M;
    K(3, 3) = ratio;
    Rng rng(1);
    constexpr int kSamples = 100000;
    const QuadraticFormTest test = TestQuadraticForm(K, M, kSamples, &rng);
    // five standard errors of a count, and one for the counts near zero
    const double expected = exact * kSamples;
    EXPECT_NEAR(test.violations, expected, 5 * std::sqrt(expected) + 1) << ratio;
    // the eigenvalue sees it at once
    double worst = 0;
    ASSERT_EQ(WorstEigenvalue(K, M, &worst), StiffnessStatus::kOk);
    EXPECT_NEAR(worst, ratio, 1e-12);
  }
  EXPECT_LT(TailOfOneAxis(n, 0.8 / (1.5 - 0.2)), 2e-6);
}

TEST(QuadraticForm, TheWorstSampleIsReportedWithItsBothSides) {
  Rng draw(2), rng(3);
  const MatrixXd M = test::RandomSpd(4, &draw), K = test::RandomMatrix(4, 4, &draw);
  const QuadraticFormTest test = TestQuadraticForm(K, M, 2000, &rng);
  double worst = 0;
  ASSERT_EQ(WorstEigenvalue(K, M, &worst), StiffnessStatus::kOk);
  EXPECT_EQ(test.samples, 2000);
  EXPECT_NEAR(test.worst_ratio, test.worst_form / test.worst_budget, 1e-15);
  EXPECT_LE(test.worst_ratio, worst);
  EXPECT_GT(test.worst_ratio, 0.8 * worst);  // in four dimensions 2000 draws come near
}

// Only the symmetric part is seen: a K that is all circulation passes any budget.
TEST(QuadraticForm, IsBlindToCirculation) {
  MatrixXd K(2, 2);
  K << 0, -1000, 1000, 0;
  Rng rng(4);
  EXPECT_EQ(TestQuadraticForm(K, MatrixXd::Identity(2, 2), 100, &rng).violations, 0);
}

}  // namespace
}  // namespace silc
