// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace silc {

/// What can go wrong, in the order in which it is told when several go wrong in one tick. The table
/// in docs/deploy.md has a row for each.
enum class DriveFault : std::uint8_t {
  kNone,
  // the operator
  kEmergencyStop,
  kConsoleLost,
  kRemoteCorrupt,
  // the link
  kStateAge,
  kStateCorrupt,
  kTickFrozen,
  kTickBackward,
  kMachineMode,
  kModePr,
  kRobotLost,
  kForeignWriter,
  kSendFailed,
  kSendBlocked,
  // the robot
  kStateNotFinite,
  kImuQuaternion,
  kTilt,
  kGyro,
  kJointSpeed,
  kFastJoints,
  kJointRange,
  kJointTorque,
  kCasingTemperature,
  kWindingTemperature,
  kMotorFault,
  kTracking,
  kTorqueLimited,
  // the policy
  kPolicyNotFinite,
  kPolicyWidth,
  kPolicyAge,
  kPolicyOverruns,
  kTargetWild,
  // this computer
  kCommandGap,
  kCommandOverruns,
  kLogDropped,
  // stiffness
  kStiffness,
  kActionLoop,
  kObserverAge,
  kCount,
};
inline constexpr int kNumFaults = static_cast<int>(DriveFault::kCount);

/// What a fault does.
enum class Reaction : std::uint8_t {
  kWarn,    ///< told, counted; the robot goes on
  kSoften,  ///< the servo's gains go down while it lasts, and come back after
  kStop,    ///< latched: damping until the operator lets go
};

/// In which states a fault is looked at.
enum class FaultWatch : std::uint8_t {
  kAlways,  ///< in every state that sends commands
  kMoving,  ///< standing up, standing, policy
  kPolicy,  ///< policy
};

/// What never changes about a fault.
struct FaultKind {
  DriveFault fault;
  std::string_view name;  ///< in robot.yaml, in messages
  std::string_view unit;  ///< of value and limit
  FaultWatch watch;
  bool may_continue;         ///< robot.yaml may say warn (or soften) instead of stop
  std::string_view meaning;  ///< "VALUE UNIT …": what the value is
};

/// By DriveFault; the first is a placeholder.
const std::array<FaultKind, kNumFaults>& FaultKinds();
const FaultKind& KindOf(DriveFault fault);
/// kNone for a name that no fault has.
DriveFault FaultNamed(std::string_view name);

/// What robot.yaml says about a fault: it trips when its value has been above `limit`, or no
/// number, for `ticks` command ticks in a row.
struct FaultRule {
  double limit = 0;
  int ticks = 1;
  Reaction reaction = Reaction::kStop;
};
using FaultRules = std::array<FaultRule, kNumFaults>;

/// A fault as it is told.
struct FaultReport {
  DriveFault fault = DriveFault::kNone;
  Reaction reaction = Reaction::kStop;
  std::int64_t time_ns = 0;
  double value = 0, limit = 0;
  int joint = -1;  ///< where it is one joint's
};

/// One value per fault, and the joint it belongs to. Larger is worse in all of them.
struct FaultValues {
  std::array<double, kNumFaults> value{};
  std::array<int, kNumFaults> joint;        // −1: no joint's
  std::array<bool, kNumFaults> unjudged{};  ///< nothing is known: neither good nor bad

  FaultValues() { joint.fill(-1); }
  double& operator[](DriveFault fault) { return value[static_cast<std::size_t>(fault)]; }
  double operator[](DriveFault fault) const { return value[static_cast<std::size_t>(fault)]; }
  /// Takes `candidate` if it is worse than what is there; a NaN is worst of all.
  void Worsen(DriveFault fault, double candidate, int at_joint);
  /// Nothing was learned in this tick: what was counted, and what has tripped, stays as it is.
  void Withhold(DriveFault fault) { unjudged[static_cast<std::size_t>(fault)] = true; }
};

/// Holds values against rules tick by tick. No allocation, nothing thrown.
class FaultMonitor {
 public:
  explicit FaultMonitor(const FaultRules& rules) : rules_(rules) {}

  /// One tick. `watched` says which faults count now; the others' counts begin anew. An unjudged
  /// fault keeps its count: it takes a value within the limit to begin anew.
  /// @return the first that stops the robot, in the order of DriveFault; kNone: none does.
  DriveFault Update(const FaultValues& values, const std::array<bool, kNumFaults>& watched);

  bool tripped(DriveFault fault) const { return tripped_[static_cast<std::size_t>(fault)]; }
  /// Tripped in this tick and not in the one before.
  bool newly_tripped(DriveFault fault) const { return newly_[static_cast<std::size_t>(fault)]; }
  const FaultRule& rule(DriveFault fault) const { return rules_[static_cast<std::size_t>(fault)]; }

 private:
  FaultRules rules_;
  std::array<int, kNumFaults> count_{};
  std::array<bool, kNumFaults> tripped_{}, newly_{};
};

}  // namespace silc
