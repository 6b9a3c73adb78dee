// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>

#include "silc/stiffness/condition.h"
#include "silc/stiffness/contact_jacobian.h"
#include "silc/stiffness/status.h"
#include "silc/stiffness/types.h"

namespace silc {

/// What measures the null space of a budget.
enum class NullWeight {
  kIdentity,  ///< W = I:  null_stiffness is in N·m/rad, the same for every joint; the paper's
  kServo,     ///< W = Kp: null_stiffness is a fraction [1] of each joint's own gain
};

/// What a budget does with a quantity that the policy senses besides joint angles and its own
/// previous actions, when it asks for K_s of (S3).
enum class Channel {
  kFollowed,  ///< the sensed quantity moves with the joints, as on the robot: K_s counts it
  kHeld,  ///< the sensed quantity stays where it is: what the policy does with it is not bounded
};

/// "followed", "held".
const char* Name(Channel channel);

/// How stiff the robot may be, as a person writes it down, and all that is needed to judge it.
/// Point by point: the centre of mass against the ground, each hand against the base. A force on a
/// hand then finds arm and legs in series.
struct BudgetSpec {
  std::optional<Eigen::Vector3d> com;                  // [N/m] per axis of W
  std::array<std::optional<Eigen::Vector3d>, 2> hand;  // [N/m] left, right; relative to the base
  /// The band: per axis of W, the least share of its stiffness that a hand must keep. 0: no floor.
  Eigen::Vector3d hand_floor = Eigen::Vector3d::Zero();  // [1]
  NullWeight weight = NullWeight::kIdentity;
  double null_stiffness = 50;            // [N·m/rad] or [1], see weight
  Channel torque = Channel::kFollowed;   // sensed joint torque
  Channel gravity = Channel::kFollowed;  // sensed direction of gravity
  Condition condition = Condition::kDisc;

  /// Whether hands must not be softer than some share of their stiffness: (S7c) of a band.
  bool HasFloor() const { return (hand_floor.array() > 0).any(); }
  /// Empty when sound, else a sentence: everything finite and positive; a floor under 1, for hands
  /// that are named, and with the condition that has a band.
  std::string Validate() const;

  bool operator==(const BudgetSpec&) const = default;
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
/// stacked in J are bounded in every pattern across them, too. Reduced coordinates (double
/// support): hand in J N and Nᵀ W N. No task (J with 0 rows): M = b W.
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
/// `contact` (q̇ = N ż), and M in them (S6). In flight the centre of mass has no bound to keep; the
/// hands, which are held against the base, have theirs.
struct ReducedBudget {
  TaskJacobian J;  // m × nz   stacked: com, left hand, right hand on the base, where named
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
