// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <string>
#include <vector>

#include "silc/robot/robot_spec.h"

namespace silc {

struct SimOptions {
  std::string robot = kDefaultRobot;
  std::vector<std::string> backends = {"batch", "mujoco"};
  std::string gains, pose;                 // of robot.yaml; empty: its defaults
  double stiffness = 1;                    // factor on kp
  double seconds = 5;                      // [s]
  std::array<double, 3> push = {0, 0, 0};  // on the base, in W [N]
  double push_time = 0.5;                  // [s]
  double push_duration = 0.1;              // [s]
  double friction_loss = -1;               // negative: the model's [N·m]
};

/// Base and feet over time, one control step per row.
struct SimTrace {
  std::string backend;
  std::vector<double> time;                       // [s]
  std::vector<std::array<double, 3>> base;        // position in W [m]
  std::vector<double> tilt;                       // of the base from upright [rad]
  std::vector<std::array<double, 2>> foot_force;  // vertical, left and right [N]
  std::vector<double> torque;                     // largest of all joints [N·m]
  int fault = 0;
};

/// One robot in its standing pose, its servos holding it, pushed once; the same on every backend.
std::vector<SimTrace> RunSim(const SimOptions& options);

/// Columns: backend, time, base x y z, tilt, foot force left right, torque.
std::string SimCsv(const std::vector<SimTrace>& traces);
/// All backends overlaid.
std::string SimSvg(const SimOptions& options, const std::vector<SimTrace>& traces);

}  // namespace silc
