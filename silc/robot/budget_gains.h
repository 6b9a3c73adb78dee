// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "silc/robot/robot_model.h"
#include "silc/stiffness/budget.h"
#include "silc/stiffness/diagonal_gains.h"

namespace silc {

/// Servo gains from a budget (docs/gains.md): what they have to fit into, and what they are made
/// of besides.
struct GainsRequest {
  std::vector<BudgetSpec> budgets;  // the servo fits into each of them
  std::vector<std::string> poses;   // of the robot.yaml; empty: all
  std::vector<ContactMode> modes = {
      ContactMode::kDoubleSupport, ContactMode::kLeftSupport, ContactMode::kRightSupport};
  /// qpos of recorded moments, in MuJoCo's order: each counts in the contact mode that it has
  /// (ContactsOfPose()). Those in flight do not.
  std::vector<Eigen::VectorXd> states;
  int samples = 0;  // poses drawn about each named one …
  double spread =
      0.3;  // [rad] … joints uniformly ± this, within range; legs in single support alone
  std::uint64_t seed = 1;
  double max_frequency = 10;  // [Hz] of a motor without load on its servo: kp ≤ armature (2π f)²
  double damping_ratio = 1;   // [1] ζ of kd = 2 ζ √(kp I)
  double effort_share = 0.25;  // [1] of the effort limit that one unit of action asks for
};

/// One moment, under one budget.
struct GainMoment {
  int budget;  // in GainsRequest::budgets
  ContactMode mode;
  GainCeiling ceiling;
};

struct BudgetGains {
  GainSet set;             // named "budget"
  DiagonalGains solution;  // of (G1)
  std::vector<GainMoment> moments;
  int in_flight = 0;        // of the states
  Eigen::VectorXd limit;    // [N·m/rad] of each motor
  Eigen::VectorXd inertia;  // [kg·m²] I of (G3): the least a servo meets in the named poses
};

/// Throws ConfigError: a pose the robot does not have, a budget whose null space is weighted by the
/// gains (it would move with the answer), a budget that cannot be worked out in a pose. Throws
/// RunError when (G1) is not solved.
BudgetGains GainsFromBudget(const RobotModel& robot, const GainsRequest& request);

/// The worst direction of a servo over the moments of one contact mode [1]; NaN without any.
double WorstOfServo(const std::vector<GainMoment>& moments,
                    ContactMode mode,
                    const Eigen::VectorXd& kp);

}  // namespace silc
