// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>

#include "silc/stiffness/contact_jacobian.h"
#include "silc/stiffness/status.h"
#include "silc/stiffness/types.h"

namespace silc {

/// What measures the null space of a budget.
enum class NullWeight {
  kIdentity,  ///< W = I:  null_stiffness is in N·m/rad, the same for every joint; the paper's
  kServo,     ///< W = Kp: null_stiffness is a fraction [1] of each joint's own gain
};

/// How stiff the robot may be, as a person writes it down: point by point. One point becomes (S6),
/// several (S6p): how they move against each other is nobody's wish and no task.
struct BudgetSpec {
  std::optional<Eigen::Vector3d> com;                  // [N/m] per axis of W
  std::array<std::optional<Eigen::Vector3d>, 2> hand;  // [N/m] left, right
  NullWeight weight = NullWeight::kIdentity;
  double null_stiffness = 50;  // [N·m/rad] or [1], see weight

  /// Empty when sound, else a sentence: everything finite and positive.
  std::string Validate() const;
};

/// A budget with a name.
struct NamedBudget {
  const char* name;
  BudgetSpec spec;
};

/// The modes of the paper's Table I and of its hand-load experiment: high-stiff, compliance,
/// hard-nullspace, soft-hand, hard-hand.
std::span<const NamedBudget> PaperModes();

/// Joint budget with a weighted null space.
///
///     M = Jᵀ K_x J + b (W − Jᵀ (J W⁻¹ Jᵀ)⁻¹ J)                                       (S6)
///
/// Positive definite for any SPD K_x, W and b > 0, and exact: J M⁻¹ Jᵀ = K_x⁻¹. Several tasks
/// stacked in J are bounded in every pattern across them, too; where only each of them has a bound,
/// PerPointBudget(). Reduced coordinates (double support): hand in J N and Nᵀ W N. No task (J with
/// 0 rows): M = b W.
///
/// @param      J    m × n                                          [m/rad]
/// @param      K_x  m × m, symmetric positive definite             [N/m]
/// @param      W    n × n, symmetric positive definite             [1] or [N·m/rad]
/// @param      b    > 0                                            [N·m/rad] or [1]
/// @param[out] M    n × n, symmetric                               [N·m/rad]
/// @return kOk, kNotFinite, kBudgetNotPositive (K_x, W or b), or kRankDeficientJacobian
/// (kRankTolerance).
StiffnessStatus JointBudget(
    const ConstMatrix& J, const ConstMatrix& K_x, const ConstMatrix& W, double b, JointMatrix* M);

/// Smallest singular value of J over its largest below which J counts as rank deficient. K_x goes
/// with its inverse square, so at 1e-6 about four digits of K_x are left in double precision.
inline constexpr double kRankTolerance = 1e-6;  // [1]

/// e of (S6p): a joint motion that moves the stacked points by less than this share of their
/// root-mean-square gain counts as null space. On the G1 with both feet down the weakest such
/// motion has 0.02 m/rad against a largest gain of 1.3. Much smaller, and M is stiff without bound
/// along such motions; larger, and the points lose stiffness: d²/b of compliance each, at most.
inline constexpr double kStackDamping = 0.1;  // [1]

/// Joint budget of several points, each with a stiffness of its own: compliances add.
///
///     M⁻¹ = b⁻¹ W^{−½} [I − Ĵᵀ (Ĵ Ĵᵀ + d² I)⁻¹ Ĵ] W^{−½} + Σ_i J̄_i K_i⁻¹ J̄_iᵀ           (S6p)
///     Ĵ = J W^{−½},   J̄_i = W⁻¹ J_iᵀ (J_i W⁻¹ J_iᵀ)⁻¹,   d² = e² tr(Ĵ Ĵᵀ)/m,   e = kStackDamping
///
/// Sound point by point, J_i M⁻¹ J_iᵀ ≥ K_i⁻¹, and tighter than asked where points overlap: what
/// one of them gives way moves the others. Only each J_i needs full rank; a motion that no point
/// sees has M = b W. Coordinates, W and b as in JointBudget().
///
/// @param J    m × n, three rows a point                           [m/rad]
/// @param K_x  m × m, one 3 × 3 block a point, each SPD            [N/m]
/// @return kOk, kNotFinite, kBudgetNotPositive (K_x, W or b), or kRankDeficientJacobian (a
/// J_i W^{−½}, kRankTolerance).
/// @pre m is a multiple of 3 and K_x is zero between points
StiffnessStatus PerPointBudget(
    const ConstMatrix& J, const ConstMatrix& K_x, const ConstMatrix& W, double b, JointMatrix* M);

/// (S6p) where it differs from b W: with Ĵᵀ = Q R, R_i the columns of point i,
///
///     W^½ M⁻¹ W^½ = b⁻¹ (I − Q Qᵀ) + Q H Qᵀ
///     H = (d²/b) (R Rᵀ + d² I)⁻¹ + Σ_i R_i (R_iᵀ R_i)⁻¹ K_i⁻¹ (R_iᵀ R_i)⁻¹ R_iᵀ
///
/// @param      R  r × m, Qᵀ Q = I
/// @param[out] H  r × r, symmetric positive definite               [rad/(N·m)]
/// @return kOk, kBudgetNotPositive (a K_i), kRankDeficientJacobian (an R_i)
StiffnessStatus PerPointCompliance(const ConstMatrix& R,
                                   const ConstMatrix& K_x,
                                   double b,
                                   TaskMatrix* H);

/// Shape and scale: the largest multiple of a shape B₀ that keeps the task bound.
///
///     M = η B₀,   η = λ_min(L_xᵀ J C₀ Jᵀ L_x),   K_x = L_x L_xᵀ                       (S6)
///
/// C₀ = B₀⁻¹ in the coordinates handed in (reduced ones in double support). The worst task
/// eigenvalue is then exactly 1. Works near a singular J, where η goes to zero with it.
///
/// @return kOk, kNotFinite, kBudgetNotPositive, kRankDeficientJacobian
StiffnessStatus ShapeAndScaleBudget(const ConstMatrix& J,
                                    const ConstMatrix& K_x,
                                    const ConstMatrix& B_0,
                                    double* eta,
                                    JointMatrix* M);

/// The budget of a spec at one moment: rows of the tasks it names, in the coordinates z of
/// `contact` (q̇ = N ż), and M in them: (S6) of one point, (S6p) of several. In flight the budget is
/// posture alone.
struct ReducedBudget {
  TaskJacobian J;  // m × nz   stacked: com, left hand, right hand, where named
  TaskVector K_x;  // m        [N/m]
  JointMatrix M;   // nz × nz
};
StiffnessStatus ComputeReducedBudget(const BudgetSpec& spec,
                                     const Servo& servo,
                                     const ContactKinematics& contact,
                                     ReducedBudget* out);

/// The weight W of a spec, diagonal.
void NullWeightDiagonal(const BudgetSpec& spec, const Servo& servo, JointVector* weight);

}  // namespace silc
