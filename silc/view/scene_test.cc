// SPDX-License-Identifier: Apache-2.0
#include "silc/view/scene.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace silc {
namespace {

using nlohmann::json;

json SceneOf(const std::string& robot) {
  LoadOptions options;
  options.visuals = true;
  SceneLists lists;
  lists.number = 7;
  lists.policies = {"a", "\xff no text"};
  lists.budgets = {"own"};
  lists.num_robots = 2;
  return json::parse(SceneJson(RobotModel::Load(robot, options), lists));
}

// A page draws what is here and nothing else: every moving body of the robot has a place, and the
// indices point into the lists.
TEST(Scene, HasTheRobotsShapesWithTheirBodies) {
  const RobotModel plain = RobotModel::Load("g1");
  const json scene = SceneOf("g1");
  EXPECT_EQ(scene["bodies"].size(), static_cast<std::size_t>(plain.model()->nbody))
      << "frames number bodies as the model without visuals does";
  for (int body = 0; body < plain.model()->nbody; ++body) {
    EXPECT_EQ(scene["bodies"][body], mj_id2name(plain.model(), mjOBJ_BODY, body));
  }
  EXPECT_GT(scene["shapes"].size(), 30u);
  for (const json& shape : scene["shapes"]) {
    EXPECT_GT(shape["body"], 0) << "the floor is the page's own";
    EXPECT_LT(shape["body"], scene["bodies"].size());
    double square = 0;
    for (const double part : shape["quat"].get<std::vector<double>>()) square += part * part;
    EXPECT_NEAR(square, 1, 1e-9);
  }
  ASSERT_EQ(scene["hands"].size(), 2u);
  EXPECT_EQ(scene["hands"][0]["body"], plain.hand_body()[kLeft]);
  EXPECT_EQ(scene["base"], plain.base_body());
  EXPECT_EQ(scene["pushes"].size(), 3u);
  EXPECT_EQ(scene["number"], 7);
}

TEST(Scene, ShowsOtherRobotsToo) {
  for (const char* robot : {"t1", "berkeley"}) {
    EXPECT_GT(SceneOf(robot)["shapes"].size(), 5u) << robot;
  }
  EXPECT_EQ(SceneOf("berkeley")["pushes"].size(), 2u) << "it has no hand to push";
}

}  // namespace
}  // namespace silc
