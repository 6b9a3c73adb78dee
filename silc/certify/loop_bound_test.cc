// SPDX-License-Identifier: Apache-2.0
#include "silc/certify/loop_bound.h"

#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <numbers>

#include "silc/certify/test_loops.h"
#include "silc/stiffness/test_support.h"

namespace silc {
namespace {

using test::MatrixXd;
using test::RandomMatrix;
using test::VectorXd;
using namespace test::eager;

// [A_0 A_1 …] of a random loop with ρ = radius: A_i r^{i+1} has the modes of A_i, r times as far
// out.
MatrixXd RandomLoop(int n, int frames, double radius, Rng* rng) {
  MatrixXd A = RandomMatrix(n, n * frames, rng);
  const double ratio = radius / LoopRadius(A);
  for (int i = 0; i < frames; ++i) A.middleCols(i * n, n) *= std::pow(ratio, i + 1);
  return A;
}

MatrixXd Companion(const MatrixXd& A) {
  MatrixXd C = MatrixXd::Zero(A.cols(), A.cols());
  C.topRows(A.rows()) = A;
  for (Eigen::Index k = A.rows(); k < A.cols(); ++k) C(k, k - A.rows()) = 1;
  return C;
}

TEST(LoopBound, RadiusIsThatOfTheActions) {
  Rng rng(41);
  // a_t = 0.5 a_{t−1} + 0.36 a_{t−2}: z² = 0.5 z + 0.36, z = 0.9
  MatrixXd one(1, 2);
  one << 0.5, 0.36;
  EXPECT_NEAR(LoopRadius(one), 0.9, 1e-12);
  const MatrixXd A = RandomLoop(4, 3, 0.8, &rng);
  EXPECT_NEAR(LoopRadius(A), 0.8, 1e-9);
  EXPECT_NEAR(test::ObserversRadius(A), 0.8, 1e-9);
  // actions fade as its powers do
  MatrixXd power = Companion(A);
  for (int k = 0; k < 9; ++k) power = power * power;
  EXPECT_NEAR(std::pow(test::SpectralNorm(power), 1.0 / 512), 0.8, 0.02);
}

// Every loop of a set, and the worst ones that can be found: those of a boundary, climbed.
TEST(LoopBound, NoLoopOfTheSetIsBeyondIt) {
  Rng rng(42);
  for (int trial = 0; trial < 20; ++trial) {
    const int n = 2 + trial % 4, frames = 1 + trial % 3;
    const MatrixXd A = RandomLoop(n, frames, 0.3 + 0.03 * trial, &rng);
    std::vector<MatrixXd> segments;
    for (int j = 0; j < 6; ++j) {
      segments.push_back(RandomMatrix(n, 1, &rng) * RandomMatrix(1, n * frames, &rng));
    }
    const auto set_of = [&](double size) {
      FormBound set = FormBound::Zero(n, n * frames);
      for (const MatrixXd& B : segments) set.AddSegment(size * B);
      return set;
    };
    double size = 1;
    while (size > 1e-6 && !(LoopRadiusBound(A, set_of(size), 0) <= 1)) size *= 0.9;
    const double upper = LoopRadiusBound(A, set_of(size), 10);
    ASSERT_LE(upper, 1) << trial;
    double largest = 0;
    for (int corner = 0; corner < 1 << segments.size(); ++corner) {
      MatrixXd loop = A;
      for (std::size_t j = 0; j < segments.size(); ++j) {
        loop += ((corner >> j & 1) != 0 ? size : -size) * segments[j];
      }
      largest = std::max(largest, test::ObserversRadius(loop));
    }
    EXPECT_LT(largest, upper) << trial;
  }
}

// One joint, one frame: ρ is |A|, and the bound of an interval is its end.
TEST(LoopBound, IsTheEndOfAnIntervalForOneAction) {
  for (const double middle : {-0.5, 0.0, 0.3}) {
    for (const double reach : {0.1, 0.3, 0.49}) {
      FormBound set = FormBound::Zero(1, 1);
      set.AddSegment(MatrixXd::Constant(1, 1, reach));
      const MatrixXd A = MatrixXd::Constant(1, 1, middle);
      EXPECT_NEAR(LoopRadiusBound(A, set, 20), std::abs(middle) + reach, 2e-3);
    }
    FormBound set = FormBound::Zero(1, 1);
    set.AddSegment(MatrixXd::Constant(1, 1, 1.001 - std::abs(middle)));
    EXPECT_TRUE(std::isinf(LoopRadiusBound(MatrixXd::Constant(1, 1, middle), set, 4)));
  }
}

// Two frames, a_t = p a_{t−1} + q a_{t−2} at p = 1.8, q = −0.9: stable, though |p| + |q| is 2.7. A
// complex change of (p, q) makes it unstable from min_θ |1 − p e^{−jθ} − q e^{−2jθ}|/√2 on, and
// that is where the bound ends: none is better for sets that (C4) describes.
TEST(LoopBound, ReachesAsFarAsTheNearestUnstableLoop) {
  const double p = 1.8, q = -0.9;
  double nearest = HUGE_VAL;
  for (int k = 0; k <= 100000; ++k) {
    const std::complex<double> turn = std::polar(1.0, -std::numbers::pi * k / 100000);
    nearest = std::min(nearest, std::abs(1.0 - p * turn - q * turn * turn) / std::sqrt(2.0));
  }
  MatrixXd A(1, 2);
  A << p, q;
  for (const double size : {0.5, 0.98, 1.02}) {
    FormBound set = FormBound::Zero(1, 2);
    set.AddProduct(MatrixXd::Ones(1, 1), size * nearest, MatrixXd::Identity(2, 2));
    EXPECT_EQ(LoopRadiusBound(A, set, 0) <= 1, size < 1) << size;
  }
}

// Nothing is left but ρ when the set shrinks.
TEST(LoopBound, TendsToTheRadius) {
  Rng rng(43);
  for (int trial = 0; trial < 10; ++trial) {
    const MatrixXd A = RandomLoop(3, 2, 0.95, &rng);
    FormBound set = FormBound::Zero(3, 6);
    set.AddBall(1e-9);
    EXPECT_NEAR(LoopRadiusBound(A, set, 12), 0.95, 0.02) << trial;
    EXPECT_TRUE(std::isinf(LoopRadiusBound(1.2 * A, FormBound::Zero(3, 6), 4)));
  }
  const MatrixXd none = MatrixXd::Zero(3, 3);
  EXPECT_LE(LoopRadiusBound(none, FormBound::Zero(3, 3), 10), 0.01);
  MatrixXd broken = none;
  broken(1, 1) = NAN;
  EXPECT_TRUE(std::isinf(LoopRadiusBound(broken, FormBound::Zero(3, 3), 0)));
}

}  // namespace
}  // namespace silc
