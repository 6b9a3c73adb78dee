// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "silc/policy/mlp.h"
#include "silc/policy/observation_layout.h"
#include "silc/robot/robot_model.h"

namespace silc {

struct StandOptions {
  std::string pose;              // of the robot.yaml; "" for its default
  std::string gains;             // likewise
  double com_weight = 4e4;       // [1/m²]    cost of the centre of mass leaving its place
  double posture_weight = 20;    // [1/rad²]  cost of joints leaving the pose
  double velocity_weight = 0.5;  // [s²/rad²]
  double target_weight = 1;      // [1/rad²]  cost of targets away from the pose
  double smoothness = 60;        // [1/rad²]  cost of targets changing from one step to the next
};

/// A policy that stands, without training: the network and the layout around it.
struct StandPolicy {
  MlpNetwork network;
  ObservationLayout layout;
};

/// Linear-quadratic regulator for standing on both feet, as a one-layer policy that sees joint
/// positions, joint velocities and its own previous action.
///
/// On the motions z that the contacts leave (S5), under the servo (S1) and gravity,
///
///     M_z z̈ + N^T Kd N ż + (Nᵀ Kp N + H_z) z = Nᵀ Kp N v,       targets move as δq* = N v,
///
/// sampled every control period. The previous target is part of the state because its change is
/// penalised; so the optimal policy smooths itself, v_t = −F (z, ż, v_{t−1}), and its one-step
/// stiffness differs from its static one, as a trained policy's does. Targets at rest carry the
/// robot's weight.
///
/// Meant as an example and a test object whose every derivative is known: it does not step, so a
/// push that needs a step makes it fall. Throws ConfigError or RunError when the robot cannot stand
/// in the pose.
StandPolicy DesignStandPolicy(const RobotModel& robot, const StandOptions& options = {});

}  // namespace silc
