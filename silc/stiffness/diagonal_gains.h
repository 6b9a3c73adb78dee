// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "silc/stiffness/types.h"

namespace silc {

/// One moment a diagonal servo must fit into: Nᵀ diag(kp) N ⪯ M.
struct GainCeiling {
  JointMatrix N;  // nv × nz   motions that the contacts leave; nv × nv identity when open
  JointMatrix M;  // nz × nz   (S6) there                                       [N·m/rad]
};

struct DiagonalGains {
  bool ok = false;
  std::string why;  // when not ok: what is wrong with the problem, a sentence
  JointVector kp;   // [N·m/rad]
  double gap = 0;   // [1] no feasible kp has a Σ ln kp larger by more than this
  int newton_steps = 0;
  /// [1] per joint: how hard the budgets press, Σ_k kp_i (N_k Z_k N_kᵀ)_ii of the multipliers Z_k;
  /// 1 where a budget alone holds the joint, 0 where its own limit does.
  JointVector pressure;
};

/// The largest diagonal servo inside every ceiling.
///
///     maximise   Σ_i ln kp_i
///     subject to N_kᵀ diag(kp) N_k ⪯ M_k   for every k,    0 < kp_i ≤ limit_i        (G1)
///
/// (G1) in docs/gains.md: a concave objective over linear matrix inequalities, so that there is one
/// answer. Solved by a barrier method with Newton steps; `gap` is its proof.
///
/// @param limit  [N·m/rad] finite and positive, one per joint
DiagonalGains SolveDiagonalGains(const std::vector<GainCeiling>& ceilings,
                                 const JointVector& limit);

/// λ_max(L⁻¹ Nᵀ diag(kp) N L⁻ᵀ), L Lᵀ = M: the worst direction of a servo under one ceiling [1].
double WorstOfServo(const GainCeiling& ceiling, const JointVector& kp);

/// (S7c) of a servo alone: its K is symmetric and positive, so that σ = max(1, 2 λ_max − 1).
double SigmaOfServo(double worst);

}  // namespace silc
