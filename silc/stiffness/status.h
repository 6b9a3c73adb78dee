// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace silc {

/// Why a stiffness could not be given. Functions of this module return it instead of a doubtful
/// number; outputs are valid only with kOk. Nothing here throws or aborts on the values it is
/// handed.
enum class StiffnessStatus {
  kOk,
  kNotFinite,              ///< a NaN or infinity in the input
  kRankDeficientJacobian,  ///< the task cannot move in some direction: stretched knee, stacked
                           ///< twins
  kSingularBaseBlock,      ///< the stance foot's 6 × 6 base block cannot be inverted
  kSingularActionLoop,     ///< I − S_a cannot be inverted: the action is an integrator
  kUnstableActionLoop,     ///< the action feeds back on itself with spectral radius ≥ 1
  kSingularStiffness,      ///< K cannot be inverted, so there is no compliance
  kBudgetNotPositive,      ///< the budget is not positive definite
  kNoConvergence,          ///< an eigenvalue iteration gave up
  kNoSupport,              ///< in flight: nothing holds the centre of mass, its stiffness is zero
  kLongActionLoop,  ///< the policy sees more previous actions than kMaxActionLoop: not judged
};

/// A sentence a person can act on.
const char* Describe(StiffnessStatus status);

}  // namespace silc
