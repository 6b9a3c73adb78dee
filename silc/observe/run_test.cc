// SPDX-License-Identifier: Apache-2.0
#include "silc/observe/run.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <numbers>

#include "silc/base/error.h"
#include "silc/npz/npz.h"
#include "silc/observe/test_robot.h"

namespace silc {
namespace {

ObservationOptions Options() {
  ObservationOptions options;
  options.budget = ReadBudget("soft-hand");
  return options;
}

class Run : public ::testing::Test {
 protected:
  Run() : robot_(RobotModel::Load("g1")), policy_(MakeStandPolicy(robot_)) {}

  RobotModel robot_;
  Policy policy_;
};

// A policy that answers nothing leaves the springs alone: every stiffness is Kp's.
TEST_F(Run, AConstantPolicyIsPdAlone) {
  const ObservationRun run =
      ObservePose(MakeLoop(robot_, MakeConstantPolicy(robot_, 0)), Options());
  ASSERT_EQ(run.moments.size(), 1u);
  const StiffnessReading& reading = run.moments[0].reading;
  const JointMatrix Kp = run.servo.kp.asDiagonal();
  EXPECT_TRUE(reading.K_1.isApprox(Kp, 1e-12));
  EXPECT_TRUE(reading.K_s.isApprox(Kp, 1e-12));
  for (std::size_t k = 0; k < kDampingHz.size(); ++k) {
    EXPECT_TRUE(run.moments[0].damping[k].isApprox(Eigen::VectorXd(run.servo.kd), 1e-9));
  }
}

// The regulator is linear, so its weights are its Jacobians: what was observed must be what was
// designed.
TEST_F(Run, TheRegulatorsStiffnessIsItsWeights) {
  const StandPolicy design = DesignStandPolicy(robot_);
  const MlpLayer& layer = design.network.branches[0][0];
  const int n = robot_.num_joints();
  const auto block = [&](int which) {
    Eigen::MatrixXd J(n, n);
    for (int i = 0; i < n; ++i) {
      for (int j = 0; j < n; ++j)
        J(i, j) = layer.weight[static_cast<std::size_t>(i) * 3 * n + which * n + j];
    }
    return J;
  };
  const ObservationRun run = ObservePose(MakeLoop(robot_, policy_), Options());
  const Eigen::MatrixXd I = Eigen::MatrixXd::Identity(n, n);
  const Eigen::MatrixXd Kp = run.servo.kp.asDiagonal(), alpha = run.servo.alpha.asDiagonal();
  const Eigen::MatrixXd K_1 = Kp * (I - alpha * block(0));
  const Eigen::MatrixXd K_s = Kp * (I - alpha * (I - block(2)).inverse() * block(0));
  EXPECT_TRUE(run.moments[0].reading.K_1.isApprox(K_1, 1e-6));
  EXPECT_TRUE(run.moments[0].reading.K_s.isApprox(K_s, 1e-5));
}

TEST_F(Run, ARolloutObservesEveryControlStep) {
  const ObservationRun run = ObserveRollout(MakeLoop(robot_, policy_), 1, 0.5, Options());
  EXPECT_EQ(run.end, LoopStatus::kRunning);
  EXPECT_EQ(run.moments.size(), 50u);
  EXPECT_NEAR(run.moments.front().time, 0.5, 1e-9);
  for (const Moment& moment : run.moments) {
    EXPECT_EQ(moment.mode, ContactMode::kDoubleSupport);
    EXPECT_EQ(moment.reading.static_status, StiffnessStatus::kOk);
  }
  ASSERT_FALSE(run.sweep.hz.empty());
  EXPECT_LT(run.sweep.hz.back(), 25);
}

TEST_F(Run, AFallEndsTheRolloutAndKeepsWhatWasSeen) {
  const ObservationRun run =
      ObserveRollout(MakeLoop(robot_, MakeConstantPolicy(robot_, 0)), 10, 0, Options());
  EXPECT_EQ(run.end, LoopStatus::kFallen);
  EXPECT_GT(run.moments.size(), 10u);
  EXPECT_LT(run.moments.size(), 500u);
  EXPECT_NEAR(run.end_time, 0.02 * static_cast<double>(run.moments.size()), 1e-9);
}

// Recorded states observed again give what the rollout gave: the twin of a simulated observation.
TEST_F(Run, StatesFromAFileRepeatTheRollout) {
  const std::string path = ::testing::TempDir() + "states.npz";
  ClosedLoop loop = MakeLoop(robot_, policy_);
  const mjModel* model = robot_.model();
  constexpr int kRows = 30;
  std::vector<double> qpos, qvel;
  for (int i = 0; i < kRows; ++i) {
    qpos.insert(qpos.end(), loop.data()->qpos, loop.data()->qpos + model->nq);
    qvel.insert(qvel.end(), loop.data()->qvel, loop.data()->qvel + model->nv);
    loop.Step();
  }
  WriteNpz(path, {{"qpos", {kRows, model->nq}, qpos}, {"qvel", {kRows, model->nv}, qvel}});

  const ObservationRun again = ObserveStates(MakeLoop(robot_, policy_), path, Options());
  const ObservationRun rollout =
      ObserveRollout(MakeLoop(robot_, policy_), kRows * 0.02, 0, Options());
  ASSERT_EQ(again.moments.size(), rollout.moments.size());
  for (int i = 0; i < kRows; ++i) {
    EXPECT_TRUE(again.moments[i].reading.K_s.isApprox(rollout.moments[i].reading.K_s, 1e-9)) << i;
    EXPECT_NEAR(again.moments[i].reading.quasi_static.sigma,
                rollout.moments[i].reading.quasi_static.sigma,
                1e-6 * rollout.moments[i].reading.quasi_static.sigma);
  }
  std::filesystem::remove(path);
}

TEST_F(Run, StatesThatDoNotFitAreRefused) {
  const std::string path = ::testing::TempDir() + "bad_states.npz";
  const mjModel* model = robot_.model();
  const auto message = [&](const std::vector<NpzEntry>& entries) {
    WriteNpz(path, entries);
    try {
      ObserveStates(MakeLoop(robot_, policy_), path, Options());
    } catch (const ConfigError& error) {
      return std::string(error.what());
    }
    return std::string("no error");
  };
  const auto zeros = [](int rows, int cols) {
    return std::vector<double>(static_cast<std::size_t>(rows) * cols);
  };
  EXPECT_NE(message({{"qpos", {2, 7}, zeros(2, 7)}, {"qvel", {2, 6}, zeros(2, 6)}})
                .find("expected (*, 36)"),
            std::string::npos);
  EXPECT_NE(message({{"qpos", {2, model->nq}, zeros(2, model->nq)},
                     {"qvel", {1, model->nv}, zeros(1, model->nv)}})
                .find("must be the same states"),
            std::string::npos);
  EXPECT_NE(message({{"qvel", {1, model->nv}, zeros(1, model->nv)}}).find("qpos"),
            std::string::npos);
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace silc
