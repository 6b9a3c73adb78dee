// SPDX-License-Identifier: Apache-2.0
#include "silc/train/train_run.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <Eigen/Geometry>
#include <filesystem>

#include "silc/base/error.h"
#include "silc/base/file.h"
#include "silc/base/test_paths.h"
#include "silc/config/budget_file.h"
#include "silc/learn/checkpoint.h"
#include "silc/learn/trainer.h"
#include "silc/npz/npz.h"
#include "silc/policy/onnx/reader.h"
#include "silc/policy/policy.h"
#include "silc/policy/policy_metadata.h"
#include "silc/policy/training_notes.h"
#include "silc/task/budget_draw.h"
#include "silc/train/loco_spec.h"

namespace silc {
namespace {

namespace fs = std::filesystem;

std::string Folder(const std::string& name) {
  const fs::path path = fs::path(::testing::TempDir()) / ("silc_train_run_" + name);
  fs::remove_all(path);
  return path.string();
}

TrainConfig Small(const std::string& method, const std::string& preset = "quick") {
  return ResolveTrainConfig({.task = "g1-stand",
                             .preset = preset,
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
  // what the run said before a figure had another name stays as it is
  const std::string path = options.folder + "/metrics.jsonl";
  const std::string first = ReadFile(path).insert(1, R"("stiffness/band_sigma_mean":1,)");
  WriteFileAtomically(path, first);
  EXPECT_THROW(RunTraining(options), ConfigError);  // not without resume
  options.config = ReadTrainConfig(options.folder + "/config.yaml");
  options.resume = true;
  EXPECT_EQ(RunTraining(options).iteration, 2);
  stop = false;
  EXPECT_TRUE(RunTraining(options).done);
  EXPECT_TRUE(LastCheckpoint(options.folder, 3) == whole);
  // one line per iteration, none twice
  const std::string metrics = ReadFile(path);
  EXPECT_TRUE(metrics.starts_with(first)) << metrics;
  EXPECT_EQ(std::count(metrics.begin(), metrics.end(), '\n'), 3);

  const std::vector<RunInfo> runs = ListRuns(options.folder);
  ASSERT_EQ(runs.size(), 1u);
  EXPECT_EQ(runs[0].state, "done");
  EXPECT_EQ(runs[0].iteration, 3);
  EXPECT_EQ(runs[0].method, "silc-paper");
  EXPECT_TRUE(std::isfinite(runs[0].reward));
  fs::remove_all(options.folder);
}

TrainConfig SmallCommanded() {
  TrainConfig config = ResolveTrainConfig({.task = "g1-loco",
                                           .method = "silc",
                                           .mode = "command",
                                           .envs = 16,
                                           .overrides = {"learn.iterations=2",
                                                         "learn.steps=8",
                                                         "learn.actor_hidden=[16, 8]",
                                                         "learn.critic_hidden=[16]",
                                                         "learn.penalty.samples=16",
                                                         "learn.penalty.every=1",
                                                         "task.budget_command.change=0.2",
                                                         "task.budget_command.ramp_min=0.1",
                                                         "task.budget_command.ramp_max=0.2",
                                                         "task.noise.gravity=0.03",
                                                         "task.episode.length=0.5"}});
  return config;
}

// `silc train g1-loco --method silc --mode command`: the layout has the budget's terms, the
// policy's file its ranges, and a run that is stopped and resumed ends as one that is not.
TEST(TrainRun, ACommandedPolicyIsTrainedAndSaysSo) {
  TrainRunOptions options;
  options.config = SmallCommanded();
  EXPECT_EQ(ObservationWidth(options.config.layout), 5 * 134);
  options.folder = Folder("commanded");
  RunTraining(options);
  const std::string whole = LastCheckpoint(options.folder, 2);
  const OnnxModel model = ReadOnnx(options.folder + "/policy.onnx");
  const TrainingNotes notes = TrainingNotesOf(model.metadata);
  EXPECT_EQ(notes.mode, "command");
  // the noise of this training, not of the task's file
  EXPECT_EQ(notes.noise, SensorErrors(options.config.task_config.noise));
  EXPECT_NE(notes.noise.find("gravity=0.03"), std::string::npos) << notes.noise;
  EXPECT_EQ(ParseBudget(notes.budget, "x").spec, ReadBudget("command").spec);
  EXPECT_EQ(notes.budget.find("com: {from: 200, to: 3000, z: 20000}"), 0u) << notes.budget;
  const ObservationLayout layout = ChooseLayout(model.metadata, "", "", "p");
  EXPECT_EQ(ObservationWidth(layout), 5 * 134);
  EXPECT_EQ(layout.terms.back().source, TermSource::kBudgetNull);
  fs::remove_all(options.folder);

  std::atomic<bool> stop{true};
  options.folder = Folder("commanded_parts");
  options.stop = &stop;
  EXPECT_EQ(RunTraining(options).iteration, 1);
  options.config = ReadTrainConfig(options.folder + "/config.yaml");
  EXPECT_EQ(options.config.budget, ReadBudget("command").spec);
  options.resume = true;
  options.stop = nullptr;
  EXPECT_TRUE(RunTraining(options).done);
  EXPECT_TRUE(LastCheckpoint(options.folder, 2) == whole);
  fs::remove_all(options.folder);
}

// The learner finds each robot's command where the environment put it: (B3) both ways.
TEST(LocoSpec, SaysWhereTheCommandStands) {
  const TrainConfig config = SmallCommanded();
  LocoVecEnv env(EnvOptionsOf(config));
  const StiffnessSpec& s = env.spec().stiffness_spec;
  const std::vector<float> actions(16 * kTaskJoints, 0.0f);
  const LocoStep step = env.env().Step(actions);
  for (int robot = 0; robot < 16; ++robot) {
    const EnvState& state = env.env().state(robot);
    float u[kNumCommanded];
    BudgetLimits limits = {.used = true, .change_steps = 10};
    for (int i = 0; i < kNumCommanded; ++i) {
      limits.low[i] = static_cast<float>(std::log(config.budget.command.range[i]->low));
      limits.high[i] = static_cast<float>(std::log(config.budget.command.range[i]->high));
    }
    // in the first control step no robot has been reset but at the start
    ASSERT_EQ(step.flag[robot] & kFailed, 0);
    const std::uint32_t episode = step.flag[robot] == kRunning ? 0 : 1;
    DrawBudget(config.task_config.budget_command,
               limits,
               {config.learn.seed, static_cast<std::uint32_t>(robot), episode},
               state.k,
               0.02f,
               u);
    for (int i = 0; i < kNumCommanded; ++i) {
      const CommandInput& told = s.command[i];
      ASSERT_GE(told.input, 4 * 134 + 131) << "not of the newest frame";
      EXPECT_NEAR(step.obs[robot * 670 + told.input] / told.scale + told.offset, u[i], 1e-5);
    }
  }
}

// A warm start needs the other run's files once: killed before its first checkpoint and resumed, it
// ends as if nobody had touched it, though the other run is gone.
TEST(TrainRun, AWarmStartGoesOnWithoutTheRunItCameFrom) {
  TrainRunOptions source;
  source.config = Small("baseline");
  source.folder = Folder("source");
  RunTraining(source);

  TrainRequest request = {.task = "g1-stand", .init = source.folder};
  request.overrides = {"task.observation.history=1"};  // as Small() has it
  const InputFile newest = *ResolveTrainConfig(request).init;
  EXPECT_EQ(fs::path(newest.path).filename(), "checkpoint_00000003.silc");
  TrainRunOptions options;
  options.config = Small("silc");
  options.config.learn.checkpoint_every = 100;
  options.config.init = newest;
  options.folder = Folder("warm");
  RunTraining(options);
  const std::string whole = LastCheckpoint(options.folder, 3);
  // killed early: nothing but the start is there
  fs::remove(options.folder + "/checkpoints/checkpoint_00000003.silc");
  fs::remove_all(source.folder);
  TrainRunOptions resumed;
  resumed.config = ReadTrainConfig(options.folder + "/config.yaml");
  EXPECT_EQ(resumed.config.init->path, newest.path);
  resumed.folder = options.folder;
  resumed.resume = true;
  EXPECT_TRUE(RunTraining(resumed).done);
  EXPECT_TRUE(LastCheckpoint(options.folder, 3) == whole);
  // without any it must not begin with fresh networks in silence
  fs::remove_all(options.folder + "/checkpoints");
  EXPECT_THROW(RunTraining(resumed), RunError);

  options.folder = Folder("cold");
  options.config.init.reset();
  RunTraining(options);
  EXPECT_FALSE(LastCheckpoint(options.folder, 3) == whole) << "the warm start has no effect";
  for (const std::string& folder : {resumed.folder, options.folder}) fs::remove_all(folder);
}

// The widths agree, the meaning does not: a network that learnt to read velocities times 0.05 would
// see them ten times as large.
TEST(TrainRun, AWarmStartFromAnotherLayoutIsRefused) {
  TrainRunOptions source;
  source.config = Small("baseline");
  source.folder = Folder("source_layout");
  RunTraining(source);
  const std::string config = ReadFile(source.folder + "/config.yaml");
  const std::string before = "source: joint_vel, scale: 0.05",
                    after = "source: joint_vel, scale: 0.5";
  ASSERT_NE(config.find(before), std::string::npos);

  // the same layout under another name, and other gains and actions, are no other inputs
  TrainRequest request = {.task = "g1-stand", .init = source.folder};
  request.overrides = {"task.observation.history=1"};  // as Small() has it
  EXPECT_NO_THROW(ResolveTrainConfig(request));
  std::string edited = config;
  edited.replace(edited.find(before), before.size(), after);
  WriteFileAtomically(source.folder + "/config.yaml", edited);
  try {
    ResolveTrainConfig(request);
    FAIL() << "another scale";
  } catch (const ConfigError& error) {
    const std::string said = error.what();
    EXPECT_NE(said.find("trained with another layout"), std::string::npos) << said;
    EXPECT_NE(said.find(before), std::string::npos) << said;
    EXPECT_NE(said.find(after), std::string::npos) << said;
  }
  fs::remove_all(source.folder);
}

// Arms still at `angle` [rad] in each kind of file. AMASS's is the pose with all angles zero, arms
// sideways, which is not what a generated reach would start with.
std::string CsvMotion(double angle) {
  std::string row = "0,0,0.79,0,0,0,1";
  for (int j = 0; j < kTaskJoints; ++j) row += fmt::format(",{}", j < kLowerJoints ? 0 : angle);
  return row + "\n" + row + "\n";
}
std::string MjlabMotion(double angle) {
  return EncodeNpz(
      {{"fps", {1}, {50}},
       {"joint_pos", {100, kTaskJoints}, std::vector<double>(100 * kTaskJoints, angle)}});
}
std::string AmassMotion() {
  return EncodeNpz(
      {{"poses", {60, 156}, std::vector<double>(60 * 156, 0.0)}, {"mocap_framerate", {1}, {60}}});
}

// All three kinds, one of them in a folder: the arms follow each, the run trains, and goes on only
// with the files it began with.
TEST(TrainRun, TrainsOnMotionFilesAndKnowsThemAgain) {
  const std::string data = Folder("motions");
  fs::create_directories(data + "/more/deep");
  WriteFileAtomically(data + "/a.csv", CsvMotion(0.11));
  WriteFileAtomically(data + "/more/deep/b.npz", MjlabMotion(0.07));
  WriteFileAtomically(data + "/more/c.npz", AmassMotion());
  WriteFileAtomically(data + "/more/readme.txt", "no motion");
  TrainRequest request = {.task = "g1-stand", .preset = "quick", .envs = 32};
  request.motions = {data + "/a.csv", data + "/more"};
  request.overrides = {
      "learn.iterations=2", "learn.steps=4", "learn.actor_hidden=[8]", "learn.critic_hidden=[8]"};
  TrainRunOptions options;
  options.config = ResolveTrainConfig(request);
  ASSERT_EQ(options.config.motions.size(), 3u);

  // every robot's arms are where one of the files has them
  LocoEnv env(EnvOptionsOf(options.config).env);
  env.Reset();
  int csv = 0, mjlab = 0, amass = 0;
  for (int i = 0; i < 32; ++i) {
    const float roll = env.state(i).arms.ref[1];  // left shoulder roll
    if (std::abs(roll - 0.11f) < 1e-5f) ++csv;
    if (std::abs(roll - 0.07f) < 1e-5f) ++mjlab;
    if (roll > 1) ++amass;  // a quarter turn, as far as the joint goes
  }
  EXPECT_GT(csv, 0);
  EXPECT_GT(mjlab, 0);
  EXPECT_GT(amass, 0);
  EXPECT_EQ(csv + mjlab + amass, 32);

  options.folder = Folder("with_motions");
  std::atomic<bool> stop{true};
  options.stop = &stop;
  EXPECT_EQ(RunTraining(options).iteration, 1);
  options.config = ReadTrainConfig(options.folder + "/config.yaml");
  options.resume = true;
  const auto refusal = [&] {
    try {
      RunTraining(options);
    } catch (const ConfigError& error) {
      return std::string(error.what());
    }
    return std::string("no error");
  };
  WriteFileAtomically(data + "/a.csv", CsvMotion(0.12));
  EXPECT_NE(refusal().find("a.csv: has changed since the run began"), std::string::npos)
      << refusal();
  fs::remove(data + "/a.csv");
  EXPECT_NE(refusal().find("a.csv: is gone"), std::string::npos) << refusal();
  WriteFileAtomically(data + "/a.csv", CsvMotion(0.11));
  stop = false;
  EXPECT_TRUE(RunTraining(options).done);

  // what is wrong with a motion is said before anything is written
  WriteFileAtomically(data + "/more/c.npz", "PK");
  request.motions = {data};
  options.config = ResolveTrainConfig(request);
  options.resume = false;
  options.folder = Folder("with_broken");
  EXPECT_NE(refusal().find("c.npz"), std::string::npos) << refusal();
  EXPECT_FALSE(fs::exists(options.folder));
  for (const char* name : {"motions", "with_motions"}) fs::remove_all(Folder(name));
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
  for (ObservationTerm& term : config.layout.terms) {
    if (term.name == "dof_vel") term.scale = {0.1};  // was 0.05
  }
  LocoVecEnv env(EnvOptionsOf(config));
  const std::size_t width = env.env().obs_width();
  Trainer trainer(config.learn, &env);
  trainer.Iterate();
  const std::string path = Folder("policy") + ".onnx";
  const MlpNetwork network = trainer.Policy();
  ExportPolicy(path, network, config, trainer.iteration());

  const OnnxModel model = ReadOnnx(path);
  // what silc report sorts policies by
  EXPECT_EQ(model.metadata.at("silc_method"), config.learn.penalty.method);
  EXPECT_EQ(model.metadata.at("silc_seed"), std::to_string(config.learn.seed));
  EXPECT_EQ(model.metadata.at("silc_iterations"), "1");
  EXPECT_EQ(model.metadata.count("silc_budget"), 0u) << "the baseline has none";
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
  expect({.task = "g1-stnad"}, "did you mean g1-stand");
  expect({.task = "g1-stand", .preset = "qiuck"}, "did you mean quick?");
  expect({.task = "g1-stand", .method = "slic"}, "did you mean silc");
  expect({.task = "g1-stand", .mode = "complaince"}, "did you mean compliance?");
  expect({.task = "g1-stand", .overrides = {"learn.epoch=3"}}, "did you mean learn.epochs?");
  expect({.task = "g1-stand", .overrides = {"lern.epochs=3"}}, "did you mean learn.epochs?");
  expect({.task = "g1-stand", .overrides = {"task.push.forec=3"}}, "did you mean task.push.force");
  expect({.task = "g1-stand", .init = "nowhere"}, "neither a run's folder nor a checkpoint");
  expect({.task = "g1-stand", .init = SourcePath("")}, "no whole checkpoint in");
  expect({.task = "g1-stand", .init = SourcePath("README.md")}, "not a checkpoint of silc");
  expect({.task = "g1-stand", .overrides = {"task.push.force"}}, "must be key=value");
  expect({.task = "g1-stand", .overrides = {"task.push.force=x"}}, "is no number");
}

TEST(TrainConfig, IsReadBackAsWritten) {
  TrainConfig config = Small("silc");
  config.task_config.push.force = 1.0f / 3;
  config.learn.rate = 1.0 / 3000;
  config.motions = {{"/tmp/a \"b\".csv", "01234567"}, {"c.npz", "1e234567"}};
  config.init = InputFile{"d.silc", "00000000"};
  config.mode_from = "preset";
  config.layout.terms[7].scale = {1.0 / 3};
  const std::string path = Folder("config") + ".yaml";
  WriteFileAtomically(path, ToYaml(config));
  const TrainConfig read = ReadTrainConfig(path);
  EXPECT_EQ(ToYaml(read), ToYaml(config));
  EXPECT_EQ(read.task_config.push.force, config.task_config.push.force);
  EXPECT_EQ(read.learn.rate, config.learn.rate);
  ASSERT_EQ(read.motions.size(), 2u);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(read.motions[i].path, config.motions[i].path);
    EXPECT_EQ(read.motions[i].crc32c, config.motions[i].crc32c);
  }
  EXPECT_EQ(read.init->path, "d.silc");
  EXPECT_EQ(read.mode_from, "preset");
  EXPECT_EQ(read.budget, config.budget);
  // a run keeps the layout it was made with, whatever becomes of the file
  EXPECT_EQ(read.layout.terms[7].scale, config.layout.terms[7].scale);
  EXPECT_EQ(MetadataFor(read.layout, ""), MetadataFor(config.layout, ""));
  fs::remove(path);
}

TEST(TrainConfig, ATaskMayNameItsLayout) {
  const std::string path = Folder("layout") + ".yaml";
  std::string text = ReadFile(SourcePath("layouts/g1_loco.yaml"));
  const std::string scale = "source: joint_vel, scale: 0.05";
  ASSERT_NE(text.find(scale), std::string::npos);
  text.replace(text.find(scale), scale.size(), "source: joint_vel, scale: 0.07");
  WriteFileAtomically(path, text);
  const TrainConfig config =
      ResolveTrainConfig({.task = "g1-stand", .overrides = {"task.layout=" + path}});
  EXPECT_EQ(config.layout.terms[8].scale, std::vector<double>{0.07});
  EXPECT_EQ(Small("baseline").layout.terms[8].scale, std::vector<double>{0.05});

  const std::string task = Folder("task") + ".yaml";
  WriteFileAtomically(task, "layout: " + path + "\n");
  EXPECT_EQ(ResolveTrainConfig({.task = task}).layout.terms[8].scale, std::vector<double>{0.07});
  EXPECT_NE(Message({.task = "g1-stand", .overrides = {"task.layout=g1_lcoo"}})
                .find("did you mean g1_loco"),
            std::string::npos);
  fs::remove(path);
  fs::remove(task);
}

// The gains a task names reach the servo, the penalty and the exported policy; without a name all
// three have the robot's default.
TEST(TrainConfig, ATaskMayNameItsGains) {
  const RobotSpec g1 = ReadRobotSpec(FindRobotFile("g1"));
  const GainSet &mjlab = g1.Gains("mjlab"), &falcon = g1.Gains("falcon");
  const TrainConfig plain = Small("silc", "");  // the preset quick names its gains
  EXPECT_FALSE(plain.gains);
  EXPECT_EQ(ToYaml(plain).find("gains:"), std::string::npos);

  TrainConfig config = plain;
  ApplyTrainOverrides(std::vector<std::string>{"task.gains=mjlab"}, &config);
  ASSERT_TRUE(config.gains);
  for (const auto& [settings, gains] : {std::pair(config, mjlab), std::pair(plain, falcon)}) {
    LocoVecEnv env(EnvOptionsOf(settings));
    const Servo& servo = env.spec().stiffness_spec.servo;
    EXPECT_EQ(servo.kp, gains.kp);
    EXPECT_EQ(servo.alpha, gains.action_scale);
    EXPECT_FLOAT_EQ(env.env().robot().kd[4], static_cast<float>(gains.kd[4]));

    const std::string path = Folder("gains") + ".onnx";
    MlpNetwork network = Trainer(settings.learn, &env).Policy();
    ExportPolicy(path, network, settings, 0);
    const OnnxModel model = ReadOnnx(path);
    const Policy policy(model.graph,
                        ChooseLayout(model.metadata, "", "", path),
                        PolicyRobot{g1.joints, g1.StandingPose().q});
    for (int j = 0; j < g1.num_joints(); ++j) {
      // metadata has the digits that tell two floats apart
      EXPECT_NEAR(policy.kp()[j], gains.kp[j], 1e-6 * gains.kp[j]);
      EXPECT_NEAR(policy.kd()[j], gains.kd[j], 1e-6 * gains.kd[j]);
      EXPECT_NEAR(policy.action_scale()[j], gains.action_scale[j], 1e-6);
    }
    fs::remove(path);
  }

  // a run keeps the numbers, whatever becomes of the name
  const std::string path = Folder("gains") + ".yaml";
  config.gains->kp[3] = 77;
  WriteFileAtomically(path, ToYaml(config));
  EXPECT_EQ(ReadTrainConfig(path).gains->kp[3], 77);
  fs::remove(path);

  const std::string task = Folder("task") + ".yaml";
  WriteFileAtomically(task, "gains: mjlab\n");
  EXPECT_EQ(ResolveTrainConfig({.task = task}).gains->kp, mjlab.kp);
  fs::remove(task);
  EXPECT_NE(
      Message({.task = "g1-stand", .overrides = {"task.gains=mjalb"}}).find("did you mean mjlab?"),
      std::string::npos);
}

// What was said of the budget in learn.penalty is said in the budget: each old place tells where.
TEST(TrainConfig, SettingsThatWentIntoTheBudgetAreToldWhereTheyAre) {
  EXPECT_EQ(Message({.task = "g1-stand", .overrides = {"learn.penalty.gravity_channel=false"}}),
            "command line: learn.penalty.gravity_channel: is part of the budget now: change the "
            "mode, as in --mode compliance,gravity=held, or write `channels: {gravity: held} (or "
            "followed)` into the budget's file");
  const std::string path = Folder("old") + ".yaml";
  WriteFileAtomically(path, "learn:\n  penalty: {hand_floor: [0, 0, 0.5]}\n");
  EXPECT_EQ(Message({.task = "g1-stand", .preset = path}),
            path +
                ":2: learn.penalty.hand_floor: is part of the budget now: take it out here and "
                "write `hand_floor: [0, 0, 0.75]` into the budget's file, or change the mode, as "
                "in compliance,gravity=held");
  // a run of an earlier silc
  std::string text = ToYaml(Small("silc"));
  text.insert(text.find("  penalty:\n") + 11, "    torque_channel: true\n");
  WriteFileAtomically(path, text);
  EXPECT_NE(Message({.preset = path})
                .find("learn.penalty.torque_channel: is part of the budget now: take it out here "
                      "and write `channels: {torque: held} (or followed)` under `budget:` of this "
                      "file"),
            std::string::npos)
      << Message({.preset = path});
  fs::remove(path);
}

TEST(TrainConfig, SilcTrainsTheDiscAlone) {
  EXPECT_EQ(
      Message({.task = "g1-stand", .method = "silc", .mode = "compliance,condition=two-sided"}),
      "--mode compliance,condition=two-sided: method silc trains the disc condition (S7c), "
      "and this budget asks for the two-sided one; say condition=disc (silc-paper trains "
      "(S7a) on K₁, whatever the budget's condition)");
  EXPECT_EQ(
      Message(
          {.task = "g1-stand", .method = "silc-paper", .mode = "compliance,condition=two-sided"}),
      "no error");
}

// Somebody's config.yaml makes his run again; what is asked for besides changes it.
TEST(TrainConfig, ARunsConfigIsAPreset) {
  const std::string folder = Folder("again");
  fs::create_directories(folder);
  TrainConfig config = Small("silc");
  config.learn.seed = 7;
  config.budget.null_stiffness = 33;  // a budget whose file is not here
  config.mode = "mine.yaml";
  config.mode_from = "--mode";
  WriteFileAtomically(folder + "/config.yaml", ToYaml(config));
  EXPECT_EQ(ToYaml(ResolveTrainConfig({.preset = folder + "/config.yaml"})), ToYaml(config));
  EXPECT_EQ(ToYaml(ResolveTrainConfig({.task = "g1-stand", .preset = folder})), ToYaml(config));

  TrainRequest request = {.preset = folder, .method = "lcp", .seed = 8};
  request.overrides = {"learn.epochs=9"};
  const TrainConfig other = ResolveTrainConfig(request);
  EXPECT_EQ(other.learn.penalty.method, "lcp");
  EXPECT_EQ(other.learn.penalty.lambda, 0.002);
  EXPECT_EQ(other.learn.seed, 8u);
  EXPECT_EQ(other.learn.epochs, 9);
  EXPECT_EQ(other.learn.actor_hidden, config.learn.actor_hidden);

  const auto expect = [](const TrainRequest& wrong, const std::string& part) {
    EXPECT_NE(Message(wrong).find(part), std::string::npos) << Message(wrong);
  };
  expect({.task = "g1-loco", .preset = folder}, "is a run of g1-stand, not of g1-loco");
  expect({.preset = "quick"}, "name a task");
  std::string text = ToYaml(config);
  text.replace(text.find("epochs"), 6, "epohcs");
  WriteFileAtomically(folder + "/config.yaml", text);
  expect({.preset = folder}, "learn.epohcs: unknown key; did you mean epochs?");
  text = ToYaml(config);
  text.replace(text.find("\nenvs") + 1, 4, "evns");
  WriteFileAtomically(folder + "/config.yaml", text);
  expect({.preset = folder}, "did you mean envs?");
  fs::remove_all(folder);
}

// Nobody shall think a policy is bounded by a mode he gave, or wonder where a mode came from.
TEST(TrainConfig, SaysWhichBudgetHoldsAndWhoChoseIt) {
  const auto note = [](const char* method, std::optional<std::string> mode) {
    return BudgetNote(
        ResolveTrainConfig({.task = "g1-stand", .method = method, .mode = std::move(mode)}));
  };
  EXPECT_EQ(
      note("silc", {}),
      "budget compliance (no --mode was given: the default): CoM 200/200/20000 N/m, null space "
      "50 N·m/rad; gravity held, torque followed, disc; hands' floor none");
  EXPECT_EQ(note("silc-paper", "soft-hand"),
            "budget soft-hand: CoM 200/200/20000 N/m, hands 200/200/200 N/m, null space 50 "
            "N·m/rad; trained by (S7a) on K₁; judged with gravity held, torque followed, disc; "
            "hands' floor 0/0/0.75");
  EXPECT_EQ(note("lcp", "soft-hand"),
            "lcp takes no budget: --mode soft-hand is written down and bounds nothing");
  EXPECT_EQ(note("baseline", {}), "");
  // ranges without anybody who is told a number
  for (const char* method : {"baseline", "lcp", "alcp"}) {
    EXPECT_THROW(note(method, "command"), ConfigError) << method;
  }
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
