// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <optional>

#include "silc/base/error.h"
#include "silc/base/file.h"
#include "silc/base/thread_pool.h"
#include "silc/base/utf8.h"
#include "silc/certify/certify_run.h"
#include "silc/cli/command_option.h"
#include "silc/cli/layout_option.h"
#include "silc/cli/mode_option.h"
#include "silc/cli/number.h"
#include "silc/cli/output_path.h"
#include "silc/cli/progress.h"
#include "silc/cli/verbs.h"
#include "silc/config/budget_file.h"
#include "silc/observe/load_policy.h"
#include "silc/observe/run.h"
#include "silc/task/task_config.h"

namespace silc {
namespace {

struct CertifyArguments {
  std::string policy;
  std::string robot = kDefaultRobot;
  std::string layout;
  std::optional<std::string> mode;    // none: the budget inside the policy
  std::optional<std::string> budget;  // told to a commanded policy
  std::string gains;
  std::string box, task;
  bool bias = false;
  CommandArguments command;
  CertifyRun run;
  CertifyOptions options;
  bool check = false;
  std::string json;
};

// The noise that the policy was trained with, or that of a task, and what --box says instead.
BoxRadii RadiiFrom(const CertifyArguments& args, const TrainingNotes& notes) {
  BoxRadii radii = NoiseOf(args.task, notes, args.policy);
  radii.frames_together = args.bias;
  return ParseBox(args.box, radii);
}

void RunCertify(const CertifyArguments& args) {
  RequireWritable({{"--json", args.json}}, {args.policy, args.run.states});
  CertifyOptions options = args.options;
  if (args.mode) ReadPlainBudget(*args.mode);
  const PolicyCommand command = CommandFrom(args.command);
  const RobotModel robot = RobotModel::Load(args.robot);
  TrainingNotes notes;
  Policy policy = LoadPolicy(args.policy, args.layout, robot, &notes);
  options.radii = RadiiFrom(args, notes);
  const UserBudget budget =
      TellChosenBudget(ChooseBudget(args.mode, args.budget, notes, args.policy, robot, &policy));
  std::optional<AtomicFile> file;
  if (!args.json.empty()) file.emplace(args.json);

  LoopOptions loop_options;
  loop_options.servo = ServoFor(robot, policy, args.gains);
  loop_options.command = command;
  const auto [certificate, run] = [&] {
    ProgressLine progress("certifying");
    return CertifyPolicy(
        robot, policy, budget, loop_options, args.run, options, args.policy, progress.callback());
  }();
  fmt::print("{}",
             Printable(fmt::format("{}: budget '{}', judged with {}\n{}\n{}",
                                   std::filesystem::path(args.policy).filename().string(),
                                   budget.name,
                                   BudgetTerms(budget.spec),
                                   run.source,
                                   CertificateText(certificate, options))));
  if (file) {
    file->Write(CertificateJson(certificate, options));
    file->Commit();
    fmt::print("wrote {}\n", Printable(file->path()));
  }
  if (run.end != LoopStatus::kRunning) {
    throw RunError(
        fmt::format("{}: {} (after {:.2f} s)", args.policy, Describe(run.end), run.end_time));
  }
  if (args.check && certificate.certified < 1 - 1e-9) {
    throw RunError(fmt::format("{}: the budget '{}' is certified at {:.1f} % of the moments only",
                               args.policy,
                               budget.name,
                               100 * certificate.certified));
  }
}

}  // namespace

void AddCertify(CLI::App* app) {
  auto args = std::make_shared<CertifyArguments>();
  args->options.threads = HardwareThreads();
  CLI::App* verb = app->add_subcommand(
      "certify", "an upper bound of σ over boxes of observations: a proof, not samples");
  verb->add_option("policy", args->policy, "the policy, an ONNX file; an MLP")->required();
  verb->add_option("--box",
                   args->box,
                   "half widths: joint_pos [rad], joint_vel [rad/s], torque [N·m], base_ang_vel "
                   "[rad/s], gravity, action, command, phase, as joint_pos=0.01,gravity=0.03 [the "
                   "sensors' noise in training]");
  verb->add_option("--task",
                   args->task,
                   "take the noise from this task or task file [what the policy's file says of its "
                   "training, else its task's, else " +
                       std::string(kDefaultTask) + "'s]");
  verb->add_flag("--bias", args->bias, "a sensor has one error in all its frames");
  verb->add_option("--robot", args->robot, "robot by name, or its robot.yaml")
      ->capture_default_str();
  verb->add_option(
      "--layout", args->layout, LayoutHelp("what the policy sees", "what the file says"));
  AddModeOption(verb,
                &args->mode,
                "budget to hold it to",
                "the one inside the policy, else " + std::string(kDefaultMode));
  AddBudgetOption(verb, &args->budget);
  verb->add_option(
      "--gains",
      args->gains,
      "gain set of the robot.yaml, or a gain file [the policy's own, else the default]");
  CLI::Option* rollout =
      verb->add_option("--rollout", args->run.rollout, "record moments in MuJoCo for this long [s]")
          ->check(NumberIn(0.02, 3600.0))
          ->capture_default_str();
  verb->add_option("--settle", args->run.settle, "rollout before the first moment [s]")
      ->check(NumberIn(0.0, 600.0))
      ->capture_default_str();
  AddCommandOptions(verb, &args->command);
  verb->add_option("--states", args->run.states, "recorded states: qpos and qvel of an .npz")
      ->excludes(rollout);
  verb->add_option("--moments", args->run.moments, "at most this many, evenly spread")
      ->check(NumberIn(1, 100000))
      ->capture_default_str();
  verb->add_option("--samples", args->options.samples, "random observations per box")
      ->check(NumberIn(0, 10000000))
      ->capture_default_str();
  verb->add_option("--threads", args->options.threads, "[all]")->check(NumberIn(1, 1024));
  verb->add_option("--seed", args->options.seed, "of the samples")
      ->check(SeedNumber())
      ->capture_default_str();
  verb->add_flag("--check", args->check, "exit with 1 unless every moment is certified");
  verb->add_option("--json", args->json, "write every moment's bounds");
  verb->callback([args] { RunCertify(*args); });
}

}  // namespace silc
