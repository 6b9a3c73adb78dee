// SPDX-License-Identifier: Apache-2.0
#include "silc/deploy/fault.h"

#include <algorithm>
#include <cmath>

namespace silc {
namespace {

constexpr Watch kAlways = Watch::kAlways, kMoving = Watch::kMoving, kPolicyOnly = Watch::kPolicy;

// clang-format off
constexpr std::array<FaultKind, kNumFaults> kFaultKinds = {{
  {Fault::kNone,               "none",                "",      kAlways,     false, ""},
  {Fault::kEmergencyStop,      "emergency_stop",      "",      kAlways,     false, "stop button pressed"},
  {Fault::kConsoleLost,        "console_lost",        "",      kAlways,     false, "terminal closed"},
  {Fault::kRemoteCorrupt,      "remote_corrupt",      "frame", kAlways,     false, "implausible remote frames in a row"},
  {Fault::kStateAge,           "state_age",           "s",     kAlways,     false, "since the last good state"},
  {Fault::kStateCorrupt,       "state_corrupt",       "frame", kAlways,     false, "states with a wrong CRC in a row"},
  {Fault::kTickFrozen,         "tick_frozen",         "frame", kAlways,     false, "states with the same tick in a row"},
  {Fault::kTickBackward,       "tick_backward",       "",      kAlways,     false, "steps of the robot's tick back"},
  {Fault::kMachineMode,        "machine_mode",        "",      kAlways,     false, "another machine mode than at the start"},
  {Fault::kModePr,             "mode_pr",             "",      kAlways,     false, "mode_pr: not pitch and roll"},
  {Fault::kRobotLost,          "robot_lost",          "",      kAlways,     false, "no robot on the bus"},
  {Fault::kForeignWriter,      "foreign_writer",      "",      kAlways,     false, "other writers of commands"},
  {Fault::kSendFailed,         "send_failed",         "frame", kAlways,     false, "commands in a row that could not be sent"},
  {Fault::kStateNotFinite,     "state_not_finite",    "",      kAlways,     false, "numbers of the state that are none"},
  {Fault::kImuQuaternion,      "imu_quaternion",      "",      kAlways,     false, "off unit length"},
  {Fault::kTilt,               "tilt",                "rad",   kMoving,     false, "from upright"},
  {Fault::kGyro,               "gyro",                "rad/s", kMoving,     false, "of the base"},
  {Fault::kJointSpeed,         "joint_speed",         "rad/s", kMoving,     false, "of a joint"},
  {Fault::kFastJoints,         "fast_joints",         "joint", kMoving,     false, "above half the limit on joint speed"},
  {Fault::kJointRange,         "joint_range",         "rad",   kMoving,     false, "beyond a joint's range"},
  {Fault::kJointTorque,        "joint_torque",        "",      kMoving,     false, "of a joint's effort limit, measured"},
  {Fault::kCasingTemperature,  "casing_temperature",  "°C",    kMoving,     false, "of a motor's casing"},
  {Fault::kWindingTemperature, "winding_temperature", "°C",    kMoving,     false, "of a motor's winding"},
  {Fault::kMotorFault,         "motor_fault",         "",      kMoving,     false, "motors with a fault word"},
  {Fault::kTracking,           "tracking",            "rad",   kMoving,     false, "between a joint and its target"},
  {Fault::kTorqueLimited,      "torque_limited",      "s",     kMoving,     false, "a joint's torque limited without pause"},
  {Fault::kPolicyNotFinite,    "policy_not_finite",   "",      kPolicyOnly, false, "answers that are no numbers"},
  {Fault::kPolicyWidth,        "policy_width",        "",      kPolicyOnly, false, "numbers too many or too few in an answer"},
  {Fault::kPolicyAge,          "policy_age",          "s",     kPolicyOnly, false, "since the policy's last answer"},
  {Fault::kPolicyOverruns,     "policy_overruns",     "",      kPolicyOnly, false, "answers in a row later than a control period"},
  {Fault::kTargetWild,         "target_wild",         "rad",   kPolicyOnly, false, "target beyond a joint's range"},
  {Fault::kCommandGap,         "command_gap",         "s",     kMoving,     false, "between two command ticks"},
  {Fault::kCommandOverruns,    "command_overruns",    "tick",  kMoving,     false, "late command ticks within a second"},
  {Fault::kLogDropped,         "log_dropped",         "",      kMoving,     true,  "records the log could not keep"},
  {Fault::kStiffness,          "stiffness",           "",      kPolicyOnly, true,  "of the stiffness budget"},
  {Fault::kActionLoop,         "action_loop",         "",      kPolicyOnly, true,  "spectral radius of the action loop"},
  {Fault::kObserverAge,        "observer_age",        "s",     kPolicyOnly, true,  "since stiffness was last observed"},
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

const FaultKind& KindOf(Fault fault) { return kFaultKinds[static_cast<std::size_t>(fault)]; }

Fault FaultNamed(std::string_view name) {
  for (const FaultKind& kind : kFaultKinds) {
    if (kind.name == name) return kind.fault;
  }
  return Fault::kNone;
}

void FaultValues::Worsen(Fault fault, double candidate, int at_joint) {
  const auto i = static_cast<std::size_t>(fault);
  if (std::isnan(value[i]) || candidate <= value[i]) return;
  value[i] = candidate;
  joint[i] = at_joint;
}

Fault FaultMonitor::Update(const FaultValues& values, const std::array<bool, kNumFaults>& watched) {
  Fault first = Fault::kNone;
  for (std::size_t i = 1; i < static_cast<std::size_t>(kNumFaults); ++i) {
    const bool over = watched[i] && !(values.value[i] <= rules_[i].limit);  // a NaN is over
    count_[i] = over ? std::min(count_[i] + 1, rules_[i].ticks) : 0;
    const bool trips = over && count_[i] >= rules_[i].ticks;
    newly_[i] = trips && !tripped_[i];
    tripped_[i] = trips;
    if (trips && rules_[i].reaction == Reaction::kStop && first == Fault::kNone) {
      first = static_cast<Fault>(i);
    }
  }
  return first;
}

}  // namespace silc
