// SPDX-License-Identifier: Apache-2.0
#include "silc/view/replay.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "silc/base/error.h"
#include "silc/base/file.h"
#include "silc/base/test_paths.h"
#include "silc/config/policy_budget.h"
#include "silc/npz/npz.h"
#include "silc/observe/load_policy.h"
#include "silc/observe/run.h"
#include "silc/view/test_policies.h"

namespace silc {
namespace {

namespace fs = std::filesystem;

constexpr int kRows = 60;

SimulationOptions OnePolicy() {
  SimulationOptions options;
  options.policies = {SourcePath("policies/g1_loco_silc_compliance.onnx")};
  return options;
}

// A few states of a robot that stands, as `silc deploy` logs them.
std::string WriteLog(const RobotModel& robot, int rows) {
  const fs::path folder = fs::path(::testing::TempDir()) / "silc_replay_log";
  fs::remove_all(folder);
  fs::create_directories(folder);
  const mjModel* model = robot.model();
  SimulationOptions options = OnePolicy();
  options.observe_in_step = true;
  LiveSimulation simulation(options);
  for (int k = 0; k < rows; ++k) simulation.Step();
  WriteFileAtomically((folder / "states.npz").string(), simulation.Recording(0));
  const NpzFile recorded = ReadNpz((folder / "states.npz").string());
  std::vector<double> qpos = recorded["qpos"].AsDoubles({rows, model->nq});
  std::vector<double> tau(static_cast<std::size_t>(rows * robot.num_joints()), 0.0);
  std::vector<double> gravity, command, mode, session;
  for (int k = 0; k < rows; ++k) {
    // a log knows nothing of the place
    qpos[static_cast<std::size_t>(k * model->nq + robot.base_qpos_address() + 2)] = 5;
    gravity.insert(gravity.end(), {0, 0, -1});
    command.insert(command.end(), {0, 0, 0, 0.75, 0});
    mode.push_back(static_cast<double>(ContactMode::kDoubleSupport));
    session.push_back(1);
  }
  WriteFileAtomically(
      (folder / "chunk_000000.npz").string(),
      EncodeNpz({{"qpos", {rows, model->nq}, qpos},
                 {"qvel", {rows, model->nv}, recorded["qvel"].AsDoubles({rows, model->nv})},
                 {"tau", {rows, robot.num_joints()}, tau},
                 {"gravity_B", {rows, 3}, gravity},
                 {"command", {rows, 5}, command},
                 {"contact_mode", {rows}, mode},
                 {"session", {rows}, session}}));
  return folder.string();
}

TEST(Replay, ShowsALogOnTheFloorWithTheStiffnessThatObserveFinds) {
  const RobotModel robot = RobotModel::Load("g1");
  const std::string log = WriteLog(robot, kRows);
  const ReplayedStates replay = ReplayForView(OnePolicy(), log);
  EXPECT_EQ(replay.end, "");
  ASSERT_EQ(replay.frames.size(), static_cast<std::size_t>(kRows));

  TrainingNotes notes;
  Policy policy = LoadPolicy(OnePolicy().policies[0], "", robot, &notes);
  LoopOptions loop;
  loop.servo = ServoFor(robot, policy, "");
  ObservationOptions observation;
  observation.budget = BudgetOfPolicy(notes, "").budget;
  observation.random_directions = 0;
  const ObservationRun run =
      ObserveStates(ClosedLoop(robot, std::move(policy), loop), log, observation);
  ASSERT_EQ(run.moments.size(), static_cast<std::size_t>(kRows));
  int judged = 0;
  for (std::size_t i = 0; i < run.moments.size(); ++i) {
    const RobotView& view = replay.frames[i].robots.at(0);
    EXPECT_NEAR(replay.frames[i].time, 0.02 * static_cast<double>(i), 1e-9);
    const double sigma = run.moments[i].reading.quasi_static.sigma;
    // there is none where the action loop alone is not stable
    EXPECT_EQ(std::isfinite(view.reading.sigma), std::isfinite(sigma));
    if (std::isfinite(sigma)) {
      ++judged;
      EXPECT_NEAR(view.reading.sigma, sigma, 1e-9 * sigma);
    }
    ASSERT_EQ(view.bodies.size(), 7 * static_cast<std::size_t>(robot.model()->nbody));
    // both feet on the floor, the base where legs of this length put it
    const float base = view.bodies[7 * static_cast<std::size_t>(robot.base_body()) + 2];
    EXPECT_GT(base, 0.6F);
    EXPECT_LT(base, 0.85F);
    EXPECT_NEAR(view.points[0].p_W.z(), base, 0.3);
  }
  EXPECT_GT(judged, 5);
  const std::string page = StatesPage(OnePolicy(), log, false);
  EXPECT_NE(page.find("window.silcRecording"), std::string::npos);
  EXPECT_EQ(page.find("\"/page/"), std::string::npos) << "one file";
}

// --budget of a log: told, shown, and what the log is judged by.
TEST(Replay, ACommandedPolicyIsToldTheBudgetThatWasAskedFor) {
  const std::string log = WriteLog(RobotModel::Load("g1"), 3);
  SimulationOptions options;
  options.policies = {::testing::TempDir() + "silc_replay_commanded.onnx"};
  WriteCommandedPolicy(options.policies[0]);
  options.budget = "com=600";
  const ReplayedStates replay = ReplayForView(options, log);
  ASSERT_EQ(replay.frames.size(), 3u);
  const RobotView& view = replay.frames[0].robots.at(0);
  EXPECT_EQ(view.told.value[0], 600);
  EXPECT_NEAR(view.points[0].C_budget(0, 0) * 600, 1, 1e-6);
  SimulationOptions plain = OnePolicy();
  plain.budget = "com=600";
  EXPECT_THROW(ReplayForView(plain, log), ConfigError);
}

}  // namespace
}  // namespace silc
