// SPDX-License-Identifier: Apache-2.0
#include "silc/stiffness/test_algebra.h"

#include <gtest/gtest.h>

#include "silc/stiffness/test_support.h"

namespace silc {
namespace {

using Eigen::MatrixXcd;
using test::MatrixXd;
using test::RandomMatrix;
using test::VectorXd;

// Eigen's own, whatever operators are in sight.
template <typename A, typename B>
auto EigensProduct(const A& a, const B& b) {
  return a.lazyProduct(b).eval();
}

// The same formula in both: rounding of five products of 7 terms.
TEST(TestAlgebra, ComputesWhatEigenDoes) {
  using namespace test::eager;
  Rng rng(5);
  const MatrixXd A = RandomMatrix(4, 7, &rng), B = RandomMatrix(7, 5, &rng);
  const MatrixXd C = RandomMatrix(5, 7, &rng);
  const VectorXd v = RandomMatrix(7, 1, &rng);
  EXPECT_TRUE((A * B).isApprox(EigensProduct(A, B), 1e-14));
  EXPECT_TRUE((A * C.transpose()).isApprox(EigensProduct(A, C.transpose()), 1e-14));
  EXPECT_TRUE((B.transpose() * v).isApprox(EigensProduct(B.transpose(), v), 1e-14));
  EXPECT_TRUE(
      (A.leftCols(3) * B.topRows(3)).isApprox(EigensProduct(A.leftCols(3), B.topRows(3)), 1e-14));
  // an operand that lies nowhere yet
  EXPECT_TRUE((A.cwiseAbs() * B).isApprox(EigensProduct(A.cwiseAbs(), B), 1e-14));
  const MatrixXd sum = (2 * B.transpose() - C / 4) + (-C) * 0.5;
  for (Eigen::Index i = 0; i < 5; ++i) {
    for (Eigen::Index j = 0; j < 7; ++j) {
      EXPECT_NEAR(sum(i, j), 2 * B(j, i) - 0.75 * C(i, j), 1e-14);
    }
  }
  const MatrixXcd Z = A.cast<std::complex<double>>() + std::complex<double>(0, 1) * A;
  EXPECT_TRUE((Z * Z.adjoint()).isApprox(EigensProduct(Z, Z.adjoint()), 1e-14));
}

}  // namespace
}  // namespace silc
