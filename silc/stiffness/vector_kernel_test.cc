// SPDX-License-Identifier: Apache-2.0
#include "silc/stiffness/vector_kernel.h"

#include <gtest/gtest.h>

#include "silc/stiffness/test_support.h"

namespace silc {
namespace {

// Eigen's own products are the reference; sums of at most 200 terms of size one, in another order.
TEST(VectorKernel, EveryKernelMultipliesAsEigenDoes) {
  Rng rng(4);
  const std::vector<VectorKernel> kernels = AvailableVectorKernels();
  ASSERT_FALSE(kernels.empty());
  for (const VectorKernel& kernel : kernels) {
    for (const int rows : {8, 16, 24, 32, 40, 152, 200}) {
      for (const int cols : {1, 2, 5, 145}) {
        const test::MatrixXd A = test::RandomMatrix(rows, cols, &rng);
        const test::VectorXd x = test::RandomMatrix(cols, 1, &rng);
        const test::VectorXd y0 = test::RandomMatrix(rows, 1, &rng);
        test::VectorXd y = y0, z(cols);
        kernel.add_times(A.data(), rows, cols, x.data(), y.data());
        EXPECT_LT((y - y0 - A * x).cwiseAbs().maxCoeff(), 1e-12) << kernel.name << " " << rows;
        kernel.transposed_times(A.data(), rows, cols, y0.data(), z.data());
        EXPECT_LT((z - A.transpose() * y0).cwiseAbs().maxCoeff(), 1e-12) << kernel.name;
      }
    }
  }
}

}  // namespace
}  // namespace silc
