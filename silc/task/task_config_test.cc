// SPDX-License-Identifier: Apache-2.0
#include "silc/task/task_config.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <span>
#include <string>

#include "silc/base/error.h"
#include "silc/base/test_paths.h"

namespace silc {
namespace {

std::string ErrorOf(const std::string& yaml) {
  try {
    ParseTaskFile(yaml, "task.yaml");
  } catch (const ConfigError& e) {
    return e.what();
  }
  return "";
}

std::string OverrideError(const std::string& path, const std::string& value) {
  TaskConfig config;
  try {
    SetTaskField(&config, path, value);
  } catch (const ConfigError& e) {
    return e.what();
  }
  return "";
}

TEST(TaskConfig, DefaultsAndShippedTasksAreValid) {
  TaskConfig().Validate("default");
  const std::string folder = SourcePath("configs/tasks/");
  const TaskConfig loco = ReadTaskFile(folder + "g1_loco.yaml").config;
  EXPECT_FLOAT_EQ(loco.commands.walk_prob, 0.6f);
  const TaskConfig stand = ReadTaskFile(folder + "g1_stand.yaml").config;
  EXPECT_EQ(stand.commands.walk_prob, 0);
  EXPECT_GT(stand.push.force, 0);
}

TEST(TaskConfig, AFileNamesItsLayout) {
  EXPECT_EQ(ParseTaskFile("title: t", "task.yaml").layout, "g1_loco");
  EXPECT_EQ(ParseTaskFile("layout: mine.yaml", "task.yaml").layout, "mine.yaml");
  EXPECT_NE(ErrorOf("layuot: mine").find("layout"), std::string::npos);
  // 0 takes the layout's; what is given must make sense
  EXPECT_EQ(ErrorOf("gait: {period: 0}"), "");
  EXPECT_NE(ErrorOf("gait: {period: 0.01}").find("gait.period: 0.01 is below 0.1"),
            std::string::npos);
}

TEST(TaskConfig, AFileNamesItsGains) {
  EXPECT_EQ(ParseTaskFile("title: t", "task.yaml").gains, "");
  EXPECT_EQ(ParseTaskFile("gains: mjlab", "task.yaml").gains, "mjlab");
  EXPECT_NE(ErrorOf("gians: mjlab").find("gains"), std::string::npos);
}

TEST(TaskConfig, EveryFieldIsInTheFileFormat) {
  // a field forgotten in TaskFields() could not be set: the struct is numbers alone, so count them
  TaskConfig config;
  EXPECT_EQ(TaskFields(&config).size() * sizeof(float), sizeof(TaskConfig));
}

TEST(TaskConfig, WrittenAndReadIsTheSameBitByBit) {
  TaskConfig config;
  float x = 0.1234567f;
  for (const TaskField& field : TaskFields(&config)) {
    // a number with many digits inside each field's range, ranges kept upright
    if (auto* const* value = std::get_if<float*>(&field.value)) {
      const bool reward = field.path.rfind("rewards.", 0) == 0;
      if (reward) **value = (x = x * 1.0137f);
    }
  }
  config.commands.vx_max = 0.7654321f;
  config.action.delay_max = 3;
  const TaskConfig back = ParseTaskFile(TaskConfigYaml(config), "written").config;
  EXPECT_TRUE(
      std::ranges::equal(std::as_bytes(std::span(&config, 1)), std::as_bytes(std::span(&back, 1))));
}

TEST(TaskConfig, SlipsAreNamedAndTheNearestKeySuggested) {
  EXPECT_NE(ErrorOf("commands: {vx_mx: 1}").find("vx_max"), std::string::npos);
  EXPECT_NE(ErrorOf("comands: {vx_max: 1}").find("commands"), std::string::npos);
  EXPECT_NE(ErrorOf("rewards: {tracking_lin_vel: 1}").find("tracking_lin_vel_x"),
            std::string::npos);
  EXPECT_NE(ErrorOf("commands: {walk_prob: 1.5}").find("walk_prob"), std::string::npos);
  EXPECT_NE(ErrorOf("gait: {period: .nan}").find("period"), std::string::npos);
  EXPECT_NE(ErrorOf("action: {delay_max: 1.5}").find("delay_max"), std::string::npos);
  const std::string upside_down = ErrorOf("commands: {vx_min: 1, vx_max: -1}");
  EXPECT_NE(upside_down.find("commands.vx_min: 1 m/s is above commands.vx_max = -1"),
            std::string::npos)
      << upside_down;
  EXPECT_NE(ErrorOf("curriculum: {survive_down: 0.9}").find("grow and shrink"), std::string::npos);
}

TEST(TaskConfig, DottedOverridesAreAsStrictAsTheFile) {
  TaskConfig config;
  SetTaskField(&config, "commands.vx_max", "0.5");
  EXPECT_EQ(config.commands.vx_max, 0.5f);
  SetTaskField(&config, "rewards.phase_contact", "-3e-1");
  EXPECT_EQ(config.rewards.weight[static_cast<int>(RewardTerm::kPhaseContact)], -0.3f);
  EXPECT_NE(OverrideError("commands.vxmax", "1").find("did you mean commands.vx_max"),
            std::string::npos);
  EXPECT_NE(OverrideError("commands.vx_max", "fast").find("'fast' is no number"),
            std::string::npos);
  EXPECT_NE(OverrideError("commands.vx_max", "1x").find("no number"), std::string::npos);
  EXPECT_NE(OverrideError("action.delay_max", "2.5").find("whole"), std::string::npos);
  EXPECT_NE(OverrideError("action.delay_max", "1e12").find("outside"), std::string::npos);
  EXPECT_NE(OverrideError("commands.vx_max", "99").find("outside [-5, 5]"), std::string::npos);
  EXPECT_NE(OverrideError("commands.vx_max", "-2").find("above"), std::string::npos);
}

TEST(TaskConfig, TasksAreFoundByName) {
  EXPECT_NE(FindTaskFile("g1-stand").find("g1_stand.yaml"), std::string::npos);
  EXPECT_EQ(FindTaskFile("my/task.yaml"), "my/task.yaml");
  try {
    FindTaskFile("g1-stnad");
    FAIL();
  } catch (const ConfigError& e) {
    EXPECT_NE(std::string(e.what()).find("g1-stand"), std::string::npos) << e.what();
  }
}

}  // namespace
}  // namespace silc
