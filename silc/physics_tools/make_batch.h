// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "silc/physics/batch.h"
#include "silc/robot/robot_model.h"

namespace silc {

struct BatchRequest {
  std::string backend = "batch";  // "batch" (CPU), "cuda", "mujoco"
  std::string kernel;             // of "batch"; empty: the widest
  std::string gains, pose;        // of robot.yaml; empty: its defaults
  double stiffness = 1;           // factor on the gains' kp
  int num_envs = 1;
  int threads = 1;
  double friction_loss = 0;  // on every joint, instead of the model's [N·m]; negative: the model's
  bool self_collision = false;  // contacts between the robot's own bodies; the robot must be loaded
                                // with them
};

/// A batch of one robot with its feet, IMUs, sites and hands named for output, gains and standing
/// pose set. Throws ConfigError for an unknown backend or a model the stepper cannot run, RunError
/// without a GPU.
struct RobotBatch {
  std::shared_ptr<mjModel> model;  // contacts between the robot's own bodies as requested
  std::unique_ptr<PhysicsBatch> batch;
};
RobotBatch MakeRobotBatch(const RobotModel& robot, const BatchRequest& request);

}  // namespace silc
