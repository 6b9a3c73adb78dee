// SPDX-License-Identifier: Apache-2.0
#include "silc/stiffness/row_rank.h"

#include <algorithm>
#include <cmath>

#include "silc/base/check.h"

namespace silc {

bool RowsAreIndependent(const ConstMatrix& J) {
  SILC_CHECK(J.rows() <= kMaxTaskRows && J.cols() <= kMaxDofs);
  if (J.rows() > J.cols()) return false;
  // J Jᵀ = L Lᵀ, row by row of L; L_ii is the length of row i's part
  const TaskJacobian rows = J;  // of a bounded size: its products stay off the heap
  TaskMatrix L = rows * rows.transpose();
  double shortest = HUGE_VAL, longest = 0;
  for (Eigen::Index i = 0; i < L.rows(); ++i) {
    for (Eigen::Index j = 0; j < i; ++j) {
      L(i, j) = (L(i, j) - L.row(i).head(j).dot(L.row(j).head(j))) / L(j, j);
    }
    const double part2 = L(i, i) - L.row(i).head(i).squaredNorm();
    if (!(part2 > 0)) return false;
    L(i, i) = std::sqrt(part2);
    shortest = std::min(shortest, L(i, i));
    longest = std::max(longest, L(i, i));
  }
  return L.rows() == 0 || shortest > kRankTolerance * longest;
}

}  // namespace silc
