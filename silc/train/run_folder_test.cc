// SPDX-License-Identifier: Apache-2.0
// A real training, small: the folder it leaves, the same bytes whatever the threads, and the policy
// in it.
#include "silc/train/run_folder.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "silc/base/error.h"
#include "silc/base/file.h"
#include "silc/learn/checkpoint.h"
#include "silc/learn/trainer.h"
#include "silc/policy/layout_file.h"
#include "silc/policy/onnx/reader.h"
#include "silc/policy/policy.h"
#include "silc/policy/policy_metadata.h"
#include "silc/robot/robot_model.h"

namespace silc {
namespace {

namespace fs = std::filesystem;

TrainConfig SmallConfig(int threads) {
  TrainRequest request;
  request.task = "g1-stand";
  request.method = "silc";  // the method with the most state
  request.mode = "compliance";
  request.envs = 32;
  request.iterations = 3;
  request.threads = threads;
  request.overrides = {"learn.actor_hidden=[16,8]",
                       "learn.critic_hidden=[16,8]",
                       "learn.steps=6",
                       "learn.epochs=2",
                       "learn.mini_batches=2",
                       "learn.penalty.samples=16",
                       "task.episode.length=0.2"};
  return ResolveTrainConfig(request);
}

class RunFolderTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(::testing::TempDir()) / "silc_run_folder_test";
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }
  std::string Path(const std::string& name) const { return (folder_ / name).string(); }
  fs::path folder_;
};

TEST_F(RunFolderTest, TheSameBytesOnAnyNumberOfThreads) {
  std::string first;
  for (const int threads : {1, 2, 3}) {
    TrainConfig config = SmallConfig(threads);
    const auto env = MakeLocoVecEnv(MakeEnvOptions(&config, ""));
    Trainer trainer(config.learn, env.get());
    trainer.Run("", nullptr);
    ASSERT_EQ(trainer.iteration(), 3);
    const std::string bytes = SerializeBlobs(trainer.Save());
    if (first.empty()) first = bytes;
    EXPECT_TRUE(bytes == first) << threads << " threads";
  }
  // and a different seed is a different run
  TrainConfig config = SmallConfig(2);
  config.learn.seed = 2;
  const auto env = MakeLocoVecEnv(MakeEnvOptions(&config, ""));
  Trainer trainer(config.learn, env.get());
  trainer.Run("", nullptr);
  EXPECT_FALSE(SerializeBlobs(trainer.Save()) == first);
}

// Layer by layer in double precision, from the weights alone.
Eigen::VectorXd ByHand(const MlpNetwork& network, const Eigen::VectorXf& obs) {
  std::vector<double> out;
  for (const auto& branch : network.branches) {
    std::vector<double> x(obs.data(), obs.data() + obs.size());
    for (const MlpLayer& layer : branch) {
      std::vector<double> y(layer.bias.begin(), layer.bias.end());
      for (int i = 0; i < layer.outputs; ++i) {
        for (int j = 0; j < layer.inputs; ++j) y[i] += layer.weight[i * layer.inputs + j] * x[j];
        if (&layer != &branch.back() && y[i] < 0) y[i] = std::expm1(y[i]);  // ELU
      }
      x = y;
    }
    out.insert(out.end(), x.begin(), x.end());
  }
  return Eigen::Map<Eigen::VectorXd>(out.data(), static_cast<Eigen::Index>(out.size()));
}

TEST_F(RunFolderTest, TheExportedPolicyActsAsTheTrainersNetwork) {
  TrainConfig config = SmallConfig(2);
  const auto env = MakeLocoVecEnv(MakeEnvOptions(&config, ""));
  Trainer trainer(config.learn, env.get());
  trainer.Iterate();
  const RunFolder folder = RunFolder::Create(Path("run"), config);
  folder.WritePolicy(trainer.Policy(), config);

  const RobotModel robot = RobotModel::Load("g1");
  const OnnxModel model = ReadOnnx(folder.policy_file());
  Policy policy(model.graph,
                ChooseLayout(model.metadata, "", LayoutFolder(), "policy"),
                {robot.spec().joints, robot.spec().StandingPose().q});
  EXPECT_TRUE(policy.is_mlp());
  EXPECT_TRUE(policy.kp().isApprox(robot.spec().Gains().kp));
  EXPECT_TRUE(policy.action_scale().isApprox(robot.spec().Gains().action_scale));
  ObservationInput input;
  input.q = robot.spec().StandingPose().q;
  input.qd.setConstant(29, 0.3);
  input.tau.setConstant(29, 2.0);
  Eigen::VectorXd target;
  for (int step = 0; step < 7; ++step) {
    input.q.array() += 0.01 * step;
    ASSERT_EQ(policy.Act(input, &target), PolicyStatus::kOk);
    const Eigen::VectorXd expected = ByHand(trainer.Policy(), policy.observation());
    // float against double over 655 inputs of order 1
    EXPECT_LT((policy.raw_action() - expected).cwiseAbs().maxCoeff(), 1e-4);
    // (S1)'s target: the arms' actions add to the reference, which is the default pose here
    const Eigen::VectorXd q_star =
        policy.default_pose() + policy.action_scale().cwiseProduct(policy.raw_action());
    EXPECT_TRUE(target.isApprox(q_star, 1e-9));
  }
  EXPECT_GT(policy.raw_action().norm(), 1e-3);
}

TEST_F(RunFolderTest, OneProcessOneRun) {
  const TrainConfig config = SmallConfig(1);
  {
    const RunFolder folder = RunFolder::Create(Path("a"), config);
    EXPECT_THROW(RunFolder::Open(Path("a")), ConfigError);
    EXPECT_EQ(ListRuns(folder_.string())[0].state, "running");
  }
  RunFolder::Open(Path("a"));
  EXPECT_THROW(RunFolder::Create(Path("a"), config), ConfigError);
  EXPECT_THROW(RunFolder::Open(Path("none")), ConfigError);
  EXPECT_EQ(ToYaml(ReadTrainConfig(Path("a") + "/config.yaml")), ToYaml(config));
}

TEST_F(RunFolderTest, TheListSaysWhereEachRunIs) {
  const TrainConfig config = SmallConfig(1);  // 3 iterations
  const auto make = [&](const std::string& name, const std::string& metrics, int saved) {
    RunFolder::Create(Path(name), config);
    if (!metrics.empty()) WriteFileAtomically(Path(name) + "/metrics.jsonl", metrics);
    if (saved > 0) CheckpointFolder(Path(name) + "/checkpoints", 2).Save(saved, {});
  };
  const std::string one = "{\"iteration\":1,\"train/reward\":0.5}\n",
                    two = one + "{\"iteration\":2,\"train/reward\":null}\n";
  make("begun", "", 0);
  make("cut", two + "{\"iteration\":3,\"tra", 1);
  make("done", two, 3);
  make("stopped", one, 1);
  fs::create_directories(Path("unrelated"));
  make("broken", "", 0);
  WriteFileAtomically(Path("broken") + "/config.yaml", "learn: {epoch: 3}\n");

  const std::vector<RunInfo> runs = ListRuns(folder_.string());
  ASSERT_EQ(runs.size(), 5u);
  EXPECT_EQ(runs[0].state, "not begun");
  EXPECT_NE(runs[1].state.find("did you mean epochs"), std::string::npos);
  EXPECT_EQ(runs[2].state, "cut off, resumes after 1");
  EXPECT_EQ(runs[2].done, 2);
  EXPECT_FALSE(runs[2].reward.has_value());
  EXPECT_EQ(runs[3].state, "done");
  EXPECT_EQ(runs[4].state, "stopped");
  EXPECT_EQ(runs[4].reward, 0.5);
  EXPECT_EQ(runs[4].method, "silc");
  EXPECT_EQ(runs[4].mode, "compliance");
  EXPECT_EQ(runs[4].iterations, 3);

  RunFolder::Open(Path("cut")).ForgetMetricsAfter(1);
  EXPECT_EQ(ReadFile(Path("cut") + "/metrics.jsonl"), one);
  EXPECT_THROW(ListRuns(Path("nowhere")), ConfigError);
}

}  // namespace
}  // namespace silc
