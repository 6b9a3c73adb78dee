// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <Eigen/Core>
#include <array>

#include "silc/robot/robot_model.h"
#include "silc/stiffness/contact_jacobian.h"
#include "silc/stiffness/contact_mode.h"

namespace silc {

/// Which feet stand, on a robot that has no sensors in them: from the torques of its legs, as if it
/// stood still. At rest a leg's torques carry its weight and what the floor does to its foot,
///
///     τ = g_leg − J_legᵀ F,
///
/// six equations for the six numbers of F [N, N·m]. In fast motion that is an estimate. Thresholds
/// and hysteresis are those of the robot.yaml.
class LegContacts {
 public:
  explicit LegContacts(const RobotModel& robot);

  /// Both feet down, as at the start.
  void Reset();

  /// One control period of `dt` [s]. `data` holds the robot's posture with its kinematics
  /// (mj_kinematics, mj_comPos), `body` the Jacobians there, `tau` the measured torques [N·m] in
  /// the robot's order. Where the robot.yaml does not name the joints of the legs, the mode stays.
  ContactMode Update(mjData* data,
                     const BodyJacobians& body,
                     const Eigen::VectorXd& tau,
                     double dt);

  ContactMode mode() const { return tracker_.mode(); }
  /// [N] normal force of each foot in the last Update(); NaN where the legs are not known.
  const std::array<double, 2>& force() const { return force_; }

 private:
  void EstimateForces(mjData* data, const BodyJacobians& body, const Eigen::VectorXd& tau);

  const RobotModel* robot_;
  ContactModeTracker tracker_;
  std::array<std::array<int, 6>, 2> leg_{};  // joints; −1 when the robot.yaml does not name them
  std::array<double, 2> force_{};
  Eigen::VectorXd gravity_;  // [N·m]
};

}  // namespace silc
