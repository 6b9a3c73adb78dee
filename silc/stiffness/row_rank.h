// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "silc/stiffness/types.h"

namespace silc {

/// Shortest part that a row may have outside the span of the rows before it, over the longest such
/// part. A task's K_x goes with the inverse square, so at 1e-6 about four digits of K_x are left in
/// double precision.
inline constexpr double kRankTolerance = 1e-6;  // [1]

/// The rank rule of every Jacobian in this folder. Each row has a part outside the span of the rows
/// before it; J counts as of full rank when the shortest of these parts is longer than
/// kRankTolerance times the longest. False where an entry is not finite. Rows must have one unit:
/// scale them to length one first where they do not. @pre at most kMaxTaskRows ×
/// kMaxDofs.
///
/// The parts' lengths are the pivots of the Cholesky factor of J Jᵀ. The batched twin, which has
/// them from there, is CholeskyOfRows() in silc/learn/penalty.cc.
bool RowsAreIndependent(const ConstMatrix& J);

}  // namespace silc
