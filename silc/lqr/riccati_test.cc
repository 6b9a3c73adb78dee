// SPDX-License-Identifier: Apache-2.0
#include "silc/lqr/riccati.h"

#include <gtest/gtest.h>

#include <Eigen/Eigenvalues>
#include <Eigen/LU>
#include <cmath>
#include <random>

#include "silc/base/error.h"

namespace silc {
namespace {

using Eigen::MatrixXd;
using Eigen::VectorXd;

MatrixXd Random(int rows, int cols, std::mt19937* rng) {
  std::normal_distribution<double> normal;
  return MatrixXd::NullaryExpr(rows, cols, [&] { return normal(*rng); });
}

double SpectralRadius(const MatrixXd& A) { return A.eigenvalues().cwiseAbs().maxCoeff(); }

TEST(SampleSystem, MatchesSmallSteps) {
  std::mt19937 rng(3);
  const MatrixXd A = Random(4, 4, &rng), B = Random(4, 2, &rng);
  const double period = 0.02;
  const SampledSystem sampled = SampleSystem(A, B, period);
  // midpoint rule with 2000 sub-steps: error ~ (T/2000)² ‖A‖³ T, near 1e-12
  VectorXd x = Random(4, 1, &rng);
  const VectorXd u = Random(2, 1, &rng);
  const VectorXd expected = sampled.A * x + sampled.B * u;
  const double h = period / 2000;
  for (int i = 0; i < 2000; ++i) {
    const VectorXd middle = x + 0.5 * h * (A * x + B * u);
    x += h * (A * middle + B * u);
  }
  EXPECT_LT((x - expected).norm(), 1e-9);
}

// The definition itself: no nearby gain has a lower cost from a random start.
TEST(RegulatorGain, IsStableAndOptimal) {
  std::mt19937 rng(5);
  for (int trial = 0; trial < 10; ++trial) {
    SampledSystem system{Random(5, 5, &rng), Random(5, 2, &rng)};
    system.A *= 1.2 / SpectralRadius(system.A);  // open loop unstable
    const MatrixXd half = Random(5, 5, &rng);
    const MatrixXd Q = half * half.transpose(), R = MatrixXd::Identity(2, 2);
    const MatrixXd F = RegulatorGain(system, Q, R);
    ASSERT_LT(SpectralRadius(system.A - system.B * F), 1);

    const VectorXd start = Random(5, 1, &rng);
    const auto cost = [&](const MatrixXd& gain) {
      VectorXd x = start;
      double sum = 0;
      for (int t = 0; t < 2000; ++t) {
        const VectorXd u = -gain * x;
        sum += x.dot(Q * x) + u.dot(R * u);
        x = system.A * x + system.B * u;
      }
      return sum;
    };
    const double best = cost(F);
    for (int probe = 0; probe < 20; ++probe) {
      EXPECT_GE(cost(F + 1e-3 * Random(2, 5, &rng)), best * (1 - 1e-12));
    }
  }
}

TEST(RegulatorGain, ScalarClosedForm) {
  // x = a x + u, q = r = 1: X solves X² − a² X − 1 = 0
  const double a = 1.5;
  const double X = (a * a + std::sqrt(a * a * a * a + 4)) / 2;
  const MatrixXd one = MatrixXd::Identity(1, 1);
  EXPECT_NEAR(RegulatorGain({a * one, one}, one, one)(0, 0), X * a / (1 + X), 1e-12);
}

TEST(RegulatorGain, SaysWhenNoneExists) {
  MatrixXd A(2, 2), B(2, 1);
  A << 1.1, 0, 0, 0.5;
  B << 0, 1;  // the unstable mode is out of reach
  EXPECT_THROW(RegulatorGain({A, B}, MatrixXd::Identity(2, 2), MatrixXd::Identity(1, 1)), RunError);
}

}  // namespace
}  // namespace silc
