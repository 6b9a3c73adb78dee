// SPDX-License-Identifier: Apache-2.0
#include "silc/cli/command_option.h"

#include <algorithm>

#include "silc/base/error.h"
#include "silc/cli/number.h"

namespace silc {

void AddCommandOptions(CLI::App* verb, CommandArguments* args) {
  verb->add_option(
          "--command", args->velocity, "asked of the policy: vx,vy,yaw-rate [m/s, m/s, rad/s]")
      ->delimiter(',')
      ->check(NumberIn(-10, 10))
      ->capture_default_str();
  verb->add_option(
          "--height", args->height, "commanded base height, where the policy takes one [m]")
      ->check(NumberIn(0, 10))
      ->capture_default_str();
}

PolicyCommand CommandFrom(const CommandArguments& args) {
  const std::vector<double>& v = args.velocity;
  if (v.size() != 3) throw ConfigError("--command takes three numbers: vx,vy,yaw-rate");
  PolicyCommand command;
  command.lin_vel = {v[0], v[1]};
  command.yaw_rate = v[2];
  command.height = args.height;
  command.walk = std::ranges::any_of(v, [](double x) { return x != 0; }) ? 1 : 0;
  return command;
}

}  // namespace silc
