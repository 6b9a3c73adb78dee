// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <memory>

#include "silc/base/error.h"
#include "silc/base/file.h"
#include "silc/base/table.h"
#include "silc/base/utf8.h"
#include "silc/cli/number.h"
#include "silc/cli/output_path.h"
#include "silc/cli/verbs.h"
#include "silc/config/budget_file.h"
#include "silc/observe/run.h"
#include "silc/robot/budget_gains.h"
#include "silc/robot/gain_file.h"

namespace silc {
namespace {

// Moments of --states: every one is a constraint of (G1).
constexpr int kMostStates = 100;

struct GainsArguments {
  std::string robot = kDefaultRobot;
  std::vector<std::string> modes;
  std::string write, name, states;
  GainsRequest request;
};

// Letters, digits and underscores: a key of a YAML map and a name in tables.
void CheckName(const std::string& name, const std::string& from) {
  for (const char c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '-') continue;
    throw ConfigError(from + ": '" + name +
                      "' is no name for a gain set: letters, digits, - and _");
  }
}

std::string JointTable(const RobotModel& robot, const BudgetGains& gains) {
  const RobotSpec& spec = robot.spec();
  const GainSet& now = spec.Gains();
  Table table({{"joint", "", Align::kToLeft},
               {"kp, " + now.name, "[N·m/rad]"},
               {"kp", "[N·m/rad]"},
               {"motor's limit", "[N·m/rad]"},
               {"held by", "", Align::kToLeft},
               {"inertia", "[kg·m²]"},
               {"kd, " + now.name, "[N·m·s/rad]"},
               {"kd", "[N·m·s/rad]"},
               {"action scale", "[rad]"}});
  for (int j = 0; j < spec.num_joints(); ++j) {
    table.Row({spec.joints[j],
               fmt::format("{:.4g}", now.kp[j]),
               fmt::format("{:.4g}", gains.set.kp[j]),
               fmt::format("{:.4g}", gains.limit[j]),
               gains.solution.pressure[j] > 0.5 ? "budget" : "motor",
               fmt::format("{:.3g}", gains.inertia[j]),
               fmt::format("{:.3g}", now.kd[j]),
               fmt::format("{:.3g}", gains.set.kd[j]),
               fmt::format("{:.3g}", gains.set.action_scale[j])});
  }
  return table.Render();
}

// σ (S7c) of the servo alone, and its worst direction over the budget, for every set.
std::string SigmaTable(const RobotModel& robot,
                       const BudgetGains& gains,
                       const GainsRequest& request) {
  std::vector<TableColumn> columns = {{"contact", "", Align::kToLeft}};
  std::vector<const GainSet*> sets;
  for (const GainSet& set : robot.spec().gains) sets.push_back(&set);
  sets.push_back(&gains.set);
  for (const GainSet* set : sets) columns.push_back({set->name, "σ (worst)"});
  Table table(columns);
  for (const ContactMode mode : request.modes) {
    std::vector<std::string> cells = {Name(mode)};
    for (const GainSet* set : sets) {
      const double worst = WorstOfServo(gains.moments, mode, set->kp);
      cells.push_back(fmt::format("{:.3g} ({:.3g})", SigmaOfServo(worst), worst));
    }
    table.Row(cells);
  }
  return table.Render();
}

void Run(GainsArguments args) {
  std::vector<std::string> budgets;
  for (const std::string& mode : args.modes) {
    const UserBudget budget = ReadPlainBudget(mode);
    args.request.budgets.push_back(budget.spec);
    budgets.push_back(fmt::format("{} ({})", budget.name, BudgetNumbers(budget.spec)));
  }
  const bool named = !args.name.empty();
  if (!named) {
    args.name = args.write.empty() ? "budget" : std::filesystem::path(args.write).stem().string();
  }
  RequireWritable({{"--write", args.write}}, {args.robot});
  CheckName(args.name, named || args.write.empty() ? "--name" : "--write");
  const RobotModel robot = RobotModel::Load(args.robot);
  for (const GainSet& known : robot.spec().gains) {
    if (known.name == args.name) {
      throw ConfigError("--name " + args.name + ": " + robot.spec().file +
                        " has a set of this name; take another");
    }
  }
  if (!args.states.empty()) args.request.states = RecordedPoses(args.states, robot, kMostStates);
  BudgetGains gains = GainsFromBudget(robot, args.request);
  gains.set.name = args.name;

  std::vector<std::string> poses = args.request.poses, modes;
  for (const Pose& pose : robot.spec().poses) {
    if (args.request.poses.empty()) poses.push_back(pose.name);
  }
  for (const ContactMode mode : args.request.modes) modes.push_back(Name(mode));
  std::string text = fmt::format("gains of {} inside {}\n{} moments: poses {}",
                                 robot.spec().name,
                                 fmt::join(budgets, " and "),
                                 gains.moments.size(),
                                 fmt::join(poses, ", "));
  if (args.request.samples > 0) {
    text += fmt::format(
        " and {} more about each within ±{:g} rad", args.request.samples, args.request.spread);
  }
  text += fmt::format("; {}", fmt::join(modes, ", "));
  if (!args.states.empty()) {
    text += fmt::format("\nand {} recorded states of {}, on the feet they stand on ({} in flight)",
                        args.request.states.size(),
                        args.states,
                        gains.in_flight);
  }
  text += "\n\n";
  text += JointTable(robot, gains);
  text +=
      "\nσ of the servo alone (S7c), and its worst direction over the budget, over all moments\n";
  text += SigmaTable(robot, gains, args.request);
  fmt::print("{}", Printable(text));
  if (args.write.empty()) return;
  std::string file =
      fmt::format("# servo gains of {} inside {}; silc gains, docs/gains.md\nrobot: {}\ngains:\n",
                  robot.spec().name,
                  fmt::join(budgets, " and "),
                  robot.spec().name);
  const std::string set = GainSetYaml(robot.spec(), gains.set);
  bool fresh = true;
  for (const char c : set) {
    if (fresh) file += "  ";
    file += c;
    fresh = c == '\n';
  }
  // what nobody could read would be written in vain
  try {
    ParseGainFile(robot.spec(), file, args.write);
  } catch (const ConfigError& error) {
    throw ConfigError(fmt::format(
        "--write: these gains are beyond what a gain file may hold; nothing was written\n  {}\n"
        "  --effort-share, --max-frequency and --damping-ratio change them.",
        error.what()));
  }
  WriteFileAtomically(args.write, file);
  fmt::print("wrote {}\n", Printable(args.write));
}

}  // namespace

void AddGains(CLI::App* app) {
  auto args = std::make_shared<GainsArguments>();
  GainsRequest& request = args->request;
  CLI::App* verb = app->add_subcommand(
      "gains", "the largest servo gains inside a budget, over poses and contacts (docs/gains.md)");
  verb->add_option("--robot", args->robot, "name or robot.yaml")->capture_default_str();
  verb->add_option("--mode",
                   args->modes,
                   fmt::format("budgets the servo must fit into, each of them: {}, or YAML files",
                               fmt::join(PlainBudgetNames(), ", ")))
      ->required();
  verb->add_option("--poses", request.poses, "of the robot.yaml, as in home,knees_bent [all]")
      ->delimiter(',');
  verb->add_option("--states",
                   args->states,
                   fmt::format("recorded states, too: qpos and qvel of an .npz, {} at most, evenly "
                               "spread, each on the feet it stands on",
                               kMostStates));
  verb->add_option("--samples", request.samples, "poses drawn about each named one")
      ->check(WholeIn(0, 1000))
      ->capture_default_str();
  verb->add_option("--spread", request.spread, "rad, ± of each joint in those")
      ->check(NumberIn(0.0, 3.0))
      ->capture_default_str();
  verb->add_option("--seed", request.seed)->check(SeedNumber())->capture_default_str();
  verb->add_option("--max-frequency",
                   request.max_frequency,
                   "Hz of a motor without load on its servo: kp ≤ armature (2π f)²")
      ->check(NumberIn(0.1, 1000.0))
      ->capture_default_str();
  verb->add_option("--damping-ratio", request.damping_ratio, "ζ of kd = 2 ζ √(kp I)")
      ->check(NumberIn(0.0, 100.0))
      ->capture_default_str();
  verb->add_option("--effort-share",
                   request.effort_share,
                   "of the effort limit that one unit of action asks for: action scale")
      ->check(NumberIn(0.001, 100.0))
      ->capture_default_str();
  verb->add_option("--write", args->write, "gain file, for a task's gains:");
  verb->add_option("--name", args->name, "of the set [the file's name]");
  verb->callback([args] { Run(*args); });
}

}  // namespace silc
