// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "silc/deploy/commander.h"
#include "silc/policy/policy.h"
#include "silc/robot/robot_model.h"
#include "silc/stiffness/types.h"

namespace silc {

/// The commander's numbers for a policy on a robot: limits of the MJCF, faults of the robot.yaml,
/// gains of `servo`. Throws ConfigError when the robot.yaml has no `safety`, lacks a fault, names
/// one that there is not, lets one go on that must stop, or the robot has other than 29 joints.
CommanderConfig MakeCommanderConfig(const RobotModel& robot,
                                    const Policy& policy,
                                    const Servo& servo);

}  // namespace silc
