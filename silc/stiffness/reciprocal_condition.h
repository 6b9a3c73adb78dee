// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <Eigen/LU>
#include <cmath>

namespace silc {

/// 1-norm reciprocal condition number of a factored matrix, estimated (Higham 1988, as Eigen has
/// it), and 0 for a matrix with a pivot that is zero or not finite: there the estimate divides by
/// zero and can come out as anything.
template <typename Matrix>
double ReciprocalCondition(const Eigen::PartialPivLU<Matrix>& lu) {
  for (Eigen::Index k = 0; k < lu.rows(); ++k) {
    const double pivot = std::abs(lu.matrixLU()(k, k));
    if (!(pivot > 0) || !std::isfinite(pivot)) return 0;
  }
  const double rcond = lu.rcond();
  return std::isfinite(rcond) ? rcond : 0;
}

}  // namespace silc
