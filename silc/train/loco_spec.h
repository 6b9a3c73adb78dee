// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "silc/learn/vec_env.h"
#include "silc/policy/mlp.h"
#include "silc/policy/observation_table.h"
#include "silc/robot/robot_model.h"
#include "silc/stiffness/budget.h"
#include "silc/task/task_layout.h"

namespace silc {

/// How an observation moves with what it observes: entry (input, column, scale) for each element of
/// the compiled layout, columns in its order of joints. Clips are taken as inactive.
struct ObservationColumns {
  std::vector<ColumnEntry> q0;  // joint positions, newest frame
  std::vector<ColumnEntry> q;   // every frame
  std::vector<ColumnEntry> a;   // previous action
  std::vector<ColumnEntry> tau;
  std::vector<ColumnEntry> g;  // projected gravity, 3 columns
  std::vector<ColumnEntry> v;  // joint velocities
};
ObservationColumns MakeObservationColumns(const ObservationTable& table);

/// What the learner is told of the task: one agent per actor on one observation, the servo, the
/// budget, and how the observation moves; joints in task order. The same for every backend but for
/// on_gpu.
EnvSpec MakeLocoSpec(const RobotModel& robot,
                     const TaskLayout& layout,
                     const BudgetSpec& budget,
                     int num_envs);

}  // namespace silc
