// SPDX-License-Identifier: Apache-2.0
#include "silc/deploy_tools/safety_config.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "silc/base/error.h"
#include "silc/base/nearest.h"

namespace silc {
namespace {

constexpr double kDampingSpeed = 10;  // [rad/s] at which damping still is within a joint's effort

JointArray ToArray(const Eigen::VectorXd& values) {
  JointArray array{};
  for (int j = 0; j < kRobotMotors; ++j) array[static_cast<std::size_t>(j)] = values[j];
  return array;
}

FaultRules ReadRules(const RobotSpec& spec) {
  FaultRules rules;
  std::vector<std::string> known;
  for (const FaultKind& kind : FaultKinds()) known.emplace_back(kind.name);
  known.erase(known.begin());  // "none"
  std::vector<bool> given(kNumFaults, false);
  const std::string place = spec.file + ": safety.faults";
  for (const SafetyRule& rule : spec.safety.rules) {
    const DriveFault fault = FaultNamed(rule.fault);
    if (fault == DriveFault::kNone) {
      throw ConfigError(place + ": '" + rule.fault + "' is no fault" +
                        DidYouMean(rule.fault, known));
    }
    Reaction reaction = Reaction::kStop;
    if (rule.reaction == "warn") reaction = Reaction::kWarn;
    if (rule.reaction == "soften") reaction = Reaction::kSoften;
    const bool softens = fault == DriveFault::kStiffness || fault == DriveFault::kActionLoop;
    if (reaction != Reaction::kStop && !KindOf(fault).may_continue) {
      throw ConfigError(place + "." + rule.fault + ".reaction: must be stop");
    }
    if (reaction == Reaction::kSoften && !softens) {
      throw ConfigError(place + "." + rule.fault +
                        ".reaction: softening is an answer to stiffness and action_loop alone");
    }
    // an answer that is no answer must not be carried out for a single tick; some are over after it
    const bool at_once = fault == DriveFault::kPolicyNotFinite ||
                         fault == DriveFault::kPolicyWidth ||
                         fault == DriveFault::kStateNotFinite ||
                         fault == DriveFault::kEmergencyStop || fault == DriveFault::kTickBackward;
    if (at_once && (rule.ticks != 1 || rule.limit != 0)) {
      throw ConfigError(place + "." + rule.fault + ": must have limit 0 and ticks 1");
    }
    rules[static_cast<std::size_t>(fault)] = {rule.limit, rule.ticks, reaction};
    given[static_cast<std::size_t>(fault)] = true;
  }
  for (std::size_t i = 1; i < given.size(); ++i) {
    if (given[i]) continue;
    throw ConfigError(place + ": gives no limit for '" + std::string(FaultKinds()[i].name) + "'");
  }
  const auto stops = [&](DriveFault fault) {
    return rules[static_cast<std::size_t>(fault)].reaction == Reaction::kStop;
  };
  const bool needs_observer = stops(DriveFault::kStiffness) || stops(DriveFault::kActionLoop);
  if (needs_observer && !stops(DriveFault::kObserverAge)) {
    throw ConfigError(place +
                      ".observer_age.reaction: must be stop where stiffness or action_loop stops; "
                      "a policy that nobody judges would never be stopped");
  }
  return rules;
}

// Motors of the frames, 0 to 28.
constexpr std::array<const char*, kRobotMotors> kMotorNames = {
    "left_hip_pitch_joint",      "left_hip_roll_joint",        "left_hip_yaw_joint",
    "left_knee_joint",           "left_ankle_pitch_joint",     "left_ankle_roll_joint",
    "right_hip_pitch_joint",     "right_hip_roll_joint",       "right_hip_yaw_joint",
    "right_knee_joint",          "right_ankle_pitch_joint",    "right_ankle_roll_joint",
    "waist_yaw_joint",           "waist_roll_joint",           "waist_pitch_joint",
    "left_shoulder_pitch_joint", "left_shoulder_roll_joint",   "left_shoulder_yaw_joint",
    "left_elbow_joint",          "left_wrist_roll_joint",      "left_wrist_pitch_joint",
    "left_wrist_yaw_joint",      "right_shoulder_pitch_joint", "right_shoulder_roll_joint",
    "right_shoulder_yaw_joint",  "right_elbow_joint",          "right_wrist_roll_joint",
    "right_wrist_pitch_joint",   "right_wrist_yaw_joint"};

}  // namespace

void NeedMotorOrder(const RobotSpec& spec) {
  const std::string rule = "; a Unitree G1 with 29 joints alone speaks this protocol";
  if (spec.joints.size() != kMotorNames.size()) {
    throw ConfigError(spec.file + ": has " + std::to_string(spec.joints.size()) + " joints" + rule);
  }
  for (std::size_t i = 0; i < kMotorNames.size(); ++i) {
    if (spec.joints[i] == kMotorNames[i]) continue;
    throw ConfigError(spec.file + ": joint " + std::to_string(i) + " is '" + spec.joints[i] +
                      "', but motor " + std::to_string(i) + " is the " + kMotorNames[i] + rule);
  }
}

CommanderConfig MakeCommanderConfig(const RobotModel& robot,
                                    const Policy& policy,
                                    const Servo& servo) {
  const RobotSpec& spec = robot.spec();
  if (!spec.has_safety) {
    throw ConfigError(spec.file +
                      ": has no 'safety', without which no robot is driven; robots/g1/robot.yaml "
                      "is an example");
  }
  NeedMotorOrder(spec);
  if (spec.velocity_limit.size() != kRobotMotors) {
    throw ConfigError(spec.file + ": velocity_limit: is needed to limit targets");
  }
  CommanderConfig config;
  config.rules = ReadRules(spec);
  config.q_min = ToArray(robot.q_min());
  config.q_max = ToArray(robot.q_max());
  config.effort_limit = ToArray(robot.effort_limit().cwiseMin(policy.effort_limit()));
  config.velocity_limit = ToArray(spec.velocity_limit);
  config.stand_kp = ToArray(spec.Gains().kp);
  config.stand_kd = ToArray(spec.Gains().kd);
  config.kp = ToArray(servo.kp);
  config.kd = ToArray(servo.kd);
  config.stand_pose = ToArray(policy.default_pose());
  for (std::size_t i = 0; i < config.damping_kd.size(); ++i) {
    config.damping_kd[i] = std::min(spec.safety.damping_kd, config.effort_limit[i] / kDampingSpeed);
    if (!(config.stand_pose[i] >= config.q_min[i] && config.stand_pose[i] <= config.q_max[i])) {
      throw ConfigError("the policy's default pose has " + spec.joints[i] + " at " +
                        std::to_string(config.stand_pose[i]) + " rad, beyond its range");
    }
  }
  config.tick_period = spec.safety.command_period;
  config.policy_period = policy.layout().control_dt;
  const double ticks = config.policy_period / config.tick_period;
  if (ticks < 1 || std::abs(ticks - std::round(ticks)) > 1e-6) {
    throw ConfigError("the policy's control period of " + std::to_string(config.policy_period) +
                      " s is no multiple of " + spec.file + ": safety.command_period");
  }
  config.stand_up_time = spec.safety.stand_up_time;
  config.blend_time = spec.safety.blend_time;
  config.softest = spec.safety.softest;
  config.soften_rate = spec.safety.soften_rate;
  config.max_vx = spec.safety.max_command[0];
  config.max_vy = spec.safety.max_command[1];
  config.max_yaw_rate = spec.safety.max_command[2];
  return config;
}

}  // namespace silc
