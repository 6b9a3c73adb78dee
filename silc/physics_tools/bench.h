// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "silc/robot/robot_spec.h"

namespace silc {

struct PhysicsBenchOptions {
  std::string robot = kDefaultRobot;
  std::string backend = "batch";  // "batch", "cuda" or "mujoco"
  std::string kernel;             // of "batch"; empty: the widest
  std::vector<int> envs = {1024};
  int threads = 1;
  int substeps = 4;  // per Advance()
  int steps = 200;   // physics steps per repeat, from the same random states
  int repeats = 5;   // interleaved with MuJoCo; medians are printed
  double push = 10;  // steady horizontal force on the base, at most, along x and y [N]
  std::vector<double> friction_loss = {0, 0.3};  // [N·m]
  bool self_collision = false;                   // contacts between the robot's own links, in both
};

/// Measures steps per second of a backend and of MuJoCo in turn, on robots that stand and topple
/// under their servos with masses, frictions and pushes of their own, and prints one JSON object
/// per line: physics.steps_per_s, physics.ratio_vs_mujoco, physics.profile.
void RunPhysicsBench(const PhysicsBenchOptions& options);

}  // namespace silc
