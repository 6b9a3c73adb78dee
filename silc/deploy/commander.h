// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

#include "silc/deploy/fault.h"
#include "silc/deploy/messages.h"
#include "silc/deploy/remote.h"

namespace silc {

/// What the motors may do, and the only ways between. An emergency stop and every fault that stops
/// lead to kDamping and latch; then nothing but the operator's acknowledgement opens the way on.
///
///   kOff       nothing is sent; damping is refused beside another writer     → kDamping
///   kDamping   kp = 0: joints are slowed, not held                           → kStandUp
///   kStandUp   from where the robot is to the standing pose, in 2 s          → kStanding, kDamping
///   kStanding  the standing pose is held                                     → kPolicy, kDamping
///   kPolicy    the policy's targets, gains and targets blended in            → kDamping
enum class DriveState : std::uint8_t { kOff, kDamping, kStandUp, kStanding, kPolicy };
const char* Name(DriveState state);

/// Everything the command thread needs to know, as plain numbers. Joints in the robot's order.
struct CommanderConfig {
  FaultRules rules;

  JointArray q_min{}, q_max{};        // [rad]
  JointArray effort_limit{};          // [N·m]
  JointArray velocity_limit{};        // [rad/s] targets move no faster
  JointArray stand_kp{}, stand_kd{};  // [N·m/rad], [N·m·s/rad] while standing up and standing
  JointArray kp{}, kd{};              // the policy's
  JointArray damping_kd{};            // [N·m·s/rad]
  JointArray stand_pose{};            // [rad]

  double tick_period = 0.002;   // [s] of the command thread
  double policy_period = 0.02;  // [s] a multiple of it
  double stand_up_time = 2;     // [s]
  double blend_time = 0.2;      // [s] over which the policy takes over
  double softest = 0.5;         // [1] the least factor on kp that softening reaches
  double soften_rate = 0.5;     // [1/s] at which it gets there, and back
  double max_vx = 0.6, max_vy = 0.3, max_yaw_rate = 0.6;  // [m/s], [rad/s] of a full stick
  bool check_crc = true;                                  // false for peers whose states carry none
  bool check_tick = true;                                 // false for peers that do not count
  bool observed = true;  // false: no observer runs, and none is waited for
  int machine_mode =
      -1;  // the robot's, as it was when it was looked at; −1: what its first state says
};

/// Asks the policy thread.
struct PolicyRequest {
  std::uint64_t sequence = 0;
  std::uint32_t session =
      0;  ///< counts entries into kPolicy; a new one begins with an empty history
  std::int64_t time_ns = 0;
  LowState state{};
  double vx = 0, vy = 0, yaw_rate = 0;  // [m/s], [rad/s]
};

/// What it answered.
struct PolicyAnswer {
  std::uint64_t sequence = 0;
  std::uint32_t session = 0;
  std::int64_t asked_ns = 0, answered_ns = 0;
  int width = 0;        ///< numbers the policy gave; must be kRobotMotors
  bool finite = true;   ///< false: input or output of the policy was not a number
  JointArray target{};  // [rad]
};

/// What the observer thread saw.
struct StiffnessNote {
  std::uint64_t sequence = 0;  ///< of the request that it looked at
  std::uint32_t session = 0;   ///< likewise
  bool judged = false;         ///< whether there was a static stiffness to judge
  double sigma = 0;            // [1] of the budget
  double rho = 0;              // [1] of the action loop; at 1 it is unstable
  double observe_s = 0;        // [s] it took
};

/// How the link fares.
struct LinkHealth {
  bool robot_present = true;  ///< the robot's endpoints are matched
  int foreign_writers = 0;    ///< of commands
  int failed_sends = 0;       ///< in a row
  double behind_s = 0;  ///< [s] age of the last command that was taken, while a newer one waits
};

/// What one tick has to go by. Pointers may be null: nothing new.
struct TickInput {
  std::int64_t now_ns = 0;
  const LowState* frame = nullptr;
  const PolicyAnswer* answer = nullptr;
  const StiffnessNote* stiffness = nullptr;
  LinkHealth link;
  OperatorRequest keys;  ///< the keyboard's; the remote's come with the frame
  int log_dropped = 0;   ///< records since the tick before
};

/// How often a limit shaped a command.
struct LimitCounts {
  std::uint64_t range = 0, speed = 0, torque = 0;  // joints × ticks
};

/// What a tick decided. Valid until the next.
struct TickResult {
  bool send = false;  ///< whether `command` is for the robot
  LowCommand command{};
  bool ask_policy = false;  ///< whether `request` is for the policy
  PolicyRequest request;
  DriveState state = DriveState::kOff;
  bool latched = false;
  /// Whether the keyboard's velocity counts. Where it does not, whoever keeps it is to forget it.
  bool follows_keys = false;
  int num_reports = 0;
  std::array<FaultReport, kNumFaults> reports;  ///< faults that began in this tick
  DriveFault refused = DriveFault::kNone;       ///< why a request of the operator was not followed
  DriveFault acknowledged = DriveFault::kNone;  ///< the latched fault that was let go of
};

/// The command thread's brain: a pure function of what it is told, tick by tick. Does not allocate,
/// lock or throw; reads no clock. Each tick begins with the damping command and earns a better one.
class Commander {
 public:
  explicit Commander(const CommanderConfig& config);

  const TickResult& Tick(const TickInput& input) noexcept;

  DriveState state() const { return state_; }
  bool latched() const { return latched_.fault != DriveFault::kNone; }
  /// The fault that holds the robot in damping; kNone: none does.
  const FaultReport& latched_fault() const { return latched_; }
  const LimitCounts& limit_counts() const { return limits_; }
  const LowState& robot() const { return robot_; }  ///< the last state that was believed

 private:
  void KeepTime(std::int64_t now_ns);
  void TakeFrame(const LowState& frame, std::int64_t now_ns);
  void TakeAnswer(const PolicyAnswer& answer, std::int64_t now_ns);
  void MeasureLink(const TickInput& input);
  void MeasureRobot();
  void MeasurePolicy(const TickInput& input);
  OperatorRequest Merge(const OperatorRequest& keys) const;
  void ChooseVelocity(const OperatorRequest& keys, OperatorRequest* request);
  bool IsWatched(DriveFault fault) const;
  void Judge(std::int64_t now_ns);
  void Follow(const OperatorRequest& request, std::int64_t now_ns);
  bool IsPresent(DriveFault fault) const;
  DriveFault ReasonNotToBegin() const;
  DriveFault ReasonNotToMove() const;
  DriveFault ReasonToStayLatched() const;
  void Enter(DriveState state, std::int64_t now_ns);
  void WriteDamping();
  void WriteServo(std::int64_t now_ns);
  void AskPolicy(const OperatorRequest& request, std::int64_t now_ns);
  double SecondsSince(std::int64_t then_ns, std::int64_t now_ns) const {
    return 1e-9 * static_cast<double>(now_ns - then_ns);
  }

  CommanderConfig config_;
  FaultMonitor monitor_;
  FaultValues values_;
  FaultReport latched_;
  std::array<bool, kNumFaults> stopped_{};  // faults that have stopped the robot since it latched
  TickResult result_;
  LimitCounts limits_;
  RemoteRequests remote_;
  OperatorRequest from_remote_;
  bool follows_keys_ = false, follows_sticks_ = false;  // velocities of each count

  DriveState state_ = DriveState::kOff;
  std::int64_t entered_ns_ = 0;  // the present state

  // time
  bool ticked_ = false;
  std::int64_t last_tick_ns_ = 0;
  double gap_ = 0;  // [s]
  static constexpr int kLateWindow = 500;
  std::array<bool, kLateWindow> late_{};
  int late_at_ = 0, late_count_ = 0;

  // the robot as last seen
  bool seen_ = false;
  LowState robot_{};
  std::int64_t seen_ns_ = 0;  // when its counter last went on
  std::uint8_t machine_mode_ = 0;
  int corrupt_in_row_ = 0, frozen_in_row_ = 0, remote_corrupt_in_row_ = 0;
  bool went_back_ = false;

  // the policy as last heard
  std::uint64_t sequence_ = 0;
  std::uint32_t session_ = 0;
  int ticks_to_request_ = 0;
  bool answered_ = false;
  PolicyAnswer answer_;
  std::int64_t answer_ns_ = 0;        // when it came in
  std::int64_t first_answer_ns_ = 0;  // of this session: the blend begins
  int overruns_in_row_ = 0;
  StiffnessNote stiffness_;
  std::int64_t stiffness_ns_ = 0;  // when one was last judged

  // the servo
  JointArray entry_q_{};                            // [rad] where standing up began
  JointArray target_{};                             // [rad] last
  double gain_scale_ = 1;                           // [1] on kp
  std::array<int, kRobotMotors> torque_limited_{};  // [tick] in a row
};

/// The command that slows joints and holds nothing.
void FillDamping(const CommanderConfig& config, std::uint8_t machine_mode, LowCommand* command);

}  // namespace silc
