// SPDX-License-Identifier: Apache-2.0
#include "silc/view/simulation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <mutex>
#include <nlohmann/json.hpp>
#include <thread>

#include "silc/base/error.h"
#include "silc/base/file.h"
#include "silc/base/test_paths.h"
#include "silc/npz/npz.h"
#include "silc/observe/load_policy.h"
#include "silc/view/test_policies.h"

namespace silc {
namespace {

const char kSilc[] = "policies/g1_loco_silc_compliance.onnx";
const char kBaseline[] = "policies/g1_loco_baseline.onnx";

SimulationOptions TwoRobots() {
  SimulationOptions options;
  options.policies = {SourcePath(kSilc), SourcePath(kBaseline)};
  return options;
}

Input Word(InputType type, std::uint32_t robot = 0, std::uint32_t index = 0) {
  return {type, robot, index, {}};
}

StateFrame StepFor(LiveSimulation* simulation, double seconds) {
  StateFrame frame;
  const int steps = static_cast<int>(std::lround(seconds / simulation->period()));
  for (int i = 0; i < steps; ++i) frame = simulation->Step();
  return frame;
}

// The viewer's robot is the closed loop of `silc observe`, step for step.
TEST(LiveSimulation, IsTheClosedLoopOfObserve) {
  SimulationOptions options;
  options.policies = {SourcePath(kSilc)};
  LiveSimulation simulation(options);
  LoadOptions firm;
  firm.firm_contacts = true;
  const RobotModel robot = RobotModel::Load("g1", firm);
  const Policy policy = LoadPolicy(SourcePath(kSilc), "", robot);
  LoopOptions loop_options;
  loop_options.servo = ServoFor(robot, policy, "");
  ClosedLoop loop(robot, policy, loop_options);
  for (int step = 0; step < 50; ++step) loop.Step();
  StepFor(&simulation, 1);
  const NpzFile file = ParseNpz(simulation.Recording(0), "recording");
  const std::vector<double> qpos = file["qpos"].AsDoubles({50, robot.model()->nq});
  for (int i = 0; i < robot.model()->nq; ++i) {
    EXPECT_EQ(qpos[49 * robot.model()->nq + i], loop.data()->qpos[i]) << i;
  }
}

// The mouse's spring at rest: force = spring · (mouse − point), and both robots feel it.
TEST(LiveSimulation, TheMousePullsThroughASpring) {
  // a regulator comes to rest under any steady pull; a trained policy need not
  SimulationOptions options = TwoRobots();
  options.policies[0] = ::testing::TempDir() + "silc_view_pulled.onnx";
  WriteCommandedPolicy(options.policies[0]);
  LiveSimulation simulation(options);
  const auto scene = nlohmann::json::parse(simulation.scene_json());
  StateFrame frame = StepFor(&simulation, 2);
  const Eigen::Vector3d start = frame.robots[0].points[1].p_W;
  const Eigen::Vector3d other_start = frame.robots[1].points[1].p_W;
  Input grab = Word(InputType::kGrab, 0, scene["hands"][0]["body"].get<std::uint32_t>());
  for (int k = 0; k < 3; ++k) grab.value[k] = scene["hands"][0]["pos"][k];
  simulation.Apply(grab);
  const Eigen::Vector3d target = start + Eigen::Vector3d(0, 0, 0.05);
  Input pull = Word(InputType::kPull);
  for (int k = 0; k < 3; ++k) pull.value[k] = target[k];
  simulation.Apply(pull);
  frame = StepFor(&simulation, 4);
  const RobotView& held = frame.robots[0];
  EXPECT_EQ(held.push, 1);
  // 5 cm of spring: the hand would follow as far under 1 N only if it were softer than 25 N/m
  EXPECT_GT(held.f_W.z(), 1);
  // at rest the damper is silent
  EXPECT_LT((held.f_W - kMouseSpring * (target - held.p_W)).norm(), 0.1);
  EXPECT_LT((held.p_W - held.points[1].p_W).norm(), 1e-6) << "the point held is the hand's";
  EXPECT_LT((held.moved_W - (held.p_W - start)).norm(), 1e-3);
  EXPECT_LT((frame.robots[1].f_W - held.f_W).norm(), 1e-9) << "the same push";
  // and each moves in its own way under it
  const RobotView& other = frame.robots[1];
  EXPECT_LT((other.moved_W - (other.p_W - other_start)).norm(), 1e-3);
  EXPECT_GT((other.moved_W - held.moved_W).norm(), 1e-3);

  simulation.Apply(Word(InputType::kRelease));
  frame = StepFor(&simulation, 0.02);
  EXPECT_EQ(frame.robots[0].push, 0);
  EXPECT_EQ(frame.robots[0].f_W.norm(), 0);
}

TEST(LiveSimulation, OneRobotCanBePushedAlone) {
  LiveSimulation simulation(TwoRobots());
  simulation.Apply(Word(InputType::kSamePush, 0, 0));
  Input grab = Word(InputType::kGrab, 1, 20);
  simulation.Apply(grab);
  const StateFrame frame = StepFor(&simulation, 0.1);
  EXPECT_EQ(frame.robots[0].push, 0);
  EXPECT_EQ(frame.robots[1].push, 1);
  EXPECT_FALSE(frame.same_push);
}

// 150 N for 0.05 s is an impulse of 7.5 N·s, whatever the control period.
TEST(LiveSimulation, APushButtonGivesItsImpulse) {
  SimulationOptions options;
  options.policies = {SourcePath(kSilc)};
  LiveSimulation pushed(options), left_alone(options);
  StepFor(&pushed, 1);
  StepFor(&left_alone, 1);
  pushed.Apply(Word(InputType::kPush, 0, 0));
  const Eigen::Vector3d before = StepFor(&pushed, 0.02).robots[0].points[0].p_W;
  const Eigen::Vector3d twin = StepFor(&left_alone, 0.02).robots[0].points[0].p_W;
  EXPECT_LT((before - twin).norm(), 0.01);
  StateFrame a = StepFor(&pushed, 0.06), b = StepFor(&left_alone, 0.06);
  // the push is over after 0.05 s: the mean velocity since then is about impulse over mass
  const Eigen::Vector3d p_a = a.robots[0].points[0].p_W - b.robots[0].points[0].p_W;
  a = StepFor(&pushed, 0.02);
  b = StepFor(&left_alone, 0.02);
  const Eigen::Vector3d v = (a.robots[0].points[0].p_W - b.robots[0].points[0].p_W - p_a) / 0.02;
  const double mass = nlohmann::json::parse(pushed.scene_json())["mass"];
  // the feet give some of it back within these 0.1 s
  EXPECT_LT(v.x(), -0.4 * 7.5 / mass);
  EXPECT_GT(v.x(), -1.1 * 7.5 / mass);
  EXPECT_EQ(a.robots[0].push, 2) << "its displacement is followed for a while";
  EXPECT_EQ(a.robots[0].f_W.norm(), 0);
}

TEST(LiveSimulation, PoliciesAndBudgetsChangeWhileItRuns) {
  SimulationOptions options = TwoRobots();
  options.observe_in_step = true;
  options.choices = {SourcePath(kBaseline), "/nowhere/missing.onnx"};
  LiveSimulation simulation(options);
  EXPECT_EQ(simulation.limits().policies, 3u) << "the file named twice is one choice";
  StateFrame frame = StepFor(&simulation, 0.5);
  const Eigen::Vector3d before = frame.robots[0].points[0].p_W;
  EXPECT_GT(frame.robots[0].reading.loop_radius, 0) << "observed";

  simulation.Apply(Word(InputType::kPolicy, 0, 1));
  frame = simulation.Step();
  EXPECT_EQ(frame.robots[0].policy, 1);
  EXPECT_LT((frame.robots[0].points[0].p_W - before).norm(), 0.01) << "it goes on where it was";

  simulation.Apply(Word(InputType::kPolicy, 0, 2));
  frame = simulation.Step();
  EXPECT_EQ(frame.robots[0].policy, 1) << "what cannot be loaded changes nothing";

  // another budget, another σ at the same moment
  simulation.Apply(Word(InputType::kPolicy, 0, 0));
  StepFor(&simulation, 3);
  simulation.Apply(Word(InputType::kGravity, 0, 1));
  const double held = simulation.Step().robots[0].reading.sigma;
  simulation.Apply(Word(InputType::kGravity, 0, 2));
  const double followed = simulation.Step().robots[0].reading.sigma;
  // far more than one control step of a robot that stands does
  EXPECT_GT(std::abs(followed - held), 0.01 * held);
  const auto budgets = nlohmann::json::parse(simulation.scene_json())["budgets"];
  for (std::uint32_t i = 0; i < budgets.size(); ++i) {
    simulation.Apply(Word(InputType::kBudget, 0, i));
    EXPECT_EQ(simulation.Step().robots[0].budget, i);
  }
}

// A robot without hands under a policy whose own budget bounds hands: refused at the start and from
// the page, in the words of every other verb, and the robot keeps the budget it has.
TEST(LiveSimulation, ABudgetOfHandsIsRefusedWhereThereAreNone) {
  const RobotModel berkeley = RobotModel::Load("berkeley");
  ASSERT_FALSE(berkeley.has_hands());
  const std::string file = ::testing::TempDir() + "silc_view_handless.onnx";
  const StandPolicy stand = DesignStandPolicy(berkeley);
  Metadata metadata = MetadataFor(stand.layout, "simulation_test");
  TrainingNotes notes;
  PutBudget(ReadBudget("soft-hand"), &notes);
  WriteNotes(notes, &metadata);
  WriteOnnx(file, stand.network, "obs", "actions", metadata);
  const std::string words =
      "the budget bounds hands, which this robot does not have; --mode compliance bounds the "
      "centre "
      "of mass alone";
  SimulationOptions options;
  options.robot = "berkeley";
  options.policies = {file};
  options.observe_in_step = true;
  const auto refused = [&](const std::optional<std::string>& mode) -> std::string {
    options.mode = mode;
    try {
      const LiveSimulation simulation(options);
      return "";
    } catch (const ConfigError& error) {
      return error.what();
    }
  };
  EXPECT_NE(refused(std::nullopt).find(words), std::string::npos);
  EXPECT_NE(refused("soft-hand").find(words), std::string::npos);
  EXPECT_EQ(refused("compliance"), "");

  LiveSimulation simulation(options);
  const StateFrame before = simulation.Step();
  ASSERT_TRUE(std::isfinite(before.robots[0].reading.sigma));
  EXPECT_TRUE(simulation.TakeNotices().empty());
  simulation.Apply(Word(InputType::kBudget, 0, 0));  // the policy's own
  const StateFrame after = simulation.Step();
  const std::vector<std::string> notices = simulation.TakeNotices();
  ASSERT_EQ(notices.size(), 1u);
  EXPECT_NE(notices[0].find(words), std::string::npos) << notices[0];
  EXPECT_EQ(after.robots[0].budget, 1);
  EXPECT_TRUE(std::isfinite(after.robots[0].reading.sigma));
  EXPECT_LT((after.robots[0].points[0].C_budget - before.robots[0].points[0].C_budget).norm(),
            1e-9);
  // the same policy once more is loaded under the budget it has
  simulation.Apply(Word(InputType::kPolicy, 0, 0));
  EXPECT_EQ(simulation.Step().robots[0].budget, 1);
  EXPECT_TRUE(simulation.TakeNotices().empty());

  // its pushes are the pelvis', in the page's order
  EXPECT_EQ(simulation.limits().pushes, 2u);
  simulation.Apply(Word(InputType::kPush, 0, 1));
  EXPECT_EQ(simulation.Step().robots[0].f_W, Eigen::Vector3d(-600, 0, 0));
}

// --budget where nobody is told one is a mistake, as in every other verb.
TEST(LiveSimulation, ABudgetThatNobodyIsToldIsRefused) {
  SimulationOptions options = TwoRobots();
  options.budget = "com=400";
  try {
    const LiveSimulation simulation(options);
    FAIL() << "taken";
  } catch (const ConfigError& error) {
    EXPECT_NE(std::string(error.what()).find("is not told its budget"), std::string::npos);
  }
}

// A policy that is told its budget: told anew it acts otherwise, and is judged by what it was told.
// What is outside its ranges changes nothing, nor does it for a policy that is told nothing.
TEST(LiveSimulation, ACommandedPolicyIsToldItsBudgetWhileItRuns) {
  const std::string file = ::testing::TempDir() + "silc_view_commanded.onnx";
  WriteCommandedPolicy(file);
  SimulationOptions options;
  options.policies = {file, SourcePath(kSilc)};
  options.budget = "com=600,hands=100";
  options.observe_in_step = true;
  LiveSimulation simulation(options);
  const BudgetCommand ranges = ReadBudget("command").spec.command;
  StateFrame frame = StepFor(&simulation, 2);
  const ToldView first = frame.robots[0].told;
  EXPECT_EQ(first.value[0], 600);
  EXPECT_EQ(first.value[1], 100);
  for (int i = 0; i < kNumCommanded; ++i) {
    EXPECT_EQ(first.low[i], ranges.range[i]->low);
    EXPECT_EQ(first.high[i], ranges.range[i]->high);
    EXPECT_TRUE(std::isnan(frame.robots[1].told.value[i])) << "a policy that is told nothing";
  }
  const Eigen::Vector3d hand = frame.robots[0].points[1].p_W;
  const auto budget_along_x = [](const StateFrame& f) {
    return f.robots[0].points[0].C_budget(0, 0);
  };
  const double soft = budget_along_x(frame);
  EXPECT_NEAR(soft * 600, 1, 1e-6) << "at the centre of mass the budget is its number";

  // the middle of the range, then its end: from each to the next it turns as far
  Input told{InputType::kTold, 0, 0, {2400, 316.228, 100}};
  simulation.Apply(told);
  frame = StepFor(&simulation, 2);
  const Eigen::Vector3d middle = frame.robots[0].points[1].p_W;
  EXPECT_GT((middle - hand).norm(), 0.003) << "it turns by what it is told";
  told.value[1] = 1000;
  simulation.Apply(told);
  frame = StepFor(&simulation, 2);
  EXPECT_EQ(frame.robots[0].told.value, (std::array<double, 3>{2400, 1000, 100}));
  EXPECT_NEAR(budget_along_x(frame) * 2400, 1, 1e-6);
  EXPECT_GT((frame.robots[0].points[1].p_W - middle).norm(), 0.5 * (middle - hand).norm());

  // float32 of a range's end is taken, what is beyond is not
  told.value = {static_cast<float>(ranges.range[0]->high * (1 + 5e-7)), 1000, 100};
  simulation.Apply(told);
  EXPECT_EQ(simulation.Step().robots[0].told.value[0], ranges.range[0]->high);
  told.value = {600, ranges.range[1]->high * 1.01, 100};
  simulation.Apply(told);
  EXPECT_EQ(simulation.Step().robots[0].told.value[0], ranges.range[0]->high);
  told.index = 1;
  told.value = {600, 200, 100};
  simulation.Apply(told);
  EXPECT_TRUE(std::isnan(simulation.Step().robots[1].told.value[0]));

  // another checkpoint of the same file keeps what was told; a command and a reset do, too
  simulation.ReloadPolicy(0);
  Input command = Word(InputType::kCommand);
  command.value = {0, 0, 0, 0.75, 0};
  simulation.Apply(command);
  simulation.Apply(Word(InputType::kReset));
  EXPECT_EQ(simulation.Step().robots[0].told.value[0], ranges.range[0]->high);
  // judged by another budget it is still told its own
  simulation.Apply(Word(InputType::kBudget, 0, 1));
  frame = simulation.Step();
  EXPECT_EQ(frame.robots[0].told.value[0], ranges.range[0]->high);
  EXPECT_GT(std::abs(budget_along_x(frame) * ranges.range[0]->high - 1), 0.1);
  // and another policy is told what the command line says
  simulation.Apply(Word(InputType::kPolicy, 0, 1));
  EXPECT_TRUE(std::isnan(simulation.Step().robots[0].told.value[0]));
  simulation.Apply(Word(InputType::kPolicy, 0, 0));
  EXPECT_EQ(simulation.Step().robots[0].told.value[0], 600);
}

TEST(LiveSimulation, WalksStopsPausesAndBeginsAgain) {
  SimulationOptions options;
  options.policies = {SourcePath(kSilc)};
  LiveSimulation simulation(options);
  Input command = Word(InputType::kCommand);
  command.value = {0.5, 0, 0, 0.75, 1};
  simulation.Apply(command);
  StateFrame frame = StepFor(&simulation, 4);
  EXPECT_GT(frame.robots[0].points[0].p_W.x(), 0.5);
  EXPECT_EQ(frame.command[0], 0.5);
  simulation.Apply(Word(InputType::kPause, 0, 1));
  const double time = simulation.Step().time;
  EXPECT_EQ(StepFor(&simulation, 1).time, time);
  simulation.Apply(Word(InputType::kPause, 0, 0));
  simulation.Apply(Word(InputType::kReset));
  frame = simulation.Step();
  EXPECT_LT(std::abs(frame.robots[0].points[0].p_W.x()), 0.1);
  EXPECT_GT(frame.time, time);
}

TEST(LiveSimulation, ARobotThatFellStandsUpAgain) {
  SimulationOptions options;
  options.policies = {SourcePath(kSilc)};
  LiveSimulation simulation(options);
  const auto observed = [](const StateFrame& frame) {
    return !std::isnan(frame.robots[0].reading.loop_radius);
  };
  for (int i = 0; i < 6000 && !observed(simulation.Step()); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  ASSERT_TRUE(observed(simulation.Step()));
  // what no robot of 33 kg stands: 300 N sideways at the head for a second
  Input grab = Word(InputType::kGrab, 0, 16);
  simulation.Apply(grab);
  Input spring = Word(InputType::kSpring);
  spring.value[0] = 5000;
  simulation.Apply(spring);
  Input pull = Word(InputType::kPull);
  pull.value = {0, 30, 1};
  simulation.Apply(pull);
  StateFrame frame;
  for (int i = 0; i < 200 && frame.robots.empty(); ++i) {
    StateFrame next = simulation.Step();
    if (next.robots[0].status == static_cast<std::uint8_t>(LoopStatus::kFallen)) frame = next;
  }
  ASSERT_FALSE(frame.robots.empty()) << "it did not fall";
  EXPECT_EQ(frame.robots[0].falls, 1);
  EXPECT_FALSE(observed(frame)) << "what it was while it stood says nothing of one that lies";
  EXPECT_TRUE(frame.robots[0].points[1].C_felt.array().isNaN().all());
  simulation.Apply(Word(InputType::kRelease));
  for (int i = 0; i < 150; ++i) {
    frame = simulation.Step();
    EXPECT_FALSE(frame.robots[0].reading.age < 0) << "a state of before it was stood up";
  }
  EXPECT_EQ(frame.robots[0].status, static_cast<std::uint8_t>(LoopStatus::kRunning));
}

TEST(LiveSimulation, RunsInStepWithTheClock) {
  SimulationOptions options;
  options.policies = {SourcePath(kSilc)};
  LiveSimulation simulation(options);
  std::vector<double> times;
  std::stop_source stop;
  const auto begin = std::chrono::steady_clock::now();
  std::jthread thread([&] {
    simulation.Run(
        stop.get_token(),
        [&](const std::shared_ptr<const std::string>& frame) {
          times.push_back(DecodeState(*frame)->time);
        },
        [](const std::string&) {});
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(1500));
  stop.request_stop();
  thread.join();
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - begin;
  // a busy machine may be slower; faster is a fault
  ASSERT_GT(times.size(), 3u);
  EXPECT_LT(times.back(), elapsed.count() + 0.1);
  EXPECT_GT(times.back(), 0.02);
}

// 250 changes of policy in one step, each of which would take some 50 ms, hold up nobody: the last
// one counts, and it is loaded beside the simulation.
TEST(LiveSimulation, AFloodOfPoliciesDoesNotStopTheRobots) {
  using Clock = std::chrono::steady_clock;
  SimulationOptions options = TwoRobots();
  LiveSimulation simulation(options);
  std::mutex mutex;  // guards the two below
  std::vector<Clock::time_point> came;
  std::array<int, 2> policies{};
  const std::jthread thread([&](const std::stop_token& stop) {
    simulation.Run(
        stop,
        [&](const std::shared_ptr<const std::string>& bytes) {
          const StateFrame frame = DecodeState(*bytes).value();
          const std::scoped_lock lock(mutex);
          came.push_back(Clock::now());
          policies = {frame.robots[0].policy, frame.robots[1].policy};
        },
        [](const std::string& text) { ADD_FAILURE() << text; });
  });
  const auto until = [&](const auto& condition) {
    for (int wait = 0; wait < 6000; ++wait) {
      {
        const std::scoped_lock lock(mutex);
        if (condition()) return true;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return false;
  };
  ASSERT_TRUE(until([&] { return came.size() > 3; }));
  std::size_t begun = 0;
  {
    const std::scoped_lock lock(mutex);
    begun = came.size() - 1;
  }
  for (std::uint32_t i = 0; i < 250; ++i) {
    simulation.Apply(Word(InputType::kPolicy, i % 2, (i / 2) % 2));
    simulation.Apply(Word(InputType::kBudget, i % 2, i % 3));
    simulation.Apply(Word(InputType::kReset));
  }
  EXPECT_TRUE(until([&] { return policies == std::array<int, 2>{0, 0}; }));
  simulation.Apply(Word(InputType::kPolicy, 0, 1));
  EXPECT_TRUE(until([&] { return policies == std::array<int, 2>{1, 0}; })) << "the last one asked";
  const std::scoped_lock lock(mutex);
  Clock::duration longest{};
  for (std::size_t i = begun + 1; i < came.size(); ++i) {
    longest = std::max(longest, came[i] - came[i - 1]);
  }
  // one after the other they would take 12 s, and longer where a sanitizer is slow
  EXPECT_LT(std::chrono::duration<double>(longest).count(), 6);
}

// Whoever calls Step() has the policies that were asked for: of each robot the last.
TEST(LiveSimulation, OfManyWordsInOneStepTheLastOnesCount) {
  SimulationOptions options = TwoRobots();
  options.choices = {"/nowhere/missing.onnx"};
  LiveSimulation simulation(options);
  simulation.Step();
  simulation.Apply(Word(InputType::kPolicy, 0, 2));  // cannot be loaded, and need not be
  simulation.Apply(Word(InputType::kPolicy, 1, 0));
  simulation.Apply(Word(InputType::kPolicy, 0, 1));
  for (const std::uint32_t gravity : {2u, 1u})
    simulation.Apply(Word(InputType::kGravity, 0, gravity));
  for (const std::uint32_t budget : {3u, 2u}) simulation.Apply(Word(InputType::kBudget, 1, budget));
  simulation.Apply(Word(InputType::kBudget, 0, 1));
  const StateFrame frame = simulation.Step();
  EXPECT_EQ(frame.robots[0].policy, 1);
  EXPECT_EQ(frame.robots[1].policy, 0);
  EXPECT_EQ(frame.robots[0].budget, 1);
  EXPECT_EQ(frame.robots[1].budget, 2);
  EXPECT_EQ(frame.gravity, GravityChoice::kHeld);
  for (const std::string& text : simulation.TakeNotices()) ADD_FAILURE() << text;
}

// From a tenth to real time: what passed slowly is no delay.
TEST(LiveSimulation, AChangeOfSpeedIsNoDelay) {
  SimulationOptions options;
  options.policies = {SourcePath(kSilc)};
  LiveSimulation simulation(options);
  struct Seen {
    double speed, achieved, at;  // [1], [1], [s]
  };
  std::vector<Seen> seen;
  const auto speed = [](double value) {
    Input input = Word(InputType::kSpeed);
    input.value[0] = value;
    return input;
  };
  const auto begin = std::chrono::steady_clock::now();
  std::jthread thread([&](const std::stop_token& stop) {
    simulation.Run(
        stop,
        [&](const std::shared_ptr<const std::string>& bytes) {
          const StateFrame frame = DecodeState(*bytes).value();
          const std::chrono::duration<double> at = std::chrono::steady_clock::now() - begin;
          seen.push_back({frame.speed, frame.achieved, at.count()});
        },
        [](const std::string&) {});
  });
  simulation.Apply(speed(0.1));
  std::this_thread::sleep_for(std::chrono::milliseconds(1500));
  simulation.Apply(speed(1));
  std::this_thread::sleep_for(std::chrono::milliseconds(700));
  thread.request_stop();
  thread.join();
  ASSERT_LT(std::ranges::min(seen, {}, &Seen::speed).speed, 0.11);
  ASSERT_EQ(seen.back().speed, 1);
  // in half a second it is not measured yet, and nobody is told of a delay
  auto changed = std::ranges::find_if(seen, [](const Seen& s) { return s.speed < 0.5; });
  changed = std::find_if(changed, seen.end(), [](const Seen& s) { return s.speed == 1; });
  for (auto now = changed; now != seen.end() && now->at < changed->at + 0.4; ++now) {
    EXPECT_EQ(now->achieved, 1) << now->at - changed->at << " s after the change";
  }
}

// Whoever takes long holds it up, and the frames say how much.
TEST(LiveSimulation, SaysHowMuchSlowerThanTheClockItIs) {
  SimulationOptions options;
  options.policies = {SourcePath(kSilc)};
  LiveSimulation simulation(options);
  double achieved = 1;
  std::stop_source stop;
  std::jthread thread([&] {
    simulation.Run(
        stop.get_token(),
        [&](const std::shared_ptr<const std::string>& frame) {
          achieved = DecodeState(*frame)->achieved;
          std::this_thread::sleep_for(std::chrono::milliseconds(100));
        },
        [](const std::string&) {});
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(2000));
  stop.request_stop();
  thread.join();
  // 20 ms a step that takes 100 ms and the work
  EXPECT_LT(achieved, 0.21);
  EXPECT_GT(achieved, 0);
}

TEST(LiveSimulation, ARecordingIsWhatStatesTakes) {
  SimulationOptions options;
  options.policies = {SourcePath(kSilc)};
  LiveSimulation simulation(options);
  StepFor(&simulation, kRecordedTime + 0.5);
  const NpzFile file = ParseNpz(simulation.Recording(0), "recording");
  EXPECT_EQ(file["qpos"].AsDoubles({kAnySize, 36}).size(), 36u * 1500) << "the last 30 s";
  EXPECT_EQ(file["qvel"].AsDoubles({kAnySize, 35}).size(), 35u * 1500);
}

}  // namespace
}  // namespace silc
