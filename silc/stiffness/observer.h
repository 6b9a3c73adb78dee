// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "silc/stiffness/action_loop.h"
#include "silc/stiffness/budget.h"
#include "silc/stiffness/condition.h"
#include "silc/stiffness/contact_jacobian.h"
#include "silc/stiffness/joint_stiffness.h"
#include "silc/stiffness/policy_jacobians.h"
#include "silc/stiffness/task_stiffness.h"

namespace silc {

struct ObserverOptions {
  Servo servo;        ///< gains and action scale, nv joints
  BudgetSpec budget;  ///< with its channels and its condition
  int frames = 5;     ///< history of previous actions (or torques); a longer one allocates, once
  bool exact_action_loop = false;   ///< ActionLoop::Exact() at every observation: some 20 ms
  bool require_stable_loop = true;  ///< withhold K_s while the action loop is not proven stable
  int loop_every = 1;               ///< check the action loop at every k-th observation only
  bool one_step_sigma = false;      ///< also hold K₁ against the budget
};

/// One stiffness held against the budget. Values are NaN unless status is kOk.
struct BudgetReading {
  StiffnessStatus status = StiffnessStatus::kNotFinite;
  double sigma = 0;  ///< [1] of the budget's condition, ≤ 1 when it holds
  double worst = 0;  ///< [1] λ_max(L⁻¹ sym(K − m) L⁻ᵀ), L Lᵀ = M − m: the worst direction of the
                     ///< quadratic form, ≤ 1 when sym K ≤ M. m is the floor of the band, or 0
};

/// One point, as it is felt. Values are NaN unless status is kOk.
struct PointReading {
  StiffnessStatus status = StiffnessStatus::kNotFinite;
  Eigen::Matrix3d K_x;       ///< [N/m]
  Eigen::Matrix3d C_x;       ///< [m/N]
  Eigen::Vector3d one_axis;  ///< [N/m] 1/C_ii
  /// [1] λ_max(L_x⁻¹ sym(K_x) L_x⁻ᵀ), K_x of what is judged; NaN when the budget has no such point,
  /// always for a hand in the world: a budget's hands are on the base.
  double worst = 0;
};

/// All that one observation gives. Matrices whose status is not kOk are filled with NaN.
struct StiffnessReading {
  ContactMode mode = ContactMode::kFlight;
  StiffnessStatus contact_status = StiffnessStatus::kNotFinite;   ///< of (S5)
  StiffnessStatus one_step_status = StiffnessStatus::kNotFinite;  ///< of K_1
  JointMatrix K_1;                                                // (S2) [N·m/rad]

  // What is felt, whatever the budget covers: (S3) with every sensed quantity following the joints.
  StiffnessStatus static_status = StiffnessStatus::kNotFinite;  ///< of K_s
  JointMatrix K_s;                                              // [N·m/rad]
  ActionLoopRadius loop;                                        ///< last checked, see loop_every
  double loop_condition = 0;                                    ///< [1] of I − S_a − S_τ Kp α
  PointReading com;                                             ///< (S11) of K_s
  PointReading hand_in_world[2];  ///< a hand that somebody pushes: it stands on arm and legs
  PointReading hand_on_base[2];   ///< a hand pulled against the base: waist and arm alone

  // What is judged: (S3) with the channels that the budget holds held, against its condition, with
  // the band where it has a floor.
  StiffnessStatus judged_status = StiffnessStatus::kNotFinite;  ///< of K_judged
  JointMatrix K_judged;  // [N·m/rad] K_s itself when the budget holds nothing that is sensed
  ActionLoopRadius judged_loop;  ///< as `loop`
  BudgetReading quasi_static;    ///< of K_judged
  BudgetReading one_step;        ///< of K_1; only with one_step_sigma
};

/// Rows of the five points of a reading, three each.
using PointRows =
    Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::ColMajor, 15, kMaxDofs>;

/// Stiffness of one policy on one robot, moment by moment. Everything is allocated by the
/// constructor; Observe() does not touch the heap. One thread at a time.
class StiffnessObserver {
 public:
  explicit StiffnessObserver(const ObserverOptions& options);

  /// @pre blocks of `policy` are nv × nv (nv × 3 for gravity), Jacobians of `body` have 6 + nv
  /// columns.
  /// @return valid until the next call.
  const StiffnessReading& Observe(const PolicyJacobians& policy,
                                  const BodyJacobians& body,
                                  ContactMode mode);

  /// The kinematics behind the last reading; N is orthonormal in the budget's W.
  const ContactKinematics& contact() const { return contact_; }
  const ObserverOptions& options() const { return options_; }

 private:
  void ObserveJoints(const PolicyJacobians& policy);
  ActionLoopRadius CheckLoop(const PolicyJacobians& policy, bool torque);
  StiffnessStatus SolveStatic(bool torque,
                              bool gravity,
                              const ActionLoopRadius& loop,
                              JointMatrix* K);
  void ObserveTasks();
  void ObserveBudget();
  void Reduce(const JointMatrix& K, JointMatrix* K_z) const;
  StiffnessStatus Factor(const JointMatrix& K,
                         JointMatrix* K_z,
                         Eigen::PartialPivLU<JointMatrix>* factor) const;
  StiffnessStatus PrepareBudget();
  void ReadBudget(const JointMatrix& K_z, BudgetReading* reading);
  JointMatrix OrthonormalOnTheRight(const JointMatrix& K_z) const;

  ObserverOptions options_;
  ActionLoop loop_;
  long long count_ = 0;
  PolicySums sums_;
  StaticStiffness static_;
  bool judges_what_is_felt_ = true;  // the budget holds nothing that this policy senses
  ContactKinematics contact_;
  StiffnessReading reading_;

  // Coordinates z in which the budget's W is the identity: q̇ = P ż with P = N or, open, W^{−1/2}.
  JointVector weight_, scale_;  // W, W^{−1/2}
  JointMatrix K_z_;             // Pᵀ K_s P
  JointMatrix K_z_judged_;      // Pᵀ K_judged P, where it is another
  PointRows J_z_;               // 15 × nz: com, hands in the world, hands on the base, times P
  BudgetRows rows_;
  BudgetFactor factor_;  // of M, of M − m with a floor
  JointMatrix floor_;    // m, nz × nz; used with a floor only
};

}  // namespace silc
