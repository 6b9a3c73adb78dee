// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "silc/policy/observation_layout.h"
#include "silc/robot/robot_spec.h"
#include "silc/task/observation.h"
#include "silc/task/task_config.h"

namespace silc {

/// What stands between the robot and the policies of a task.
struct TaskLayout {
  ObservationLayout layout;        // with the robot's gains; what an exported policy carries
  ObservationTable table;          // the layout, compiled; joints in task order
  std::vector<TaskEntry> entries;  // the table in float, with noise

  /// For the step; points into `entries`.
  TaskObservation view() const;
};

/// Makes history, gait period and action clip of the two agree: what the config gives is taken over
/// into the layout, what it leaves at 0 is taken from the layout. Throws ConfigError when neither
/// says the period.
void MatchLayout(TaskConfig* config, ObservationLayout* layout);

/// Compiles `layout` for the task, after MatchLayout().
///
/// Throws ConfigError, with the layout's file and the key, for what the task cannot train: a source
/// that a robot does not measure (base_lin_vel), a reference for joints that have none, actions in
/// another order than the task's, a gait clock that the policy could not follow, and pose,
/// gains or action scales that are not the robot's.
///
/// @param gains_named  the task names its gains itself: the layout's are then replaced by the
///     robot's default set, which the task has chosen, instead of being held against it
TaskLayout MakeTaskLayout(ObservationLayout layout,
                          const RobotSpec& robot,
                          TaskConfig* config,
                          bool gains_named = false);

/// layouts/NAME.yaml, or the YAML file itself when the name is a path. Throws ConfigError.
ObservationLayout ReadTaskLayout(const std::string& name_or_path);

}  // namespace silc
