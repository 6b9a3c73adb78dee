// SPDX-License-Identifier: Apache-2.0
#include "silc/learn/small_matrix.h"

#include <gtest/gtest.h>

namespace silc {
namespace {

// The CPU in double, and the GPU in float where one answers.
std::vector<at::TensorOptions> Places() {
  std::vector<at::TensorOptions> places = {at::TensorOptions(at::kDouble)};
  if (at::hasCUDA() && at::globalContext().hasCUDA()) {
    places.push_back(at::TensorOptions(at::kFloat).device(at::kCUDA));
  }
  return places;
}
double Tolerance(const at::TensorOptions& place) { return place.device().is_cuda() ? 2e-5 : 1e-12; }
double LargestEntry(const Tensor& t) { return t.abs().max().item<double>(); }

// The tests below run on the CPU everywhere; a run that was to test the GPU allows no skipped test.
TEST(SmallMatrix, AGpuTakesPart) {
  if (Places().size() == 1) GTEST_SKIP() << "no GPU answers: the tests ran on the CPU alone";
}

TEST(SmallMatrix, EigenvectorsDiagonaliseAndAreOrthonormal) {
  for (const auto& place : Places()) {
    for (const int n : {1, 2, 3, 14, 29, 32}) {
      at::manual_seed(3);
      const Tensor G = at::randn({40, n, n}, at::kDouble);
      const Tensor A = at::matmul(G, G.transpose(1, 2)).to(place);
      const SymmetricEigen e = EigenOf(A);
      const Tensor I = at::eye(n, place);
      EXPECT_LT(LargestEntry(at::matmul(e.vectors, e.vectors.transpose(1, 2)) - I),
                Tolerance(place));
      const Tensor D = at::matmul(at::matmul(e.vectors, A), e.vectors.transpose(1, 2));
      EXPECT_LT(LargestEntry(D - at::diag_embed(e.values)), Tolerance(place) * LargestEntry(A))
          << n;
      if (n > 1) {
        EXPECT_GE(
            (e.values.narrow(1, 0, n - 1) - e.values.narrow(1, 1, n - 1)).min().item<double>(), 0);
      }
    }
  }
}

TEST(SmallMatrix, RepeatedAndZeroEigenvaluesAreNoTrouble) {
  for (const auto& place : Places()) {
    const Tensor I = 3 * at::eye(29, place).unsqueeze(0), zero = at::zeros({1, 29, 29}, place);
    EXPECT_LT(LargestEntry(EigenOf(I).values - 3), 1e-6);
    EXPECT_EQ(LargestEntry(EigenOf(zero).values), 0);
    // rank one, eigenvalue |x|²
    const Tensor x = at::arange(1, 30, place).view({1, 29, 1});
    const SymmetricEigen e = EigenOf(at::matmul(x, x.transpose(1, 2)));
    EXPECT_NEAR(e.values[0][0].item<double>(), 29.0 * 30 * 59 / 6, 0.02);
    EXPECT_LT(LargestEntry(e.values.narrow(1, 1, 28)), 0.05);
  }
}

TEST(SmallMatrix, SingularTriplesMakeUpTheMatrix) {
  for (const auto& place : Places()) {
    for (const int n : {1, 2, 3, 4, 14, 15, 29, 32}) {
      at::manual_seed(4);
      // as far from normal as a stiffness is, and one of half the rank
      Tensor A = at::randn({41, n, n}, at::kDouble);
      A[40] = at::matmul(A[40].narrow(1, 0, (n + 1) / 2), A[39].narrow(0, 0, (n + 1) / 2));
      const Singular s = SingularOf(A.to(place));
      const Tensor sigma = std::get<1>(at::linalg_svd(A));
      EXPECT_LT(LargestEntry(s.sigma.to(at::kCPU, at::kDouble) - sigma),
                (place.device().is_cuda() ? 2e-5 : 1e-6) * LargestEntry(sigma))
          << n;
      // of σ well away from zero (float rounds at 1e-7 of the largest) the vectors are orthonormal
      const Tensor I = at::eye(n, place).expand({41, n, n});
      const Tensor large = s.sigma > 0.05 * s.sigma.narrow(1, 0, 1);
      const Tensor both = large.unsqueeze(1).logical_and(large.unsqueeze(2));
      for (const Tensor& vectors : {s.u, s.v}) {
        const Tensor gram = at::matmul(vectors, vectors.transpose(1, 2));
        EXPECT_LT(LargestEntry((gram - I) * both), place.device().is_cuda() ? 1e-4 : 1e-9) << n;
      }
      // and make up the matrix but for what the small ones hold
      const Tensor strong = s.sigma * large;
      const Tensor back = at::matmul(s.u.transpose(1, 2), strong.unsqueeze(2) * s.v);
      const Tensor rest = (s.sigma * large.logical_not()).square().sum(1).sqrt();
      const Tensor missing = (back - A.to(place)).square().sum(2).sum(1).sqrt();
      // on the CPU σ is a root of an eigenvalue: zero is known to 1e-8 of the largest
      EXPECT_LT(LargestEntry(missing - rest),
                (place.device().is_cuda() ? 2e-5 * n : 1e-6) * LargestEntry(s.sigma))
          << n;
    }
  }
}

TEST(SmallMatrix, InverseTimesMatrixIsTheIdentity) {
  for (const auto& place : Places()) {
    for (const int n : {1, 2, 15, 29, 32}) {
      at::manual_seed(5);
      // zero on the diagonal: pivoting is needed
      Tensor A = at::randn({40, n, n}, at::kDouble);
      if (n > 1) A = A - at::diag_embed(A.diagonal(0, 1, 2));
      const Tensor I = at::eye(n, at::kDouble);
      const Tensor inverse = InverseOf(A.to(place)).to(at::kCPU, at::kDouble);
      const Tensor condition = LargestEntry(inverse) * A.abs().max();
      EXPECT_LT(LargestEntry(at::matmul(inverse, A) - I),
                Tolerance(place) * n * condition.item<double>())
          << n;
    }
  }
}

TEST(SmallMatrix, ASingularMatrixHasNoFiniteInverse) {
  for (const auto& place : Places()) {
    const Tensor A = at::zeros({1, 5, 5}, place);
    EXPECT_FALSE(at::isfinite(InverseOf(A)).all().item<bool>());
  }
}

}  // namespace
}  // namespace silc
