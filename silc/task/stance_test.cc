// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "silc/base/rng.h"
#include "silc/stiffness/contact_mode.h"
#include "silc/task/stance.h"

namespace silc {
namespace {

// The task's stance rule runs on the GPU, the observer's tracker on the robot: a policy is
// penalised and observed in the same contact mode only if the two are the same machine.
TEST(Stance, IsTheRuleOfTheContactModeTracker) {
  TaskRobot robot{};
  robot.control_dt = 0.02f;
  robot.foot_enter = 30;
  robot.foot_leave = 15;
  ContactModeTracker tracker(
      {.enter_force = robot.foot_enter, .leave_force = robot.foot_leave, .min_dwell = 0.02});
  bool stands[2] = {true, true};
  float since[2] = {robot.control_dt, robot.control_dt};
  Rng rng(6);
  int seen[4] = {};
  for (int k = 0; k < 5000; ++k) {
    float force[2];
    for (float& f : force) {
      // forces anywhere, and often on the thresholds themselves
      const double kind = rng.Uniform();
      f = kind < 0.2   ? robot.foot_enter
          : kind < 0.4 ? robot.foot_leave
                       : static_cast<float>(rng.Uniform(-5, 60));
    }
    for (int foot = 0; foot < 2; ++foot) {
      step::UpdateStance(robot, force[foot], &stands[foot], &since[foot]);
    }
    ASSERT_EQ(tracker.Update(force[0], force[1], 0.02), StiffnessStatus::kOk);
    const ContactMode mode = step::ModeOf(stands);
    ASSERT_EQ(mode, tracker.mode()) << "step " << k;
    ++seen[static_cast<int>(mode)];
  }
  for (const int count : seen) EXPECT_GT(count, 100);
}

}  // namespace
}  // namespace silc
