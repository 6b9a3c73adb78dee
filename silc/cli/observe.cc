// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>

#include "silc/base/error.h"
#include "silc/base/file.h"
#include "silc/base/utf8.h"
#include "silc/cli/command_option.h"
#include "silc/cli/layout_option.h"
#include "silc/cli/mode_option.h"
#include "silc/cli/number.h"
#include "silc/cli/output_path.h"
#include "silc/cli/progress.h"
#include "silc/cli/verbs.h"
#include "silc/observe/load_policy.h"
#include "silc/observe/report_csv.h"
#include "silc/observe/report_json.h"
#include "silc/observe/report_plot.h"
#include "silc/observe/report_text.h"
#include "silc/observe/run.h"
#include "silc/observe/shake.h"

namespace silc {
namespace {

struct ObserveArguments {
  std::string policy;
  std::string robot = kDefaultRobot;
  std::string layout;
  std::optional<std::string> mode;    // none: the budget inside the policy
  std::optional<std::string> budget;  // told to a commanded policy
  std::string gains;
  std::string pose;
  double rollout = 0;  // [s]
  double settle = 2;   // [s]
  CommandArguments command;
  std::string states;
  std::string shake;
  std::vector<double> forces = {2, 10, 20, 40};  // [N]
  double latency_ms = 0;
  std::uint64_t seed = 1;
  bool check = false;
  std::string json, csv, plot;
};

Push::Point ParsePoint(const std::string& name) {
  if (name == "left-hand") return Push::Point::kLeftHand;
  if (name == "right-hand") return Push::Point::kRightHand;
  if (name == "left-hand-on-base") return Push::Point::kLeftHandOnBase;
  if (name == "right-hand-on-base") return Push::Point::kRightHandOnBase;
  if (name == "com") return Push::Point::kCom;
  throw ConfigError("--shake " + name +
                    ": must be left-hand or right-hand (in the world), left-hand-on-base or "
                    "right-hand-on-base, or com");
}

LoopOptions MakeLoopOptions(const ObserveArguments& args,
                            const RobotModel& robot,
                            const Policy& policy) {
  LoopOptions options;
  options.command = CommandFrom(args.command);
  options.servo = ServoFor(robot, policy, args.gains);
  options.latency = 1e-3 * args.latency_ms;
  if (args.pose != "stand") options.pose = args.pose;
  return options;
}

std::string GainsFrom(const ObserveArguments& args, const RobotModel& robot, const Policy& policy) {
  if (!args.gains.empty()) return fmt::format("'{}' of {}", args.gains, robot.spec().name);
  if (policy.kp().size() > 0) return "the policy's own";
  return fmt::format("'{}' of {}", robot.spec().default_gains, robot.spec().name);
}

ObservationRun Watch(const ObserveArguments& args,
                     const UserBudget& budget,
                     const ClosedLoop& loop,
                     const std::function<void(const Moment&)>& on_moment) {
  ObservationOptions options;
  options.on_moment = on_moment;
  options.budget = budget;
  options.seed = args.seed;
  if (!args.states.empty()) {
    ProgressLine progress("observing states");
    return ObserveStates(loop, args.states, options, progress.callback());
  }
  if (args.rollout > 0) {
    ProgressLine progress("rolling out");
    return ObserveRollout(loop, args.rollout, args.settle, options, progress.callback());
  }
  return ObservePose(loop, options);
}

void Observe(const ObserveArguments& args) {
  RequireWritable({{"--json", args.json}, {"--csv", args.csv}, {"--plot", args.plot}},
                  {args.policy, args.states, args.robot, args.layout, args.gains});
  if (args.mode) ReadPlainBudget(*args.mode);  // a wrong one is told before any work begins
  const RobotModel robot = RobotModel::Load(args.robot);
  if (!args.shake.empty() && ParsePoint(args.shake) != Push::Point::kCom && !robot.has_hands()) {
    throw ConfigError("--shake " + args.shake + ": " + robot.spec().file +
                      " names no hands; com can be shaken");
  }
  TrainingNotes notes;
  Policy policy = LoadPolicy(args.policy, args.layout, robot, &notes);
  const UserBudget budget =
      TellChosenBudget(ChooseBudget(args.mode, args.budget, notes, args.policy, robot, &policy));
  const ClosedLoop loop(robot, policy, MakeLoopOptions(args, robot, policy));

  // both are written while the run goes on, and have their names once it is over
  std::optional<AtomicFile> json_file, csv_file;
  std::optional<ObservationJsonWriter> json;
  if (!args.json.empty()) {
    json_file.emplace(args.json);
    json.emplace([&](std::string_view text) { json_file->Write(text); });
  }
  if (!args.csv.empty()) {
    csv_file.emplace(args.csv);
    csv_file->Write(CsvHeader(robot.spec().joints));
  }
  ObservationRun run = Watch(args, budget, loop, [&](const Moment& moment) {
    if (json) json->Add(moment);
    if (csv_file) csv_file->Write(CsvRow(moment));
  });
  run.policy = std::filesystem::path(args.policy).filename().string();
  run.gains = GainsFrom(args, robot, policy);
  run.trained = TrainedOtherwise(notes, budget.spec);
  const RunSummary summary = Summarize(run);
  fmt::print("{}", Printable(ObservationText(run, summary)));

  std::optional<ShakeResult> shake;
  if (!args.shake.empty() && run.end == LoopStatus::kRunning) {
    LoadOptions firm;
    firm.firm_contacts = true;
    const RobotModel on_firm_floor = RobotModel::Load(args.robot, firm);
    LoopOptions options = MakeLoopOptions(args, on_firm_floor, policy);
    options.command.lin_vel.setZero();
    options.command.yaw_rate = options.command.walk = 0;
    ShakeOptions shake_options;
    shake_options.point = ParsePoint(args.shake);
    shake_options.forces = args.forces;
    ProgressLine progress("shaking");
    shake = Shake(ClosedLoop(on_firm_floor, policy, options), shake_options, progress.callback());
  }
  if (shake) fmt::print("{}", Printable(ShakeText(*shake)));

  // everything is computed before any file has its name
  if (json) json->Finish(run, summary, shake);
  for (std::optional<AtomicFile>* file : {&json_file, &csv_file}) {
    if (!*file) continue;
    (*file)->Commit();
    fmt::print("wrote {}\n", Printable((*file)->path()));
  }
  if (!args.plot.empty()) {
    WriteFileAtomically(args.plot, ObservationSvg(run));
    fmt::print("wrote {}\n", Printable(args.plot));
  }

  if (run.end != LoopStatus::kRunning) {
    throw RunError(fmt::format("{}: {} (after {:.2f} s, {} observations before that)",
                               args.policy,
                               Describe(run.end),
                               run.end_time,
                               run.moments.size()));
  }
  if (shake && shake->settled != LoopStatus::kRunning) {
    throw RunError(fmt::format("{}: not shaken: {}", args.policy, Describe(shake->settled)));
  }
  if (args.check && !BudgetHolds(summary)) {
    const ModeSummary& all = summary.modes.back();
    const bool over = all.over > 0;
    throw RunError(
        fmt::format("{}: the budget '{}' {}",
                    args.policy,
                    run.budget.name,
                    over ? "does not hold"
                         : fmt::format("is not shown to hold: {} of {} observations could "
                                       "not be judged",
                                       all.moments - all.judged,
                                       all.moments)));
  }
}

}  // namespace

void AddObserve(CLI::App* app) {
  auto args = std::make_shared<ObserveArguments>();
  CLI::App* verb = app->add_subcommand(
      "observe", "how stiff a policy makes its robot, and whether a stiffness budget holds");
  verb->add_option("policy", args->policy, "the policy, an ONNX file")->required();
  verb->add_option("--robot", args->robot, "robot by name, or its robot.yaml")
      ->capture_default_str();
  verb->add_option(
      "--layout", args->layout, LayoutHelp("what the policy sees", "what the file says"));
  AddModeOption(verb,
                &args->mode,
                "budget to hold it to",
                "the one inside the policy, else " + std::string(kDefaultMode));
  AddBudgetOption(verb, &args->budget);
  AddRetiredFlag(verb,
                 "--condition",
                 "is part of the budget: --mode " + std::string(kDefaultMode) +
                     ",condition=two-sided (or one-sided), or `condition: …` in its file");
  verb->add_option(
      "--gains",
      args->gains,
      "gain set of the robot.yaml, or a gain file [the policy's own, else the default]");
  verb->add_option(
      "--pose", args->pose, "observe one pose, standing still: stand, or a pose of the robot.yaml");
  CLI::Option* rollout =
      verb->add_option("--rollout", args->rollout, "close the loop in MuJoCo for this long [s]")
          ->check(NumberIn(0.02, 3600.0));
  AddCommandOptions(verb, &args->command);
  verb->add_option("--settle", args->settle, "rollout before the first observation [s]")
      ->check(NumberIn(0.0, 600.0))
      ->capture_default_str();
  verb->add_option("--states", args->states, "observe recorded states: qpos and qvel of an .npz")
      ->excludes(rollout);
  verb->add_option(
      "--shake",
      args->shake,
      "also push and measure, standing on a firm floor: left-hand, right-hand, com; "
      "left-hand-on-base and right-hand-on-base pull the hand against the base, which is what a "
      "budget's hands bound");
  verb->add_option("--forces", args->forces, "pushes of --shake [N]")
      ->delimiter(',')
      ->check(NumberIn(1e-6, 1e4))
      ->capture_default_str();
  verb->add_option("--latency", args->latency_ms, "from sampling to new targets [ms]")
      ->check(NumberIn(0.0, 1e3 * kMaxLatency))
      ->capture_default_str();
  verb->add_option("--seed", args->seed, "of the random directions")
      ->check(SeedNumber())
      ->capture_default_str();
  verb->add_flag(
      "--check", args->check, "exit with 1 unless the budget holds in every observation");
  verb->add_option("--json", args->json, "write everything, all matrices included");
  verb->add_option("--csv", args->csv, "write one row per observation");
  verb->add_option("--plot", args->plot, "write an SVG page");
  verb->callback([args] { Observe(*args); });
}

}  // namespace silc
