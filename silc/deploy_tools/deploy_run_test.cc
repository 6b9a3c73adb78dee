// SPDX-License-Identifier: Apache-2.0
// A policy on a simulated robot, whole: pre-flight, states, log, stiffness; both ends in one
// process and in lock step, so that no clock of this computer matters.
#include "silc/deploy_tools/run_deploy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <thread>
#include <utility>
#include <vector>

#include "silc/base/error.h"
#include "silc/base/file.h"
#include "silc/config/policy_budget.h"
#include "silc/deploy/test_bus.h"
#include "silc/deploy_tools/simulated_robot.h"
#include "silc/deploy_tools/test_g1.h"
#include "silc/deploy_tools/test_log.h"
#include "silc/observe/load_policy.h"
#include "silc/observe/run.h"

namespace silc {
namespace {

namespace fs = std::filesystem;
using test::FromLog;
using test::G1WithPolicy;
using test::InProcessBus;
using test::TestFolder;

// Moments with a static stiffness, of those compared: how often a policy has one is its own affair.
constexpr int kEnoughJudged = 50;

struct DeployedRun {
  DeploySummary summary;
  std::vector<std::string> lines;
  // second by second
  std::vector<double> height, tilt, distance;  // [m], [rad], [m]
  std::vector<double> fastest, torque;         // [rad/s], [1] of the effort limit
};

DeployedRun RunOnBus(
    const G1WithPolicy& g1,
    const std::string& script,
    DeployOptions options,
    const std::function<void(OperatorPanel*)>& on_start = [](OperatorPanel*) {}) {
  const RobotModel body = RobotModel::Load("g1", SimulatedRobot::NeededLoad());
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
    port.reset();  // nobody waits for it
  });
  options.lockstep = true;
  options.budget = ReadBudget("compliance");
  run.summary = RunDeploy(
      g1.robot,
      g1.policy,
      g1.servo,
      link.get(),
      options,
      on_start,
      [&](const std::string& line) { run.lines.push_back(line); },
      robot_ended);
  run_ended = true;
  robot.join();
  return run;
}

ObservationRun ObserveLog(const G1WithPolicy& g1, const std::string& log) {
  LoopOptions loop_options;
  loop_options.servo = g1.servo;
  ObservationOptions observation;
  observation.budget = ReadBudget("compliance");
  observation.random_directions = 0;
  return ObserveStates(ClosedLoop(g1.robot, g1.policy, loop_options), log, observation);
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
  EXPECT_EQ(FromLog(options.log, "tick_time").size(), run.summary.deadlines.ticks);
  const std::vector<double> sigma = FromLog(options.log, "sigma");
  ASSERT_GT(sigma.size(), 200U);
  EXPECT_EQ(sigma.size(), run.summary.moments);

  // the same moments, judged again from the log
  const ObservationRun again = ObserveLog(g1, options.log);
  ASSERT_EQ(again.moments.size(), sigma.size());
  int judged = 0;
  for (std::size_t i = 0; i < sigma.size(); ++i) {
    const BudgetReading& reading = again.moments[i].reading.quasi_static;
    ASSERT_EQ(reading.status == StiffnessStatus::kOk, !std::isnan(sigma[i])) << "moment " << i;
    if (std::isnan(sigma[i])) continue;
    ++judged;
    EXPECT_NEAR(reading.sigma, sigma[i], 1e-6 * std::max(1.0, sigma[i])) << "moment " << i;
  }
  EXPECT_GE(judged, kEnoughJudged);
}

// What the policy was shown and what it said is in the log whether or not anybody observes, and is
// the same; `silc observe` makes the same of both logs, contacts included.
TEST(DeployRun, LogsThePolicyWithoutAnObserver) {
  const G1WithPolicy g1;
  const std::string script =
      "0.1 press B; 0.3 press start; 2.6 press A; 2.9 release; 3.2 stick ly 0.7";
  DeployOptions options;
  options.preflight_seconds = 0;
  options.seconds = 5;
  options.log = TestFolder("silc_deploy_log_observed");
  const std::string observed = options.log;
  RunOnBus(g1, script, options);
  options.log = TestFolder("silc_deploy_log_alone");
  options.observe = false;
  const DeployedRun alone = RunOnBus(g1, script, options);
  EXPECT_EQ(alone.summary.moments, 0U);
  EXPECT_EQ(alone.summary.warnings, 0U) << ::testing::PrintToString(alone.lines);

  const auto steps = FromLog(observed, "sequence").size();
  ASSERT_GT(steps, 100U);
  const std::pair<const char*, int> both[] = {
      {"time", 0},
      {"sequence", 0},
      {"session", 0},
      {"qpos", g1.robot.model()->nq},
      {"qvel", g1.robot.model()->nv},
      {"tau", 29},
      {"gravity_B", 3},
      {"command", 5},
      {"observation", static_cast<int>(ObservationWidth(g1.policy.layout()))},
      {"action", 29},
      {"target", 29}};
  for (const auto& [name, width] : both) {
    const std::vector<double> values = FromLog(options.log, name, width);
    EXPECT_EQ(values.size(), steps * static_cast<std::size_t>(std::max(width, 1))) << name;
    EXPECT_EQ(values, FromLog(observed, name, width)) << name;
    EXPECT_TRUE(std::all_of(values.begin(), values.end(), [](double x) { return x == x; })) << name;
  }
  for (const auto& [name, width] : {std::pair("contact_mode", 0),
                                    {"sigma", 0},
                                    {"rho", 0},
                                    {"observe_s", 0},
                                    {"foot_force", 2},
                                    {"K_s_diag", 29}}) {
    const std::vector<double> values = FromLog(options.log, name, width);
    EXPECT_EQ(values.size(), steps * static_cast<std::size_t>(std::max(width, 1))) << name;
    EXPECT_TRUE(std::all_of(values.begin(), values.end(), [](double x) { return x != x; })) << name;
  }

  // what a policy is told to do follows from what it said: q* = default + α a
  const std::vector<double> action = FromLog(options.log, "action", 29),
                            target = FromLog(options.log, "target", 29);
  for (std::size_t i = 0; i < target.size(); ++i) {
    const auto j = static_cast<Eigen::Index>(i % 29);
    ASSERT_NEAR(
        target[i], g1.policy.default_pose()[j] + g1.policy.action_scale()[j] * action[i], 1e-12);
  }
  const ObservationRun a = ObserveLog(g1, observed), b = ObserveLog(g1, options.log);
  ASSERT_EQ(a.moments.size(), steps);
  ASSERT_EQ(b.moments.size(), steps);
  int single_support = 0;
  for (std::size_t i = 0; i < steps; ++i) {
    ASSERT_EQ(a.moments[i].mode, b.moments[i].mode) << i;
    single_support += a.moments[i].mode != ContactMode::kDoubleSupport ? 1 : 0;
    const double x = a.moments[i].reading.quasi_static.sigma,
                 y = b.moments[i].reading.quasi_static.sigma;
    EXPECT_TRUE(x == y || (std::isnan(x) && std::isnan(y))) << i;
  }
  EXPECT_GT(single_support, 10) << "it walked";
}

// A robot that is to be stopped by its stiffness is not driven without anybody who observes it.
TEST(DeployRun, NeedsAnObserverWhereStiffnessStops) {
  for (const char* fault : {"stiffness", "action_loop", "observer_age"}) {
    RobotSpec spec = ReadRobotSpec(FindRobotFile("g1"));
    for (SafetyRule& rule : spec.safety.rules) {
      // the first two are refused where observer_age only warns
      if (rule.fault == fault || rule.fault == "observer_age") rule.reaction = "stop";
    }
    const RobotModel robot = RobotModel::FromSpec(spec);
    const Policy policy = LoadPolicy(test::WalkerFile(), "", robot);
    InProcessBus bus;
    const std::unique_ptr<RobotLink> link = bus.MakeLink();
    DeployOptions options;
    options.observe = false;
    std::string why;
    try {
      RunDeploy(
          robot,
          policy,
          ServoFor(robot, policy, ""),
          link.get(),
          options,
          [](OperatorPanel*) {},
          [](const std::string&) {},
          std::atomic<bool>{true});
    } catch (const ConfigError& error) {
      why = error.what();
    }
    EXPECT_NE(why.find("safety.faults." + std::string(fault) + " does more than warn"),
              std::string::npos)
        << why;
  }
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

// A robot that stands still, and of another variant after a number of states.
class ChangingRobot : public RobotLink {
 public:
  explicit ChangingRobot(std::uint32_t before) : before_(before) {}
  bool ReceiveState(LowState* state, std::chrono::nanoseconds) override {
    std::memset(state, 0, sizeof *state);
    state->mode_machine = states_ < before_ ? 5 : 4;
    state->tick = 2 * ++states_;
    state->imu.quat_wxyz[0] = 1;
    state->crc = FrameCrc(*state);
    return true;
  }
  void BeginSending() override {}
  bool SendCommand(const LowCommand& command) override {
    if (command.motor[0].mode == 1) sent.push_back(command);
    return true;
  }
  LinkHealth Health() override { return {}; }
  std::vector<LowCommand> sent;  // to enabled motors

 private:
  std::uint32_t before_, states_ = 0;
};

// Damping is asked for at the start, for a tenth of a second.
DeploySummary RunOn(ChangingRobot* link, std::vector<std::string>* lines) {
  const G1WithPolicy g1;
  DeployOptions options;
  options.preflight_seconds = 0;
  options.observe = false;
  options.lockstep = true;
  options.seconds = 0.1;
  options.budget = ReadBudget("compliance");
  return RunDeploy(
      g1.robot,
      g1.policy,
      g1.servo,
      link,
      options,
      [](OperatorPanel* panel) { panel->Damp(); },
      [&](const std::string& line) { lines->push_back(line); },
      std::atomic<bool>{false});
}

// Pre-flight accepts one robot; the one that is driven is the same.
TEST(DeployRun, DoesNotDriveAnotherVariantThanPreflightSaw) {
  std::vector<std::string> lines;
  ChangingRobot other(1);
  EXPECT_EQ(RunOn(&other, &lines).latched.fault, DriveFault::kNone);
  EXPECT_TRUE(other.sent.empty());
  EXPECT_EQ(std::count(lines.begin(), lines.end(), "refused, because of machine_mode"), 1);

  ChangingRobot link(20);
  const DeploySummary summary = RunOn(&link, &lines);
  EXPECT_EQ(KindOf(summary.latched.fault).name, "machine_mode");
  EXPECT_GT(link.sent.size(), 10U);
  for (const LowCommand& command : link.sent) {
    EXPECT_EQ(command.mode_machine, 5);
    EXPECT_EQ(command.motor[0].kp, 0);
  }
}

TEST(DeployRun, ADryRunSendsNothing) {
  const G1WithPolicy g1;
  InProcessBus bus;
  const std::unique_ptr<RobotLink> link = bus.MakeLink();
  const std::unique_ptr<RobotPort> port = bus.MakePort();
  const RobotModel body = RobotModel::Load("g1", SimulatedRobot::NeededLoad());
  const std::unique_ptr<RobotLink> other = bus.MakeLink();  // another program's
  SimulatedRobot simulated(body);
  std::atomic<bool> stop{false}, damping{false};
  std::atomic<OperatorPanel*> panel{nullptr};
  int commands = 0, writers = 0;
  std::thread robot([&] {
    for (int k = 0, damped = 0; k < 20'000 && damped < 300; ++k) {
      LowState frame;
      simulated.Step();
      simulated.Step();
      simulated.Frame(&frame);
      port->SendState(frame);
      LowCommand command;
      commands += port->ReceiveCommand(&command, std::chrono::milliseconds(1)) ? 1 : 0;
      writers += other->Health().foreign_writers;
      damped += damping ? 1 : 0;
      if (panel != nullptr && !damping) panel.load()->Damp();
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
      [&](OperatorPanel* given) { panel = given; },
      [&](const std::string& line) { damping = damping || line == "now: damping"; },
      stop);
  robot.join();
  EXPECT_TRUE(damping);
  EXPECT_EQ(commands, 0);
  EXPECT_EQ(writers, 0) << "another program would stop because of it";
}

// A link to nobody that counts how often it is asked.
class DeafLink : public RobotLink {
 public:
  bool ReceiveState(LowState*, std::chrono::nanoseconds) override { return ++asked < 0; }
  void BeginSending() override { ++asked; }
  bool SendCommand(const LowCommand&) override { return ++asked < 0; }
  LinkHealth Health() override { return {.robot_present = ++asked < 0}; }
  int asked = 0;
};

// Why a run does not begin, and whether it asked the link or said anything before.
struct Refusal {
  bool asked_wrongly = false;  // ConfigError
  std::string why;
  int asked_link = 0;
  std::vector<std::string> lines;
};

Refusal RefusedRun(const G1WithPolicy& g1, const Servo& servo, const std::string& log) {
  DeployOptions options;
  options.log = log;
  options.preflight_seconds = 3;
  options.wait_s = 0.1;
  options.budget = ReadBudget("compliance");
  DeafLink link;
  Refusal refusal;
  try {
    RunDeploy(
        g1.robot,
        g1.policy,
        servo,
        &link,
        options,
        [](OperatorPanel*) {},
        [&](const std::string& line) { refusal.lines.push_back(line); },
        std::atomic<bool>{false});
  } catch (const ConfigError& error) {
    refusal.asked_wrongly = true;
    refusal.why = error.what();
  } catch (const RunError& error) {
    refusal.why = error.what();
  }
  refusal.asked_link = link.asked;
  return refusal;
}

// A folder that cannot take the log is said first: before the seconds of pre-flight, before the
// link is listened to. A run that does not begin leaves no folder.
TEST(DeployRun, LooksAtTheFolderOfItsLogFirst) {
  const G1WithPolicy g1;
  Servo limp = g1.servo;
  limp.kp *= 0.05;  // pre-flight refuses it
  const std::string folder = TestFolder("silc_deploy_log_used");
  fs::create_directories(folder);
  const std::string file = (fs::path(folder) / "notes.txt").string();
  WriteFileAtomically(file, "");
  for (const std::string& used : {folder, file}) {
    const Refusal refusal = RefusedRun(g1, limp, used);
    EXPECT_TRUE(refusal.asked_wrongly) << refusal.why;
    EXPECT_EQ(refusal.why, "--log " + used + ": is there already; name a new folder");
    EXPECT_EQ(refusal.asked_link, 0);
    EXPECT_TRUE(refusal.lines.empty());
  }
  const Refusal below_file = RefusedRun(g1, limp, file + "/log");
  EXPECT_FALSE(below_file.asked_wrongly);
  EXPECT_NE(below_file.why.find("/log: cannot be made: "), std::string::npos) << below_file.why;

  const std::string fresh = TestFolder("silc_deploy_log_not_begun");
  EXPECT_NE(RefusedRun(g1, limp, fresh).why.find("the robot fell"), std::string::npos);
  EXPECT_FALSE(fs::exists(fresh));
  EXPECT_NE(RefusedRun(g1, g1.servo, fresh).why.find("no robot answered"), std::string::npos);
  EXPECT_FALSE(fs::exists(fresh));
}

// Ctrl-C waits neither for a robot nor for an hour of simulated standing.
TEST(DeployRun, EndsWhileItWaitsForARobotOrLooksAtThePolicy) {
  const G1WithPolicy g1;
  DeployOptions options;
  options.preflight_seconds = 3600;
  options.wait_s = 60;
  options.budget = ReadBudget("compliance");
  DeafLink link;
  std::string why;
  const auto begin = std::chrono::steady_clock::now();
  try {
    RunDeploy(
        g1.robot,
        g1.policy,
        g1.servo,
        &link,
        options,
        [](OperatorPanel*) {},
        [](const std::string&) {},
        std::atomic<bool>{true});
  } catch (const RunError& error) {
    why = error.what();
  }
  EXPECT_EQ(why, "ended before a robot answered");
  EXPECT_EQ(link.asked, 0);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(8));
}

// A disk that fails ends the log, not the control: told once, and the summary has it.
TEST(DeployRun, GoesOnWithoutItsLog) {
  const G1WithPolicy g1;
  DeployOptions options;
  options.log = TestFolder("silc_deploy_log_lost");
  options.preflight_seconds = 0;
  options.observe = false;
  options.seconds = 4;
  const DeployedRun run =
      RunOnBus(g1, "0.1 press B; 0.3 press start; 2.6 press A", options, [&](OperatorPanel*) {
        fs::remove_all(options.log);
      });
  EXPECT_EQ(run.summary.stops, 0U) << ::testing::PrintToString(run.lines);
  EXPECT_NE(run.summary.log_error.find("chunk_000000.npz"), std::string::npos)
      << run.summary.log_error;
  EXPECT_EQ(
      std::count(run.lines.begin(), run.lines.end(), "the log has ended: " + run.summary.log_error),
      1);
  EXPECT_NE(std::find(run.lines.begin(), run.lines.end(), "now: policy"), run.lines.end());
}

// Control steps that find no place on their way to the logger are told while the robot runs, and
// counted. The logger is kept waiting by the line that says where the robot is; a policy that is
// asked in every tick then fills its queue, which is shorter in time than the one of ticks.
TEST(DeployRun, WarnsOfControlStepsThatAreNotLogged) {
  RobotSpec spec = ReadRobotSpec(FindRobotFile("g1"));
  for (SafetyRule& rule : spec.safety.rules) {
    // this computer may be busy, and a policy that is asked ten times as often is another one
    if (rule.limit != 0) rule.limit = 1e9;
  }
  spec.safety.stand_up_time = 0.1;
  const RobotModel model = RobotModel::FromSpec(spec);
  const Policy slow = LoadPolicy(test::WalkerFile(), "", model);
  ObservationLayout layout = slow.layout();
  layout.control_dt = spec.safety.command_period;
  const Policy policy(std::make_shared<const Graph>(slow.graph()), layout, slow.robot());

  InProcessBus bus;
  const std::unique_ptr<RobotLink> link = bus.MakeLink();
  const std::unique_ptr<RobotPort> port = bus.MakePort();
  const RobotModel body = RobotModel::Load("g1", SimulatedRobot::NeededLoad());
  std::atomic<bool> ended{false}, stop{false};
  std::thread robot([&] {
    SimulatedRobot simulated(body);
    RunSimulation(&simulated, port.get(), SimulatedRobotOptions{}, ended);
  });
  DeployOptions options;
  options.log = TestFolder("silc_deploy_log_dropped");
  options.preflight_seconds = 0;
  options.observe = false;
  options.realtime = false;
  options.seconds = 20;
  OperatorPanel* panel = nullptr;
  std::vector<std::string> lines;
  const DeploySummary summary = RunDeploy(
      model,
      policy,
      ServoFor(model, policy, ""),
      link.get(),
      options,
      [&](OperatorPanel* given) {
        panel = given;
        panel->Damp();
      },
      [&](const std::string& line) {  // by the logger's thread
        lines.push_back(line);
        if (line == "now: damping" && !stop) panel->Stand();
        if (line == "now: standing") panel->Run();
        if (line == "now: policy") std::this_thread::sleep_for(std::chrono::milliseconds(3500));
        stop = stop || line.find("log_dropped") != std::string::npos;
      },
      stop);
  ended = true;
  robot.join();
  const auto told = std::find_if(lines.begin(), lines.end(), [](const std::string& line) {
    return line.starts_with("warning at ") && line.find("log_dropped: ") != std::string::npos;
  });
  EXPECT_NE(told, lines.end()) << ::testing::PrintToString(lines);
  EXPECT_GE(summary.dropped_records, 1U);
  EXPECT_GE(summary.warnings, 1U);
  const std::vector<double> sequence = FromLog(options.log, "sequence");
  ASSERT_GT(sequence.size(), 256U);
  EXPECT_GE(sequence.back() - static_cast<double>(sequence.size()), 1) << "some are not there";
}

}  // namespace
}  // namespace silc
