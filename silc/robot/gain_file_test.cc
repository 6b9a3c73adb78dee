// SPDX-License-Identifier: Apache-2.0
#include "silc/robot/gain_file.h"

#include <gtest/gtest.h>

#include "silc/base/error.h"
#include "silc/base/file.h"
#include "silc/robot/robot_model.h"

namespace silc {
namespace {

RobotSpec G1() { return ReadRobotSpec(FindRobotFile("g1")); }

GainSet SomeGains(const RobotSpec& spec) {
  GainSet set = spec.Gains("falcon");
  set.name = "mine";
  for (int i = 0; i < spec.num_joints(); ++i) {
    set.kp[i] = 10.0 / 3 + i;
    set.kd[i] = 0.1 + i / 7.0;
    set.action_scale[i] = 1.0 / (i + 3);
  }
  return set;
}

std::string RefusalOf(const std::string& text) {
  try {
    ParseGainFile(G1(), text, "mine.yaml");
  } catch (const ConfigError& e) {
    return e.what();
  }
  return "";
}

TEST(GainFile, WrittenAndReadIsTheSameToTheLastBit) {
  const RobotSpec spec = G1();
  const GainSet set = SomeGains(spec);
  std::string text = "robot: g1\ngains:\n";
  for (const char c : "  " + GainSetYaml(spec, set)) text += c == '\n' ? "\n  " : std::string(1, c);
  const GainSet read = ParseGainFile(spec, text, "mine.yaml");
  EXPECT_EQ(read.name, "mine");
  EXPECT_EQ(read.kp, set.kp);
  EXPECT_EQ(read.kd, set.kd);
  EXPECT_EQ(read.action_scale, set.action_scale);
}

TEST(GainFile, NamesAreTheRobotsAndPathsAreFiles) {
  const RobotSpec spec = G1();
  EXPECT_EQ(FindGains(spec, "").name, "falcon");
  EXPECT_EQ(FindGains(spec, "mjlab").kp, spec.Gains("mjlab").kp);
  try {
    FindGains(spec, "mjalb");
    FAIL();
  } catch (const ConfigError& e) {
    EXPECT_NE(std::string(e.what()).find("mjlab"), std::string::npos) << e.what();
  }
  EXPECT_THROW(FindGains(spec, "./there_is_none.yaml"), ConfigError);
}

TEST(GainFile, FilesThatDoNotFitAreRefused) {
  const std::string set = "{kp: 10, kd: 1, action_scale: 0.2}";
  EXPECT_EQ(RefusalOf("robot: g1\ngains: {mine: " + set + "}"), "");
  EXPECT_NE(RefusalOf("robot: h1\ngains: {mine: " + set + "}").find("of the robot 'h1'"),
            std::string::npos);
  EXPECT_NE(RefusalOf("robot: g1\ngains: {a: " + set + ", b: " + set + "}").find("exactly one"),
            std::string::npos);
  EXPECT_NE(RefusalOf("robot: g1\ngains: {mjlab: " + set + "}").find("name of its own"),
            std::string::npos);
  EXPECT_NE(RefusalOf("robot: g1\ngains: {mine: {kp: 0, kd: 1, action_scale: 1}}").find("kp"),
            std::string::npos);
}

TEST(GainFile, ASetIsKnownByItsServoAndNotByItsActionScale) {
  const RobotSpec spec = G1();
  const GainSet& mjlab = spec.Gains("mjlab");
  EXPECT_EQ(GainsName(spec, mjlab.kp, mjlab.kd), "mjlab");
  // as metadata rounds them
  EXPECT_EQ(GainsName(spec, mjlab.kp * 1.0005, mjlab.kd), "mjlab");
  EXPECT_EQ(GainsName(spec, mjlab.kp, mjlab.kd * 1.01), "own");
  EXPECT_EQ(GainsName(spec, Eigen::VectorXd(), Eigen::VectorXd()), "own");
}

TEST(GainFile, ARobotLoadedWithGainsHasThemAsItsDefault) {
  const RobotSpec spec = G1();
  const RobotModel robot = RobotModel::Load("g1", {.gains = SomeGains(spec)});
  EXPECT_EQ(robot.spec().default_gains, "mine");
  EXPECT_EQ(robot.spec().Gains().kp, SomeGains(spec).kp);
  EXPECT_EQ(robot.spec().Gains("falcon").kp, spec.Gains("falcon").kp);
}

}  // namespace
}  // namespace silc
