// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include <mujoco/mujoco.h>

#include "silc/physics/batch.h"

/// Many robots that differ in everything a batch lets them differ in, for the tests of batches.
namespace silc::physics_test {

/// Feet, IMUs and frames of the G1 as a policy reads them, and the bodies that are pushed.
BatchModelOptions G1Outputs(std::vector<std::string> pushes);

/// 0 … n − 1.
std::vector<int> Range(int n);

/// A field of all robots.
std::vector<float> All(PhysicsBatch* batch, Field field);

/// Robot number `identity` of an endless supply becomes the batch's robot `env`: state, parameters,
/// gains, delay and two pushes all differ.
void Equip(PhysicsBatch* batch, int env, int identity, const mjModel& m, mjData* d);

/// States, gains, frictions and one push of many robots, so that batches can be given the same.
struct Crowd {
  int size = 0;
  std::vector<float> qpos, qvel, kp, kd, target, friction, wrench, steps;
};

/// n robots in the first `kinds` kinds of states by turns; −1: standing, nearly still.
Crowd MakeCrowd(const mjModel& m, mjData* d, int kinds, int n);

/// Robot i of the crowd becomes the batch's robot place[i]; without places, robot i.
void Equip(PhysicsBatch* batch, const Crowd& c, const std::vector<int>& place);
void Equip(PhysicsBatch* batch, const Crowd& c);

}  // namespace silc::physics_test
