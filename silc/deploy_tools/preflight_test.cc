// SPDX-License-Identifier: Apache-2.0
#include "silc/deploy_tools/preflight.h"

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "silc/deploy_tools/test_g1.h"

namespace silc {
namespace {

using test::G1WithPolicy;

TEST(Preflight, RefusesWithAReason) {
  const G1WithPolicy g1;
  EXPECT_TRUE(CheckPolicy(g1.robot, g1.policy, g1.servo, 0.75, 1).empty());

  // gains so high that the first answer cannot be carried out
  Servo stiff = g1.servo;
  stiff.kp *= 1000;
  std::vector<std::string> reasons = CheckPolicy(g1.robot, g1.policy, stiff, 0.75, 0);
  ASSERT_FALSE(reasons.empty());
  EXPECT_NE(reasons[0].find("the first tick would ask"), std::string::npos) << reasons[0];

  // so low that it falls
  Servo limp = g1.servo;
  limp.kp *= 0.05;
  reasons = CheckPolicy(g1.robot, g1.policy, limp, 0.75, 3);
  ASSERT_EQ(reasons.size(), 1U);
  EXPECT_NE(reasons[0].find("the robot fell"), std::string::npos) << reasons[0];
  EXPECT_EQ(FindStandingFall(g1.robot, g1.policy, g1.servo, 0.75, 1), "");
  EXPECT_NE(FindStandingFall(g1.robot, g1.policy, limp, 0.75, 3).find("after "), std::string::npos);
}

// A real robot's base has a gyroscope and nothing that measures how fast it goes.
TEST(Preflight, RefusesAnInputThatTheRobotCannotMeasure) {
  const G1WithPolicy g1;
  ObservationLayout layout = g1.policy.layout();
  int changed = 0;
  for (ObservationTerm& term : layout.terms) {
    if (term.source != TermSource::kBaseAngVel) continue;
    term.source = TermSource::kBaseLinVel;
    term.name = "speed_of_base";
    ++changed;
  }
  ASSERT_EQ(changed, 1);
  const Policy seeing(std::make_shared<const Graph>(g1.policy.graph()), layout, g1.policy.robot());
  const std::vector<std::string> reasons = CheckPolicy(g1.robot, seeing, g1.servo, 0.75, 0);
  ASSERT_EQ(reasons.size(), 1U);
  EXPECT_NE(reasons[0].find("'speed_of_base'"), std::string::npos) << reasons[0];
  EXPECT_NE(reasons[0].find("cannot measure"), std::string::npos) << reasons[0];
}

TEST(Preflight, RefusesAnotherRobotAndAnotherWriter) {
  const RobotSpec spec = ReadRobotSpec(FindRobotFile("g1"));
  LowState state{};
  state.mode_machine = 5;
  EXPECT_TRUE(CheckRobot(spec, state, {}).empty());
  state.mode_machine = 4;
  state.mode_pr = 1;
  state.motor[2].q = std::nanf("");
  const std::vector<std::string> reasons = CheckRobot(spec, state, {.foreign_writers = 1});
  ASSERT_EQ(reasons.size(), 4U);
  EXPECT_NE(reasons[0].find("machine mode is 4"), std::string::npos);
  EXPECT_NE(reasons[2].find("rt/lowcmd"), std::string::npos);
  EXPECT_NE(reasons[3].find("left_hip_yaw_joint"), std::string::npos);
}

// Machine mode 0 is no G1's. A simulation that fills in none is accepted when that is asked for,
// which accepts no other variant.
TEST(Preflight, AcceptsMachineModeZeroOnlyWhenAskedTo) {
  const RobotSpec spec = ReadRobotSpec(FindRobotFile("g1"));
  LowState state{};
  const std::vector<std::string> reasons = CheckRobot(spec, state, {});
  ASSERT_EQ(reasons.size(), 1U);
  EXPECT_NE(reasons[0].find("machine mode is 0"), std::string::npos) << reasons[0];
  EXPECT_NE(reasons[0].find("--no-machine-mode"), std::string::npos) << reasons[0];
  EXPECT_TRUE(CheckRobot(spec, state, {}, false).empty());
  state.mode_machine = 4;
  EXPECT_EQ(CheckRobot(spec, state, {}, false).size(), 1U);
}

}  // namespace
}  // namespace silc
