// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <string>
#include <vector>

#include "silc/deploy/commander.h"
#include "silc/deploy/messages.h"
#include "silc/observe/closed_loop.h"
#include "silc/policy/policy.h"
#include "silc/robot/robot_model.h"

namespace silc {

/// Reasons not to put this policy on this robot, each a sentence; empty: none.
///
///   - an input that the robot cannot measure (base linear velocity),
///   - a torque beyond the effort limit in the first tick, standing in the policy's default pose,
///   - `seconds` of MuJoCo, standing, in which it falls.
///
/// `stop`, if any, cuts the standing short: then nothing is known of a fall.
std::vector<std::string> CheckPolicy(const RobotModel& robot,
                                     const Policy& policy,
                                     const Servo& servo,
                                     double height,
                                     double seconds,
                                     const std::atomic<bool>* stop = nullptr);

/// How `seconds` of standing in MuJoCo end early: "after 66.5 s: the robot fell: ..."; "": they do
/// not, or `stop` cut them short. Without a link: what falls here falls because of the policy.
std::string FindStandingFall(const RobotModel& robot,
                             const Policy& policy,
                             const Servo& servo,
                             double height,
                             double seconds,
                             const std::atomic<bool>* stop = nullptr);

/// Reasons not to drive the robot that sent `state`: machine mode, mode_pr, numbers that are none,
/// somebody else who writes commands. A machine mode of 0, which a simulation reports that fills in
/// none, is a reason unless `check_machine_mode` is false; any other is in any case.
std::vector<std::string> CheckRobot(const RobotSpec& spec,
                                    const LowState& state,
                                    const LinkHealth& link,
                                    bool check_machine_mode = true);

}  // namespace silc
