// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "silc/deploy/commander.h"
#include "silc/policy/policy.h"
#include "silc/robot/robot_model.h"
#include "silc/stiffness/types.h"

namespace silc {

/// Throws ConfigError unless the robot's joints are the motors of the link in their order: those of
/// a G1, which alone speaks this protocol.
void NeedMotorOrder(const RobotSpec& spec);

/// The commander's numbers for a policy on a robot: limits of the MJCF, faults of the robot.yaml,
/// gains of `servo`. Throws ConfigError when the robot.yaml has no `safety`, lacks a fault, names
/// one that there is not, lets one go on that must stop (observer_age is one where stiffness
/// stops), or the robot is no G1.
CommanderConfig MakeCommanderConfig(const RobotModel& robot,
                                    const Policy& policy,
                                    const Servo& servo);

}  // namespace silc
