// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "silc/stiffness/contact_mode.h"
#include "silc/task/task_robot.h"

/// Which feet carry the robot, and the contact mode that this is.
namespace silc::step {

/// One foot's two-state machine: stands above `enter`, lifted below `leave`, each for at least one
/// control step. The same rule as ContactModeTracker's.
SILC_HD void UpdateStance(const TaskRobot& robot, float force, bool* stands, float* since) {
  *since += robot.control_dt;
  const bool wants = *stands ? !(force < robot.foot_leave) : force > robot.foot_enter;
  if (wants != *stands && *since >= robot.control_dt) {
    *stands = wants;
    *since = 0;
  }
}

SILC_HD ContactMode ModeOf(const bool stands[2]) {
  if (stands[0]) return stands[1] ? ContactMode::kDoubleSupport : ContactMode::kLeftSupport;
  return stands[1] ? ContactMode::kRightSupport : ContactMode::kFlight;
}

}  // namespace silc::step
