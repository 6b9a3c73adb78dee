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
  double sigma = 0;  ///< [1] of the chosen condition, ≤ 1 when it holds
  double worst = 0;  ///< [1] λ_max(L⁻¹ sym(K) L⁻ᵀ): worst direction of the quadratic form
};

/// One point. Values are NaN unless status is kOk.
struct PointReading {
  StiffnessStatus status = StiffnessStatus::kNotFinite;
  Eigen::Matrix3d K_x;       ///< [N/m]
  Eigen::Matrix3d C_x;       ///< [m/N]
  Eigen::Vector3d one_axis;  ///< [N/m] 1/C_ii
  double worst = 0;  ///< [1] λ_max(L_x⁻¹ sym(K_x) L_x⁻ᵀ); NaN when the budget has no such task
};

/// All that one observation gives. Matrices whose status is not kOk are filled with NaN.
struct StiffnessReading {
  ContactMode mode = ContactMode::kFlight;
  StiffnessStatus contact_status = StiffnessStatus::kNotFinite;   ///< of (S5)
  StiffnessStatus one_step_status = StiffnessStatus::kNotFinite;  ///< of K_1
  StiffnessStatus static_status = StiffnessStatus::kNotFinite;    ///< of K_s
  JointMatrix K_1;                                                // (S2) [N·m/rad]
  JointMatrix K_s;                                                // (S3) [N·m/rad]
  ActionLoopRadius loop;      ///< the last one checked, see loop_every
  double loop_condition = 0;  ///< [1] of I − S_a
  BudgetReading one_step;     ///< only with one_step_sigma
  BudgetReading quasi_static;
  PointReading com, hand[2];  ///< (S11) of K_s, in the world: a hand stands on legs, too
};

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

  /// The kinematics and sums behind the last reading.
  const ContactKinematics& contact() const { return contact_; }
  const StaticStiffness& static_stiffness() const { return static_; }
  const ObserverOptions& options() const { return options_; }

 private:
  void ObserveJoints(const PolicyJacobians& policy);
  void ObserveTasks();
  void ObserveBudget();
  void Reduce(const JointMatrix& K, JointMatrix* K_z) const;
  StiffnessStatus PrepareBudget();
  void ReadBudget(const JointMatrix& K_z, BudgetReading* reading);

  ObserverOptions options_;
  ActionLoop loop_;
  long long count_ = 0;
  PolicySums sums_;
  StaticStiffness static_;
  ContactKinematics contact_;
  StiffnessReading reading_;

  // Coordinates z in which the budget's W is the identity: q̇ = P ż with P = N or, open, W^{−1/2}.
  // There
  //     M⁻¹ = b⁻¹ (I − Q Qᵀ) + Q H Qᵀ,  (J P)ᵀ = Q R,  H⁻¹ = R K_x Rᵀ
  // so that L⁻¹ = b^{−1/2} I + Q Z Qᵀ needs no factor of an n × n matrix. The printed condition
  // (S7a) depends on the coordinates and is taken in orthonormal ones; with W ≠ I it goes the long
  // way.
  bool whitened_;
  JointVector weight_, scale_;  // W, W^{−1/2}
  JointMatrix K_z_;             // Pᵀ K_s P
  TaskJacobian J_z_;            // 9 × nz: com, left hand, right hand, times P
  Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::ColMajor, kMaxDofs, kMaxTaskRows> Q_;
  TaskMatrix Z_;
  ReducedBudget long_way_;
};

}  // namespace silc
