// SPDX-License-Identifier: Apache-2.0
#include "silc/view/scene.h"

#include <gtest/gtest.h>

#include <Eigen/Geometry>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "silc/base/file.h"
#include "silc/base/test_paths.h"

namespace silc {
namespace {

namespace fs = std::filesystem;
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

// MuJoCo moves a mesh to its centre of mass and turns it by its axes of inertia. On the page its
// corners lie where the MJCF has them all the same.
TEST(Scene, MeshesLieWhereTheirFileHasThem) {
  const fs::path folder = fs::path(::testing::TempDir()) / "silc_scene_mesh";
  fs::create_directories(folder);
  const std::string source = SourcePath("robots/berkeley") + "/";
  fs::copy_file(source + "robot.yaml", folder / "robot.yaml", fs::copy_options::overwrite_existing);
  std::string mjcf = ReadFile(source + "berkeley.xml");
  const auto insert = [&](const std::string& before, const std::string& text) {
    const std::size_t at = mjcf.find(before);
    ASSERT_NE(at, std::string::npos) << before;
    mjcf.insert(at, text);
  };
  // a corner of a box of 0.1 × 0.2 × 0.3 m, turned by a quarter about z and put at (1, 2, 3)
  insert("<worldbody>",
         R"(<asset><mesh name="corner" vertex="0 0 0  0.1 0 0  0 0.2 0  0 0 0.3"/></asset>)");
  insert("<freejoint",
         R"(<geom type="mesh" mesh="corner" pos="1 2 3" quat="0.70710678 0 0 0.70710678" )"
         R"(contype="0" conaffinity="0" group="1"/>)");
  WriteFileAtomically((folder / "berkeley.xml").string(), mjcf);

  const json scene = SceneOf((folder / "robot.yaml").string());
  std::vector<json> found;
  for (const json& shape : scene["shapes"]) {
    if (shape["shape"] == "mesh") found.push_back(shape);
  }
  ASSERT_EQ(found.size(), 1u);
  const json& mesh = scene["meshes"].at(found[0]["mesh"].get<std::size_t>());
  const auto numbers = [](const json& list) { return list.get<std::vector<double>>(); };
  const std::vector<double> vertices = numbers(mesh["vertices"]), pos = numbers(found[0]["pos"]),
                            quat = numbers(found[0]["quat"]);
  const Eigen::Quaterniond turn(quat[0], quat[1], quat[2], quat[3]);
  std::vector<Eigen::Vector3d> corners = {{1, 2, 3}, {1, 2.1, 3}, {0.8, 2, 3}, {1, 2, 3.3}};
  for (std::size_t at = 0; at < vertices.size(); at += 3) {
    const Eigen::Vector3d p =
        Eigen::Vector3d(pos[0], pos[1], pos[2]) +
        turn * Eigen::Vector3d(vertices[at], vertices[at + 1], vertices[at + 2]);
    const auto same = [&](const Eigen::Vector3d& corner) { return (corner - p).norm() < 1e-5; };
    EXPECT_EQ(std::erase_if(corners, same), 1u) << p.transpose();
  }
  EXPECT_TRUE(corners.empty());
  EXPECT_EQ(mesh["faces"].size(), 12u) << "four triangles";
  fs::remove_all(folder);
}

}  // namespace
}  // namespace silc
