// SPDX-License-Identifier: Apache-2.0
#include "silc/deploy_tools/safety_config.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <regex>
#include <sstream>

#include "silc/base/error.h"
#include "silc/base/file.h"
#include "silc/base/test_paths.h"
#include "silc/deploy_tools/test_walker.h"
#include "silc/observe/closed_loop.h"
#include "silc/observe/load_policy.h"

namespace silc {
namespace {

std::string RobotText() { return ReadFile(FindRobotFile("g1")); }

CommanderConfig ConfigOf(const std::string& text) {
  const RobotModel robot = RobotModel::FromSpec(ParseRobotSpec(text, FindRobotFile("g1")));
  const Policy policy = LoadPolicy(test::WalkerFile(), "", robot);
  return MakeCommanderConfig(robot, policy, ServoFor(robot, policy, ""));
}

std::string Without(const std::string& text, const std::string& line_with, const std::string& by) {
  std::istringstream in(text);
  std::string out;
  for (std::string line; std::getline(in, line);) {
    const bool found = line.find(line_with) != std::string::npos;
    if (!found) out += line + "\n";
    if (found && !by.empty()) out += by + "\n";
  }
  return out;
}

TEST(SafetyConfig, TakesLimitsFromTheRobotAndGainsFromTheServo) {
  const RobotModel robot = RobotModel::Load("g1");
  const Policy policy = LoadPolicy(test::WalkerFile(), "", robot);
  // gains that no policy and no gain set has: joint by joint another
  Servo servo = ServoFor(robot, policy, "");
  servo.kp.setLinSpaced(50, 78);
  servo.kd.setLinSpaced(1, 3.8);
  const CommanderConfig config = MakeCommanderConfig(robot, policy, servo);
  EXPECT_EQ(config.rules[static_cast<std::size_t>(DriveFault::kTilt)].limit, 1.0);
  EXPECT_EQ(config.rules[static_cast<std::size_t>(DriveFault::kStiffness)].reaction,
            Reaction::kWarn);
  for (std::size_t j = 0; j < config.kp.size(); ++j) {
    EXPECT_NEAR(config.kp[j], 50 + static_cast<double>(j), 1e-9);
    EXPECT_NEAR(config.kd[j], 1 + 0.1 * static_cast<double>(j), 1e-9);
    // standing up, with the gains of robot.yaml
    EXPECT_EQ(config.stand_kp[j], robot.spec().Gains().kp[static_cast<Eigen::Index>(j)]);
    EXPECT_EQ(config.stand_kd[j], robot.spec().Gains().kd[static_cast<Eigen::Index>(j)]);
  }
  EXPECT_EQ(config.effort_limit[3], 139);
  // no joint is damped beyond its strength at 10 rad/s
  EXPECT_EQ(config.damping_kd[3], 3);
  EXPECT_EQ(config.damping_kd[20], 0.5) << "a wrist has 5 N·m";
}

// docs/deploy.md says what robots/g1/robot.yaml holds, row by row.
TEST(SafetyConfig, TheTableInTheDocsIsTheRobots) {
  const CommanderConfig config = ConfigOf(RobotText());
  const std::string page = ReadFile(SourcePath("docs/deploy.md"));
  for (int i = 1; i < kNumFaults; ++i) {
    const auto fault = static_cast<DriveFault>(i);
    const std::string begin = "\n| `" + std::string(KindOf(fault).name) + "` | ";
    const std::size_t at = page.find(begin);
    ASSERT_NE(at, std::string::npos) << begin;
    const std::string row =
        page.substr(at + begin.size(), page.find('\n', at + 1) - at - begin.size());
    std::smatch match;
    ASSERT_TRUE(std::regex_search(row, match, std::regex("^([0-9.]+)[^|]*\\| ([0-9]+) \\| ")))
        << row;
    const FaultRule& rule = config.rules[static_cast<std::size_t>(i)];
    EXPECT_EQ(std::stod(match[1]), rule.limit) << begin;
    EXPECT_EQ(std::stoi(match[2]), rule.ticks) << begin;
    EXPECT_EQ(row.find("| warns") != std::string::npos, rule.reaction != Reaction::kStop) << begin;
  }
}

TEST(SafetyConfig, RefusesAPolicyThatDoesNotFit) {
  const RobotModel robot = RobotModel::Load("g1");
  const Policy policy = LoadPolicy(test::WalkerFile(), "", robot);
  const auto message = [&](const ObservationLayout& layout) -> std::string {
    const Policy changed(std::make_shared<const Graph>(policy.graph()), layout, policy.robot());
    try {
      MakeCommanderConfig(robot, changed, ServoFor(robot, changed, ""));
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(message(policy.layout()), "");
  ObservationLayout layout = policy.layout();
  ASSERT_FALSE(layout.default_pose.empty());
  layout.default_pose[3] = -1;  // a knee does not bend that way
  EXPECT_NE(message(layout).find("beyond its range"), std::string::npos) << message(layout);
  layout = policy.layout();
  layout.control_dt = 0.021;  // 10.5 ticks
  EXPECT_NE(message(layout).find("no multiple"), std::string::npos) << message(layout);
}

// Frames have motors by number: a robot with other joints, or the same in another order, would move
// others than are meant.
TEST(SafetyConfig, RefusesAnotherRobotThanAG1) {
  const auto message = [](const RobotSpec& spec) -> std::string {
    try {
      NeedMotorOrder(spec);
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "";
  };
  RobotSpec spec = ReadRobotSpec(FindRobotFile("g1"));
  EXPECT_EQ(message(spec), "");
  std::swap(spec.joints[4], spec.joints[10]);
  EXPECT_NE(message(spec).find("joint 4 is 'right_ankle_pitch_joint', but motor 4 is the "
                               "left_ankle_pitch_joint; a Unitree G1"),
            std::string::npos)
      << message(spec);
  spec.joints.pop_back();
  EXPECT_NE(message(spec).find("has 28 joints; a Unitree G1"), std::string::npos) << message(spec);
}

TEST(SafetyConfig, RefusesATableThatIsNotWhole) {
  const std::string text = RobotText();
  const auto message = [](const std::string& changed) -> std::string {
    try {
      ConfigOf(changed);
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(message(text), "");
  EXPECT_NE(message(Without(text, "    tilt:", "")).find("no limit for 'tilt'"), std::string::npos);
  EXPECT_NE(message(Without(text, "    tilt:", "    tilts: {limit: 1, ticks: 1}"))
                .find("did you mean tilt?"),
            std::string::npos);
  EXPECT_NE(message(Without(text, "    tilt:", "    tilt: {limit: 1, ticks: 1, reaction: warn}"))
                .find("must be stop"),
            std::string::npos);
  EXPECT_NE(message(Without(text, "    policy_width:", "    policy_width: {limit: 0, ticks: 2}"))
                .find("limit 0 and ticks 1"),
            std::string::npos);
  // the counter goes back in one tick: after two there would be nothing left to see
  EXPECT_NE(message(Without(text, "    tick_backward:", "    tick_backward: {limit: 0, ticks: 2}"))
                .find("tick_backward: must have limit 0 and ticks 1"),
            std::string::npos);
  // keys and sticks are held between -most and most
  for (const char* most :
       {"[-0.6, 0.3, 0.6]", "[0.6, 0.3, -1]", "[0.6, .nan, 0.6]", "[0.6, 0.3]"}) {
    EXPECT_NE(message(Without(text, "  max_command:", std::string("  max_command: ") + most))
                  .find("max_command"),
              std::string::npos)
        << most;
  }
  EXPECT_EQ(message(Without(text, "  max_command:", "  max_command: [0.6, 0, 0.6]")), "");
  // who is to be stopped by what an observer sees is not driven on without one
  const std::string by_stiffness =
      Without(text, "    stiffness:", "    stiffness: {limit: 1, ticks: 250}");
  const std::string by_loop =
      Without(text, "    action_loop:", "    action_loop: {limit: 0.9999, ticks: 250}");
  for (const std::string& stops : {by_stiffness, by_loop}) {
    EXPECT_NE(message(stops).find("observer_age.reaction: must be stop"), std::string::npos);
    EXPECT_EQ(
        message(Without(stops, "    observer_age:", "    observer_age: {limit: 1, ticks: 1}")), "");
  }
  EXPECT_NE(message(text.substr(0, text.find("\nsafety:") + 1)).find("has no 'safety'"),
            std::string::npos);
}

}  // namespace
}  // namespace silc
