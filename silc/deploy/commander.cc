// SPDX-License-Identifier: Apache-2.0
#include "silc/deploy/commander.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace silc {
namespace {

constexpr int kJoints = kRobotMotors;
constexpr double kLateFactor = 2;  // [1] a tick is late when twice the period has passed

double Smooth(double x) {
  x = std::clamp(x, 0.0, 1.0);
  return x * x * (3 - 2 * x);
}

std::size_t At(int joint) { return static_cast<std::size_t>(joint); }

}  // namespace

const char* Name(DriveState state) {
  switch (state) {
    case DriveState::kOff:
      return "off";
    case DriveState::kDamping:
      return "damping";
    case DriveState::kStandUp:
      return "standing up";
    case DriveState::kStanding:
      return "standing";
    case DriveState::kPolicy:
      return "policy";
  }
  return "unknown";
}

void FillDamping(const CommanderConfig& config, std::uint8_t machine_mode, LowCommand* command) {
  std::memset(command, 0, sizeof *command);
  command->mode_pr = 0;
  command->mode_machine = machine_mode;
  for (int j = 0; j < kJoints; ++j) {
    command->motor[j].mode = 1;
    command->motor[j].kd = static_cast<float>(config.damping_kd[At(j)]);
  }
}

Commander::Commander(const CommanderConfig& config)
    : config_(config),
      monitor_(config.rules),
      remote_(config.max_vx, config.max_vy, config.max_yaw_rate) {}

const TickResult& Commander::Tick(const TickInput& input) noexcept {
  KeepTime(input.now_ns);
  result_.num_reports = 0;
  result_.refused = result_.acknowledged = DriveFault::kNone;
  result_.ask_policy = false;
  from_remote_.emergency_stop = from_remote_.damp = from_remote_.stand = from_remote_.run =
      from_remote_.acknowledge = false;
  went_back_ = false;
  if (input.frame != nullptr) TakeFrame(*input.frame, input.now_ns);
  if (input.answer != nullptr) TakeAnswer(*input.answer, input.now_ns);
  // what was seen before the policy was left and entered again does not count
  const bool of_now = input.stiffness != nullptr && state_ == DriveState::kPolicy &&
                      input.stiffness->session == session_;
  if (of_now) {
    stiffness_ = *input.stiffness;
    if (stiffness_.judged) stiffness_ns_ = input.now_ns;
  }

  OperatorRequest request = Merge(input.keys);
  values_ = FaultValues{};
  values_[DriveFault::kEmergencyStop] = request.emergency_stop ? 1 : 0;
  values_[DriveFault::kConsoleLost] = request.console_lost ? 1 : 0;
  MeasureLink(input);
  if (seen_) MeasureRobot();
  MeasurePolicy(input);
  Judge(input.now_ns);
  // a robot that never spoke is not spoken to, because its machine mode is not known, and cannot be
  // asked to move; a stop is kept until then
  if (seen_) Follow(request, input.now_ns);
  ChooseVelocity(input.keys, &request);

  WriteDamping();
  result_.send = seen_ && state_ != DriveState::kOff;
  if (state_ >= DriveState::kStandUp) WriteServo(input.now_ns);
  if (state_ == DriveState::kPolicy) AskPolicy(request, input.now_ns);
  result_.command.crc = FrameCrc(result_.command);
  result_.state = state_;
  result_.latched = latched();
  result_.follows_keys = follows_keys_;
  return result_;
}

// Requests of remote and keyboard together.
OperatorRequest Commander::Merge(const OperatorRequest& keys) const {
  OperatorRequest request = keys;
  request.emergency_stop |= from_remote_.emergency_stop;
  request.damp |= from_remote_.damp;
  request.stand |= from_remote_.stand;
  request.run |= from_remote_.run;
  request.acknowledge |= from_remote_.acknowledge;
  return request;
}

// The stronger velocity of the two. One that was asked for before the policy state was entered is
// not followed: in that state each source has to ask for no velocity once before it counts.
void Commander::ChooseVelocity(const OperatorRequest& keys, OperatorRequest* request) {
  const auto rests = [](const OperatorRequest& asked) {
    return asked.vx == 0 && asked.vy == 0 && asked.yaw_rate == 0;
  };
  const bool drives = state_ == DriveState::kPolicy;
  const bool sticks_rest = remote_corrupt_in_row_ == 0 && rests(from_remote_);
  follows_keys_ = drives && (follows_keys_ || rests(keys));
  follows_sticks_ = drives && (follows_sticks_ || sticks_rest);
  const auto stronger = [&](double by_key, double by_stick) {
    const double a = follows_keys_ ? by_key : 0, b = follows_sticks_ ? by_stick : 0;
    return std::abs(a) > std::abs(b) ? a : b;
  };
  request->vx = stronger(keys.vx, from_remote_.vx);
  request->vy = stronger(keys.vy, from_remote_.vy);
  request->yaw_rate = stronger(keys.yaw_rate, from_remote_.yaw_rate);
}

void Commander::KeepTime(std::int64_t now_ns) {
  gap_ = ticked_ ? SecondsSince(last_tick_ns_, now_ns) : 0;
  ticked_ = true;
  last_tick_ns_ = now_ns;
  const bool late = gap_ > kLateFactor * config_.tick_period;
  late_count_ += static_cast<int>(late) - static_cast<int>(late_[At(late_at_)]);
  late_[At(late_at_)] = late;
  late_at_ = (late_at_ + 1) % kLateWindow;
}

void Commander::TakeFrame(const LowState& frame, std::int64_t now_ns) {
  if (config_.check_crc && FrameCrc(frame) != frame.crc) {
    ++corrupt_in_row_;  // nothing in it is believed
    return;
  }
  corrupt_in_row_ = 0;
  bool goes_on = true;  // a state that was sent before is no news, however seldom it comes
  if (!seen_) {
    const bool known = config_.machine_mode >= 0;
    machine_mode_ = known ? static_cast<std::uint8_t>(config_.machine_mode) : frame.mode_machine;
  } else if (config_.check_tick) {
    const auto step = static_cast<std::int32_t>(frame.tick - robot_.tick);
    frozen_in_row_ = step == 0 ? frozen_in_row_ + 1 : 0;
    went_back_ = step < 0;
    goes_on = step > 0;
  }
  seen_ = true;
  if (goes_on) seen_ns_ = now_ns;
  robot_ = frame;
  const RemoteReading reading = DecodeRemote(std::span<const std::uint8_t, 40>(frame.remote));
  remote_corrupt_in_row_ = reading.valid ? 0 : remote_corrupt_in_row_ + 1;
  from_remote_ = remote_.Read(reading);
}

void Commander::TakeAnswer(const PolicyAnswer& answer, std::int64_t now_ns) {
  // what was asked before the policy was left and entered again does not count
  if (state_ != DriveState::kPolicy || answer.session != session_) return;
  if (!answered_) first_answer_ns_ = now_ns;
  answered_ = true;
  answer_ = answer;
  answer_ns_ = now_ns;
  const bool late = SecondsSince(answer.asked_ns, answer.answered_ns) > config_.policy_period;
  overruns_in_row_ = late ? overruns_in_row_ + 1 : 0;
}

void Commander::MeasureLink(const TickInput& input) {
  values_[DriveFault::kRemoteCorrupt] = remote_corrupt_in_row_;
  values_[DriveFault::kStateAge] = seen_ ? SecondsSince(seen_ns_, input.now_ns) : 0;
  values_[DriveFault::kStateCorrupt] = corrupt_in_row_;
  values_[DriveFault::kTickFrozen] = frozen_in_row_;
  values_[DriveFault::kTickBackward] = went_back_ ? 1 : 0;
  values_[DriveFault::kMachineMode] = seen_ && robot_.mode_machine != machine_mode_ ? 1 : 0;
  values_[DriveFault::kModePr] = seen_ ? robot_.mode_pr : 0;
  values_[DriveFault::kRobotLost] = input.link.robot_present ? 0 : 1;
  values_[DriveFault::kForeignWriter] = input.link.foreign_writers;
  values_[DriveFault::kSendFailed] = input.link.failed_sends;
  values_[DriveFault::kSendBlocked] = input.link.behind_s;
  values_[DriveFault::kCommandGap] = gap_;
  values_[DriveFault::kCommandOverruns] = late_count_;
  values_[DriveFault::kLogDropped] = input.log_dropped;
}

void Commander::MeasureRobot() {
  int not_finite = 0;
  const ImuReading& imu = robot_.imu;
  const auto look = [&](float x) { not_finite += std::isfinite(x) ? 0 : 1; };
  for (const float x : imu.quat_wxyz) look(x);
  for (const float x : imu.gyro) look(x);
  for (int j = 0; j < kJoints; ++j) {
    const MotorReading& motor = robot_.motor[j];
    for (const float x : {motor.q, motor.dq, motor.tau_est}) look(x);
  }
  values_[DriveFault::kStateNotFinite] = not_finite;

  const double w = imu.quat_wxyz[0], x = imu.quat_wxyz[1], y = imu.quat_wxyz[2],
               z = imu.quat_wxyz[3];
  const double length2 = w * w + x * x + y * y + z * z;
  values_[DriveFault::kImuQuaternion] = std::abs(std::sqrt(length2) - 1);
  // the cosine of the tilt is the last entry of R_WB
  const double cosine = 1 - 2 * (x * x + y * y) / length2;
  values_[DriveFault::kTilt] = std::acos(std::clamp(cosine, -1.0, 1.0));
  values_[DriveFault::kGyro] = std::hypot(static_cast<double>(imu.gyro[0]),
                                          static_cast<double>(imu.gyro[1]),
                                          static_cast<double>(imu.gyro[2]));

  const double fast = 0.5 * monitor_.rule(DriveFault::kJointSpeed).limit;
  int fast_joints = 0, motor_faults = 0;
  const bool servo = state_ >= DriveState::kStandUp;
  for (int j = 0; j < kJoints; ++j) {
    const MotorReading& motor = robot_.motor[j];
    const double q = motor.q,
                 speed = std::abs(static_cast<double>(motor.dq)) / config_.velocity_limit[At(j)];
    values_.Worsen(DriveFault::kJointSpeed, speed, j);
    fast_joints += speed > fast ? 1 : 0;
    values_.Worsen(
        DriveFault::kJointRange, std::max(config_.q_min[At(j)] - q, q - config_.q_max[At(j)]), j);
    values_.Worsen(DriveFault::kJointTorque,
                   std::abs(static_cast<double>(motor.tau_est)) / config_.effort_limit[At(j)],
                   j);
    values_.Worsen(DriveFault::kCasingTemperature, motor.temperature_C[0], j);
    values_.Worsen(DriveFault::kWindingTemperature, motor.temperature_C[1], j);
    motor_faults += motor.fault_word != 0 ? 1 : 0;
    if (motor.fault_word != 0) values_.joint[static_cast<std::size_t>(DriveFault::kMotorFault)] = j;
    if (!servo) continue;
    values_.Worsen(DriveFault::kTracking, std::abs(target_[At(j)] - q), j);
    values_.Worsen(DriveFault::kTorqueLimited, torque_limited_[At(j)] * config_.tick_period, j);
  }
  values_[DriveFault::kFastJoints] = fast_joints;
  values_[DriveFault::kMotorFault] = motor_faults;
}

void Commander::MeasurePolicy(const TickInput& input) {
  if (state_ != DriveState::kPolicy) return;
  const std::int64_t heard = answered_ ? answer_ns_ : entered_ns_;
  values_[DriveFault::kPolicyAge] = SecondsSince(heard, input.now_ns);
  values_[DriveFault::kPolicyOverruns] = overruns_in_row_;
  if (config_.observed) {
    values_[DriveFault::kObserverAge] = SecondsSince(stiffness_ns_, input.now_ns);
  }
  // without a static stiffness nobody knows: that is no good moment, and no bad one
  if (stiffness_.judged) {
    values_[DriveFault::kStiffness] = stiffness_.sigma;
  } else {
    values_.Withhold(DriveFault::kStiffness);
  }
  values_[DriveFault::kActionLoop] = stiffness_.rho;
  if (!answered_) return;
  values_[DriveFault::kPolicyWidth] = std::abs(answer_.width - kJoints);
  bool finite = answer_.finite;
  if (answer_.width == kJoints) {
    for (int j = 0; j < kJoints; ++j) {
      const double target = answer_.target[At(j)];
      finite = finite && std::isfinite(target);
      values_.Worsen(DriveFault::kTargetWild,
                     std::max(config_.q_min[At(j)] - target, target - config_.q_max[At(j)]),
                     j);
    }
  }
  values_[DriveFault::kPolicyNotFinite] = finite ? 0 : 1;
}

bool Commander::IsWatched(DriveFault fault) const {
  if (state_ == DriveState::kOff || !seen_) return fault == DriveFault::kEmergencyStop;
  switch (KindOf(fault).watch) {
    case FaultWatch::kAlways:
      return true;
    case FaultWatch::kMoving:
      return state_ >= DriveState::kStandUp;
    case FaultWatch::kPolicy:
      return state_ == DriveState::kPolicy;
  }
  return true;
}

void Commander::Judge(std::int64_t now_ns) {
  std::array<bool, kNumFaults> watched{};
  for (int i = 1; i < kNumFaults; ++i) watched[At(i)] = IsWatched(static_cast<DriveFault>(i));
  const DriveFault stop = monitor_.Update(values_, watched);
  for (int i = 1; i < kNumFaults; ++i) {
    const auto fault = static_cast<DriveFault>(i);
    if (!monitor_.newly_tripped(fault)) continue;
    result_.reports[At(result_.num_reports++)] = {fault,
                                                  monitor_.rule(fault).reaction,
                                                  now_ns,
                                                  values_[fault],
                                                  monitor_.rule(fault).limit,
                                                  values_.joint[At(i)]};
  }
  if (stop == DriveFault::kNone) return;
  for (int i = 1; i < kNumFaults; ++i) {
    const auto fault = static_cast<DriveFault>(i);
    const bool stops = monitor_.rule(fault).reaction == Reaction::kStop;
    stopped_[At(i)] = stopped_[At(i)] || (stops && monitor_.tripped(fault));
  }
  if (!latched()) {
    latched_ = {stop,
                Reaction::kStop,
                now_ns,
                values_[stop],
                monitor_.rule(stop).limit,
                values_.joint[static_cast<std::size_t>(stop)]};
  }
  if (state_ != DriveState::kDamping) Enter(DriveState::kDamping, now_ns);
}

// Whether a fault that stops is there in this tick, watched or not. What only a servo or a policy
// can have is not: its value is zero without one.
bool Commander::IsPresent(DriveFault fault) const {
  const FaultRule& rule = monitor_.rule(fault);
  return rule.reaction == Reaction::kStop && !(values_[fault] <= rule.limit);
}

// A link or a robot that is not as it has to be is left alone: another writer, say, who drives it.
// A terminal that is gone is no such reason: who asks is there, and is answered by a stop that
// latches.
DriveFault Commander::ReasonNotToBegin() const {
  for (int i = 1; i < kNumFaults; ++i) {
    const auto fault = static_cast<DriveFault>(i);
    const bool counts =
        KindOf(fault).watch == FaultWatch::kAlways && fault != DriveFault::kConsoleLost;
    if (counts && IsPresent(fault)) return fault;
  }
  return DriveFault::kNone;
}

DriveFault Commander::ReasonNotToMove() const {
  for (int i = 1; i < kNumFaults; ++i) {
    const auto fault = static_cast<DriveFault>(i);
    if (KindOf(fault).watch != FaultWatch::kPolicy && IsPresent(fault)) return fault;
  }
  return DriveFault::kNone;
}

// What stopped the robot and lasts, or is watched in damping and there; of several the one that the
// operator was told of.
DriveFault Commander::ReasonToStayLatched() const {
  if (IsPresent(latched_.fault)) return latched_.fault;
  for (int i = 1; i < kNumFaults; ++i) {
    const auto fault = static_cast<DriveFault>(i);
    if ((stopped_[At(i)] || IsWatched(fault)) && IsPresent(fault)) return fault;
  }
  return DriveFault::kNone;
}

void Commander::Follow(const OperatorRequest& request, std::int64_t now_ns) {
  if (latched()) {
    // what the operator has not been told yet cannot be acknowledged
    if (latched_.time_ns == now_ns) return;
    if (request.acknowledge) {
      // only what is over may be let go of
      result_.refused = ReasonToStayLatched();
      if (result_.refused != DriveFault::kNone) return;
      result_.acknowledged = latched_.fault;
      latched_ = FaultReport{};
      stopped_.fill(false);
    } else if (request.stand || request.run) {
      result_.refused = latched_.fault;
    }
    return;
  }
  if (request.damp) {
    if (state_ == DriveState::kOff) result_.refused = ReasonNotToBegin();
    const bool follows = state_ != DriveState::kDamping && result_.refused == DriveFault::kNone;
    if (follows) Enter(DriveState::kDamping, now_ns);
    return;
  }
  if (request.stand && state_ == DriveState::kDamping) {
    result_.refused = ReasonNotToMove();
    if (result_.refused == DriveFault::kNone) Enter(DriveState::kStandUp, now_ns);
    return;
  }
  if (state_ == DriveState::kStandUp &&
      SecondsSince(entered_ns_, now_ns) >= config_.stand_up_time) {
    Enter(DriveState::kStanding, now_ns);
  }
  if (request.run && state_ == DriveState::kStanding) Enter(DriveState::kPolicy, now_ns);
}

void Commander::Enter(DriveState state, std::int64_t now_ns) {
  state_ = state;
  entered_ns_ = now_ns;
  switch (state) {
    case DriveState::kStandUp:
      // the first target is where each joint is, so that nothing jumps
      for (int j = 0; j < kJoints; ++j) entry_q_[At(j)] = target_[At(j)] = robot_.motor[j].q;
      torque_limited_.fill(0);
      gain_scale_ = 1;
      break;
    case DriveState::kPolicy:
      ++session_;
      ticks_to_request_ = 0;
      answered_ = false;
      overruns_in_row_ = 0;
      stiffness_ = StiffnessNote{};
      stiffness_ns_ = now_ns;
      break;
    default:
      break;
  }
}

void Commander::WriteDamping() { FillDamping(config_, machine_mode_, &result_.command); }

void Commander::WriteServo(std::int64_t now_ns) {
  const double since = SecondsSince(entered_ns_, now_ns);
  double blend = 0;  // 0: standing, 1: the policy
  if (state_ == DriveState::kPolicy && answered_) {
    blend = config_.blend_time > 0
                ? Smooth(SecondsSince(first_answer_ns_, now_ns) / config_.blend_time)
                : 1;
  }
  const double up = state_ == DriveState::kStandUp && config_.stand_up_time > 0
                        ? Smooth(since / config_.stand_up_time)
                        : 1;
  const bool too_stiff = (monitor_.tripped(DriveFault::kStiffness) &&
                          monitor_.rule(DriveFault::kStiffness).reaction == Reaction::kSoften) ||
                         (monitor_.tripped(DriveFault::kActionLoop) &&
                          monitor_.rule(DriveFault::kActionLoop).reaction == Reaction::kSoften);
  const double elapsed = std::clamp(gap_, 0.0, config_.tick_period);  // [s]
  const double change = config_.soften_rate * elapsed;
  gain_scale_ = std::clamp(gain_scale_ + (too_stiff ? -change : change), config_.softest, 1.0);

  for (int j = 0; j < kJoints; ++j) {
    const auto i = At(j);
    const double q = robot_.motor[j].q, qd = robot_.motor[j].dq;
    const double kp = gain_scale_ * ((1 - blend) * config_.stand_kp[i] + blend * config_.kp[i]);
    const double kd = (1 - blend) * config_.stand_kd[i] + blend * config_.kd[i];
    double wanted = entry_q_[i] + up * (config_.stand_pose[i] - entry_q_[i]);
    if (blend > 0) wanted += blend * (answer_.target[i] - wanted);

    // slower than the motor can turn; a tick that comes early allows less
    const double step = config_.velocity_limit[i] * elapsed;
    const double reached = std::clamp(wanted, target_[i] - step, target_[i] + step);
    limits_.speed += reached != wanted ? 1 : 0;
    target_[i] = reached;
    // no more torque than the motor has: |kp (q* − q) − kd q̇| ≤ effort
    double sent = reached;
    if (kp > 0) {
      const double middle = q + kd * qd / kp, reach = config_.effort_limit[i] / kp;
      sent = std::clamp(reached, middle - reach, middle + reach);
    }
    torque_limited_[i] = sent != reached ? torque_limited_[i] + 1 : 0;
    limits_.torque += sent != reached ? 1 : 0;
    // last, so that no target is ever beyond the joint's range
    const double inside = std::clamp(sent, config_.q_min[i], config_.q_max[i]);
    limits_.range += inside != sent ? 1 : 0;

    MotorCommand& motor = result_.command.motor[j];
    motor.q = static_cast<float>(inside);
    motor.kp = static_cast<float>(kp);
    motor.kd = static_cast<float>(kd);
    if (!std::isfinite(motor.q) || !std::isfinite(motor.kp) || !std::isfinite(motor.kd)) {
      WriteDamping();
      return;
    }
  }
}

void Commander::AskPolicy(const OperatorRequest& request, std::int64_t now_ns) {
  if (ticks_to_request_-- > 0) return;
  ticks_to_request_ =
      static_cast<int>(std::lround(config_.policy_period / config_.tick_period)) - 1;
  result_.ask_policy = true;
  PolicyRequest& ask = result_.request;
  ask.sequence = ++sequence_;
  ask.session = session_;
  ask.time_ns = now_ns;
  ask.state = robot_;
  ask.vx = request.vx;
  ask.vy = request.vy;
  ask.yaw_rate = request.yaw_rate;
}

}  // namespace silc
