// SPDX-License-Identifier: Apache-2.0
#include "silc/deploy_tools/simulated_robot.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstring>
#include <limits>
#include <sstream>
#include <thread>

#include "silc/base/check.h"
#include "silc/base/error.h"
#include "silc/base/limits.h"
#include "silc/base/nearest.h"
#include "silc/robot/kinematics.h"
#include "silc/robot/pose.h"

namespace silc {
namespace {

using namespace std::chrono_literals;

constexpr double kLift = 0.04;                         // [m] feet above the floor in the gantry
constexpr double kReleaseTime = 1;                     // [s]
constexpr double kPressTime = 0.1;                     // [s]
constexpr double kSpring = 8000, kDamper = 600;        // [N/m], [N·s/m] of the gantry
constexpr double kGripSpring = 800, kGripDamper = 20;  // [N·m/rad], [N·m·s/rad]
constexpr double kGripSpeed = 5;                       // [rad/s]
constexpr int kGrippedJoint = 15;                      // left shoulder pitch
constexpr double kTwist = 400, kTwistDamper = 40;      // [N·m/rad], [N·m·s/rad]
constexpr double kMaxMotorTime = 0.02;                 // [s] period and delay: kMostMotorDelay

struct NamedButton {
  const char* name;
  std::uint16_t bits;
};
constexpr std::uint16_t Bit(RemoteButton button) {
  return static_cast<std::uint16_t>(1U << static_cast<int>(button));
}
constexpr NamedButton kButtons[] = {
    {"B", Bit(RemoteButton::kB)},
    {"start", Bit(RemoteButton::kStart)},
    {"A", Bit(RemoteButton::kA)},
    {"X", Bit(RemoteButton::kX)},
    {"select", Bit(RemoteButton::kSelect)},
    {"L2+B", static_cast<std::uint16_t>(Bit(RemoteButton::kL2) | Bit(RemoteButton::kB))},
};

}  // namespace

const std::vector<std::string>& InjectedFaults() {
  static const std::vector<std::string> names = {
      "silence",  "crc",         "freeze", "restart", "mode_machine", "mode_pr",
      "nan",      "quaternion",  "tilt",   "speed",   "fast",         "gyro",
      "encoder",  "torque",      "casing", "winding", "motor_fault",  "dead_motor",
      "arm_held", "arm_dragged", "remote"};
  return names;
}

namespace {

// The whole word, in the range; false: it is no such number.
bool ReadNumber(const std::string& word, double low, double high, double* number) {
  const char* end = word.data() + word.size();
  const auto [rest, code] = std::from_chars(word.data(), end, *number);
  return code == std::errc() && rest == end && *number >= low && *number <= high;
}

// One event with its time. Throws ConfigError.
ScriptEvent ParseLine(const std::string& line) {
  const auto fail = [&](const std::string& why) {
    throw ConfigError("--script: '" + line + "': " + why);
  };
  static const std::vector<std::string> known = {
      "press", "stick", "release", "push", "motors", "fault", "mend", "end"};
  std::istringstream words(line);
  ScriptEvent event;
  std::string word;
  words >> word;
  if (!ReadNumber(word, 0, kMaxScriptTime, &event.time) || !(words >> event.what)) {
    fail(
        fmt::format("must begin with a time from 0 to {:g} s and what happens, as in '3.5 press A'",
                    kMaxScriptTime));
  }
  if (std::find(known.begin(), known.end(), event.what) == known.end()) {
    fail("'" + event.what + "' is not known" + DidYouMean(event.what, known));
  }
  const bool named = event.what == "press" || event.what == "stick" || event.what == "fault";
  if (named && !(words >> event.name)) fail("names nothing");
  const bool motors = event.what == "motors";
  const std::size_t wanted = event.what == "stick" ? 1 : event.what == "push" ? 4 : motors ? 2 : 0;
  while (words >> word) {
    const bool duration = motors || (event.what == "push" && event.numbers.size() == 3);
    const double most = event.what == "stick" ? 1
                        : motors              ? kMaxMotorTime
                        : duration            ? kMaxPushDuration
                                              : kMaxPushForce;
    double number = 0;
    if (event.numbers.size() < wanted && !ReadNumber(word, duration ? 0 : -most, most, &number)) {
      fail(fmt::format("'{}' is no number within {}{:g}", word, duration ? "0 and " : "±", most));
    }
    event.numbers.push_back(number);
  }
  if (event.numbers.size() != wanted) fail(fmt::format("takes {} numbers", wanted));
  if (event.what == "press" &&
      std::none_of(std::begin(kButtons), std::end(kButtons), [&](const NamedButton& button) {
        return event.name == button.name;
      })) {
    fail("buttons are B, start, A, X, select, L2+B");
  }
  if (event.what == "stick" && event.name != "lx" && event.name != "ly" && event.name != "rx" &&
      event.name != "ry") {
    fail("sticks are lx, ly, rx, ry");
  }
  const auto& faults = InjectedFaults();
  if (event.what == "fault" &&
      std::find(faults.begin(), faults.end(), event.name) == faults.end()) {
    fail("'" + event.name + "' is not known" + DidYouMean(event.name, faults));
  }
  return event;
}

}  // namespace

std::vector<ScriptEvent> ParseScript(const std::string& text) {
  std::string lines = text;
  std::replace(lines.begin(), lines.end(), ';', '\n');
  std::istringstream in(lines);
  std::vector<ScriptEvent> events;
  for (std::string line; std::getline(in, line);) {
    if (line.find_first_not_of(" \t\r") != std::string::npos) events.push_back(ParseLine(line));
  }
  std::stable_sort(events.begin(), events.end(), [](const ScriptEvent& a, const ScriptEvent& b) {
    return a.time < b.time;
  });
  return events;
}

ScriptEvent ParseEvent(const std::string& text) {
  const std::vector<ScriptEvent> events = ParseScript("0 " + text);
  if (events.size() != 1) throw ConfigError("'" + text + "': one event at a time");
  return events[0];
}

LoadOptions SimulatedRobot::NeededLoad() {
  LoadOptions load;
  load.physics_period = 0.001;
  return load;
}

SimulatedRobot::SimulatedRobot(const RobotModel& robot)
    : robot_(robot), data_(robot.MakeData()), tau_(Eigen::VectorXd::Zero(robot.num_joints())) {
  SILC_CHECK(robot.num_joints() == kRobotMotors);
  SILC_CHECK(std::abs(robot.model()->opt.timestep - 0.001) < 1e-9);
  StandInPose(robot, robot.spec().StandingPose(), data_.get(), 0);
  standing_height_ = data_->qpos[robot.base_qpos_address() + 2];
  gantry_height_ = standing_height_ + kLift;
  data_->qpos[robot.base_qpos_address() + 2] = gantry_height_;
  mj_forward(robot.model(), data_.get());
}

bool SimulatedRobot::Follow(const LowCommand& command) {
  if (command.crc != FrameCrc(command) || command.mode_machine != kMachineMode ||
      command.mode_pr != 0) {
    ++refused_;
    return false;
  }
  command_ = command;
  return true;
}

void SimulatedRobot::Happen(const ScriptEvent& event) {
  if (event.what == "press") {
    for (const NamedButton& button : kButtons) {
      if (event.name == button.name) remote_.buttons = button.bits;
    }
    pressed_until_ = time() + kPressTime;
  } else if (event.what == "stick") {
    float* stick = event.name == "lx"   ? &remote_.lx
                   : event.name == "ly" ? &remote_.ly
                   : event.name == "rx" ? &remote_.rx
                                        : &remote_.ry;
    *stick = static_cast<float>(event.numbers[0]);
  } else if (event.what == "release") {
    releasing_ = true;
  } else if (event.what == "push") {
    push_ = {event.numbers[0], event.numbers[1], event.numbers[2]};
    pushed_until_ = time() + event.numbers[3];
  } else if (event.what == "motors") {
    const auto steps = [&](double seconds) {
      return static_cast<int>(std::lround(seconds / robot_.model()->opt.timestep));
    };
    motor_period_ = std::max(1, steps(event.numbers[0]));
    motor_delay_ = steps(event.numbers[1]);
    SILC_CHECK(motor_delay_ <= kMostMotorDelay);
    first_of_motors_ = step_;
  } else if (event.what == "fault") {
    fault_ = event.name;
    frozen_tick_ = last_.tick;
    arm_grip_ = JointPosition(kGrippedJoint);
  } else if (event.what == "mend") {
    fault_.clear();
  } else if (event.what == "end") {
    ended_ = true;
  }
}

double SimulatedRobot::JointPosition(int joint) const {
  return data_->qpos[robot_.qpos_address()[static_cast<std::size_t>(joint)]];
}

double SimulatedRobot::MeasuredPosition(int joint) const {
  return fault_ == "encoder" && joint == 5 ? 0.5 : JointPosition(joint);
}

// Somebody takes the arm and leads it away: a spring whose other end moves.
void SimulatedRobot::ApplyGrip() {
  const int dof = robot_.dof_address()[kGrippedJoint];
  data_->qfrc_applied[dof] = 0;
  const double way = fault_ == "arm_held" ? 1.2 : fault_ == "arm_dragged" ? 1.9 : 0;  // [rad]
  if (way == 0) return;
  const double q = JointPosition(kGrippedJoint);
  // up, in front of the robot, where nothing is in the way; shoulder pitch is negative there
  gripped_ = std::min(way, gripped_ + kGripSpeed * robot_.model()->opt.timestep);
  data_->qfrc_applied[dof] =
      kGripSpring * (arm_grip_ - gripped_ - q) - kGripDamper * data_->qvel[dof];
}

void SimulatedRobot::ApplyGantry() {
  const mjModel* model = robot_.model();
  mjtNum* force = data_->xfrc_applied + 6 * robot_.base_body();
  mju_zero(force, 6);
  const double step = model->opt.timestep;
  if (time() < pushed_until_) {
    for (int k = 0; k < 3; ++k) force[k] += push_[k];
  }
  if (gantry_ <= 0) return;
  // it lets the feet down to the floor once the legs can carry
  driven_for_ = command_.motor[3].kp > 0 ? driven_for_ + step : 0;
  if (driven_for_ > 1.5) gantry_height_ = std::max(standing_height_, gantry_height_ - 0.1 * step);
  if (releasing_) gantry_ = std::max(0.0, gantry_ - step / kReleaseTime);
  const mjtNum* q = data_->qpos + robot_.base_qpos_address();
  const mjtNum* v = data_->qvel + robot_.base_dof_address();
  for (int k = 0; k < 3; ++k) {
    const double wanted = k == 2 ? gantry_height_ : 0;
    force[k] += gantry_ * (kSpring * (wanted - q[k]) - kDamper * v[k]);
  }
  // turns the base upright: the rotation vector of its orientation, in W
  mjtNum twist[3], omega[3];
  mju_quat2Vel(twist, q + 3, 1);
  mju_rotVecQuat(omega, v + 3, q + 3);
  for (int k = 0; k < 3; ++k)
    force[3 + k] += gantry_ * (-kTwist * twist[k] - kTwistDamper * omega[k]);
}

// MuJoCo resets a state that it finds absurd, its time included, and counts a warning. `time`: of
// the step.
void SimulatedRobot::LookForDivergence(double time) {
  const mjModel* model = robot_.model();
  const auto joint_of_qpos = [&](int address) {
    int joint = 0;
    while (joint + 1 < model->njnt && model->jnt_qposadr[joint + 1] <= address) ++joint;
    return joint;
  };
  const std::pair<mjtWarning, const char*> absurd[] = {
      {mjWARN_BADQPOS, "position"}, {mjWARN_BADQVEL, "speed"}, {mjWARN_BADQACC, "acceleration"}};
  for (const auto& [warning, quantity] : absurd) {
    const mjWarningStat& seen = data_->warning[warning];
    if (seen.number == 0) continue;
    const int joint =
        warning == mjWARN_BADQPOS ? joint_of_qpos(seen.lastinfo) : model->dof_jntid[seen.lastinfo];
    const bool base = model->jnt_type[joint] == mjJNT_FREE;
    const char* name = base ? "the base" : mj_id2name(model, mjOBJ_JOINT, joint);
    divergence_ = fmt::format("at {:.3f} s: the {} of {} is no number or beyond {:g}",
                              time,
                              quantity,
                              name != nullptr ? name : "a joint without a name",
                              mjMAXVAL);
    return;
  }
}

void SimulatedRobot::ReadEncoders() {
  Encoders& now = encoders_[static_cast<std::size_t>(step_) % encoders_.size()];
  for (int j = 0; j < kRobotMotors; ++j) {
    const auto i = static_cast<std::size_t>(j);
    now.q[i] = MeasuredPosition(j);  // the motor has no other encoder
    now.qd[i] = data_->qvel[robot_.dof_address()[i]];
  }
}

// Torques for this step and those that follow until the next call.
void SimulatedRobot::ApplyMotors() {
  const std::int64_t seen = std::max<std::int64_t>(0, step_ - motor_delay_);
  const Encoders& encoders = encoders_[static_cast<std::size_t>(seen) % encoders_.size()];
  for (int j = 0; j < kRobotMotors; ++j) {
    const auto i = static_cast<std::size_t>(j);
    const MotorCommand& motor = command_.motor[j];
    const double limit = robot_.effort_limit()[j];
    double tau =
        motor.tau + motor.kp * (motor.q - encoders.q[i]) + motor.kd * (motor.dq - encoders.qd[i]);
    if (motor.mode != 1 || !std::isfinite(tau)) tau = 0;
    if (fault_ == "dead_motor" && j == 3) tau = 0;
    tau_[j] = std::clamp(tau, -limit, limit);
    data_->ctrl[robot_.actuator()[i]] = tau_[j];
  }
}

void SimulatedRobot::Step() {
  if (!divergence_.empty()) return;
  ReadEncoders();
  if ((step_ - first_of_motors_) % motor_period_ == 0) ApplyMotors();
  ++step_;
  ApplyGantry();
  ApplyGrip();
  const double before = time();
  mj_step(robot_.model(), data_.get());
  LookForDivergence(before);
  if (time() > pressed_until_) remote_.buttons = 0;
}

bool SimulatedRobot::Frame(LowState* frame) {
  std::memset(frame, 0, sizeof *frame);
  if (!divergence_.empty()) return false;
  frame->mode_machine = kMachineMode;
  frame->tick = static_cast<std::uint32_t>(std::lround(1000 * time()));
  const mjtNum* base = data_->qpos + robot_.base_qpos_address();
  const mjtNum* v = data_->qvel + robot_.base_dof_address();
  for (int k = 0; k < 4; ++k) frame->imu.quat_wxyz[k] = static_cast<float>(base[3 + k]);
  for (int k = 0; k < 3; ++k) frame->imu.gyro[k] = static_cast<float>(v[3 + k]);
  frame->imu.accel[2] = 9.81F;
  for (int j = 0; j < kRobotMotors; ++j) {
    const auto i = static_cast<std::size_t>(j);
    MotorReading& motor = frame->motor[j];
    motor.mode = 1;
    motor.q = static_cast<float>(MeasuredPosition(j));
    motor.dq = static_cast<float>(data_->qvel[robot_.dof_address()[i]]);
    motor.tau_est = static_cast<float>(tau_[j]);
    motor.temperature_C[0] = 35;
    motor.temperature_C[1] = 45;
    motor.voltage = 48;
  }
  EncodeRemote(remote_, std::span<std::uint8_t, 40>(frame->remote));

  const float nan = std::numeric_limits<float>::quiet_NaN();
  if (fault_ == "silence") return false;
  if (fault_ == "freeze") frame->tick = frozen_tick_;
  if (fault_ == "restart") frame->tick -= frozen_tick_;
  if (fault_ == "mode_machine") frame->mode_machine = 4;
  if (fault_ == "mode_pr") frame->mode_pr = 1;
  if (fault_ == "nan") frame->motor[8].q = nan;
  if (fault_ == "quaternion") frame->imu.quat_wxyz[0] *= 0.8F;
  if (fault_ == "tilt") {
    const mjtNum turn[4] = {std::cos(0.6), 0, std::sin(0.6), 0};  // 1.2 rad forward
    mjtNum turned[4];
    mju_mulQuat(turned, base + 3, turn);
    for (int k = 0; k < 4; ++k) frame->imu.quat_wxyz[k] = static_cast<float>(turned[k]);
  }
  if (fault_ == "speed") frame->motor[3].dq = 25;
  if (fault_ == "fast") {
    for (int j = 0; j < 6; ++j) {
      frame->motor[j].dq = 0.6F * static_cast<float>(robot_.spec().velocity_limit[j]);
    }
  }
  if (fault_ == "gyro") frame->imu.gyro[0] = 7;
  if (fault_ == "torque") frame->motor[4].tau_est = 70;
  if (fault_ == "casing") frame->motor[9].temperature_C[0] = 90;
  if (fault_ == "winding") frame->motor[9].temperature_C[1] = 125;
  if (fault_ == "motor_fault") frame->motor[20].fault_word = 1;
  if (fault_ == "remote") std::memcpy(frame->remote + 8, &nan, sizeof nan);
  frame->crc = FrameCrc(*frame);
  if (fault_ == "crc") frame->crc ^= 0x100;
  last_ = *frame;
  return true;
}

bool SimulatedRobot::damped() const {
  return std::all_of(std::begin(command_.motor),
                     std::end(command_.motor),
                     [](const MotorCommand& motor) { return motor.kp == 0; });
}

double SimulatedRobot::tilt() const {
  return std::acos(std::clamp(-GravityInBase(robot_, *data_).z(), -1.0, 1.0));
}

double SimulatedRobot::fastest_joint() const {
  double fastest = 0;
  for (const int dof : robot_.dof_address())
    fastest = std::max(fastest, std::abs(data_->qvel[dof]));
  return fastest;
}

double SimulatedRobot::strongest_torque() const {
  return (tau_.array().abs() / robot_.effort_limit().array()).maxCoeff();
}

void RunSimulation(SimulatedRobot* robot,
                   RobotPort* port,
                   const SimulatedRobotOptions& options,
                   const std::atomic<bool>& stop) {
  std::size_t next_event = 0;
  int milliseconds = 0;
  auto due = std::chrono::steady_clock::now();
  bool driven = false;
  while (!stop && !robot->ended() && robot->divergence().empty() &&
         (options.seconds <= 0 || robot->time() < options.seconds - 1e-9)) {
    // a state every 2 ms, as the robot sends them
    if (milliseconds % 2 == 0) {
      LowState frame;
      LowCommand command;
      const bool spoke = robot->Frame(&frame) && port->SendState(frame);
      if (options.lockstep && spoke) {
        // until a controller is there, time stands still; after that a silent one is not waited for
        bool told = false;
        for (int k = 0; !told && !stop && k < (driven ? 50 : 1); ++k) {
          told = port->ReceiveCommand(&command, 20ms);
        }
        if (told) {
          driven = true;
          robot->Follow(command);
        } else if (!driven) {
          continue;
        }
      } else if (port->ReceiveCommand(&command, 0ns)) {
        robot->Follow(command);
      }
    }
    while (next_event < options.script.size() &&
           options.script[next_event].time <= robot->time() + 1e-9) {
      robot->Happen(options.script[next_event++]);
    }
    for (ScriptEvent event; options.typed && options.typed(&event);) robot->Happen(event);
    robot->Step();
    if (options.each_step) options.each_step(*robot);
    ++milliseconds;
    if (milliseconds % 1000 == 0 && options.each_second) options.each_second(*robot);
    if (options.lockstep) continue;
    due += 1ms;
    // far behind: the lost time is given up, as a robot's would be
    const auto now = std::chrono::steady_clock::now();
    if (now > due + 50ms) due = now;
    std::this_thread::sleep_until(due);
  }
}

}  // namespace silc
