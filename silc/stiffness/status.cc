// SPDX-License-Identifier: Apache-2.0
#include "silc/stiffness/status.h"

namespace silc {

const char* Describe(StiffnessStatus status) {
  switch (status) {
    case StiffnessStatus::kOk:
      return "ok";
    case StiffnessStatus::kNotFinite:
      return "a NaN or an infinity: in the state, or in a slope of the policy (a square root has "
             "none at zero)";
    case StiffnessStatus::kRankDeficientJacobian:
      return "the Jacobian has lost rank, so the task (or the other foot) cannot move in some "
             "direction: a "
             "stretched knee, or two stacked tasks that are the same; bend the knees or drop a "
             "task";
    case StiffnessStatus::kSingularBaseBlock:
      return "the stance foot's 6 x 6 base block cannot be inverted; the foot's Jacobian is not "
             "that of a "
             "body on a free-floating base";
    case StiffnessStatus::kSingularActionLoop:
      return "I - S_a cannot be inverted: the policy integrates its own previous action, and a "
             "static "
             "stiffness does not exist";
    case StiffnessStatus::kUnstableActionLoop:
      return "with the joints held, the policy's feedback of its previous actions is unstable "
             "(spectral radius 1 or more): its answer to a displacement that stays grows without "
             "end. A robot that is free to move may rest all the same, and be measured";
    case StiffnessStatus::kSingularStiffness:
      return "the joint stiffness cannot be inverted on the allowed motions: some direction is "
             "free to move "
             "and has no compliance";
    case StiffnessStatus::kBudgetNotPositive:
      return "the stiffness budget is not positive definite; task stiffness and null-space "
             "stiffness must "
             "be positive, and weights symmetric positive definite";
    case StiffnessStatus::kNoConvergence:
      return "an eigenvalue iteration did not converge";
    case StiffnessStatus::kNoSupport:
      return "in flight nothing outside holds the centre of mass: its static stiffness is zero and "
             "has no "
             "bound to keep";
    case StiffnessStatus::kLongActionLoop:
      return "not judged: the policy sees so many frames of its previous actions or torques that "
             "the stability of their feedback is not worked out (kMaxActionLoop in "
             "docs/limits.md)";
  }
  return "unknown status";
}

}  // namespace silc
