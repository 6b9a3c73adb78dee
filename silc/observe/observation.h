// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <functional>
#include <string>
#include <vector>

#include "silc/base/rng.h"
#include "silc/config/budget_file.h"
#include "silc/observe/closed_loop.h"
#include "silc/stiffness/dynamic_stiffness.h"
#include "silc/stiffness/observer.h"
#include "silc/stiffness/quadratic_form.h"

namespace silc {

/// Frequencies at which joint damping is tabulated.
inline constexpr std::array<double, 3> kDampingHz = {1, 3, 10};  // [Hz]

/// What a moment keeps of a StiffnessReading, in matrices as large as the robot.
struct MomentReading {
  MomentReading() = default;
  explicit MomentReading(const StiffnessReading& reading);

  StiffnessStatus contact_status = StiffnessStatus::kNotFinite;
  StiffnessStatus one_step_status = StiffnessStatus::kNotFinite;
  StiffnessStatus static_status = StiffnessStatus::kNotFinite;
  Eigen::MatrixXd K_1, K_s;            // [N·m/rad] empty after DropMatrices()
  Eigen::VectorXd K_1_diag, K_s_diag;  // [N·m/rad] always there
  ActionLoopRadius loop;
  double loop_condition = 0;  // [1]
  BudgetReading one_step, quasi_static;
  PointReading com, hand_in_world[2], hand_on_base[2];
};

/// Everything observed at one control step. Matrices are NaN where their status is not kOk.
struct Moment {
  double time = 0;  // [s]
  ContactMode mode = ContactMode::kDoubleSupport;
  std::array<double, 2> foot_force{};              // [N] normal, left and right
  Eigen::Vector3d p_WB = Eigen::Vector3d::Zero();  // [m] base
  double yaw = 0;                                  // [rad] of the base
  double saturation = 0;                           // [1] of the control step before, see ClosedLoop
  MomentReading reading;                           // what is felt, and what the budget judges
  QuadraticFormTest random_directions;             // the paper's test on K_judged
  std::array<Eigen::VectorXd, kDampingHz.size()> damping;  // [N·m·s/rad] diagonal of Im K/ω
  Eigen::VectorXd q, qd, tau;                              // [rad], [rad/s], [N·m] robot's order
  Eigen::Vector4d quat_wxyz = {1, 0, 0, 0};                // of the base
  Eigen::Vector3d v_WB = Eigen::Vector3d::Zero();          // [m/s] of the base, in W
  Eigen::Vector3d w_WB_B = Eigen::Vector3d::Zero();        // [rad/s] of the base, in B
  Eigen::VectorXf observation;                             // what the network saw
  Eigen::VectorXd action;                                  // [1] what it answered, robot's order

  /// Frees what only a file of all moments needs: K₁, K_s beyond their diagonals, the state, what
  /// the policy saw and said. A moment of the G1 then takes 2 kB instead of 22.
  void DropMatrices();
};

/// K(jω) of one moment along a frequency grid.
struct FrequencySweep {
  double time = 0;                  // [s] of the moment
  std::vector<double> hz;           // [Hz]
  std::vector<Eigen::MatrixXcd> K;  // [N·m/rad] (S4)
};

struct ObservationOptions {
  UserBudget budget;
  int random_directions = 64;  // per moment, for the paper's quadratic-form test; 0: none
  std::uint64_t seed = 1;
  /// Gets every moment whole, in order, for files that are written while the run goes on.
  std::function<void(const Moment&)> on_moment;
  /// Gets every moment with the kinematics behind it, for what looks further at the moment.
  std::function<void(const Moment&, const ContactKinematics&)> on_contact;
  /// Asked before every moment whether to look at it; empty: at all. The run itself stays the same.
  std::function<bool()> wanted;
  int whole_moments = 1000;  // a run that has more keeps the rest without matrices
};

/// What a run was, and what was seen in it.
struct ObservationRun {
  std::string policy;  // the file
  std::string robot;
  std::string source;  // "standing pose", "rollout of 10 s, command …", "states from FILE"
  UserBudget budget;
  std::string trained;  // TrainedOtherwise() of the policy and the budget
  Servo servo;
  LoopTiming timing;
  std::string gains;  // where the servo's gains come from
  // the joints' own in the MJCF, robot's order: the damping is in every moment's, the friction loss
  // in no model here
  Eigen::VectorXd joint_damping;  // [N·m·s/rad]
  Eigen::VectorXd friction_loss;  // [N·m]
  std::vector<std::string> joints;
  std::vector<Moment> moments;
  FrequencySweep sweep;  // at the moment whose σ is the median
  LoopStatus end = LoopStatus::kRunning;
  double end_time = 0;  // [s] when the run ended
};

/// Looks at moments of a loop: after Decide(), before Advance().
class MomentObserver {
 public:
  MomentObserver(const RobotModel& robot,
                 const Servo& servo,
                 const LoopTiming& timing,
                 const ObservationOptions& options);

  /// @pre policy.Act() succeeded on the state in `data`, whose contacts are solved.
  Moment Observe(Policy* policy, mjData* data, ContactMode mode, double time);

  /// (S4) at the moment last observed, with the damping that the model's joints have of their own.
  FrequencySweep Sweep(const std::vector<double>& hz) const;

  const PolicyJacobians& jacobians() const { return jacobians_; }
  const StiffnessObserver& observer() const { return observer_; }

 private:
  const RobotModel& robot_;
  Servo servo_;
  LoopTiming timing_;
  ObservationOptions options_;
  StiffnessObserver observer_;
  PolicyJacobians jacobians_;
  BodyJacobians body_;
  double time_ = 0;
  std::uint32_t count_ = 0;
};

}  // namespace silc
