// SPDX-License-Identifier: Apache-2.0
#include "silc/robot/mjcf_check.h"

#include <gtest/gtest.h>

#include <chrono>

#include "silc/base/error.h"
#include "silc/robot/robot_model.h"
#include "silc/robot/tiny_biped.h"

namespace silc {
namespace {

std::string LoadError(const std::string& mjcf, const std::string& yaml = kTinyBipedYaml) {
  const TinyBipedFolder files(yaml, mjcf);
  try {
    RobotModel::Load(files.robot_yaml());
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no error";
}

std::string WithWorld(const std::string& inserted) {
  return Changed(kTinyBipedMjcf, "<worldbody>", "<worldbody>" + inserted);
}
std::string WithAsset(const std::string& inserted) {
  return Changed(kTinyBipedMjcf, "<worldbody>", "<asset>" + inserted + "</asset><worldbody>");
}

void ExpectRefused(const std::string& mjcf, const std::string& part) {
  const auto start = std::chrono::steady_clock::now();
  const std::string error = LoadError(mjcf);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  EXPECT_NE(error.find(part), std::string::npos) << part << " in: " << error;
  EXPECT_LT(took.count(), 10) << part;
}

// A line that makes millions is refused before MuJoCo makes them.
TEST(MjcfCheck, FewWordsDoNotMakeMillions) {
  ExpectRefused(WithWorld(R"(<replicate count="2000000" offset="1 0 0"><body><geom size="0.1"/>
                          </body></replicate>)"),
                "tiny.xml:3: <replicate> makes more than 2000");
  ExpectRefused(WithWorld(R"(<replicate count="1000"><replicate count='1000'><body>
                          <geom size="0.1"/></body></replicate></replicate>)"),
                "<replicate> makes more than 2000");
  ExpectRefused(WithAsset(R"(<hfield name="h" nrow="30000" ncol="30000" size="1 1 1 1"/>)"),
                "<hfield> has more than 4194304 points");
  ExpectRefused(WithAsset(R"(<texture name="t" type="2d" builtin="flat" width="90000"
                          height="90000"/>)"),
                "<texture> has more than 4194304 points");
  std::string geoms, bodies;
  for (int k = 0; k < 10'001; ++k) geoms += "<geom size=\"0.1\"/>";
  ExpectRefused(WithWorld(geoms), "more than 10000 geoms");
  for (int k = 0; k < 2'001; ++k) bodies += "<body><geom size=\"0.1\"/></body>";
  ExpectRefused(WithWorld(bodies), "more than 2000 bodies");
  // 1,500 times 8 geoms
  geoms.resize(8 * std::string("<geom size=\"0.1\"/>").size());
  ExpectRefused(WithWorld("<replicate count=\"1500\">" + geoms + "</replicate>"),
                "more than 10000 geoms");
  // what stands in a comment makes nothing, and neither does a modest number
  EXPECT_EQ(LoadError(WithWorld(R"(<!-- <replicate count="2000000"> -->
      <replicate count="3" offset="0 0 1"><geom size="0.1" pos="9 9 9"/></replicate>)")),
            "no error");
}

TEST(MjcfCheck, IncludedFilesAreLookedInto) {
  const TinyBipedFolder files(kTinyBipedYaml, WithWorld("<include file=\"more.xml\"/>"));
  WriteFileAtomically(files.folder() + "/more.xml",
                      R"(<mujocoinclude><replicate count="3000000"><geom size="1"/></replicate>
                      </mujocoinclude>)");
  try {
    RobotModel::Load(files.robot_yaml());
    FAIL() << "loaded";
  } catch (const ConfigError& error) {
    EXPECT_NE(std::string(error.what()).find("more.xml:1: <replicate>"), std::string::npos)
        << error.what();
  }
}

// MuJoCo compiles all of these.
TEST(MjcfCheck, NumbersThatAreNoPhysicsAreRefusedByName) {
  ExpectRefused(
      Changed(kTinyBipedMjcf, "actuatorfrcrange=\"-60 60\"", "actuatorfrcrange=\"nan nan\""),
      "l_hip: its range of actuator force is nan");
  ExpectRefused(Changed(kTinyBipedMjcf, "<worldbody>", "<option gravity='0 0 nan'/><worldbody>"),
                "gravity is nan");
  ExpectRefused(
      Changed(kTinyBipedMjcf, "name=\"l_thigh\" pos=\"0 0.1", "name=\"l_thigh\" pos=\"nan 0.1"),
      "l_thigh: its position is nan");
  ExpectRefused(
      Changed(kTinyBipedMjcf, "name=\"r_hip\" axis", "name=\"r_hip\" armature=\"-0.1\" axis"),
      "r_hip: its armature is -0.1");
  ExpectRefused(
      Changed(kTinyBipedMjcf, "name=\"r_hip\" axis", "name=\"r_hip\" damping=\"-3\" axis"),
      "r_hip: its damping is -3");
}

// A floor that is only painted carries nobody; one is put under it.
TEST(MjcfCheck, AVisualFloorIsNoFloor) {
  const TinyBipedFolder files(
      kTinyBipedYaml,
      WithWorld(R"(<geom type="plane" size="1 1 1" contype="0" conaffinity="0"/>)"));
  const RobotModel robot = RobotModel::Load(files.robot_yaml());
  EXPECT_NE(robot.model()->geom_contype[robot.floor_geom()], 0);
}

TEST(MjcfCheck, GainsAndPosesOutOfRangeAreRefused) {
  const auto refused = [](const std::string& from, const std::string& to) {
    return LoadError(kTinyBipedMjcf, Changed(kTinyBipedYaml, from, to));
  };
  EXPECT_NE(refused("hips: 100, knees: 80", "hips: 0, knees: 80").find("0 is outside [1e-06"),
            std::string::npos);
  EXPECT_NE(refused("hips: 100, knees: 80", "hips: 1e300, knees: 80").find("outside"),
            std::string::npos);
  EXPECT_NE(refused("hips: -0.3, knees: 0.6", "hips: -0.3, knees: 1e8").find("outside"),
            std::string::npos);
}

}  // namespace
}  // namespace silc
