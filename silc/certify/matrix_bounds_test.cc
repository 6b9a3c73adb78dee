// SPDX-License-Identifier: Apache-2.0
#include "silc/certify/matrix_bounds.h"

#include <gtest/gtest.h>

#include <cmath>

#include "silc/stiffness/test_support.h"

namespace silc {
namespace {

using test::MatrixXd;
using test::RandomMatrix;
using test::VectorXd;
using namespace test::eager;

TEST(LargestEigenvalueBound, IsAboveByLittle) {
  Rng rng(5);
  for (int trial = 0; trial < 30; ++trial) {
    const int n = 1 + trial;
    const MatrixXd S = test::Sym(RandomMatrix(n, n, &rng, std::pow(10.0, trial % 7 - 3)));
    const double bound = LargestEigenvalueBound(S), exact = test::MaxEigenvalue(S);
    EXPECT_GE(bound, exact);
    EXPECT_LE(bound - exact, 1e-9 * S.norm());
  }
  // all of one size: nothing is left between the eigenvalue and the bound but rounding
  EXPECT_GE(LargestEigenvalueBound(MatrixXd::Identity(40, 40)), 1.0);
  MatrixXd broken = MatrixXd::Identity(3, 3);
  broken(1, 2) = broken(2, 1) = NAN;
  EXPECT_TRUE(std::isinf(LargestEigenvalueBound(broken)));
}

TEST(NormBound, IsAboveByAFifthAtMost) {
  Rng rng(6);
  for (int trial = 0; trial < 20; ++trial) {
    const MatrixXd M = RandomMatrix(5 + 4 * trial, 60 - 2 * trial, &rng, 1e-3 * (1 + trial));
    const double exact = test::SpectralNorm(M), bound = NormBound(M);
    EXPECT_GE(bound, exact);
    EXPECT_LE(bound, 1.3 * exact);
  }
  EXPECT_EQ(NormBound(MatrixXd::Zero(3, 4)), 0);
  const MatrixXd one = RandomMatrix(30, 1, &rng) * RandomMatrix(1, 40, &rng);  // rank one: exact
  EXPECT_NEAR(NormBound(one), one.norm(), 1e-8 * one.norm());
}

// A cube of matrices: every corner, and the corners are where a norm is largest.
class MatrixCube : public ::testing::Test {
 protected:
  static constexpr int kSymbols = 9;
  void Draw(int trial, Rng* rng) {
    B_.clear();
    const int rows = 3 + trial % 4, columns = 2 + trial % 5;
    for (int j = 0; j < kSymbols; ++j) {
      B_.push_back(trial % 2 == 0 ? RandomMatrix(rows, columns, rng)
                                  : RandomMatrix(rows, 1, rng) * RandomMatrix(1, columns, rng));
    }
    A_ = RandomMatrix(rows, columns, rng, trial % 3);
    set_ = FormBound::Zero(rows, columns);
    for (const MatrixXd& B : B_) set_.AddSegment(B);
  }
  double LargestCorner(const MatrixXd& A) const {
    double largest = 0;
    for (int corner = 0; corner < 1 << kSymbols; ++corner) {
      MatrixXd sum = A;
      for (int j = 0; j < kSymbols; ++j) sum += ((corner >> j & 1) != 0 ? 1.0 : -1.0) * B_[j];
      largest = std::max(largest, test::SpectralNorm(sum));
    }
    return largest;
  }
  std::vector<MatrixXd> B_;
  MatrixXd A_;
  FormBound set_;
};

TEST_F(MatrixCube, NoCornerIsBeyondTheBoundAndTheTriangleInequalityIsWorse) {
  Rng rng(7);
  for (int trial = 0; trial < 20; ++trial) {
    Draw(trial, &rng);
    double triangle = 0;
    for (const MatrixXd& B : B_) triangle += test::SpectralNorm(B);
    const double corner = LargestCorner(MatrixXd::Zero(A_.rows(), A_.cols()));
    EXPECT_LE(corner, set_.Norm()) << trial;
    EXPECT_LE(set_.Norm(), triangle * (1 + 1e-8)) << trial;
    EXPECT_LE(LargestCorner(A_), ShiftedNormBound(A_, {set_})) << trial;
    EXPECT_LE(ShiftedNormBound(A_, {set_}), test::SpectralNorm(A_) + set_.Norm() + 1e-6) << trial;
  }
}

// Each set may be scaled on its own, (s X, Y/s): how its two parts came is of no matter, several
// sets are bounded together, and not as if they were one after the other.
TEST_F(MatrixCube, SetsOfTheirOwnScaleAreBoundedTogether) {
  Rng rng(17);
  for (int trial = 0; trial < 20; ++trial) {
    Draw(trial, &rng);
    std::vector<FormBound> sets(3, FormBound::Zero(A_.rows(), A_.cols()));
    for (std::size_t j = 0; j < B_.size(); ++j) sets[j % 3].AddSegment(B_[j]);
    double apart = test::SpectralNorm(A_);
    for (const FormBound& set : sets) apart += set.Norm();
    const double bound = ShiftedNormBound(A_, sets);
    EXPECT_LE(LargestCorner(A_), bound) << trial;
    EXPECT_LE(bound, apart + 1e-6) << trial;
    for (std::size_t i = 0; i < sets.size(); ++i) {
      const double scale = std::pow(100.0, static_cast<double>(i) - 1);
      sets[i].X *= scale;
      sets[i].Y /= scale;
    }
    EXPECT_NEAR(ShiftedNormBound(A_, sets), bound, 1e-6 * bound) << trial;
  }
  EXPECT_NEAR(ShiftedNormBound(A_, {}), test::SpectralNorm(A_), 1e-8);
  EXPECT_NEAR(
      ShiftedNormBound(A_, {FormBound::Zero(A_.rows(), A_.cols())}), test::SpectralNorm(A_), 1e-8);
}

// Matrices that add up along one direction: the bound is the largest norm itself.
TEST_F(MatrixCube, IsExactWhereMatricesAgree) {
  Rng rng(8);
  const MatrixXd B = RandomMatrix(4, 5, &rng);
  FormBound set = FormBound::Zero(4, 5);
  for (int j = 0; j < 6; ++j) set.AddSegment((j % 2 == 0 ? 1.0 : -0.5) * B);
  EXPECT_NEAR(set.Norm(), 4.5 * test::SpectralNorm(B), 1e-7);
}

TEST(FormBound, UnitsAndProductsAreInside) {
  Rng rng(9);
  for (int trial = 0; trial < 20; ++trial) {
    const int units = 12, inner = 7;
    const MatrixXd P = RandomMatrix(4, units, &rng), Q = RandomMatrix(units, 5, &rng);
    const MatrixXd P2 = RandomMatrix(4, inner, &rng), Q2 = RandomMatrix(inner, 5, &rng);
    VectorXd radius(units);
    for (int k = 0; k < units; ++k) radius[k] = rng.Uniform();
    FormBound set = FormBound::Zero(4, 5);
    set.AddUnits(P, radius, Q);
    set.AddProduct(P2, 0.7, Q2);
    set.AddBall(0.1);
    for (int sample = 0; sample < 200; ++sample) {
      MatrixXd d = MatrixXd::Zero(units, units);
      for (int k = 0; k < units; ++k) d(k, k) = radius[k] * (rng.Uniform() < 0.5 ? -1 : 1);
      MatrixXd M = RandomMatrix(inner, inner, &rng), ball = RandomMatrix(4, 5, &rng);
      M *= 0.7 / test::SpectralNorm(M);
      ball *= 0.1 / test::SpectralNorm(ball);
      EXPECT_LE(test::SpectralNorm(P * d * Q + P2 * M * Q2 + ball), set.Norm());
    }
  }
}

// (C8): L Ψ R and its image obey (C4) for every L, R and Ψ of their sets, along every u and v.
TEST(FormBound, ChainsAndTheirImagesAreInside) {
  Rng rng(10);
  for (int trial = 0; trial < 20; ++trial) {
    constexpr int kSegments = 3;
    std::vector<MatrixXd> left, right;
    FormBound of_left = FormBound::Zero(4, 6), of_right = FormBound::Zero(6, 5);
    for (int j = 0; j < kSegments; ++j) {
      left.push_back(RandomMatrix(4, 6, &rng, trial % 2 == 0 ? 1 : 1e-3));
      right.push_back(RandomMatrix(6, 1, &rng) * RandomMatrix(1, 5, &rng));
      of_left.AddSegment(left.back());
      of_right.AddSegment(right.back());
    }
    const double size = 0.3 * (1 + trial);
    const MatrixXd O = RandomMatrix(3, 4, &rng);
    const FormBound chain = ChainOf(of_left, size, of_right), image = ImageOf(chain, 2, O);
    for (int sample = 0; sample < 300; ++sample) {
      MatrixXd L = MatrixXd::Zero(4, 6), R = MatrixXd::Zero(6, 5);
      for (const MatrixXd& B : left) L += (rng.Uniform() < 0.5 ? -1 : 1) * B;
      for (const MatrixXd& B : right) R += (rng.Uniform() < 0.5 ? -1 : 1) * B;
      // the worst Ψ of all takes what R makes of v onto what Lᵀ makes of u
      const VectorXd u = RandomMatrix(4, 1, &rng), v = RandomMatrix(5, 1, &rng);
      const VectorXd from = R * v, onto = L.transpose() * u;
      const MatrixXd worst = size * (onto / onto.norm()) * (from / from.norm()).transpose();
      const MatrixXd B = L * worst * R;
      for (const double c : {0.1, 1.0, 10.0}) {
        EXPECT_LE(c * u.dot(B * v), 0.5 * (c * c * u.dot(chain.X * u) + v.dot(chain.Y * v)));
      }
      EXPECT_LE(test::SpectralNorm(B), chain.Norm());
      EXPECT_LE(test::SpectralNorm(2 * O * B), image.Norm());
    }
  }
}

// A chain of single directions is bounded by its own norm, and reaches no other direction.
TEST(FormBound, AChainIsExactForSingleDirections) {
  Rng rng(16);
  const VectorXd a = RandomMatrix(4, 1, &rng), b = RandomMatrix(6, 1, &rng);
  const VectorXd c = RandomMatrix(6, 1, &rng), d = RandomMatrix(5, 1, &rng);
  FormBound left = FormBound::Zero(4, 6), right = FormBound::Zero(6, 5);
  left.AddSegment(a * b.transpose());
  right.AddSegment(c * d.transpose());
  const FormBound chain = ChainOf(left, 0.5, right);
  const double exact = 0.5 * a.norm() * b.norm() * c.norm() * d.norm();
  EXPECT_GE(chain.Norm(), exact);
  EXPECT_LE(chain.Norm(), exact * (1 + 1e-6));
  VectorXd across = RandomMatrix(4, 1, &rng);
  across -= a * (a.dot(across) / a.squaredNorm());
  EXPECT_LE(across.dot(chain.X * across), 1e-6 * exact * across.squaredNorm());
}

}  // namespace
}  // namespace silc
