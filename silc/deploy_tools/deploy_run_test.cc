// SPDX-License-Identifier: Apache-2.0
// A policy on a simulated robot, whole: pre-flight, states, log, stiffness; both ends in one
// process and in lock step, so that no clock of this computer matters.
#include "silc/deploy_tools/run_deploy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <thread>

#include "silc/base/error.h"
#include "silc/base/test_paths.h"
#include "silc/config/policy_budget.h"
#include "silc/deploy_tools/deploy_log.h"
#include "silc/deploy_tools/preflight.h"
#include "silc/deploy_tools/simulated_robot.h"
#include "silc/deploy_tools/workers.h"
#include "silc/npz/npz.h"
#include "silc/observe/load_policy.h"
#include "silc/observe/run.h"

namespace silc {
namespace {

namespace fs = std::filesystem;

struct G1WithPolicy {
  RobotModel robot = RobotModel::Load("g1");
  TrainingNotes notes;
  Policy policy =
      LoadPolicy(SourcePath("policies/g1_loco_silc_compliance.onnx"), "", robot, &notes);
  Servo servo = ServoFor(robot, policy, "");
};

struct DeployedRun {
  DeploySummary summary;
  std::vector<std::string> lines;
  // second by second
  std::vector<double> height, tilt, distance;  // [m], [rad], [m]
  std::vector<double> fastest, torque;         // [rad/s], [1] of the effort limit
};

DeployedRun RunOnBus(const G1WithPolicy& g1, const std::string& script, DeployOptions options) {
  LoadOptions load;
  load.physics_period = 0.001;
  const RobotModel body = RobotModel::Load("g1", load);
  InProcessBus bus;
  const std::unique_ptr<RobotLink> link = bus.MakeLink();
  std::unique_ptr<RobotPort> port = bus.MakePort();
  std::atomic<bool> robot_ended{false}, run_ended{false};
  DeployedRun run;
  std::thread robot([&] {
    SimulatedRobot simulated(body);
    SimulatedRobotOptions simulation;
    simulation.script = ParseScript(script);
    simulation.lockstep = true;
    simulation.each_second = [&](const SimulatedRobot& r) {
      run.height.push_back(r.base_height());
      run.tilt.push_back(r.tilt());
      run.distance.push_back(r.base_position().x());
      run.fastest.push_back(r.fastest_joint());
      run.torque.push_back(r.strongest_torque());
    };
    RunSimulation(&simulated, port.get(), simulation, run_ended);
    EXPECT_EQ(simulated.refused_commands(), 0);
    robot_ended = true;
  });
  options.lockstep = true;
  options.budget = ReadBudget("compliance");
  run.summary = RunDeploy(
      g1.robot,
      g1.policy,
      g1.servo,
      link.get(),
      options,
      [](OperatorPanel*) {},
      [&](const std::string& line) { run.lines.push_back(line); },
      robot_ended);
  run_ended = true;
  robot.join();
  return run;
}

std::string TestFolder(const char* name) {
  const fs::path folder = fs::path(::testing::TempDir()) / name;
  fs::remove_all(folder);
  return folder.string();
}

TEST(DeployRun, StandsUpWalksIsPushedAndItsStiffnessIsThatOfTheLog) {
  const G1WithPolicy g1;
  DeployOptions options;
  options.log = TestFolder("silc_deploy_log");
  options.preflight_seconds = 1;
  options.seconds = 7.2;
  const DeployedRun run = RunOnBus(g1,
                                   "0.1 press B; 0.3 press start; 3 press A; 3.3 release; "
                                   "4.5 stick ly 0.7; 6 push 40 0 0 0.1",
                                   options);
  EXPECT_EQ(run.summary.stops, 0U) << ::testing::PrintToString(run.lines);
  ASSERT_GE(run.height.size(), 7U);
  EXPECT_GT(run.height[6], 0.6) << "at 7 s";
  EXPECT_LT(run.tilt[6], 0.4);
  EXPECT_GT(run.distance[6], 0.2) << "walked";
  const std::vector<std::string> expected = {
      "now: damping", "now: standing up", "now: standing", "now: policy"};
  std::vector<std::string> states;
  for (const std::string& line : run.lines) {
    if (line.starts_with("now:") && states.size() < 4) states.push_back(line);
  }
  EXPECT_EQ(states, expected);

  // every tick and every answer is in the log
  std::vector<double> sigma;
  double ticks = 0;
  for (int chunk = 0;; ++chunk) {
    char name[32];
    std::snprintf(name, sizeof name, "chunk_%06d.npz", chunk);
    const fs::path path = fs::path(options.log) / name;
    if (!fs::exists(path)) break;
    const NpzFile file = ReadNpz(path.string());
    ticks += static_cast<double>(file["tick_time"].size());
    if (!file.Has("sigma")) continue;
    const std::vector<double> some =
        file["sigma"].AsDoubles({kAnySize}, NpyArray::Finite::kNotRequired);
    sigma.insert(sigma.end(), some.begin(), some.end());
  }
  EXPECT_EQ(ticks, static_cast<double>(run.summary.deadlines.ticks));
  ASSERT_GT(sigma.size(), 200U);

  // the same moments, judged again from the log
  LoopOptions loop_options;
  loop_options.servo = g1.servo;
  ObservationOptions observation;
  observation.budget = ReadBudget("compliance");
  observation.random_directions = 0;
  const ObservationRun again =
      ObserveStates(ClosedLoop(g1.robot, g1.policy, loop_options), options.log, observation);
  ASSERT_EQ(again.moments.size(), sigma.size());
  int judged = 0;
  for (std::size_t i = 0; i < sigma.size(); ++i) {
    const BudgetReading& reading = again.moments[i].reading.quasi_static;
    if (reading.status != StiffnessStatus::kOk || std::isnan(sigma[i])) continue;
    ++judged;
    EXPECT_NEAR(reading.sigma, sigma[i], 1e-6 * std::max(1.0, sigma[i])) << "moment " << i;
  }
  EXPECT_GT(judged, static_cast<int>(sigma.size()) / 2);
}

// What the link or the robot suffers while the policy walks: damped within the ticks stated, and
// what follows is slow and weak.
TEST(DeployRun, EndsInDampingWhateverTheRobotSuffers) {
  const G1WithPolicy g1;
  const std::pair<const char*, const char*> faults[] = {{"crc", "state_corrupt"},
                                                        {"freeze", "tick_frozen"},
                                                        {"nan", "state_not_finite"},
                                                        {"encoder", "joint_range"}};
  for (const auto& [fault, expected] : faults) {
    DeployOptions options;
    options.preflight_seconds = 0;
    options.observe = false;
    const DeployedRun run = RunOnBus(g1,
                                     std::string("0.1 press B; 0.3 press start; 2.6 press A; ") +
                                         "2.9 fault " + fault + "; 4.01 end",
                                     options);
    ASSERT_GE(run.summary.stops, 1U) << fault;
    const auto told = std::find_if(run.lines.begin(), run.lines.end(), [](const std::string& line) {
      return line.starts_with("STOP");
    });
    ASSERT_NE(told, run.lines.end());
    EXPECT_NE(told->find(std::string(expected) + ":"), std::string::npos) << *told;
    // a second later, still damped: slow, and far below what the motors have
    ASSERT_EQ(run.fastest.size(), 4U);
    EXPECT_LT(run.fastest[3], 3) << fault;
    EXPECT_LT(run.torque[3], 0.5) << fault;
  }
}

TEST(DeployRun, ADryRunSendsNothing) {
  const G1WithPolicy g1;
  InProcessBus bus;
  const std::unique_ptr<RobotLink> link = bus.MakeLink();
  const std::unique_ptr<RobotPort> port = bus.MakePort();
  LoadOptions load;
  load.physics_period = 0.001;
  const RobotModel body = RobotModel::Load("g1", load);
  SimulatedRobot simulated(body);
  std::atomic<bool> stop{false};
  int commands = 0;
  std::thread robot([&] {
    for (int k = 0; k < 300; ++k) {
      LowState frame;
      simulated.Step();
      simulated.Step();
      simulated.Frame(&frame);
      port->SendState(frame);
      LowCommand command;
      commands += port->ReceiveCommand(&command, std::chrono::milliseconds(1)) ? 1 : 0;
    }
    stop = true;
  });
  DeployOptions options;
  options.dry_run = true;
  options.preflight_seconds = 0;
  options.budget = ReadBudget("compliance");
  RunDeploy(
      g1.robot,
      g1.policy,
      g1.servo,
      link.get(),
      options,
      [](OperatorPanel* panel) { panel->Damp(); },
      [](const std::string&) {},
      stop);
  robot.join();
  EXPECT_EQ(commands, 0);
}

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

// An action loop whose radius could not be computed is not one that is stable.
TEST(StiffnessNote, ARadiusThatIsNoNumberIsNotHidden) {
  DeployMoment moment;
  moment.sequence = 7;
  moment.rho = std::nan("");
  EXPECT_EQ(NoteOf(moment).sequence, 7U);
  EXPECT_TRUE(std::isnan(NoteOf(moment).rho));
  moment.rho = 1.25;
  moment.sigma = 0.5;
  moment.judged = true;
  EXPECT_EQ(NoteOf(moment).rho, 1.25);
  EXPECT_EQ(NoteOf(moment).sigma, 0.5);
  EXPECT_TRUE(NoteOf(moment).judged);
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

// A power cut: nothing is finished, and all but the last second can be read.
TEST(DeployLog, LosesTheLastSecondAtMostWhenItIsCutShort) {
  const std::string folder = TestFolder("silc_deploy_log_cut");
  constexpr int kTicks = 2345;  // of 2 ms
  {
    DeployLog log(folder);
    for (int k = 0; k < kTicks; ++k) {
      TickRecord record;
      record.time_ns = 2'000'000LL * k;
      record.robot.tick = static_cast<std::uint32_t>(k);
      log.Add(record);
    }
  }  // without Finish()
  int read = 0, files = 0;
  for (const auto& entry : fs::directory_iterator(folder)) {
    EXPECT_EQ(entry.path().extension(), ".npz") << "nothing half written: " << entry.path();
    ++files;
  }
  for (int chunk = 0; chunk < files; ++chunk) {
    char name[32];
    std::snprintf(name, sizeof name, "chunk_%06d.npz", chunk);
    const NpzFile file = ReadNpz((fs::path(folder) / name).string());
    for (const double tick : file["tick_robot_tick"].AsDoubles({kAnySize})) {
      EXPECT_EQ(tick, read++);
    }
  }
  EXPECT_LE(kTicks - read, 501) << "more than a second is lost";
  EXPECT_LT(read, kTicks) << "the rest was to be lost";
}

TEST(DeployLog, RefusesAFolderThatHoldsSomething) {
  const std::string folder = TestFolder("silc_deploy_log_full");
  { DeployLog log(folder); }
  EXPECT_NO_THROW(DeployLog{folder}) << "empty";
  DeployLog log(folder);
  log.Add(TickRecord{});
  log.Finish();
  EXPECT_THROW(DeployLog{folder}, ConfigError);
}

}  // namespace
}  // namespace silc
