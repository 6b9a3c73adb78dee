// SPDX-License-Identifier: Apache-2.0
#include "silc/deploy_tools/preflight.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "silc/deploy_tools/workers.h"

namespace silc {

std::vector<std::string> CheckPolicy(const RobotModel& robot,
                                     const Policy& policy,
                                     const Servo& servo,
                                     double height,
                                     double seconds,
                                     const std::atomic<bool>* stop) {
  std::vector<std::string> reasons;
  for (const ObservationTerm& term : policy.layout().terms) {
    if (term.source != TermSource::kBaseLinVel) continue;
    reasons.push_back(
        fmt::format("the policy sees '{}', the base's linear velocity, which the robot cannot "
                    "measure",
                    term.name));
  }
  if (!reasons.empty()) return reasons;

  // the first answer, standing in the default pose
  PolicyRequest request;
  request.session = 1;
  request.state.imu.quat_wxyz[0] = 1;
  for (int j = 0; j < kRobotMotors; ++j) {
    request.state.motor[j].q = static_cast<float>(policy.default_pose()[j]);
  }
  PolicyAnswer answer;
  PolicyWorker worker(robot, policy, height);
  worker.Answer(request, &answer);
  if (!answer.finite) reasons.emplace_back("the policy's first answer is not a number");
  for (int j = 0; answer.finite && j < kRobotMotors; ++j) {
    const double tau = servo.kp[j] * (answer.target[static_cast<std::size_t>(j)] -
                                      policy.default_pose()[j]);  // [N·m]
    const double limit = std::min(robot.effort_limit()[j], policy.effort_limit()[j]);
    if (std::abs(tau) <= limit) continue;
    reasons.push_back(
        fmt::format("the first tick would ask {:.0f} N·m of {}, whose limit is {:.0f} N·m",
                    tau,
                    robot.spec().joints[static_cast<std::size_t>(j)],
                    limit));
  }
  if (!reasons.empty() || seconds <= 0) return reasons;

  const std::string fall = FindStandingFall(robot, policy, servo, height, seconds, stop);
  if (!fall.empty()) reasons.push_back("standing in simulation, " + fall);
  return reasons;
}

std::string FindStandingFall(const RobotModel& robot,
                             const Policy& policy,
                             const Servo& servo,
                             double height,
                             double seconds,
                             const std::atomic<bool>* stop) {
  LoopOptions options;
  options.servo = servo;
  options.command.height = height;
  ClosedLoop loop(robot, policy, options);
  const int steps = static_cast<int>(std::lround(seconds / loop.period()));
  for (int k = 0; k < steps && (stop == nullptr || !*stop); ++k) {
    const LoopStatus status = loop.Step();
    if (status == LoopStatus::kRunning) continue;
    return fmt::format("after {:.1f} s: {}", loop.time(), Describe(status));
  }
  return "";
}

std::vector<std::string> CheckRobot(const RobotSpec& spec,
                                    const LowState& state,
                                    const LinkHealth& link,
                                    bool check_machine_mode) {
  std::vector<std::string> reasons;
  const auto& modes = spec.safety.machine_modes;
  const bool none = state.mode_machine == 0;
  if (std::find(modes.begin(), modes.end(), state.mode_machine) == modes.end() &&
      (check_machine_mode || !none)) {
    std::string known;
    for (const int mode : modes) known += (known.empty() ? "" : ", ") + std::to_string(mode);
    reasons.push_back(fmt::format(
        "the robot's machine mode is {}; {} describes {}: another variant{}",
        state.mode_machine,
        spec.file,
        known,
        none ? ", or a simulation that has none, which --no-machine-mode accepts" : ""));
  }
  if (state.mode_pr != 0) {
    reasons.emplace_back("the robot takes ankles and waist as A and B, not as pitch and roll");
  }
  if (link.foreign_writers > 0) {
    reasons.push_back(fmt::format(
        "{} other program(s) write rt/lowcmd: end them, or release the robot's own controller",
        link.foreign_writers));
  }
  for (int j = 0; j < kRobotMotors; ++j) {
    const MotorReading& motor = state.motor[j];
    if (!std::isfinite(motor.q) || !std::isfinite(motor.dq)) {
      reasons.push_back(fmt::format("the robot reports no number for {}",
                                    spec.joints[static_cast<std::size_t>(j)]));
    }
  }
  return reasons;
}

}  // namespace silc
