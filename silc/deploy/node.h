// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "silc/deploy/commander.h"
#include "silc/deploy/link.h"

namespace silc {

/// A velocity that the operator asks for.
struct OperatorVelocity {
  double vx = 0, vy = 0;  // [m/s]
  double yaw_rate = 0;    // [rad/s]
};

/// Keys and the velocity they ask for, from any thread to the command thread. Nobody waits. The
/// velocity is kept here alone, so that what the command thread drops is dropped for the keys, too.
class OperatorPanel {
 public:
  void Stop() { Ask(kStop); }
  void Damp() { Ask(kDamp); }
  void Stand() { Ask(kStand); }
  void Run() { Ask(kRun); }
  void Acknowledge() { Ask(kAcknowledge); }
  void ConsoleLost() { lost_.store(true, std::memory_order_relaxed); }
  void SetVelocity(const OperatorVelocity& velocity);
  OperatorVelocity velocity() const;

  /// The command thread's: requests since the last call.
  OperatorRequest Take();
  /// The command thread's, in every tick in which no velocity is followed.
  void DropVelocity() { SetVelocity({}); }

 private:
  enum Bit : std::uint32_t { kStop = 1, kDamp = 2, kStand = 4, kRun = 8, kAcknowledge = 16 };
  void Ask(Bit bit) { asked_.fetch_or(bit, std::memory_order_relaxed); }
  std::atomic<std::uint32_t> asked_{0};
  std::atomic<bool> lost_{false};
  std::atomic<double> vx_{0}, vy_{0}, yaw_rate_{0};
};

/// One tick as the log keeps it.
struct TickRecord {
  std::int64_t time_ns = 0;
  double gap = 0;   // [s] since the tick before
  double work = 0;  // [s] the tick took
  DriveState state = DriveState::kOff;
  DriveFault latched = DriveFault::kNone;
  bool sent = false;
  bool fresh = false;  ///< whether `robot` came in this tick
  LowState robot{};
  LowCommand command{};
};

/// How well the command thread kept its time. Histogram of |gap − period| in steps of 10 µs.
struct DeadlineStatistics {
  static constexpr int kBins = 2000;
  static constexpr double kBin = 1e-5;  // [s]
  std::uint64_t ticks = 0, late = 0;
  double worst = 0;      // [s] longest gap − period
  double most_work = 0;  // [s]
  std::array<std::uint32_t, kBins> histogram{};

  void Add(double gap, double period, double work);
  /// [s] below which the share `quantile` of ticks lies.
  double Jitter(double quantile) const;
};

/// A request that the policy has answered, for the observer.
struct ObserverTask {
  PolicyRequest request;
  bool after_gap = false;  ///< requests before this one were lost: the observer is far behind
};

/// What is asked of, and told to, the rest of the program. Each is called by one thread of its own
/// and may allocate, lock and take its time; its answer then comes late, and the commander says so.
struct NodeWork {
  /// In lock step an answer may say when it came (answered_ns); else it comes with the next tick.
  std::function<void(const PolicyRequest&, PolicyAnswer*)> policy;
  /// Every request that the policy answered, in order, while `waiting` more are there already.
  /// False: nothing was observed. May be empty.
  std::function<bool(const ObserverTask&, int waiting, StiffnessNote*)> observe;
  std::function<void(const TickRecord&)> log;  ///< may be empty
  std::function<void(const FaultReport&)> tell;
  std::function<void(DriveFault)> tell_refused;
  std::function<void(DriveFault)> tell_acknowledged;
  std::function<void(DriveState)> tell_state;
  /// What the work above threw, once until it throws something else; may be empty. Work that throws
  /// does not end the program, which would leave the robot with its last command: the policy's
  /// answer is then no number, and the observer has seen nothing.
  std::function<void(const std::string& what)> tell_failed;
  /// At the start, where real-time priority or locked memory was asked for and refused; may be
  /// empty.
  std::function<void(const std::string& priority)> tell_not_realtime;
  /// Counts what the work above could not log; may be null. The command thread reads it, and the
  /// fault `log_dropped` is told when it has grown.
  const std::atomic<std::uint64_t>* lost_records = nullptr;
};

struct NodeOptions {
  CommanderConfig commander;
  bool dry_run = false;   ///< nothing is sent, and nobody is told that something might be
  bool lockstep = false;  ///< a tick for every state, in the robot's time; for simulations
  bool realtime = true;   ///< asks for SCHED_FIFO and locked memory
  double seconds = 0;     ///< [s] ends after this long, in lock step of the robot's time; 0: never
};

/// The command thread and those around it:
///
///     receive   waits for states                       → command
///     command   500 Hz, Commander::Tick()              → send, policy, log
///     send      hands commands to the transport
///     policy    NodeWork                               → command, observe
///     observe   NodeWork                               → command
///     log       NodeWork
///
/// The command thread shares nothing with others but mailboxes, rings and atomics: it does not
/// allocate, lock or throw.
class Node {
 public:
  Node(RobotLink* link, const NodeOptions& options, NodeWork work);
  ~Node();

  /// Runs until `stop` is true, then damps for a second more; a robot that is off then is sent
  /// nothing. Call once.
  void Run(const std::atomic<bool>& stop);

  OperatorPanel& panel() { return panel_; }
  const DeadlineStatistics& deadlines() const { return deadlines_; }  ///< after Run()
  const Commander& commander() const { return commander_; }           ///< after Run()
  /// Whether the command thread runs at real-time priority in locked memory, or why not.
  const std::string& priority() const { return priority_; }
  std::uint64_t dropped_records() const { return dropped_; }  ///< of ticks

 private:
  struct Shared;
  void RunThreads(const std::atomic<bool>& stop);
  void RunLockstep(const std::atomic<bool>& stop);
  void CommandLoop(const std::atomic<bool>& stop);
  int NewlyLost();
  template <typename Action>
  bool Survives(const Action& action);
  void KeepFailure(const char* what);
  void Answer(const PolicyRequest& request, PolicyAnswer* answer);
  bool Observe(const ObserverTask& task, int waiting, StiffnessNote* note);
  void TellFailure();
  void TellAnswer(DriveFault refused, DriveFault acknowledged) const;
  void Tell(const TickResult& result);

  RobotLink* link_;
  NodeOptions options_;
  NodeWork work_;
  Commander commander_;
  OperatorPanel panel_;
  DeadlineStatistics deadlines_;
  std::string priority_ = "ordinary priority";
  std::uint64_t dropped_ = 0;      // tick records
  std::uint64_t lost_before_ = 0;  // what the work had lost at the tick before
  DriveState told_state_ = DriveState::kOff;
  std::unique_ptr<Shared> shared_;
};

}  // namespace silc
