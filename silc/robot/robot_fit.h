// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "silc/robot/robot_model.h"
#include "silc/stiffness/budget.h"

namespace silc {

/// Throws ConfigError where the robot has too few joints to have a stiffness on two feet: six hold
/// the base against the ground; what is left over can have one.
void NeedStiffness(const RobotModel& robot);

/// Throws ConfigError where the budget bounds points that the robot does not have.
void NeedPointsOf(const BudgetSpec& budget, const RobotModel& robot);

}  // namespace silc
