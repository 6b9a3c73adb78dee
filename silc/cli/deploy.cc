// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cmath>
#include <cstdio>
#include <memory>
#include <mutex>
#include <optional>

#include "silc/base/error.h"
#include "silc/base/utf8.h"
#include "silc/cli/deploy_terminal.h"
#include "silc/cli/layout_option.h"
#include "silc/cli/mode_option.h"
#include "silc/cli/number.h"
#include "silc/cli/verbs.h"
#include "silc/deploy_tools/run_deploy.h"
#include "silc/observe/closed_loop.h"
#include "silc/observe/load_policy.h"

namespace silc {
namespace {

struct DeployArguments {
  std::string policy, robot = kDefaultRobot, layout, gains, network, log;
  std::optional<std::string> mode, budget;
  int domain = 0;
  double height = 0.75, preflight = 3, wait = 10, seconds = 0;  // [m], [s]
  bool dry_run = false, lockstep = false, no_keys = false, no_crc = false, no_tick = false;
  bool no_observe = false, no_machine_mode = false;
};

void PrintSummary(const DeploySummary& summary, const DeployArguments& args) {
  const DeadlineStatistics& d = summary.deadlines;
  fmt::print("command thread: {} ticks, {} late, {}\n", d.ticks, d.late, summary.priority);
  if (!args.lockstep) {
    fmt::print(
        "  jitter p50 {:.0f} µs, p99 {:.0f} µs, p99.9 {:.0f} µs, worst {:.0f} µs; longest "
        "tick {:.0f} µs\n",
        1e6 * d.Jitter(0.5),
        1e6 * d.Jitter(0.99),
        1e6 * d.Jitter(0.999),
        1e6 * d.worst,
        1e6 * d.most_work);
  }
  fmt::print("targets limited [joints × ticks]: {} by speed, {} by torque, {} by range\n",
             summary.limits.speed,
             summary.limits.torque,
             summary.limits.range);
  if (summary.moments > 0) {
    fmt::print("stiffness observed {} times, largest σ {:.3f}, slowest {:.0f} µs\n",
               summary.moments,
               summary.worst_sigma,
               1e6 * summary.slowest_observation);
  }
  fmt::print("{} stops, {} warnings, {} records not logged\n",
             summary.stops,
             summary.warnings,
             summary.dropped_records);
  if (!args.log.empty() && summary.log_error.empty()) fmt::print("wrote {}\n", Printable(args.log));
}

void Deploy(const DeployArguments& args) {
  // while it is off, lock step answers every state with disabled motors: a robot that stands would
  // fall. The loopback interface has no robot on it
  if (args.lockstep && args.network != "lo") {
    throw ConfigError(
        "--lockstep: is for a simulation on this computer, and disables the motors of a robot: "
        "give --network lo, too");
  }
  if (args.mode) ReadPlainBudget(*args.mode);
  const RobotModel robot = RobotModel::Load(args.robot);
  TrainingNotes notes;
  Policy policy = LoadPolicy(args.policy, args.layout, robot, &notes);
  DeployOptions options;
  const UserBudget budget =
      TellChosenBudget(ChooseBudget(args.mode, args.budget, notes, args.policy, robot, &policy));
  options.budget = budget;
  options.log = args.log;
  options.height = args.height;
  options.dry_run = args.dry_run;
  options.lockstep = args.lockstep;
  options.check_crc = !args.no_crc;
  options.check_tick = !args.no_tick;
  options.check_machine_mode = !args.no_machine_mode;
  options.observe = !args.no_observe;
  options.preflight_seconds = args.preflight;
  options.wait_s = args.wait;
  options.seconds = args.seconds;
  const Servo servo = ServoFor(robot, policy, args.gains);
  const std::unique_ptr<RobotLink> link = NeedDdsLink(args.network, args.domain);
  const std::atomic<bool>& stop = EndWhenAsked(HangUp::kIsTold);
  GoOnWhenSuspended();

  std::mutex mutex;
  const auto say = [&](const std::string& line) {
    const std::lock_guard<std::mutex> lock(mutex);
    SayToOperator(line);
  };
  std::optional<DeployKeys> keys;
  const auto on_start = [&](OperatorPanel* panel) {
    say(args.dry_run ? "dry run: nothing is sent" : "the robot is there");
    const std::vector<double>& most = robot.spec().safety.max_command;
    if (!args.no_keys) {
      say(DeployKeys::Help());
      keys.emplace(panel, most[0], most[1], most[2]);
    }
  };
  DeploySummary summary = RunDeploy(robot, policy, servo, link.get(), options, on_start, say, stop);
  keys.reset();
  PrintSummary(summary, args);
  if (!summary.log_error.empty()) throw RunError(summary.log_error);
  if (summary.latched.fault != DriveFault::kNone) {
    throw RunError("ended in a stop: " + FaultText(summary.latched, robot.spec()));
  }
}

}  // namespace

void AddDeploy(CLI::App* app) {
  auto args = std::make_shared<DeployArguments>();
  CLI::App* verb = app->add_subcommand(
      "deploy", "a policy onto a Unitree G1 over DDS, with a layer that keeps people safe");
  verb->add_option("policy", args->policy, "ONNX file")->required();
  verb->add_option("--robot", args->robot, "robot name or path of a robot.yaml")
      ->capture_default_str();
  verb->add_option(
      "--layout", args->layout, LayoutHelp("what the policy sees", "what the file says"));
  AddModeOption(verb,
                &args->mode,
                "budget to judge it by",
                "the one inside the policy, else " + std::string(kDefaultMode));
  AddBudgetOption(verb, &args->budget);
  verb->add_option("--gains", args->gains, "gain set of the robot [the policy's own]");
  verb->add_option("--network", args->network, "interface, as eth0 [Cyclone's choice]");
  verb->add_option("--domain", args->domain, "DDS domain; the robot's is 0")
      ->check(NumberIn(0, 230))
      ->capture_default_str();
  verb->add_flag("--dry-run", args->dry_run, "sends nothing");
  verb->add_option("--log", args->log, "folder for the log; new");
  verb->add_option("--height", args->height, "commanded base height [m]")
      ->check(NumberIn(0, 10))
      ->capture_default_str();
  verb->add_option("--preflight", args->preflight, "simulated standing before [s]; 0: none")
      ->check(NumberIn(0.0, 3600.0))
      ->capture_default_str();
  verb->add_option("--wait", args->wait, "for the robot's first state [s]")
      ->check(NumberIn(0.1, 3600.0))
      ->capture_default_str();
  verb->add_option("--seconds", args->seconds, "ends after this long [s]; 0: when stopped")
      ->check(NumberIn(0.0, 1e6))
      ->capture_default_str();
  verb->add_flag("--no-keys", args->no_keys, "the remote alone");
  verb->add_flag("--no-observe", args->no_observe, "without stiffness");
  verb->add_flag("--no-crc", args->no_crc, "for simulations whose states carry no CRC");
  verb->add_flag("--no-tick", args->no_tick, "for simulations that do not count");
  verb->add_flag(
      "--no-machine-mode", args->no_machine_mode, "for simulations whose machine mode is 0");
  verb->add_flag("--lockstep", args->lockstep, "with silc sim --dds --lockstep, on lo alone");
  verb->callback([args] { Deploy(*args); });
}

}  // namespace silc
