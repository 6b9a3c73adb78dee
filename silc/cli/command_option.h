// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>
#include <vector>

#include "silc/policy/observation_layout.h"

namespace silc {

/// What a user asks of a policy in a rollout.
struct CommandArguments {
  std::vector<double> velocity = {0, 0, 0};  // vx, vy [m/s], yaw rate [rad/s]
  double height = 0.75;                      // [m]
};

/// --command and --height, the same in every verb that closes the loop.
void AddCommandOptions(CLI::App* verb, CommandArguments* args);

/// A policy that is asked to move walks, else it stands. Throws ConfigError unless there are three
/// velocities.
PolicyCommand CommandFrom(const CommandArguments& args);

}  // namespace silc
