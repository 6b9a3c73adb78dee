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

// An array of all chunks of a log, one after the other.
std::vector<double> FromLog(const std::string& log, const std::string& name, int width = 0) {
  std::vector<double> values;
  for (int chunk = 0;; ++chunk) {
    char file[32];
    std::snprintf(file, sizeof file, "chunk_%06d.npz", chunk);
    const fs::path path = fs::path(log) / file;
    if (!fs::exists(path)) return values;
    const NpzFile npz = ReadNpz(path.string());
    if (!npz.Has(name)) continue;  // without the policy
    const std::vector<std::int64_t> shape = width > 0 ? std::vector<std::int64_t>{kAnySize, width}
                                                      : std::vector<std::int64_t>{kAnySize};
    const std::vector<double> some = npz[name].AsDoubles(shape, NpyArray::Finite::kNotRequired);
    values.insert(values.end(), some.begin(), some.end());
  }
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
    if (reading.status != StiffnessStatus::kOk || std::isnan(sigma[i])) continue;
    ++judged;
    EXPECT_NEAR(reading.sigma, sigma[i], 1e-6 * std::max(1.0, sigma[i])) << "moment " << i;
  }
  EXPECT_GT(judged, static_cast<int>(sigma.size()) / 2);
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

// States of a robot that stands and moves its joints a little.
PolicyRequest RequestAt(const G1WithPolicy& g1, int k, std::uint32_t session = 1) {
  PolicyRequest request;
  request.sequence = static_cast<std::uint64_t>(k) + 1;
  request.session = session;
  request.time_ns = 20'000'000LL * k;
  request.state.imu.quat_wxyz[0] = 1;
  for (int j = 0; j < kRobotMotors; ++j) {
    request.state.motor[j].q =
        static_cast<float>(g1.policy.default_pose()[j] + 0.05 * std::sin(0.3 * k + j));
    request.state.motor[j].dq = static_cast<float>(0.75 * std::cos(0.3 * k + j));
  }
  return request;
}

TEST(StiffnessWorker, FollowsForWantOfTimeAndThenSeesTheSame) {
  const G1WithPolicy g1;
  const UserBudget budget = ReadBudget("compliance");
  StiffnessWorker all(g1.robot, g1.policy, g1.servo, budget, 0.75),
      some(g1.robot, g1.policy, g1.servo, budget, 0.75);
  int compared = 0;
  for (int k = 0; k < 40; ++k) {
    const PolicyRequest request = RequestAt(g1, k);
    const DeployMoment whole = all.Observe(request);
    const DeployMoment& m = some.Observe(request, false, k % 4 != 0);
    EXPECT_EQ(m.observed, k % 4 == 0);
    EXPECT_EQ(m.mode, whole.mode);
    if (!m.observed) {
      EXPECT_TRUE(std::isnan(m.sigma) && std::isnan(m.rho) && std::isnan(m.K_s_diag[3]));
      EXPECT_FALSE(m.judged);
      continue;
    }
    EXPECT_EQ(m.judged, whole.judged);
    if (m.judged) {
      EXPECT_EQ(m.sigma, whole.sigma);
    }
    compared += m.judged ? 1 : 0;
  }
  EXPECT_GT(compared, 2);
}

// A twin that missed a step has another history than the policy: what it would say is not true.
TEST(StiffnessWorker, SaysNothingAfterAGapUntilThePolicyIsEnteredAnew) {
  const G1WithPolicy g1;
  StiffnessWorker worker(g1.robot, g1.policy, g1.servo, ReadBudget("compliance"), 0.75);
  EXPECT_TRUE(worker.Observe(RequestAt(g1, 0)).observed);
  EXPECT_FALSE(worker.Observe(RequestAt(g1, 2), true).observed);
  EXPECT_FALSE(worker.Observe(RequestAt(g1, 3)).observed);
  EXPECT_TRUE(worker.Observe(RequestAt(g1, 4, 2)).observed);
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

// Rows are control steps in their order. What was observed stands beside the step that it is of;
// what was passed over, or is waited for too long, is NaN.
TEST(DeployLog, JoinsWhatWasObservedToItsStep) {
  const std::string folder = TestFolder("silc_deploy_log_joined");
  DeployLog log(folder, 0.1);
  const auto step = [&](int sequence) {
    PolicyStep s;
    s.sequence = static_cast<std::uint64_t>(sequence);
    s.time_ns = 20'000'000LL * sequence;
    s.qpos.setConstant(36, sequence);
    s.qvel.setZero(35);
    s.input.tau.setZero(29);
    s.observation.setZero(4);
    s.action.setZero(29);
    s.target.setZero(29);
    log.Add(s);
  };
  const auto observe = [&](int sequence) {
    DeployMoment m;
    m.sequence = static_cast<std::uint64_t>(sequence);
    m.sigma = 0.1 * sequence;
    m.K_s_diag.setConstant(29, sequence);
    log.Add(m);
  };
  std::vector<int> rows_on_disk;
  for (int k = 0; k <= 100; ++k) {  // ticks of 10 ms
    if (k % 2 == 0) step(k / 2);
    if (k == 8) observe(3);   // 0 to 2 were passed over
    if (k == 40) observe(4);  // far too late
    if (k == 60) observe(29);
    TickRecord record;
    record.time_ns = 10'000'000LL * k;
    log.Add(record);
    rows_on_disk.push_back(static_cast<int>(FromLog(folder, "sequence").size()));
  }
  // no step waits longer than a chunk and the patience, 0.25 s
  for (int k = 0; k <= 100; ++k) EXPECT_GE(rows_on_disk[static_cast<std::size_t>(k)], k / 2 - 13);
  log.Finish();
  const std::vector<double> sequence = FromLog(folder, "sequence"),
                            sigma = FromLog(folder, "sigma"),
                            diagonal = FromLog(folder, "K_s_diag", 29),
                            qpos = FromLog(folder, "qpos", 36);
  ASSERT_EQ(sequence.size(), 51U);
  ASSERT_EQ(sigma.size(), 51U);
  ASSERT_EQ(diagonal.size(), 51U * 29);
  for (std::size_t i = 0; i < sequence.size(); ++i) {
    EXPECT_EQ(sequence[i], static_cast<double>(i));
    EXPECT_EQ(qpos[36 * i], static_cast<double>(i));
    const bool seen = i == 3 || i == 29;
    EXPECT_EQ(std::isnan(sigma[i]), !seen) << i;
    EXPECT_EQ(std::isnan(diagonal[29 * i + 5]), !seen) << i;
    if (seen) {
      EXPECT_EQ(sigma[i], 0.1 * static_cast<double>(i));
    }
  }
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
