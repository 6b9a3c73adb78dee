// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "silc/learn/vec_env.h"
#include "silc/policy/mlp.h"
#include "silc/policy/observation_layout.h"
#include "silc/robot/robot_model.h"
#include "silc/stiffness/budget.h"
#include "silc/task/task_config.h"

namespace silc {

/// What stands between the robot and a policy of the task: layouts/g1_loco.yaml with the numbers of
/// this robot and this config (default pose, gains, action scale and clip, gait period). An
/// exported policy carries it. Throws ConfigError when the layout is not the task's.
ObservationLayout LocoLayout(const RobotModel& robot, const TaskConfig& config);

/// How an observation moves with what it observes: entry (input, column, scale) for each element,
/// columns in the robot's order. Clips are taken as inactive.
struct ObservationColumns {
  std::vector<ColumnEntry> q0;  // joint positions, newest frame
  std::vector<ColumnEntry> q;   // every frame
  std::vector<ColumnEntry> a;   // previous action
  std::vector<ColumnEntry> tau;
  std::vector<ColumnEntry> g;  // projected gravity, 3 columns
};
/// @pre layout.Validate() passed. Throws ConfigError for joints the robot does not have.
ObservationColumns MakeObservationColumns(const ObservationLayout& layout,
                                          const std::vector<std::string>& robot_joints);

/// What the learner is told of `g1-loco` and `g1-stand`: two agents on one observation, the servo,
/// the budget, and how the observation moves. The same for every backend but for on_gpu.
EnvSpec MakeLocoSpec(const RobotModel& robot,
                     const TaskConfig& config,
                     const BudgetSpec& budget,
                     int num_envs);

}  // namespace silc
