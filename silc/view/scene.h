// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "silc/robot/robot_model.h"

namespace silc {

/// What a page has to know before the first frame.
struct SceneLists {
  std::uint32_t number = 0;  // of StateFrame::scene; another number, another scene
  double period = 0.02;      // [s] of a frame
  std::vector<std::string> policies;
  std::vector<std::string> budgets;  // the first is "the policy's own"
  std::vector<std::string> budget_numbers;
  int num_robots = 1;
};

/// The robot's shapes and the lists as JSON: docs/view.md has the keys. `robot` is loaded with
/// LoadOptions::visuals.
std::string SceneJson(const RobotModel& robot, const SceneLists& lists);

/// (num_bodies, 7): p_W [m], quat_wxyz, as a frame shows them.
std::vector<float> BodyPoses(const RobotModel& robot, const mjData& data);

}  // namespace silc
