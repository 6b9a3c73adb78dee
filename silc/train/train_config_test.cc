// SPDX-License-Identifier: Apache-2.0
#include "silc/train/train_config.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "silc/base/error.h"
#include "silc/base/file.h"

namespace silc {
namespace {

namespace fs = std::filesystem;

class TrainConfigTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(::testing::TempDir()) / "silc_train_config_test";
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    fs::current_path(SILC_SOURCE_DIR);  // configs/train
  }
  void TearDown() override { fs::remove_all(folder_); }
  std::string File(const std::string& name, const std::string& text) const {
    WriteFileAtomically((folder_ / name).string(), text);
    return (folder_ / name).string();
  }
  static std::string Message(const TrainRequest& request) {
    try {
      ResolveTrainConfig(request);
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "no error";
  }
  fs::path folder_;
};

TEST_F(TrainConfigTest, EveryLayerHasItsSay) {
  const std::string preset = File("mine.yaml",
                                  "envs: 96\n"
                                  "task: {push: {force: 30}, gait: {period: 0.7}}\n"
                                  "learn: {epochs: 2, steps: 10, rate: 2e-4}\n");
  TrainRequest request;
  request.task = "g1-stand";
  request.preset = preset;
  request.envs = 48;
  request.seed = 9;
  request.overrides = {"learn.steps=6", "task.gait.period=0.9"};
  const TrainConfig config = ResolveTrainConfig(request);
  EXPECT_EQ(config.learn.gamma, 0.99);                                 // built in
  EXPECT_EQ(config.learn.init_std, (std::vector<double>{0.5, 0.25}));  // the task's
  EXPECT_EQ(config.task.push.interval_min, 2);                         // the task file's
  EXPECT_EQ(config.task.push.force, 30);                               // the preset's
  EXPECT_EQ(config.learn.epochs, 2);
  EXPECT_EQ(config.learn.rate, 2e-4);
  EXPECT_EQ(config.envs, 48);  // the option's
  EXPECT_EQ(config.learn.seed, 9u);
  EXPECT_EQ(config.learn.steps, 6);  // the override's
  EXPECT_EQ(config.task.gait.period, 0.9f);
}

TEST_F(TrainConfigTest, APresetsPenaltyIsForItsOwnMethod) {
  const std::string preset = File("silc.yaml",
                                  "mode: compliance\n"
                                  "learn: {epochs: 2, penalty: {method: silc, lambda: 0.07}}\n"
                                  "methods: {lcp: {epochs: 3}, alcp: {epochs: 4}}\n");
  TrainRequest request;
  request.task = "g1-stand";
  request.preset = preset;
  TrainConfig config = ResolveTrainConfig(request);
  EXPECT_EQ(config.method(), Method::kSilc);
  EXPECT_EQ(config.learn.penalty.lambda, 0.07);
  EXPECT_EQ(config.learn.penalty.hinge, "log");
  EXPECT_EQ(config.learn.epochs, 2);
  for (const bool as_override : {false, true}) {
    TrainRequest other = request;
    if (as_override) {
      other.overrides = {"learn.penalty.method=lcp"};
    } else {
      other.method = "lcp";
    }
    config = ResolveTrainConfig(other);
    EXPECT_EQ(config.method(), Method::kLcp);
    EXPECT_EQ(config.learn.penalty.lambda, 0.002);
    EXPECT_EQ(config.learn.penalty.hinge, "square");
    EXPECT_EQ(config.learn.epochs, 3);
  }
}

TEST_F(TrainConfigTest, WhatIsWrittenReadsBackTheSame) {
  TrainRequest request;
  request.task = "g1-loco";
  request.method = "silc";
  request.mode = "configs/budgets/soft.yaml";
  request.overrides = {"learn.rate=3.3333333333e-4", "task.push.force=33.3"};
  TrainConfig config = ResolveTrainConfig(request);
  config.name = "a \"b\" \\c.yaml";  // a path may have anything in it
  config.motions = {{"/a b/c.npz", 4000000000u}, {"/d.csv", {}}};
  const std::string text = ToYaml(config);
  const TrainConfig again = ReadTrainConfig(File("config.yaml", text));
  EXPECT_EQ(ToYaml(again), text);
  EXPECT_EQ(again.name, config.name);
  EXPECT_EQ(again.learn.rate, config.learn.rate);
  EXPECT_EQ(again.task.push.force, 33.3f);
  EXPECT_EQ(again.budget->com, config.budget->com);
  EXPECT_EQ(again.budget->hand, config.budget->hand);
  EXPECT_EQ(again.budget->weight, NullWeight::kServo);
  EXPECT_EQ(again.budget->null_stiffness, 0.5);
  EXPECT_EQ(again.motions[0].crc32c, 4000000000u);
  EXPECT_FALSE(again.motions[1].crc32c.has_value());
}

TEST_F(TrainConfigTest, EveryPresetThatShipsResolves) {
  int count = 0;
  for (const auto& entry : fs::directory_iterator("configs/train")) {
    TrainRequest request;
    const std::string stem = entry.path().stem();
    request.task = stem.starts_with("g1_stand") ? "g1-stand" : "g1-loco";
    request.preset = entry.path().string();
    for (const std::string& method : MethodNames()) {
      request.method = method;
      request.mode = "compliance";
      EXPECT_EQ(Message(request), "no error") << stem << " " << method;
    }
    ++count;
  }
  EXPECT_GE(count, 3);
}

TEST_F(TrainConfigTest, SlipsAreNamedWithTheNearest) {
  const auto expect = [](TrainRequest request, const std::string& message) {
    if (request.task.empty()) request.task = "g1-stand";
    EXPECT_NE(Message(request).find(message), std::string::npos) << Message(request);
  };
  expect({.task = "g1-lco"}, "did you mean g1-loco");
  expect({.preset = "quck"}, "did you mean quick");
  expect({.method = "slic"}, "did you mean silc");
  expect({.mode = "complaince"}, "did you mean compliance");
  expect({.backend = "bacth"}, "did you mean batch");
  expect({.overrides = {"learn.epoch=3"}}, "did you mean learn.epochs");
  expect({.overrides = {"task.push.forc=3"}}, "did you mean push.force");
  expect({.overrides = {"lern.epochs=3"}}, "must begin with learn. or task.");
  expect({.overrides = {"learn.epochs"}}, "must be key=value");
  expect({.overrides = {"learn.device=cuda"}}, "follows from --backend");
  expect({.method = "silc"}, "add --mode compliance");
  expect({.preset = File("a.yaml", "env: 3\n")}, "a.yaml:1: env: unknown key; did you mean envs");
  expect({.preset = File("b.yaml", "task:\n  push:\n    forc: 3\n")},
         "b.yaml:3: task.push.forc: unknown key; did you mean force");
  expect({.preset = File("c.yaml", "learn:\n  epochs: 0\n")}, "c.yaml:2: learn.epochs");
  expect({.preset = File("d.yaml", "methods: {slic: {epochs: 2}}\n")}, "did you mean silc");
}

TEST_F(TrainConfigTest, AResumedRunKeepsItsSettings) {
  TrainConfig config = ResolveTrainConfig({.task = "g1-stand"});
  const std::string before = ToYaml(config);
  for (const TrainRequest& request : {TrainRequest{.task = "g1-loco"},
                                      {.preset = "quick"},
                                      {.method = "silc"},
                                      {.mode = "compliance"},
                                      {.backend = "mujoco"},
                                      {.envs = 3},
                                      {.seed = 3},
                                      {.motions = {"a.csv"}},
                                      {.overrides = {"learn.rate=1"}},
                                      {.overrides = {"task.push.force=1"}}}) {
    EXPECT_THROW(ApplyToResumed(request, &config), ConfigError);
    EXPECT_EQ(ToYaml(config), before);
  }
  ApplyToResumed({.threads = 2, .iterations = 77, .overrides = {"learn.checkpoint_every=5"}},
                 &config);
  EXPECT_EQ(config.learn.iterations, 77);
  EXPECT_EQ(config.learn.threads, 2);
  EXPECT_EQ(config.learn.checkpoint_every, 5);
}

TEST_F(TrainConfigTest, AMotionThatChangedIsRefused) {
  std::string line = "0,0,0.8,0,0,0,1";
  for (int j = 0; j < 29; ++j) line += ",0.1";
  const std::string file = File("wave.csv", line + "\n" + line + "\n" + line + "\n");
  TrainConfig config = ResolveTrainConfig({.task = "g1-stand", .motions = {file}});
  EXPECT_EQ(MakeEnvOptions(&config, "").env.motions.num_clips(), 1);
  ASSERT_TRUE(config.motions[0].crc32c.has_value());
  EXPECT_EQ(MakeEnvOptions(&config, "").env.motions.num_clips(), 1);
  File("wave.csv", line + "\n" + line + "\n");
  EXPECT_THROW(MakeEnvOptions(&config, ""), ConfigError);
}

}  // namespace
}  // namespace silc
