// SPDX-License-Identifier: Apache-2.0
#pragma once

// The G1 with the regulator of silc/lqr on it: a policy whose every derivative is known, for tests
// that need a robot that stands.

#include <memory>

#include "silc/lqr/stand_policy.h"
#include "silc/observe/closed_loop.h"

namespace silc {

inline Policy MakeStandPolicy(const RobotModel& robot) {
  const StandPolicy stand = DesignStandPolicy(robot);
  return Policy(std::make_shared<const Graph>(MlpGraph(stand.network, "obs", "actions")),
                stand.layout,
                {robot.spec().joints, robot.spec().StandingPose().q});
}

/// A policy of one constant action per joint, in a layout of joint positions: PD alone.
inline Policy MakeConstantPolicy(const RobotModel& robot, float action) {
  StandPolicy stand = DesignStandPolicy(robot);
  MlpLayer& layer = stand.network.branches[0][0];
  std::fill(layer.weight.begin(), layer.weight.end(), 0.0f);
  std::fill(layer.bias.begin(), layer.bias.end(), action);
  return Policy(std::make_shared<const Graph>(MlpGraph(stand.network, "obs", "actions")),
                stand.layout,
                {robot.spec().joints, robot.spec().StandingPose().q});
}

inline ClosedLoop MakeLoop(const RobotModel& robot, const Policy& policy, double latency = 0) {
  LoopOptions options;
  options.servo = ServoFor(robot, policy, "");
  options.latency = latency;
  return ClosedLoop(robot, policy, options);
}

}  // namespace silc
