// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <functional>
#include <string>

#include "silc/config/budget_file.h"
#include "silc/deploy/link.h"
#include "silc/deploy/node.h"
#include "silc/policy/policy.h"
#include "silc/robot/robot_model.h"

namespace silc {

struct DeployOptions {
  UserBudget budget;
  std::string log;        // folder; "": none
  double height = 0.75;   // [m] commanded base height
  bool dry_run = false;   // nothing is sent
  bool lockstep = false;  // a tick for every state of a simulation
  bool check_crc = true, check_tick = true;
  bool check_machine_mode = true;  // false: 0 is accepted, of simulations that have none
  bool observe = true;             // stiffness on-line
  double preflight_seconds = 3;    // [s] of MuJoCo; 0: none
  double wait_s = 10;              // [s] for the robot's first state
  bool realtime = true;
  double seconds = 0;  // [s] ends after this long; 0: when stopped
};

/// What a run was.
struct DeploySummary {
  DeadlineStatistics deadlines;
  LimitCounts limits;
  FaultReport latched;  // at the end
  std::uint64_t stops = 0, warnings = 0, dropped_records = 0;
  std::uint64_t moments = 0;
  double worst_sigma = 0, slowest_observation = 0;  // [1], [s]
  std::string priority;
  std::string log_error;  // "": the log is whole
};

/// Called from threads of the node.
using SayLine = std::function<void(const std::string&)>;

/// Looks at the log's folder, then pre-flight, then the node with a policy on it, until `stop`.
/// Until the node runs, and in a dry run, the link only listens. `on_start` gets the panel for
/// keys. Throws ConfigError when the log's folder is in use, or the robot.yaml does not fit or
/// reacts to what `observe` leaves out, RunError with every reason when pre-flight refuses or no
/// robot answers.
DeploySummary RunDeploy(const RobotModel& robot,
                        const Policy& policy,
                        const Servo& servo,
                        RobotLink* link,
                        const DeployOptions& options,
                        const std::function<void(OperatorPanel*)>& on_start,
                        const SayLine& say,
                        const std::atomic<bool>& stop);

/// "tilt: 1.02 rad from upright, above 1 rad": one line.
std::string FaultText(const FaultReport& report, const RobotSpec& spec);

}  // namespace silc
