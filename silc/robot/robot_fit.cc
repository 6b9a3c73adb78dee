// SPDX-License-Identifier: Apache-2.0
#include "silc/robot/robot_fit.h"

#include <string>

#include "silc/base/error.h"
#include "silc/stiffness/default_mode.h"

namespace silc {

void NeedStiffness(const RobotModel& robot) {
  if (robot.num_joints() > 6) return;
  throw ConfigError(robot.spec().file +
                    ": joints: stiffness through two feet needs more than 6, this robot has " +
                    std::to_string(robot.num_joints()));
}

bool HasPointsOf(const BudgetSpec& budget, const RobotModel& robot) {
  return robot.has_hands() || !(budget.hand[0] || budget.hand[1]);
}

void NeedPointsOf(const BudgetSpec& budget, const RobotModel& robot) {
  if (HasPointsOf(budget, robot)) return;
  throw ConfigError(robot.spec().file +
                    ": the budget bounds hands, which this robot does not have; --mode " +
                    kDefaultMode + " bounds the centre of mass alone");
}

}  // namespace silc
