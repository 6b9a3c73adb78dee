// SPDX-License-Identifier: Apache-2.0
#pragma once

// A robot of 29 joints that know nothing of each other, and a commander that drives it, tick by
// tick, with faults put in between.

#include <functional>
#include <iosfwd>
#include <string>

#include "silc/deploy/commander.h"

namespace silc::test {

/// Numbers like the G1's.
CommanderConfig PlainConfig();

/// Joints with an inertia each, driven as motors are.
class PlainRobot {
 public:
  explicit PlainRobot(const CommanderConfig& config);
  /// One tick under `command`; null: the last one goes on.
  void Step(const LowCommand* command, const CommanderConfig& config);
  LowState Frame() const;  ///< with its CRC

  JointArray q{}, qd{}, tau{};
  std::uint32_t tick = 1;
  LowCommand held{};
};

/// Why a command is unsafe, judged apart from the code that made it: a number that is none, a wrong
/// CRC or mode, gains or targets beyond their limits, torque beyond a joint's effort; "" for safe.
std::string WhyUnsafe(const LowCommand& command,
                      const CommanderConfig& config,
                      const LowState& robot,
                      std::uint8_t machine_mode);
/// The image of a frame, for comparing frames bit by bit.
template <typename Frame>
std::string Bytes(const Frame& frame) {
  return std::string(reinterpret_cast<const char*>(&frame), sizeof frame);
}

/// Whether it damps every joint and does nothing else.
bool IsDamping(const LowCommand& command, const CommanderConfig& config);

/// Counts what a command thread may not do, in this program while it lives: calls of the heap and
/// of locks, by the thread that made it and by threads that never called MarkOrdinaryThread().
///
///   heap   malloc, calloc, realloc, aligned_alloc, posix_memalign, memalign, free, and every
///          operator new, which ends in one of them
///   locks  pthread_mutex_lock, pthread_mutex_timedlock, pthread_rwlock_rdlock and _wrlock,
///          pthread_cond_wait and _timedwait: what std::mutex and its kind end in
///
/// The sanitizers have those functions themselves: under them plain operator new alone is counted.
class HeapAndLockCount {
 public:
  struct Calls {
    long heap = 0, locks = 0;
    bool operator==(const Calls&) const = default;
  };
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || !defined(__GLIBC__)
  static constexpr bool kCountsAll = false;
#else
  static constexpr bool kCountsAll = true;
#endif

  HeapAndLockCount();
  ~HeapAndLockCount();
  HeapAndLockCount(const HeapAndLockCount&) = delete;
  HeapAndLockCount& operator=(const HeapAndLockCount&) = delete;
  Calls here() const;
  Calls unmarked_threads() const;
  static void MarkOrdinaryThread();
};
std::ostream& operator<<(std::ostream& out, const HeapAndLockCount::Calls& calls);

/// Robot, link, policy, observer and operator in one thread; every fault can be put in.
struct Rig {
  explicit Rig(const CommanderConfig& config = PlainConfig());

  /// One tick of 2 ms.
  const TickResult& Step();
  void Run(double seconds);
  void Press(void (*what)(OperatorRequest*));  ///< for the next tick
  /// From off by way of the operator into a state. Fails the test when it is not reached.
  void DriveTo(DriveState state);

  // faults
  std::function<void(LowState*)> spoil_state;  ///< of the robot: the CRC is right after
  std::function<void(LowState*)> spoil_bytes;  ///< on the way: the CRC is wrong after
  std::function<void(PolicyAnswer*)> spoil_answer;
  std::function<void(StiffnessNote*)> spoil_note;
  bool drop_states = false, drop_answers = false, drop_notes = false;
  bool freeze_tick = false;
  int ticks_per_state = 1;            ///< a state comes in every so many ticks
  bool refuse_sends = false;          ///< the transport takes no command
  std::int64_t blocked_since_ns = 0;  ///< it has had one since then, and not taken it; 0: none
  std::int64_t extra_ns = 0;          ///< the next ticks come later by this
  LinkHealth link;
  OperatorRequest keys;  ///< requests are taken back after a tick
  RemoteReading remote;  ///< as it is held; not valid: none speaks
  int log_dropped = 0;
  double policy_delay_s = 0.001;

  CommanderConfig config;
  Commander commander;
  PlainRobot robot;
  std::int64_t now_ns = 1'000'000'000;
  LowState shown{};         ///< what the commander saw last
  std::uint64_t heard = 0;  ///< states with a right CRC that it was shown
  TickResult last;

 private:
  bool waiting_ = false;
  int ticks_without_state_ = 0;
  PolicyRequest asked_;
};

}  // namespace silc::test
