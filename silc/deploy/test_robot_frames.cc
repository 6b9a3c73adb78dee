// SPDX-License-Identifier: Apache-2.0
#include "silc/deploy/test_robot_frames.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <new>
#include <ostream>

namespace {

// No destructors, no allocation: these are touched inside malloc.
thread_local bool counts_here = false, ordinary_thread = false;
thread_local long heap_here = 0, locks_here = 0;
std::atomic<bool> counts_others{false};
std::atomic<long> heap_elsewhere{0}, locks_elsewhere{0};

void CountHeap() {
  if (counts_here) ++heap_here;
  if (counts_others && !ordinary_thread) ++heap_elsewhere;
}

[[maybe_unused]] void CountLock() {
  if (counts_here) ++locks_here;
  if (counts_others && !ordinary_thread) ++locks_elsewhere;
}

}  // namespace

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || !defined(__GLIBC__)

namespace {

void* CountedNew(std::size_t size) {
  CountHeap();
  void* memory = std::malloc(size > 0 ? size : 1);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

void* operator new(std::size_t size) { return CountedNew(size); }
void* operator new[](std::size_t size) { return CountedNew(size); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }

#else

// The program's own definitions come before glibc's, for glibc and libstdc++, too.
extern "C" {

void* __libc_malloc(std::size_t size);
void* __libc_calloc(std::size_t count, std::size_t size);
void* __libc_realloc(void* memory, std::size_t size);
void* __libc_memalign(std::size_t alignment, std::size_t size);
void __libc_free(void* memory);

void* malloc(std::size_t size) noexcept {
  CountHeap();
  return __libc_malloc(size);
}
void* calloc(std::size_t count, std::size_t size) noexcept {
  CountHeap();
  return __libc_calloc(count, size);
}
void* realloc(void* memory, std::size_t size) noexcept {
  CountHeap();
  return __libc_realloc(memory, size);
}
void* memalign(std::size_t alignment, std::size_t size) noexcept {
  CountHeap();
  return __libc_memalign(alignment, size);
}
void* aligned_alloc(std::size_t alignment, std::size_t size) noexcept {
  CountHeap();
  return __libc_memalign(alignment, size);
}
int posix_memalign(void** memory, std::size_t alignment, std::size_t size) noexcept {
  CountHeap();
  *memory = __libc_memalign(alignment, size);
  return *memory == nullptr ? ENOMEM : 0;
}
void free(void* memory) noexcept {
  if (memory != nullptr) CountHeap();
  __libc_free(memory);
}

}  // extern "C"

namespace {

// glibc's function behind the program's own.
template <typename Function>
Function* Next(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

}  // namespace

extern "C" {

int pthread_mutex_lock(pthread_mutex_t* mutex) noexcept {
  static auto* const next = Next<int(pthread_mutex_t*)>("pthread_mutex_lock");
  CountLock();
  return next(mutex);
}
int pthread_mutex_timedlock(pthread_mutex_t* mutex, const timespec* until) noexcept {
  static auto* const next = Next<int(pthread_mutex_t*, const timespec*)>("pthread_mutex_timedlock");
  CountLock();
  return next(mutex, until);
}
int pthread_rwlock_rdlock(pthread_rwlock_t* lock) noexcept {
  static auto* const next = Next<int(pthread_rwlock_t*)>("pthread_rwlock_rdlock");
  CountLock();
  return next(lock);
}
int pthread_rwlock_wrlock(pthread_rwlock_t* lock) noexcept {
  static auto* const next = Next<int(pthread_rwlock_t*)>("pthread_rwlock_wrlock");
  CountLock();
  return next(lock);
}
int pthread_cond_wait(pthread_cond_t* condition, pthread_mutex_t* mutex) {
  static auto* const next = Next<int(pthread_cond_t*, pthread_mutex_t*)>("pthread_cond_wait");
  CountLock();
  return next(condition, mutex);
}
int pthread_cond_timedwait(pthread_cond_t* condition,
                           pthread_mutex_t* mutex,
                           const timespec* until) {
  static auto* const next =
      Next<int(pthread_cond_t*, pthread_mutex_t*, const timespec*)>("pthread_cond_timedwait");
  CountLock();
  return next(condition, mutex, until);
}

}  // extern "C"

#endif

namespace silc::test {

HeapAndLockCount::HeapAndLockCount() {
  heap_here = locks_here = 0;
  heap_elsewhere = locks_elsewhere = 0;
  counts_here = counts_others = true;
}
HeapAndLockCount::~HeapAndLockCount() { counts_here = counts_others = false; }
HeapAndLockCount::Calls HeapAndLockCount::here() const { return {heap_here, locks_here}; }
HeapAndLockCount::Calls HeapAndLockCount::unmarked_threads() const {
  return {heap_elsewhere, locks_elsewhere};
}
void HeapAndLockCount::MarkOrdinaryThread() { ordinary_thread = true; }

std::ostream& operator<<(std::ostream& out, const HeapAndLockCount::Calls& calls) {
  return out << calls.heap << " of the heap, " << calls.locks << " of locks";
}

namespace {

constexpr double kInertia = 0.2;       // [kg·m²]
constexpr double kJointDamping = 0.5;  // [N·m·s/rad]

}  // namespace

CommanderConfig PlainConfig() {
  CommanderConfig config;
  const auto rule =
      [&](DriveFault fault, double limit, int ticks, Reaction reaction = Reaction::kStop) {
        config.rules[static_cast<std::size_t>(fault)] = {limit, ticks, reaction};
      };
  rule(DriveFault::kEmergencyStop, 0, 1);
  rule(DriveFault::kConsoleLost, 0, 1);
  rule(DriveFault::kRemoteCorrupt, 10, 1);
  rule(DriveFault::kStateAge, 0.05, 1);
  rule(DriveFault::kStateCorrupt, 2, 1);
  rule(DriveFault::kTickFrozen, 10, 1);
  rule(DriveFault::kTickBackward, 0, 1);
  rule(DriveFault::kMachineMode, 0, 1);
  rule(DriveFault::kModePr, 0, 1);
  rule(DriveFault::kRobotLost, 0, 5);
  rule(DriveFault::kForeignWriter, 0, 1);
  rule(DriveFault::kSendFailed, 5, 1);
  rule(DriveFault::kSendBlocked, 0.05, 1);
  rule(DriveFault::kStateNotFinite, 0, 1);
  rule(DriveFault::kImuQuaternion, 0.05, 1);
  rule(DriveFault::kTilt, 1.0, 2);
  rule(DriveFault::kGyro, 6, 3);
  rule(DriveFault::kJointSpeed, 0.33, 3);  // 9.9 rad/s
  rule(DriveFault::kFastJoints, 5, 5);
  rule(DriveFault::kJointRange, 0.1, 3);
  rule(DriveFault::kJointTorque, 1.2, 25);
  rule(DriveFault::kCasingTemperature, 85, 5);
  rule(DriveFault::kWindingTemperature, 120, 5);
  rule(DriveFault::kMotorFault, 0, 2);
  rule(DriveFault::kTracking, 1.0, 250);
  rule(DriveFault::kTorqueLimited, 1.0, 1);
  rule(DriveFault::kPolicyNotFinite, 0, 1);
  rule(DriveFault::kPolicyWidth, 0, 1);
  rule(DriveFault::kPolicyAge, 0.06, 1);
  rule(DriveFault::kPolicyOverruns, 5, 1);
  rule(DriveFault::kTargetWild, 1.5, 25);
  rule(DriveFault::kCommandGap, 0.02, 1);
  rule(DriveFault::kCommandOverruns, 50, 1);
  rule(DriveFault::kLogDropped, 0, 1, Reaction::kWarn);
  rule(DriveFault::kStiffness, 1, 250);
  rule(DriveFault::kActionLoop, 0.9999, 250);
  rule(DriveFault::kObserverAge, 1, 1, Reaction::kWarn);
  config.q_min.fill(-0.5);
  config.q_max.fill(1.5);
  config.effort_limit.fill(50);
  config.velocity_limit.fill(30);
  config.stand_kp.fill(100);
  config.stand_kd.fill(4);
  config.kp.fill(60);
  config.kd.fill(3);
  config.damping_kd.fill(3);
  config.stand_pose.fill(0.3);
  // not all alike, or a mix-up of joints would not show
  for (int j = 0; j < kRobotMotors; ++j) {
    const auto i = static_cast<std::size_t>(j);
    config.q_max[i] += 0.02 * j;
    config.effort_limit[i] += j;
    config.kp[i] += j;
    config.stand_pose[i] += 0.01 * j;
  }
  return config;
}

PlainRobot::PlainRobot(const CommanderConfig& config) {
  for (std::size_t i = 0; i < q.size(); ++i) q[i] = 0.8 * config.stand_pose[i] - 0.1;
}

void PlainRobot::Step(const LowCommand* command, const CommanderConfig& config) {
  if (command != nullptr) held = *command;
  constexpr int kSubsteps = 4;
  const double dt = config.tick_period / kSubsteps;
  for (int j = 0; j < kRobotMotors; ++j) {
    const auto i = static_cast<std::size_t>(j);
    const MotorCommand& motor = held.motor[j];
    for (int k = 0; k < kSubsteps && motor.mode == 1; ++k) {
      const double wanted = motor.tau + motor.kp * (motor.q - q[i]) + motor.kd * (motor.dq - qd[i]);
      tau[i] = std::clamp(wanted, -config.effort_limit[i], config.effort_limit[i]);
      qd[i] += dt * (tau[i] - kJointDamping * qd[i]) / kInertia;
      q[i] += dt * qd[i];
    }
  }
  tick += 2;
}

LowState PlainRobot::Frame() const {
  LowState state;
  std::memset(&state, 0, sizeof state);
  state.mode_machine = 5;
  state.tick = tick;
  state.imu.quat_wxyz[0] = 1;
  for (int j = 0; j < kRobotMotors; ++j) {
    const auto i = static_cast<std::size_t>(j);
    state.motor[j].mode = 1;
    state.motor[j].q = static_cast<float>(q[i]);
    state.motor[j].dq = static_cast<float>(qd[i]);
    state.motor[j].tau_est = static_cast<float>(tau[i]);
    state.motor[j].temperature_C[0] = 35;
    state.motor[j].temperature_C[1] = 50;
  }
  state.crc = FrameCrc(state);
  return state;
}

std::string WhyUnsafe(const LowCommand& command,
                      const CommanderConfig& config,
                      const LowState& robot,
                      std::uint8_t machine_mode) {
  if (command.mode_pr != 0) return "mode_pr";
  if (command.mode_machine != machine_mode) return "machine mode";
  if (command.crc != Crc32OfWords(&command, 250)) return "CRC";
  constexpr double kRounding = 1e-5;  // commands are floats
  for (int j = 0; j < kFrameMotors; ++j) {
    const MotorCommand& m = command.motor[j];
    const std::string where = " of motor " + std::to_string(j);
    for (const float x : {m.q, m.dq, m.tau, m.kp, m.kd}) {
      if (!std::isfinite(x)) return "not finite" + where;
    }
    if (j >= kRobotMotors) {
      if (m.mode != 0 || m.kp != 0 || m.kd != 0) return "a motor that is not there";
      continue;
    }
    const auto i = static_cast<std::size_t>(j);
    if (m.mode != 1) return "disabled" + where;
    if (m.dq != 0 || m.tau != 0) return "feed-forward" + where;
    const double kp_max = std::max(config.kp[i], config.stand_kp[i]);
    const double kd_max = std::max({config.kd[i], config.stand_kd[i], config.damping_kd[i]});
    if (!(m.kp >= 0 && m.kp <= kp_max * (1 + kRounding))) return "kp" + where;
    if (!(m.kd >= 0 && m.kd <= kd_max * (1 + kRounding))) return "kd" + where;
    if (m.kp == 0) continue;
    if (m.q < config.q_min[i] - kRounding || m.q > config.q_max[i] + kRounding) {
      return "target beyond the range" + where;
    }
    // no target inside the range may ask for more torque than needed to stay in it
    const double q = robot.motor[j].q, qd = robot.motor[j].dq, effort = config.effort_limit[i];
    const auto torque = [&](double target) { return m.kp * (target - q) - m.kd * qd; };
    const bool possible = torque(config.q_min[i]) <= effort && torque(config.q_max[i]) >= -effort;
    if (possible && std::abs(torque(m.q)) > effort + 1e-2) return "torque" + where;
  }
  return "";
}

bool IsDamping(const LowCommand& command, const CommanderConfig& config) {
  for (int j = 0; j < kRobotMotors; ++j) {
    const MotorCommand& m = command.motor[j];
    if (m.mode != 1 || m.q != 0 || m.dq != 0 || m.tau != 0 || m.kp != 0) return false;
    if (m.kd != static_cast<float>(config.damping_kd[static_cast<std::size_t>(j)])) return false;
  }
  return true;
}

Rig::Rig(const CommanderConfig& config_used)
    : config(config_used), commander(config_used), robot(config_used) {}

const TickResult& Rig::Step() {
  now_ns += 2'000'000 + extra_ns;
  LowState frame = robot.Frame();
  if (remote.valid) EncodeRemote(remote, std::span<std::uint8_t, 40>(frame.remote));
  if (freeze_tick) frame.tick = shown.tick;
  if (spoil_state) spoil_state(&frame);
  frame.crc = FrameCrc(frame);
  if (spoil_bytes) spoil_bytes(&frame);

  PolicyAnswer answer;
  const bool answers = waiting_ && !drop_answers;
  if (answers) {
    answer.sequence = asked_.sequence;
    answer.session = asked_.session;
    answer.asked_ns = asked_.time_ns;
    answer.answered_ns = asked_.time_ns + static_cast<std::int64_t>(1e9 * policy_delay_s);
    answer.width = kRobotMotors;
    for (std::size_t i = 0; i < answer.target.size(); ++i) {
      answer.target[i] = config.stand_pose[i] + 0.05 * std::sin(0.1 * double(asked_.sequence));
    }
    if (spoil_answer) spoil_answer(&answer);
    waiting_ = false;
  }
  StiffnessNote note{.sequence = asked_.sequence,
                     .session = asked_.session,
                     .judged = true,
                     .sigma = 0.9,
                     .rho = 0.95};
  if (spoil_note) spoil_note(&note);

  ticks_without_state_ = (ticks_without_state_ + 1) % ticks_per_state;
  const bool heard_nothing = drop_states || ticks_without_state_ != 0;
  TickInput input;
  input.now_ns = now_ns;
  input.frame = heard_nothing ? nullptr : &frame;
  input.answer = answers ? &answer : nullptr;
  input.stiffness = drop_notes ? nullptr : &note;
  if (blocked_since_ns != 0) link.behind_s = 1e-9 * double(now_ns - blocked_since_ns);
  input.link = link;
  input.keys = keys;
  input.log_dropped = log_dropped;
  last = commander.Tick(input);
  if (!heard_nothing && FrameCrc(frame) == frame.crc) {
    shown = frame;
    ++heard;
  }
  if (refuse_sends && last.send) ++link.failed_sends;
  const bool console = keys.console_lost;
  keys = OperatorRequest{.vx = keys.vx, .vy = keys.vy, .yaw_rate = keys.yaw_rate};
  keys.console_lost = console;
  if (last.ask_policy) {
    asked_ = last.request;
    waiting_ = true;
  }
  robot.Step(last.send ? &last.command : nullptr, config);
  return last;
}

void Rig::Run(double seconds) {
  for (int k = 0; k < static_cast<int>(std::lround(seconds / config.tick_period)); ++k) Step();
}

void Rig::Press(void (*what)(OperatorRequest*)) { what(&keys); }

void Rig::DriveTo(DriveState state) {
  Run(0.01);
  if (state >= DriveState::kDamping) {
    keys.damp = true;
    Run(0.02);
  }
  if (state >= DriveState::kStandUp) {
    keys.stand = true;
    Run(0.1);
  }
  if (state >= DriveState::kStanding) Run(config.stand_up_time);
  if (state >= DriveState::kPolicy) {
    keys.run = true;
    Run(1);
  }
  ASSERT_EQ(commander.state(), state);
  ASSERT_FALSE(commander.latched()) << KindOf(commander.latched_fault().fault).name;
}

}  // namespace silc::test
