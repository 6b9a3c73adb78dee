// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <optional>
#include <string>

#include "silc/stiffness/budget_command.h"
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
  /// Numbers that a policy is told at run time instead (docs/command.md). Here they stand at the
  /// middle of their ranges; BudgetAt() puts in those of a command.
  BudgetCommand command;

  /// Whether it has ranges: a budget for training, that nothing can be judged by as it is.
  bool IsCommanded() const { return command.any(); }
  /// Whether hands must not be softer than some share of their stiffness: (S7c) of a band.
  bool HasFloor() const { return (hand_floor.array() > 0).any(); }
  /// Empty when sound, else a sentence: everything finite and positive; a floor under 1, for hands
  /// that are named, and with the condition that has a band; ranges the right way round and of
  /// points that are named.
  std::string Validate() const;

  bool operator==(const BudgetSpec&) const = default;
};

/// The budget of one command (B2): a plain budget, without ranges.
/// @pre values[i] is finite and above 0 where spec.command has a range
BudgetSpec BudgetAt(const BudgetSpec& spec, const BudgetValues& values);
/// The middle of every range (B3), 1 where there is none.
BudgetValues MiddleOf(const BudgetCommand& command);

/// What a spec bounds at one moment: the points it names, stacked. The centre of mass moves against
/// the ground, through the feet; it has no row in flight, where nothing static holds it. The hands
/// move against the base, in every contact mode.
struct BudgetRows {
  TaskJacobian J;    // m × nv   com, left hand, right hand, where named     [m/rad]
  TaskVector K_x;    // m        how stiff each row may be                   [N/m]
  TaskVector floor;  // m        how stiff it must be: hand_floor K_x        [N/m]
};
/// @pre !spec.IsCommanded()
void StackBudgetRows(const BudgetSpec& spec, const ContactKinematics& contact, BudgetRows* rows);

/// Joint budget with a weighted null space, factored.
///
///     M = Jᵀ K_x J + b (W − Jᵀ (J W⁻¹ Jᵀ)⁻¹ J)                                       (S6)
///
/// Positive definite for any SPD K_x, W and b > 0, and exact: J M⁻¹ Jᵀ = K_x⁻¹. Several tasks
/// stacked in J are bounded in every pattern across them, too. No task (J with 0 rows): M = b W.
///
/// This is (S6) in coordinates in which W is the identity. With Jᵀ = Q R, Q orthonormal columns,
///
///     M   = b I + Q (A − b I) Qᵀ,       A = R K_x Rᵀ
///     L⁻¹ = b^{−1/2} I + Q Z Qᵀ,        Z = F − b^{−1/2} I,  Fᵀ F = A⁻¹
///
/// where L Lᵀ = M: no factor of an n × n matrix is needed. L is not triangular, which no σ minds.
/// Everything that holds a stiffness against a budget comes through FactorBudget(). Its batched
/// twin is MakeBudgetFactors() in silc/learn/penalty.h; Python's is budget_factors() in
/// silc.torch.contact, recorded samples hold it to the batched one.
struct BudgetFactor {
  double b = 0;
  Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::ColMajor, kMaxDofs, kMaxTaskRows> Q;
  TaskMatrix A;  // m × m
  TaskMatrix Z;  // m × m
};

/// @param J    m × n, in coordinates in which W is the identity    [m/rad of them]
/// @param K_x  m × m, symmetric positive definite                  [N/m]
/// @param b    > 0                                                 [N·m/rad] or [1]
/// @return kOk, kNotFinite, kBudgetNotPositive (K_x or b), or kRankDeficientJacobian
///         (RowsAreIndependent()). Does not allocate.
StiffnessStatus FactorBudget(const ConstMatrix& J,
                             const ConstMatrix& K_x,
                             double b,
                             BudgetFactor* out);

/// (S6) of a spec at one moment, factored in coordinates z in which W is the identity: q̇ = N ż
/// where the feet close a chain, else q̇ = W^{−1/2} ż. A band is the disc of K − m against M − m, m
/// the floor: what is factored is K_x less its floor.
///
/// For the observer, which factors at every step: MakeBudgetCoordinates() takes any N.
///
/// @pre where the feet close a chain, Nᵀ W N = I: ComputeContactKinematics() had this W
/// @param      scale  the diagonal of W^{−1/2}, see NullWeightDiagonal()
/// @param[out] rows   StackBudgetRows()
/// @param[out] J_z    m × nz, rows->J in the coordinates z
/// @return as FactorBudget(). Does not allocate.
StiffnessStatus FactorBudgetAt(const BudgetSpec& spec,
                               const JointVector& scale,
                               const ContactKinematics& contact,
                               BudgetRows* rows,
                               TaskJacobian* J_z,
                               BudgetFactor* out);

/// (S6) as a matrix, in any coordinates: reduced ones (double support) want J N and Nᵀ W N.
///
/// @param      J    m × n                                          [m/rad]
/// @param      K_x  m × m, symmetric positive definite             [N/m]
/// @param      W    n × n, symmetric positive definite             [1] or [N·m/rad]
/// @param      b    > 0                                            [N·m/rad] or [1]
/// @param[out] M    n × n, symmetric                               [N·m/rad]
/// @return as FactorBudget(); kBudgetNotPositive for W, too.
StiffnessStatus JointBudget(
    const ConstMatrix& J, const ConstMatrix& K_x, const ConstMatrix& W, double b, JointMatrix* M);

/// The budget of a spec at one moment in the coordinates z of `contact` (q̇ = N ż), whatever N is
/// orthonormal in.
struct ReducedBudget {
  TaskJacobian J;  // m × nz   of StackBudgetRows(), times N
  TaskVector K_x;  // m        [N/m]
  JointMatrix M;   // nz × nz
};
StiffnessStatus ComputeReducedBudget(const BudgetSpec& spec,
                                     const Servo& servo,
                                     const ContactKinematics& contact,
                                     ReducedBudget* out);

/// The weight W of a spec, diagonal.
void NullWeightDiagonal(const BudgetSpec& spec, const Servo& servo, JointVector* weight);
/// The same along the motions that the contacts allow: Nᵀ W N where the feet close a chain, else W.
void ReduceNullWeight(const JointVector& weight, const ContactKinematics& contact, JointMatrix* W);

}  // namespace silc
