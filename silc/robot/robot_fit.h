// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "silc/robot/robot_model.h"
#include "silc/stiffness/budget.h"

namespace silc {

/// Throws ConfigError where the robot has too few joints to have a stiffness on two feet: six hold
/// the base against the ground; what is left over can have one.
void NeedStiffness(const RobotModel& robot);

/// Whether the robot has the points that the budget bounds.
bool HasPointsOf(const BudgetSpec& budget, const RobotModel& robot);
/// Throws ConfigError where it does not.
void NeedPointsOf(const BudgetSpec& budget, const RobotModel& robot);

}  // namespace silc
