// SPDX-License-Identifier: Apache-2.0
#include "silc/deploy/fault.h"

#include <algorithm>
#include <cmath>

namespace silc {
namespace {

constexpr FaultWatch kAlways = FaultWatch::kAlways, kMoving = FaultWatch::kMoving,
                     kPolicyOnly = FaultWatch::kPolicy;

// clang-format off
constexpr std::array<FaultKind, kNumFaults> kFaultKinds = {{
  {DriveFault::kNone,               "none",                "",      kAlways,     false, ""},
  {DriveFault::kEmergencyStop,      "emergency_stop",      "",      kAlways,     false, "stop button pressed"},
  {DriveFault::kConsoleLost,        "console_lost",        "",      kAlways,     false, "terminal closed"},
  {DriveFault::kRemoteCorrupt,      "remote_corrupt",      "frame", kAlways,     false, "implausible remote frames in a row"},
  {DriveFault::kStateAge,           "state_age",           "s",     kAlways,     false, "since the last good state that was new"},
  {DriveFault::kStateCorrupt,       "state_corrupt",       "frame", kAlways,     false, "states with a wrong CRC in a row"},
  {DriveFault::kTickFrozen,         "tick_frozen",         "frame", kAlways,     false, "states with the same tick in a row"},
  {DriveFault::kTickBackward,       "tick_backward",       "",      kAlways,     false, "steps of the robot's tick back"},
  {DriveFault::kMachineMode,        "machine_mode",        "",      kAlways,     false, "another machine mode than at the start"},
  {DriveFault::kModePr,             "mode_pr",             "",      kAlways,     false, "mode_pr: not pitch and roll"},
  {DriveFault::kRobotLost,          "robot_lost",          "",      kAlways,     false, "no robot on the bus"},
  {DriveFault::kForeignWriter,      "foreign_writer",      "",      kAlways,     false, "other writers of commands"},
  {DriveFault::kSendFailed,         "send_failed",         "frame", kAlways,     false, "commands in a row that could not be sent"},
  {DriveFault::kSendBlocked,        "send_blocked",        "s",     kAlways,     false, "since the command that the robot has was made, and newer ones wait"},
  {DriveFault::kStateNotFinite,     "state_not_finite",    "",      kAlways,     false, "numbers of the state that are none"},
  {DriveFault::kImuQuaternion,      "imu_quaternion",      "",      kAlways,     false, "off unit length"},
  {DriveFault::kTilt,               "tilt",                "rad",   kMoving,     false, "from upright"},
  {DriveFault::kGyro,               "gyro",                "rad/s", kMoving,     false, "of the base"},
  {DriveFault::kJointSpeed,         "joint_speed",         "",      kMoving,     false, "of a joint's velocity limit"},
  {DriveFault::kFastJoints,         "fast_joints",         "joint", kMoving,     false, "faster than half of joint_speed"},
  {DriveFault::kJointRange,         "joint_range",         "rad",   kMoving,     false, "beyond a joint's range"},
  {DriveFault::kJointTorque,        "joint_torque",        "",      kMoving,     false, "of a joint's effort limit, measured"},
  {DriveFault::kCasingTemperature,  "casing_temperature",  "°C",    kMoving,     false, "of a motor's casing"},
  {DriveFault::kWindingTemperature, "winding_temperature", "°C",    kMoving,     false, "of a motor's winding"},
  {DriveFault::kMotorFault,         "motor_fault",         "",      kMoving,     false, "motors with a fault word"},
  {DriveFault::kTracking,           "tracking",            "rad",   kMoving,     false, "between a joint and its target"},
  {DriveFault::kTorqueLimited,      "torque_limited",      "s",     kMoving,     false, "a joint's torque limited without pause"},
  {DriveFault::kPolicyNotFinite,    "policy_not_finite",   "",      kPolicyOnly, false, "answers that are no numbers"},
  {DriveFault::kPolicyWidth,        "policy_width",        "",      kPolicyOnly, false, "numbers too many or too few in an answer"},
  {DriveFault::kPolicyAge,          "policy_age",          "s",     kPolicyOnly, false, "since the policy's last answer"},
  {DriveFault::kPolicyOverruns,     "policy_overruns",     "",      kPolicyOnly, false, "answers in a row later than a control period"},
  {DriveFault::kTargetWild,         "target_wild",         "rad",   kPolicyOnly, false, "target beyond a joint's range"},
  {DriveFault::kCommandGap,         "command_gap",         "s",     kMoving,     false, "between two command ticks"},
  {DriveFault::kCommandOverruns,    "command_overruns",    "tick",  kMoving,     false, "late command ticks within a second"},
  {DriveFault::kLogDropped,         "log_dropped",         "",      kMoving,     true,  "records the log could not keep"},
  {DriveFault::kStiffness,          "stiffness",           "",      kPolicyOnly, true,  "of the stiffness budget"},
  {DriveFault::kActionLoop,         "action_loop",         "",      kPolicyOnly, true,  "spectral radius of the action loop"},
  {DriveFault::kObserverAge,        "observer_age",        "s",     kPolicyOnly, true,  "since a stiffness was last judged"},
}};
// clang-format on

constexpr bool InOrder() {
  for (int i = 0; i < kNumFaults; ++i) {
    if (static_cast<int>(kFaultKinds[static_cast<std::size_t>(i)].fault) != i) return false;
  }
  return true;
}
static_assert(InOrder());

}  // namespace

const std::array<FaultKind, kNumFaults>& FaultKinds() { return kFaultKinds; }

const FaultKind& KindOf(DriveFault fault) { return kFaultKinds[static_cast<std::size_t>(fault)]; }

DriveFault FaultNamed(std::string_view name) {
  for (const FaultKind& kind : kFaultKinds) {
    if (kind.name == name) return kind.fault;
  }
  return DriveFault::kNone;
}

void FaultValues::Worsen(DriveFault fault, double candidate, int at_joint) {
  const auto i = static_cast<std::size_t>(fault);
  if (std::isnan(value[i]) || candidate <= value[i]) return;
  value[i] = candidate;
  joint[i] = at_joint;
}

DriveFault FaultMonitor::Update(const FaultValues& values,
                                const std::array<bool, kNumFaults>& watched) {
  DriveFault first = DriveFault::kNone;
  for (std::size_t i = 1; i < static_cast<std::size_t>(kNumFaults); ++i) {
    const bool kept = watched[i] && values.unjudged[i];
    const bool over = watched[i] && !(values.value[i] <= rules_[i].limit);  // a NaN is over
    if (!kept) count_[i] = over ? std::min(count_[i] + 1, rules_[i].ticks) : 0;
    const bool trips = kept ? tripped_[i] : over && count_[i] >= rules_[i].ticks;
    newly_[i] = trips && !tripped_[i];
    tripped_[i] = trips;
    if (trips && rules_[i].reaction == Reaction::kStop && first == DriveFault::kNone) {
      first = static_cast<DriveFault>(i);
    }
  }
  return first;
}

}  // namespace silc
