// SPDX-License-Identifier: Apache-2.0
// The threads of the node, with a plain robot in this process. Limits on time are wide: this
// computer may be busy.
#include "silc/deploy/node.h"

#include <gtest/gtest.h>
#include <linux/capability.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "silc/deploy/test_bus.h"
#include "silc/deploy/test_clock.h"
#include "silc/deploy/test_robot_frames.h"

namespace silc::test {
namespace {

using namespace std::chrono_literals;

CommanderConfig PatientConfig() {
  CommanderConfig config = PlainConfig();
  for (const DriveFault fault : {DriveFault::kStateAge,
                                 DriveFault::kSendBlocked,
                                 DriveFault::kPolicyAge,
                                 DriveFault::kCommandGap,
                                 DriveFault::kObserverAge}) {
    config.rules[static_cast<std::size_t>(fault)].limit = 20;
  }
  for (const DriveFault fault : {DriveFault::kCommandOverruns, DriveFault::kPolicyOverruns}) {
    config.rules[static_cast<std::size_t>(fault)].limit = 1e9;
  }
  config.stand_up_time = 0.5;
  return config;
}

NodeOptions OptionsOf(const CommanderConfig& config) {
  NodeOptions options;
  options.commander = config;
  options.realtime = false;  // which few machines grant to a test
  return options;
}

// Marks the node's link threads as ones that may allocate and lock.
class MarkedLink : public RobotLink {
 public:
  explicit MarkedLink(std::unique_ptr<RobotLink> link) : link_(std::move(link)) {}
  bool ReceiveState(LowState* state, std::chrono::nanoseconds wait) override {
    HeapAndLockCount::MarkOrdinaryThread();
    return link_->ReceiveState(state, wait);
  }
  void BeginSending() override { link_->BeginSending(); }
  bool SendCommand(const LowCommand& command) override {
    HeapAndLockCount::MarkOrdinaryThread();
    return link_->SendCommand(command);
  }
  LinkHealth Health() override { return link_->Health(); }

 private:
  std::unique_ptr<RobotLink> link_;
};

// A plain robot on a thread of its own, which follows what it is sent, until Last() is asked for.
class RobotBeside {
 public:
  explicit RobotBeside(const CommanderConfig& config)
      : thread_([this, config] {
          HeapAndLockCount::MarkOrdinaryThread();
          PlainRobot robot(config);
          while (!over_) {
            port_->SendState(robot.Frame());
            LowCommand command;
            if (port_->ReceiveCommand(&command, 2ms)) last_ = command;
            robot.Step(&last_, config);
          }
        }) {}
  ~RobotBeside() { Last(); }
  RobotBeside(const RobotBeside&) = delete;
  RobotBeside& operator=(const RobotBeside&) = delete;

  std::unique_ptr<RobotLink> MakeLink() { return bus_.MakeLink(); }
  /// The last command it followed; it ends.
  const LowCommand& Last() {
    over_ = true;
    if (thread_.joinable()) thread_.join();
    return last_;
  }

 private:
  InProcessBus bus_;
  std::unique_ptr<RobotPort> port_ = bus_.MakePort();
  std::atomic<bool> over_{false};
  LowCommand last_{};
  std::thread thread_;
};

// A policy that stands.
void AnswerStanding(const CommanderConfig& config, PolicyAnswer* answer) {
  answer->width = kRobotMotors;
  answer->target = config.stand_pose;
}

// An observer that finds nothing wrong.
StiffnessNote SoftNote(const ObserverTask& task) {
  return {.sequence = task.request.sequence, .judged = true, .sigma = 0.5, .rho = 0.5};
}

// An operator who always asks for the next state, until the policy state was left again.
void DriveOn(DriveState state, bool* had_policy, OperatorPanel* panel) {
  *had_policy = *had_policy || state == DriveState::kPolicy;
  if (*had_policy) return;
  if (state == DriveState::kOff) panel->Damp();
  if (state == DriveState::kDamping) panel->Stand();
  if (state == DriveState::kStanding) panel->Run();
}

TEST(Node, DrivesARobotAndItsCommandThreadNeitherAllocatesNorLocks) {
  const CommanderConfig config = PatientConfig();
  RobotBeside robot(config);
  MarkedLink link(robot.MakeLink());
  std::atomic<bool> stop{false};

  NodeOptions options = OptionsOf(config);
  std::atomic<int> answers{0}, observations{0}, records{0};
  std::atomic<DriveState> state{DriveState::kOff};
  std::atomic<int> faults{0};
  NodeWork work;
  work.policy = [&](const PolicyRequest&, PolicyAnswer* answer) {
    HeapAndLockCount::MarkOrdinaryThread();
    AnswerStanding(config, answer);
    ++answers;
  };
  work.observe = [&](const ObserverTask& task, int, StiffnessNote* note) {
    HeapAndLockCount::MarkOrdinaryThread();
    *note = SoftNote(task);
    ++observations;
    return true;
  };
  work.log = [&](const TickRecord&) {
    HeapAndLockCount::MarkOrdinaryThread();
    ++records;
  };
  work.tell = [&](const FaultReport&) { ++faults; };
  work.tell_state = [&](DriveState now) { state = now; };
  Node node(&link, options, std::move(work));
  HeapAndLockCount::MarkOrdinaryThread();
  std::thread runner([&] {
    HeapAndLockCount::MarkOrdinaryThread();
    node.Run(stop);
  });
  const auto reach = [&](DriveState wanted, void (OperatorPanel::*ask)()) {
    for (int k = 0; k < 500 && state != wanted; ++k) {
      (node.panel().*ask)();
      std::this_thread::sleep_for(20ms);
    }
    EXPECT_EQ(state.load(), wanted) << Name(wanted);
  };
  reach(DriveState::kDamping, &OperatorPanel::Damp);
  reach(DriveState::kStandUp, &OperatorPanel::Stand);
  reach(DriveState::kPolicy, &OperatorPanel::Run);
  {
    std::this_thread::sleep_for(300ms);
    const HeapAndLockCount count;
    std::this_thread::sleep_for(500ms);
    EXPECT_EQ(count.unmarked_threads(), HeapAndLockCount::Calls{});
  }
  stop = true;
  runner.join();
  EXPECT_GT(answers, 10);
  EXPECT_GT(observations, 10);
  EXPECT_EQ(records, static_cast<int>(node.deadlines().ticks));
  EXPECT_EQ(node.dropped_records(), 0U);
  EXPECT_EQ(faults, 0);
  EXPECT_TRUE(IsDamping(robot.Last(), config)) << "the last word";
}

// States come more slowly than ticks: a record without a new state shows the one before.
TEST(Node, LogsTheLastStateInTicksWithoutOne) {
  const CommanderConfig config = PatientConfig();
  InProcessBus bus;
  const std::unique_ptr<RobotLink> link = bus.MakeLink();
  const std::unique_ptr<RobotPort> port = bus.MakePort();
  std::atomic<bool> stop{false}, over{false};
  std::thread robot_thread([&] {
    PlainRobot robot(config);
    while (!over) {
      port->SendState(robot.Frame());
      std::this_thread::sleep_for(10ms);
      for (int k = 0; k < 5; ++k) robot.Step(nullptr, config);
    }
  });
  NodeOptions options = OptionsOf(config);
  options.seconds = 0.5;
  NodeWork work;
  std::uint32_t last = 0;
  int fresh = 0, repeated = 0, wrong = 0;
  work.log = [&](const TickRecord& record) {
    if (record.fresh) {
      last = record.robot.tick;
      ++fresh;
    } else if (fresh > 0) {
      ++repeated;
      wrong += record.robot.tick != last ? 1 : 0;
    }
  };
  Node node(link.get(), options, std::move(work));
  node.panel().Damp();
  node.Run(stop);
  over = true;
  robot_thread.join();
  EXPECT_GT(fresh, 2);
  EXPECT_GT(repeated, 10);
  EXPECT_EQ(wrong, 0);
}

// The observer is given what the policy answered, in order, and told when it was too slow to be
// given all of it: its picture of the policy's history then is not whole.
TEST(Node, ShowsTheObserverWhatThePolicyAnswered) {
  CommanderConfig config = PatientConfig();
  config.policy_period = config.tick_period;  // more requests than a slow observer can take
  RobotBeside robot(config);
  const std::unique_ptr<RobotLink> link = robot.MakeLink();
  std::atomic<bool> stop{false};
  NodeOptions options = OptionsOf(config);
  std::vector<std::uint64_t> answered;  // the policy thread's, until the end
  struct Shown {
    std::uint64_t sequence;
    bool after_gap;
  };
  std::vector<Shown> shown;  // the observer thread's
  std::atomic<bool> blocked{false};
  std::atomic<int> answers{0}, waiting_most{0};
  std::atomic<DriveState> state{DriveState::kOff};
  NodeWork work;
  work.policy = [&](const PolicyRequest& request, PolicyAnswer* answer) {
    AnswerStanding(config, answer);
    answered.push_back(request.sequence);
    ++answers;
    if (answers % 7 == 0) std::this_thread::sleep_for(10ms);  // some requests are never answered
  };
  work.observe = [&](const ObserverTask& task, int waiting, StiffnessNote* note) {
    shown.push_back({task.request.sequence, task.after_gap});
    waiting_most = std::max(waiting_most.load(), waiting);
    while (blocked) std::this_thread::sleep_for(1ms);
    *note = SoftNote(task);
    return true;
  };
  work.tell_state = [&](DriveState now) { state = now; };
  Node node(link.get(), options, std::move(work));
  std::thread runner([&] { node.Run(stop); });
  const auto wait_for = [&](const std::function<bool()>& what) {
    for (int k = 0; k < 3000 && !what(); ++k) {
      if (state == DriveState::kOff) node.panel().Damp();
      if (state == DriveState::kDamping) node.panel().Stand();
      if (state == DriveState::kStanding) node.panel().Run();
      std::this_thread::sleep_for(10ms);
    }
    EXPECT_TRUE(what());
  };
  wait_for([&] { return answers > 100; });
  blocked = true;
  const int before = answers;
  wait_for([&] { return answers > before + 400; });
  blocked = false;
  const int after = answers;
  wait_for([&] { return answers > after + 50; });
  stop = true;
  runner.join();

  EXPECT_LT(answered.size(), answered.back()) << "some were never answered";
  EXPECT_GT(waiting_most, 100);
  // each was answered; next to each other they are neighbours, unless a gap is told
  int gaps = 0;
  std::size_t at = 0;
  for (std::size_t i = 0; i < shown.size(); ++i) {
    const auto found = std::find(
        answered.begin() + static_cast<std::ptrdiff_t>(at), answered.end(), shown[i].sequence);
    ASSERT_NE(found, answered.end());
    const auto place = static_cast<std::size_t>(found - answered.begin());
    EXPECT_EQ(place != at, shown[i].after_gap) << i;
    gaps += shown[i].after_gap ? 1 : 0;
    at = place + 1;
  }
  EXPECT_GE(gaps, 1);
}

// Notes carry the request that they are of, whatever the observer writes into them.
TEST(Node, NamesTheSessionOfANote) {
  for (const bool lockstep : {false, true}) {
    SCOPED_TRACE(lockstep);
    const CommanderConfig config = PatientConfig();
    RobotBeside robot(config);
    const std::unique_ptr<RobotLink> link = robot.MakeLink();
    std::atomic<bool> stop{false};
    NodeOptions options = OptionsOf(config);
    options.lockstep = lockstep;
    std::vector<DriveFault> stops;
    int under_policy = 0;
    NodeWork work;
    work.policy = [&](const PolicyRequest&, PolicyAnswer* answer) {
      AnswerStanding(config, answer);
    };
    work.observe = [](const ObserverTask&, int, StiffnessNote* note) {
      *note = {.sequence = 77, .session = 77, .judged = true, .sigma = 2};
      return true;
    };
    work.tell = [&](const FaultReport& report) { stops.push_back(report.fault); };
    std::unique_ptr<Node> node;
    bool had_policy = false;
    work.log = [&](const TickRecord& record) {
      DriveOn(record.state, &had_policy, &node->panel());
      under_policy += record.state == DriveState::kPolicy ? 1 : 0;
      stop = stop || under_policy > 3000 || (had_policy && record.state == DriveState::kDamping);
    };
    node = std::make_unique<Node>(link.get(), options, std::move(work));
    node->Run(stop);
    EXPECT_EQ(stops, std::vector<DriveFault>{DriveFault::kStiffness});
  }
}

// A robot in this thread that lets the controller wait for a tenth of a second at a time.
class SlowRobot : public RobotLink {
 public:
  explicit SlowRobot(const CommanderConfig& config) : config_(config), robot_(config) {}
  bool ReceiveState(LowState* state, std::chrono::nanoseconds wait) override {
    waited_ += wait;
    if (robot_.tick % 200 == 1 && waited_ < 100ms) return false;
    waited_ = 0ns;
    robot_.Step(&last_, config_);
    *state = robot_.Frame();
    return true;
  }
  void BeginSending() override {}
  bool SendCommand(const LowCommand& command) override {
    last_ = command;
    return true;
  }
  LinkHealth Health() override { return {}; }

 private:
  CommanderConfig config_;
  PlainRobot robot_;
  LowCommand last_{};
  std::chrono::nanoseconds waited_{0};
};

// A link that counts commands to enabled motors.
class CountingLink : public RobotLink {
 public:
  explicit CountingLink(std::unique_ptr<RobotLink> link) : link_(std::move(link)) {}
  bool ReceiveState(LowState* state, std::chrono::nanoseconds wait) override {
    return link_->ReceiveState(state, wait);
  }
  void BeginSending() override { link_->BeginSending(); }
  bool SendCommand(const LowCommand& command) override {
    sent += 1;
    enabling += command.motor[0].mode == 1 ? 1 : 0;
    return link_->SendCommand(command);
  }
  LinkHealth Health() override { return link_->Health(); }
  std::atomic<int> sent{0}, enabling{0};

 private:
  std::unique_ptr<RobotLink> link_;
};

// "Off: nothing is sent" holds to the end: nobody asked for damping there. In lock step frames with
// disabled motors let the robot go on.
TEST(Node, SendsNothingWhenItEndsInOff) {
  for (const bool lockstep : {false, true}) {
    for (const bool by_stop : {false, true}) {
      SCOPED_TRACE(std::string(lockstep ? "lock step" : "threads") + (by_stop ? ", stopped" : ""));
      const CommanderConfig config = PatientConfig();
      RobotBeside robot(config);
      CountingLink link(robot.MakeLink());
      std::atomic<bool> stop{false};
      NodeOptions options = OptionsOf(config);
      options.lockstep = lockstep;
      options.seconds = by_stop ? 0 : 0.4;
      std::vector<DriveState> states;
      int ticks = 0, fresh = 0;
      NodeWork work;
      work.log = [&](const TickRecord& record) {
        ++ticks;
        fresh += record.fresh ? 1 : 0;
        stop = by_stop && fresh > 20;
      };
      work.tell_state = [&](DriveState now) { states.push_back(now); };
      Node node(&link, options, std::move(work));
      node.Run(stop);
      EXPECT_GT(fresh, 10) << "the robot spoke";
      EXPECT_EQ(node.commander().state(), DriveState::kOff);
      EXPECT_TRUE(states.empty());
      EXPECT_EQ(link.enabling, 0);
      EXPECT_TRUE(lockstep || link.sent == 0) << link.sent;
      EXPECT_LT(ticks, 400) << "it ends at once";
    }
  }
}

// In lock step the clock is the robot's, at the end, too: a busy computer cuts no damping short.
TEST(Node, DampsForASecondOfTheRobotsTimeHoweverSlowItIs) {
  const CommanderConfig config = PatientConfig();
  SlowRobot robot(config);
  NodeOptions options;
  options.commander = config;
  options.lockstep = true;
  options.seconds = 0.5;
  int ticks = 0, stale = 0;
  NodeWork work;
  work.log = [&](const TickRecord& record) {
    ++ticks;
    stale += record.fresh ? 0 : 1;
  };
  Node node(&robot, options, std::move(work));
  node.panel().Damp();
  node.Run(std::atomic<bool>{false});
  EXPECT_EQ(stale, 0);
  EXPECT_GE(ticks, 750) << "half a second, and damping for another";
}

// What the policy's or the observer's thread could not log is told like ticks that were not: as
// often as it happens anew.
TEST(Node, WarnsOfRecordsThatItsWorkLost) {
  for (const bool lockstep : {false, true}) {
    const CommanderConfig config = PatientConfig();
    RobotBeside robot(config);
    const std::unique_ptr<RobotLink> link = robot.MakeLink();
    std::atomic<bool> stop{false};
    NodeOptions options = OptionsOf(config);
    options.lockstep = lockstep;
    std::atomic<std::uint64_t> lost{0};
    std::atomic<int> answers{0}, told{0}, others{0};
    std::atomic<double> values{0};
    NodeWork work;
    work.lost_records = &lost;
    work.policy = [&](const PolicyRequest&, PolicyAnswer* answer) {
      AnswerStanding(config, answer);
      ++answers;
      if (answers == 5) lost += 3;
      if (answers == 10) lost += 2;
      stop = answers >= 15;
    };
    work.observe = [&](const ObserverTask& task, int, StiffnessNote* note) {
      *note = SoftNote(task);
      return true;
    };
    work.tell = [&](const FaultReport& report) {
      ++(report.fault == DriveFault::kLogDropped ? told : others);
      values = values + report.value;
    };
    std::unique_ptr<Node> node;
    work.log = [&](const TickRecord& record) {
      if (record.state == DriveState::kOff) node->panel().Damp();
      if (record.state == DriveState::kDamping && !stop) node->panel().Stand();
      if (record.state == DriveState::kStanding) node->panel().Run();
    };
    node = std::make_unique<Node>(link.get(), options, std::move(work));
    node->Run(stop);
    EXPECT_EQ(told, 2) << lockstep;
    EXPECT_EQ(values, 5) << lockstep;
    EXPECT_EQ(others, 0) << lockstep;
    EXPECT_EQ(node->dropped_records(), 0U) << lockstep;
  }
}

// A policy that throws is a fault like one whose answer is no number. The program goes on: without
// it the robot would be left with its last command.
TEST(Node, APolicyThatThrowsEndsInDamping) {
  for (const bool lockstep : {false, true}) {
    SCOPED_TRACE(lockstep);
    const CommanderConfig config = PatientConfig();
    RobotBeside robot(config);
    const std::unique_ptr<RobotLink> link = robot.MakeLink();
    std::atomic<bool> stop{false};
    NodeOptions options = OptionsOf(config);
    options.lockstep = lockstep;
    std::vector<DriveFault> stops;
    std::vector<std::string> failures;
    std::atomic<int> answers{0};
    bool had_policy = false, damped_after = false;
    NodeWork work;
    work.policy = [&](const PolicyRequest&, PolicyAnswer* answer) {
      if (++answers > 20) throw std::runtime_error("the network is gone");
      AnswerStanding(config, answer);
    };
    work.tell = [&](const FaultReport& report) {
      if (report.reaction == Reaction::kStop) stops.push_back(report.fault);
    };
    work.tell_failed = [&](const std::string& what) { failures.push_back(what); };
    std::unique_ptr<Node> node;
    work.log = [&](const TickRecord& record) {
      DriveOn(record.state, &had_policy, &node->panel());
      const bool stopped = had_policy && record.state == DriveState::kDamping;
      damped_after = damped_after || (stopped && IsDamping(record.command, config));
      stop = stop || stopped;
    };
    node = std::make_unique<Node>(link.get(), options, std::move(work));
    node->Run(stop);
    ASSERT_FALSE(stops.empty());
    EXPECT_EQ(KindOf(stops[0]).name, KindOf(DriveFault::kPolicyNotFinite).name);
    EXPECT_TRUE(damped_after);
    EXPECT_EQ(failures, std::vector<std::string>{"the network is gone"});
    EXPECT_TRUE(IsDamping(robot.Last(), config)) << "the last word";
  }
}

// Observing, logging and telling may throw, too: the robot is driven on, and that is told.
TEST(Node, DrivesOnWhenObserverLogAndWordsThrow) {
  for (const bool lockstep : {false, true}) {
    SCOPED_TRACE(lockstep);
    const CommanderConfig config = PatientConfig();
    RobotBeside robot(config);
    const std::unique_ptr<RobotLink> link = robot.MakeLink();
    std::atomic<bool> stop{false};
    NodeOptions options = OptionsOf(config);
    options.lockstep = lockstep;
    std::vector<std::string> failures;
    std::atomic<int> answers{0};
    bool had_policy = false;
    NodeWork work;
    work.policy = [&](const PolicyRequest&, PolicyAnswer* answer) {
      AnswerStanding(config, answer);
      stop = ++answers >= 30;
    };
    work.observe = [](const ObserverTask&, int, StiffnessNote*) -> bool {
      throw std::runtime_error("no stiffness");
    };
    work.tell_state = [](DriveState) { throw std::runtime_error("no words"); };
    work.tell_failed = [&](const std::string& what) { failures.push_back(what); };
    std::unique_ptr<Node> node;
    work.log = [&](const TickRecord& record) {
      DriveOn(record.state, &had_policy, &node->panel());
      throw std::runtime_error("no log");
    };
    node = std::make_unique<Node>(link.get(), options, std::move(work));
    node->Run(stop);
    EXPECT_GE(answers, 30);
    EXPECT_FALSE(node->commander().latched());
    EXPECT_NE(std::find(failures.begin(), failures.end(), "no log"), failures.end());
    EXPECT_TRUE(IsDamping(robot.Last(), config)) << "the last word";
  }
}

// A transport that takes a command and does not come back, until it is let go.
class BlockingLink : public RobotLink {
 public:
  explicit BlockingLink(std::unique_ptr<RobotLink> link) : link_(std::move(link)) {}
  bool ReceiveState(LowState* state, std::chrono::nanoseconds wait) override {
    return link_->ReceiveState(state, wait);
  }
  void BeginSending() override { link_->BeginSending(); }
  bool SendCommand(const LowCommand& command) override {
    while (blocked) std::this_thread::sleep_for(1ms);
    return link_->SendCommand(command);
  }
  LinkHealth Health() override { return link_->Health(); }
  std::atomic<bool> blocked{false};

 private:
  std::unique_ptr<RobotLink> link_;
};

// It refuses nothing, and so `send_failed` sees nothing: the robot keeps its last command.
TEST(Node, StopsWhenTheTransportDoesNotComeBack) {
  CommanderConfig config = PatientConfig();
  config.rules[static_cast<std::size_t>(DriveFault::kSendBlocked)].limit = 0.5;
  RobotBeside robot(config);
  BlockingLink link(robot.MakeLink());
  std::atomic<bool> stop{false};
  NodeOptions options = OptionsOf(config);
  FaultReport told;
  std::atomic<bool> stopped{false};
  NodeWork work;
  work.policy = [&](const PolicyRequest&, PolicyAnswer* answer) { AnswerStanding(config, answer); };
  work.tell = [&](const FaultReport& report) {
    if (!stopped) told = report;
    stopped = true;
  };
  std::unique_ptr<Node> node;
  int ticks = 0;
  work.log = [&](const TickRecord& record) {
    if (record.state == DriveState::kOff) node->panel().Damp();
    if (++ticks == 100) link.blocked = true;
    if (!stopped && ticks < 5000) return;
    link.blocked = false;
    stop = true;
  };
  node = std::make_unique<Node>(&link, options, std::move(work));
  node->Run(stop);
  ASSERT_TRUE(stopped);
  EXPECT_EQ(KindOf(told.fault).name, "send_blocked");
  EXPECT_GT(told.value, 0.5);
  EXPECT_TRUE(IsDamping(robot.Last(), config)) << "the last word";
}

// Keeps the thread that sends from running, wherever it is: a signal's handler waits.
std::atomic<bool> sender_held{false}, sender_is_held{false};
void HoldSender(int) {
  while (sender_held) {
    sender_is_held = true;
    const timespec pause{0, 500'000};
    nanosleep(&pause, nullptr);
  }
  sender_is_held = false;
}

// A link that knows the thread that sends.
class KnownSenderLink : public RobotLink {
 public:
  explicit KnownSenderLink(std::unique_ptr<RobotLink> link) : link_(std::move(link)) {}
  bool ReceiveState(LowState* state, std::chrono::nanoseconds wait) override {
    return link_->ReceiveState(state, wait);
  }
  void BeginSending() override { link_->BeginSending(); }
  bool SendCommand(const LowCommand& command) override {
    sender = pthread_self();
    inside = true;
    const bool sent = link_->SendCommand(command);
    inside = false;
    return sent;
  }
  LinkHealth Health() override { return link_->Health(); }
  std::atomic<pthread_t> sender{};
  std::atomic<bool> inside{false};

 private:
  std::unique_ptr<RobotLink> link_;
};

// A thread that gets no processor has taken no command, and the transport knows of none: the robot
// keeps its last command all the same.
TEST(Node, StopsWhenTheThreadThatSendsDoesNotRun) {
  struct sigaction action {};
  struct sigaction before {};
  action.sa_handler = HoldSender;
  ASSERT_EQ(sigaction(SIGUSR1, &action, &before), 0);
  CommanderConfig config = PatientConfig();
  config.rules[static_cast<std::size_t>(DriveFault::kSendBlocked)].limit = 0.5;
  RobotBeside robot(config);
  KnownSenderLink link(robot.MakeLink());
  std::atomic<bool> stop{false};
  NodeOptions options = OptionsOf(config);
  FaultReport told;
  std::atomic<bool> stopped{false};
  NodeWork work;
  work.tell = [&](const FaultReport& report) {
    if (!stopped) told = report;
    stopped = true;
  };
  std::unique_ptr<Node> node;
  const auto wait_until_held = [&](bool held) {
    sender_held = held;
    if (held) pthread_kill(link.sender, SIGUSR1);
    for (int k = 0; k < 2000 && sender_is_held != held; ++k) std::this_thread::sleep_for(1ms);
  };
  int commands = 0;
  bool held_outside = false;
  work.log = [&](const TickRecord& record) {
    if (record.state == DriveState::kOff) node->panel().Damp();
    commands += record.sent ? 1 : 0;
    if (commands < 100 || stop) return;
    for (int k = 0; k < 20 && !held_outside; ++k) {
      wait_until_held(true);
      held_outside = !link.inside;
      if (!held_outside) wait_until_held(false);
    }
    if (!stopped && commands < 3000) return;
    sender_held = false;
    stop = true;
  };
  node = std::make_unique<Node>(&link, options, std::move(work));
  node->Run(stop);
  sender_held = false;
  sigaction(SIGUSR1, &before, nullptr);
  EXPECT_TRUE(held_outside) << "before it takes a command, or after the transport did";
  ASSERT_TRUE(stopped);
  EXPECT_EQ(KindOf(told.fault).name, "send_blocked");
  EXPECT_GT(told.value, 0.5);
  EXPECT_TRUE(IsDamping(robot.Last(), config)) << "the last word";
}

// Somebody, or the time service, sets the wall clock back: no thread waits for that time to pass
// again, and the operator goes on being told.
TEST(Node, AWallClockThatIsSetBackHoldsNobodyUp) {
  if (!kClocksCanBeMoved) GTEST_SKIP() << "a sanitizer has the clocks";
  const CommanderConfig config = PatientConfig();
  RobotBeside robot(config);
  const std::unique_ptr<RobotLink> link = robot.MakeLink();
  const std::atomic<bool> stop{false};
  NodeOptions options = OptionsOf(config);
  options.seconds = 1;
  std::atomic<int> records{0};
  std::atomic<bool> ended{false};
  NodeWork work;
  work.log = [&](const TickRecord&) { ++records; };
  Node node(link.get(), options, std::move(work));
  std::thread runner([&] {
    node.Run(stop);
    ended = true;
  });
  const auto within = [](std::chrono::seconds time, const std::function<bool()>& what) {
    const auto end = std::chrono::steady_clock::now() + time;
    while (!what() && std::chrono::steady_clock::now() < end) std::this_thread::sleep_for(5ms);
    return what();
  };
  EXPECT_TRUE(within(20s, [&] { return records > 50; }));
  MoveWallClock(-3'600'000'000'000);  // an hour
  const int before = records;
  EXPECT_TRUE(within(20s, [&] { return ended || records > before + 100; })) << "the log";
  EXPECT_TRUE(within(20s, [&] { return ended.load(); })) << "the end";
  MoveWallClock(0);
  runner.join();
  EXPECT_EQ(records, static_cast<int>(node.deadlines().ticks));
}

// The lid is closed under the policy and opened ten minutes later: the robot is not driven on. The
// monotonic clock stands still meanwhile, and would show a tick like any other.
TEST(Node, StopsWhenTheComputerWasSuspended) {
  if (!kClocksCanBeMoved) GTEST_SKIP() << "a sanitizer has the clocks";
  const CommanderConfig config = PatientConfig();  // up to 20 s late are no fault
  RobotBeside robot(config);
  const std::unique_ptr<RobotLink> link = robot.MakeLink();
  std::atomic<bool> stop{false};
  std::vector<std::string> told;
  NodeWork work;
  work.policy = [&](const PolicyRequest&, PolicyAnswer* answer) { AnswerStanding(config, answer); };
  work.observe = [&](const ObserverTask& task, int, StiffnessNote* note) {
    *note = SoftNote(task);
    return true;
  };
  work.tell = [&](const FaultReport& report) { told.emplace_back(KindOf(report.fault).name); };
  std::unique_ptr<Node> node;
  int under_policy = 0;
  bool had_policy = false;
  work.log = [&](const TickRecord& record) {
    DriveOn(record.state, &had_policy, &node->panel());
    under_policy += record.state == DriveState::kPolicy ? 1 : 0;
    if (under_policy == 100) {
      ++under_policy;
      SuspendFor(600'000'000'000);
    }
    const bool damped = had_policy && record.state == DriveState::kDamping;
    stop = stop || damped || under_policy > 2000;
  };
  node = std::make_unique<Node>(link.get(), OptionsOf(config), std::move(work));
  node->Run(stop);
  EXPECT_TRUE(node->commander().latched());
  EXPECT_NE(std::find(told.begin(), told.end(), "command_gap"), told.end())
      << ::testing::PrintToString(told);
  EXPECT_LT(under_policy, 2000) << "damped by itself, not at the end";
  EXPECT_TRUE(IsDamping(robot.Last(), config)) << "the last word";
}

// Real-time threads of this process, as the kernel has them: how many at each priority.
std::map<int, int> FifoThreads() {
  std::map<int, int> count;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    const int id = std::stoi(task.path().filename().string());
    sched_param parameter{};
    if (sched_getscheduler(id) != SCHED_FIFO || sched_getparam(id, &parameter) != 0) continue;
    ++count[parameter.sched_priority];
  }
  return count;
}

// [kB] of this process that the kernel keeps in memory
long LockedMemory() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmLck:")) return std::stol(line.substr(6));
  }
  return -1;
}

struct RealtimeRun {
  std::string priority, warning;
  std::map<int, int> fifo;  // while it ran
  long locked_kB = 0;       // while it ran
  std::uint64_t ticks = 0;
  bool damped = false;  // its last command
};

// Half a second of the node beside a plain robot, with real-time priority asked for.
RealtimeRun RunRealtime() {
  const CommanderConfig config = PatientConfig();
  RobotBeside robot(config);
  const std::unique_ptr<RobotLink> link = robot.MakeLink();
  const std::atomic<bool> stop{false};
  NodeOptions options;
  options.commander = config;
  options.seconds = 0.5;
  RealtimeRun run;
  NodeWork work;
  work.policy = [](const PolicyRequest&, PolicyAnswer*) {};
  std::uint64_t records = 0;
  std::unique_ptr<Node> node;
  work.log = [&](const TickRecord& record) {
    if (record.state == DriveState::kOff) node->panel().Damp();
    if (++records != 100) return;  // all has been asked for by then
    run.fifo = FifoThreads();
    run.locked_kB = LockedMemory();
  };
  work.tell_not_realtime = [&](const std::string& priority) { run.warning += priority; };
  node = std::make_unique<Node>(link.get(), options, std::move(work));
  node->Run(stop);
  munlockall();  // the other tests need none of it
  run.priority = node->priority();
  run.ticks = node->deadlines().ticks;
  run.damped = IsDamping(robot.Last(), config);
  return run;
}

// Whether this computer lets a thread of this process have that priority.
bool MayBeRealtime(int priority) {
  bool may = false;
  std::thread([&] {
    sched_param parameter{};
    parameter.sched_priority = priority;
    may = pthread_setschedparam(pthread_self(), SCHED_FIFO, &parameter) == 0;
  }).join();
  return may;
}

TEST(Node, TakesRealTimePriorityWhereItMay) {
  if (!MayBeRealtime(80)) GTEST_SKIP() << "this computer does not allow SCHED_FIFO";
  const RealtimeRun run = RunRealtime();
  EXPECT_TRUE(run.priority.starts_with("SCHED_FIFO 80")) << run.priority;
  // command; receive and send; policy
  EXPECT_EQ(run.fifo, (std::map<int, int>{{70, 1}, {75, 2}, {80, 1}}));
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // they lock nothing
  EXPECT_EQ(run.priority.ends_with(", memory locked"), run.locked_kB > 0) << run.priority;
#endif
  EXPECT_EQ(run.warning.empty(), run.priority.ends_with(", memory locked")) << run.warning;
  EXPECT_TRUE(run.damped);
}

// Rights belong to threads: one without them starts the node, and the process keeps its own.
TEST(Node, WarnsWhereItMayNotBeRealTimeAndRunsAllTheSame) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_RTPRIO, &before), 0);
  const rlimit none{0, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_RTPRIO, &none), 0);
  RealtimeRun run;
  bool may = true;
  std::thread([&] {
    __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
    __user_cap_data_struct nothing[2] = {};
    ASSERT_EQ(syscall(SYS_capset, &header, nothing), 0);
    may = MayBeRealtime(1);
    run = RunRealtime();
  }).join();
  ASSERT_EQ(setrlimit(RLIMIT_RTPRIO, &before), 0);
  ASSERT_FALSE(may);
  EXPECT_TRUE(run.priority.starts_with("ordinary priority (")) << run.priority;
  EXPECT_EQ(run.warning, run.priority) << "told once";
  EXPECT_TRUE(run.fifo.empty());
  EXPECT_GT(run.ticks, 250U) << "half a second, and damping for another";
  EXPECT_TRUE(run.damped);
}

TEST(DeadlineStatistics, CountsWhatWasLate) {
  DeadlineStatistics statistics;
  for (int k = 0; k < 999; ++k) statistics.Add(0.002, 0.002, 1e-6);
  statistics.Add(0.0053, 0.002, 2e-6);
  EXPECT_EQ(statistics.ticks, 1000U);
  EXPECT_EQ(statistics.late, 1U);
  EXPECT_NEAR(statistics.worst, 0.0033, 1e-12);
  EXPECT_DOUBLE_EQ(statistics.Jitter(0.99), 1e-5);
  EXPECT_NEAR(statistics.Jitter(0.9995), 0.0033, 2e-5);
  EXPECT_EQ(statistics.most_work, 2e-6);
}

TEST(OperatorPanel, GivesEveryRequestOnce) {
  OperatorPanel panel;
  panel.Stand();
  panel.SetVelocity({.vx = 0.25, .yaw_rate = -0.5});
  const OperatorRequest request = panel.Take();
  EXPECT_TRUE(request.stand);
  EXPECT_FALSE(request.run || request.damp || request.emergency_stop || request.console_lost);
  EXPECT_EQ(request.vx, 0.25);
  EXPECT_FALSE(panel.Take().stand);
  EXPECT_EQ(panel.Take().yaw_rate, -0.5) << "a velocity stays";
  panel.DropVelocity();
  EXPECT_EQ(panel.Take().yaw_rate, 0) << "until it is dropped";
  EXPECT_EQ(panel.velocity().vx, 0) << "for those who press keys, too";
  panel.ConsoleLost();
  panel.Stop();
  EXPECT_TRUE(panel.Take().emergency_stop);
  EXPECT_TRUE(panel.Take().console_lost) << "and so does a lost console";
}

}  // namespace
}  // namespace silc::test
