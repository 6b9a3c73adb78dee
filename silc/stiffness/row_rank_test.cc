// SPDX-License-Identifier: Apache-2.0
#include "silc/stiffness/row_rank.h"

#include <gtest/gtest.h>

#include "silc/stiffness/test_support.h"

namespace silc {
namespace {

using namespace test::eager;
using test::MatrixXd;

// m orthonormal rows, one of which is bent into another until `part` of it is left outside.
MatrixXd NearlyDependent(int m, int n, double part, Rng* rng) {
  const MatrixXd Q = test::OrthonormalColumns(test::RandomMatrix(n, n, rng));
  MatrixXd J = Q.topRows(m);
  J.row(m - 1) = J.row(0) + part * J.row(m - 1);
  return J;
}

TEST(RowsAreIndependent, DecidesAtItsTolerance) {
  Rng rng(3);
  for (int trial = 0; trial < 20; ++trial) {
    const int m = 2 + trial % 8;
    // a part of 1e-6 is the root of 1e-12, which a product of doubles has to some 1e-4 of itself
    EXPECT_TRUE(RowsAreIndependent(NearlyDependent(m, 12, 1.01 * kRankTolerance, &rng)));
    EXPECT_FALSE(RowsAreIndependent(NearlyDependent(m, 12, 0.99 * kRankTolerance, &rng)));
  }
}

// A row that is short in the unit of the others is as bad as one that is dependent.
TEST(RowsAreIndependent, AShortRowCountsAsDependent) {
  MatrixXd J = MatrixXd::Identity(3, 5);
  J(1, 1) = 1.01 * kRankTolerance;
  EXPECT_TRUE(RowsAreIndependent(J));
  J(1, 1) = 0.99 * kRankTolerance;
  EXPECT_FALSE(RowsAreIndependent(J));
  J(1, 1) = 0;
  EXPECT_FALSE(RowsAreIndependent(J));
}

TEST(RowsAreIndependent, ShapesAndNan) {
  EXPECT_TRUE(RowsAreIndependent(MatrixXd(0, 4)));
  EXPECT_TRUE(RowsAreIndependent(MatrixXd::Identity(4, 4)));
  EXPECT_FALSE(RowsAreIndependent(MatrixXd::Ones(5, 4)));
  MatrixXd J = MatrixXd::Identity(3, 4);
  J(2, 3) = NAN;
  EXPECT_FALSE(RowsAreIndependent(J));
}

}  // namespace
}  // namespace silc
