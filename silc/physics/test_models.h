// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include <mujoco/mujoco.h>

/// Robots for the tests: the G1 on a floor, and three trees that share nothing with it.
namespace silc::physics_test {

struct ModelDeleter {
  void operator()(mjModel* m) const { mj_deleteModel(m); }
};
struct DataDeleter {
  void operator()(mjData* d) const { mj_deleteData(d); }
};
using ModelPtr = std::unique_ptr<mjModel, ModelDeleter>;
using DataPtr = std::unique_ptr<mjData, DataDeleter>;

/// Compiles MJCF text; aborts the test program with MuJoCo's message when it is wrong.
ModelPtr FromText(const std::string& mjcf);
ModelPtr G1();

/// A humanoid with other proportions: hinges with anchors off the body's origin, oblique axes, two
/// joints on one body, welded bodies, capsules and boxes for feet, joint damping, a tilted floor.
extern const char kHumanoid[];
/// A quadruped: armature, limits with margin, condim 1 belly, position servos under implicitfast.
extern const char kQuadruped[];
/// Slides and springs, friction loss, limits, on a cart fixed to the world, and a free ball beside
/// it.
extern const char kCart[];

struct NamedModel {
  std::string name;
  ModelPtr model;
};
/// All of them, and the G1 with friction loss.
std::vector<NamedModel> AllModels();

/// Draws a state: kind 0 flying, 1 near the standing pose on the floor, 2 lying or deep in the
/// floor, 3 at joint limits, 4 on one edge. Values are representable in float, so that every scalar
/// type starts from the same state.
void RandomState(const mjModel& m, int kind, unsigned seed, mjData* d);
inline constexpr int kStateKinds = 5;

}  // namespace silc::physics_test
