// SPDX-License-Identifier: Apache-2.0
#include "silc/train/train_run.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <Eigen/Geometry>
#include <filesystem>

#include "silc/base/error.h"
#include "silc/base/file.h"
#include "silc/learn/checkpoint.h"
#include "silc/learn/trainer.h"
#include "silc/policy/onnx/reader.h"
#include "silc/policy/policy.h"
#include "silc/policy/policy_metadata.h"
#include "silc/train/loco_spec.h"

namespace silc {
namespace {

namespace fs = std::filesystem;

std::string Folder(const std::string& name) {
  const fs::path path = fs::path(::testing::TempDir()) / ("silc_train_run_" + name);
  fs::remove_all(path);
  return path.string();
}

TrainConfig Small(const std::string& method) {
  return ResolveTrainConfig({.task = "g1-stand",
                             .preset = "quick",
                             .method = method,
                             .envs = 32,
                             .overrides = {"learn.iterations=3",
                                           "learn.steps=8",
                                           "learn.actor_hidden=[16, 8]",
                                           "learn.critic_hidden=[16]",
                                           "learn.penalty.samples=32",
                                           "learn.checkpoint_every=2",
                                           "task.episode.length=0.5"}});
}

std::string LastCheckpoint(const std::string& folder, int iteration) {
  return ReadFile(fmt::format("{}/checkpoints/checkpoint_{:08}.silc", folder, iteration));
}

class TrainMethods : public ::testing::TestWithParam<const char*> {};

// Physics, task, networks, penalty: the bytes are a function of settings and seed.
TEST_P(TrainMethods, SameBytesAtAnyNumberOfThreads) {
  std::string reference;
  for (const int threads : {1, 2, 3}) {
    TrainRunOptions options;
    options.config = Small(GetParam());
    options.config.learn.threads = threads;
    options.folder = Folder(std::string("threads_") + GetParam());
    const TrainOutcome outcome = RunTraining(options);
    EXPECT_TRUE(outcome.done);
    const std::string bytes = LastCheckpoint(options.folder, 3);
    if (reference.empty()) reference = bytes;
    EXPECT_TRUE(bytes == reference) << threads << " threads";
    fs::remove_all(options.folder);
  }
  TrainRunOptions options;
  options.config = Small(GetParam());
  options.config.learn.seed = 2;
  options.folder = Folder("seed");
  RunTraining(options);
  EXPECT_FALSE(LastCheckpoint(options.folder, 3) == reference) << "the seed has no effect";
  fs::remove_all(options.folder);
}

INSTANTIATE_TEST_SUITE_P(OnTheTask,
                         TrainMethods,
                         ::testing::Values("baseline", "silc"),
                         [](const auto& tested) { return std::string(tested.param); });

TEST(TrainRun, StoppedAndResumedEndsWithTheSameBytes) {
  TrainRunOptions options;
  options.config = Small("silc-paper");
  options.folder = Folder("whole");
  RunTraining(options);
  const std::string whole = LastCheckpoint(options.folder, 3);
  fs::remove_all(options.folder);

  std::atomic<bool> stop{true};  // after the first iteration
  options.folder = Folder("parts");
  options.stop = &stop;
  EXPECT_EQ(RunTraining(options).iteration, 1);
  EXPECT_THROW(RunTraining(options), ConfigError);  // not without resume
  options.config = ReadTrainConfig(options.folder + "/config.yaml");
  options.resume = true;
  EXPECT_EQ(RunTraining(options).iteration, 2);
  stop = false;
  EXPECT_TRUE(RunTraining(options).done);
  EXPECT_TRUE(LastCheckpoint(options.folder, 3) == whole);
  // one line per iteration, none twice
  const std::string metrics = ReadFile(options.folder + "/metrics.jsonl");
  EXPECT_EQ(std::count(metrics.begin(), metrics.end(), '\n'), 3);

  const std::vector<RunInfo> runs = ListRuns(options.folder);
  ASSERT_EQ(runs.size(), 1u);
  EXPECT_EQ(runs[0].state, "done");
  EXPECT_EQ(runs[0].iteration, 3);
  EXPECT_EQ(runs[0].method, "silc-paper");
  EXPECT_TRUE(std::isfinite(runs[0].reward));
  fs::remove_all(options.folder);
}

// What `silc observe` and a robot load is the network that was trained, fed with what it was
// trained on: the exported file beside the trainer's own network, in the closed loop of the task.
TEST(TrainRun, TheExportedPolicyActsAsTheTrainersNetwork) {
  TrainConfig config = Small("baseline");
  config.task_config.noise = {
      .joint_pos = 0, .joint_vel = 0, .torque = 0, .base_ang_vel = 0, .gravity = 0};
  config.task_config.commands.walk_prob = 0.5f;
  config.task_config.episode.length = 20;
  // not the layout file's: the export must follow
  config.task_config.gait.period = 0.9f;
  config.task_config.observation.history = 3;
  const std::size_t width = ActorObs(config.task_config);
  LocoVecEnv env(EnvOptionsOf(config));
  Trainer trainer(config.learn, &env);
  trainer.Iterate();
  const std::string path = Folder("policy") + ".onnx";
  const MlpNetwork network = trainer.Policy();
  ExportPolicy(path, network, config);

  const OnnxModel model = ReadOnnx(path);
  LocoEnvOptions options = EnvOptionsOf(config).env;
  options.num_envs = 8;
  options.stagger = false;
  LocoEnv loop(options);
  const RobotSpec& robot = loop.robot_model().spec();
  std::vector<Policy> deployed;
  for (int i = 0; i < 8; ++i) {
    deployed.emplace_back(model.graph,
                          ChooseLayout(model.metadata, "", "", path),
                          PolicyRobot{robot.joints, robot.StandingPose().q});
  }
  MlpEngine trained(network);
  LocoStep step = loop.view();
  std::vector<float> actions(8 * kTaskJoints);
  Eigen::VectorXd target = Eigen::VectorXd::Zero(kTaskJoints);
  int walked = 0;
  for (int t = 0; t < 25; ++t) {
    for (int i = 0; i < 8; ++i) {
      if (step.flag[i] != kRunning) deployed[i].Reset();
      const FieldView qpos = loop.physics().view(Field::kQpos);
      const FieldView qvel = loop.physics().view(Field::kQvel);
      const FieldView torque = loop.physics().view(Field::kTorque);
      const TaskRobot& r = loop.robot();
      const EnvState& state = loop.state(i);
      ObservationInput in;
      in.q = in.qd = in.tau = in.q_ref = Eigen::VectorXd::Zero(kTaskJoints);
      for (int j = 0; j < kTaskJoints; ++j) {
        in.q[j] = qpos(i, r.qpos[j]);
        in.qd[j] = qvel(i, r.dof[j]);
        in.tau[j] = torque(i, r.actuator[j]);
        if (j >= kLowerJoints) in.q_ref[j] = state.arms.ref[j - kLowerJoints];
      }
      const Eigen::Quaterniond q(qpos(i, 3), qpos(i, 4), qpos(i, 5), qpos(i, 6));
      in.g_B = q.conjugate() * Eigen::Vector3d(0, 0, -1);
      for (int k = 0; k < 3; ++k) in.w_WB_B[k] = qvel(i, 3 + k);
      in.command.lin_vel << state.command.vx, state.command.vy;
      in.command.yaw_rate = state.command.yaw_rate;
      in.command.height = state.command.height;
      in.command.walk = state.command.walk;
      in.command.waist << state.command.waist[0], state.command.waist[1], state.command.waist[2];
      ASSERT_EQ(deployed[i].Act(in, &target), PolicyStatus::kOk);
      walked += state.command.walk > 0.5f;

      float* action = &actions[i * kTaskJoints];
      trained.Forward({&step.obs[i * width], width}, {action, kTaskJoints});
      for (int j = 0; j < kTaskJoints; ++j) {
        // observations agree to 2e-5 and the small network's gain is of order one
        ASSERT_NEAR(deployed[i].raw_action()[j], action[j], 1e-4) << "step " << t << " joint " << j;
      }
    }
    step = loop.Step(actions);
  }
  EXPECT_GT(walked, 20);
  fs::remove(path);
}

std::string Message(const TrainRequest& request) {
  try {
    ResolveTrainConfig(request);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no error";
}

TEST(TrainConfig, UnknownNamesAreAnsweredWithTheNearest) {
  const auto expect = [](const TrainRequest& request, const std::string& part) {
    EXPECT_NE(Message(request).find(part), std::string::npos) << Message(request);
  };
  expect({.task = "g1-stnad"}, "did you mean g1-stand?");
  expect({.task = "g1-stand", .preset = "qiuck"}, "did you mean quick?");
  expect({.task = "g1-stand", .method = "slic"}, "did you mean silc");
  expect({.task = "g1-stand", .mode = "complaince"}, "did you mean compliance?");
  expect({.task = "g1-stand", .overrides = {"learn.epoch=3"}}, "did you mean learn.epochs?");
  expect({.task = "g1-stand", .overrides = {"lern.epochs=3"}}, "did you mean learn.epochs?");
  expect({.task = "g1-stand", .overrides = {"task.push.forec=3"}}, "did you mean task.push.force");
  expect({.task = "g1-stand", .overrides = {"task.push.force"}}, "must be key=value");
  expect({.task = "g1-stand", .overrides = {"task.push.force=x"}}, "is no number");
}

TEST(TrainConfig, IsReadBackAsWritten) {
  TrainConfig config = Small("silc");
  config.task_config.push.force = 1.0f / 3;
  config.learn.rate = 1.0 / 3000;
  config.motions = {"/tmp/a \"b\".csv"};
  const std::string path = Folder("config") + ".yaml";
  WriteFileAtomically(path, ToYaml(config));
  const TrainConfig read = ReadTrainConfig(path);
  EXPECT_EQ(ToYaml(read), ToYaml(config));
  EXPECT_EQ(read.task_config.push.force, config.task_config.push.force);
  EXPECT_EQ(read.learn.rate, config.learn.rate);
  EXPECT_EQ(read.motions, config.motions);
  EXPECT_EQ(read.budget.com, config.budget.com);
  fs::remove(path);
}

// Presets may say what one method needs; others do not get it.
TEST(TrainConfig, APresetsMethodsSectionIsForThatMethodAlone) {
  const std::string path = Folder("preset") + ".yaml";
  WriteFileAtomically(path,
                      "envs: 64\nlearn: {epochs: 3}\ntask: {push: {force: 7}}\n"
                      "methods: {silc: {penalty: {lambda: 9}, epochs: 4}}\n");
  TrainRequest request = {.task = "g1-stand", .preset = path, .method = "silc"};
  TrainConfig config = ResolveTrainConfig(request);
  EXPECT_EQ(config.envs, 64);
  EXPECT_EQ(config.task_config.push.force, 7);
  EXPECT_EQ(config.learn.penalty.lambda, 9);
  EXPECT_EQ(config.learn.penalty.hinge, "log");
  EXPECT_EQ(config.learn.epochs, 4);
  request.method = "lcp";
  request.envs = 32;
  config = ResolveTrainConfig(request);
  EXPECT_EQ(config.envs, 32);
  EXPECT_EQ(config.learn.penalty.lambda, 0.002);
  EXPECT_EQ(config.learn.epochs, 3);
  WriteFileAtomically(path, "learn: {epohcs: 3}\n");
  EXPECT_NE(Message(request).find("did you mean epochs?"), std::string::npos) << Message(request);
  fs::remove(path);
}

}  // namespace
}  // namespace silc
