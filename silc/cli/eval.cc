// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>
#include <optional>
#include <utility>

#include "silc/base/error.h"
#include "silc/base/file.h"
#include "silc/base/table.h"
#include "silc/base/thread_pool.h"
#include "silc/base/utf8.h"
#include "silc/cli/command_option.h"
#include "silc/cli/layout_option.h"
#include "silc/cli/mode_option.h"
#include "silc/cli/number.h"
#include "silc/cli/output_path.h"
#include "silc/cli/progress.h"
#include "silc/cli/verbs.h"
#include "silc/eval/experiment.h"
#include "silc/eval/experiment_metrics.h"
#include "silc/eval/experiment_plot.h"
#include "silc/observe/load_policy.h"
#include "silc/robot/robot_fit.h"

namespace silc {
namespace {

struct EvalArguments {
  std::vector<std::string> policies, layouts;
  std::optional<std::string> mode;    // none: the budget inside the policies
  std::optional<std::string> budget;  // told to commanded policies
  std::string json, plot;
  std::uint64_t seed = 1;
  CommandArguments walk{.velocity = {0.5, 0, 0}};
  ExperimentOptions options;
};

// "0.0123 [0.0119, 0.0127]"
std::string WithInterval(const Metric& metric) {
  std::string text = FormatNumber(metric.value);
  if (!std::isnan(metric.low)) {
    text += fmt::format(" [{}, {}]", FormatNumber(metric.low), FormatNumber(metric.high));
  }
  return text;
}

// Few policies: a line per metric, a column per policy.
std::string LinePerMetric(const std::vector<ExperimentResult>& results,
                          const std::vector<std::string>& names) {
  std::vector<TableColumn> columns = {{"", "", Align::kToLeft}, {"", "", Align::kToLeft}};
  for (const std::string& name : names) columns.push_back({name, "[95 %]"});
  Table table(columns);
  // every metric any of them has, in order
  std::vector<MetricHandle> order;
  for (const ExperimentResult& r : results) {
    for (const Metric& metric : r.metrics) {
      if (std::find(order.begin(), order.end(), metric.what) == order.end()) {
        order.push_back(metric.what);
      }
    }
  }
  for (const MetricHandle what : order) {
    std::vector<std::string> cells = {what->label, what->unit};
    for (const ExperimentResult& r : results) {
      const Metric* metric = r.Find(what);
      cells.push_back(metric != nullptr ? WithInterval(*metric) : "");
    }
    table.Row(cells);
  }
  return table.Render();
}

// Many: a line per policy, a column per headline metric.
std::string LinePerPolicy(const Experiment& experiment,
                          const std::vector<ExperimentResult>& results,
                          const std::vector<std::string>& names) {
  std::vector<MetricHandle> shown;
  for (const MetricHandle what : experiment.headline) {
    const bool any = std::any_of(results.begin(), results.end(), [&](const ExperimentResult& r) {
      return r.Find(what) != nullptr;
    });
    if (any) shown.push_back(what);
  }
  std::vector<TableColumn> columns = {{"policy", "", Align::kToLeft}};
  for (const MetricHandle what : shown) columns.push_back({what->label, what->unit});
  Table table(columns);
  for (std::size_t k = 0; k < results.size(); ++k) {
    std::vector<std::string> cells = {names[k]};
    for (const MetricHandle what : shown) {
      cells.push_back(FormatNumber(results[k].Value(what)));
    }
    table.Row(cells);
  }
  return table.Render();
}

// Curves over the same values side by side: a table per panel.
std::string CurveTables(const ExperimentResult& result) {
  std::string text;
  std::vector<std::string> panels;
  for (const Curve& curve : result.curves) {
    if (std::find(panels.begin(), panels.end(), curve.panel) != panels.end()) continue;
    panels.push_back(curve.panel);
    std::vector<const Curve*> own;
    for (const Curve& other : result.curves) {
      if (other.panel == curve.panel && other.x == curve.x) own.push_back(&other);
    }
    constexpr std::size_t kLongest = 20;  // rows; a course of time is for a plot
    if (curve.x.empty() || curve.x.size() > kLongest) continue;
    std::vector<TableColumn> columns = {{curve.x_label, ""}};
    for (const Curve* c : own) {
      if (c->label != "commanded") columns.push_back({c->label, ""});
    }
    Table table(columns);
    for (std::size_t row = 0; row < curve.x.size(); ++row) {
      std::vector<std::string> cells = {FormatNumber(curve.x[row])};
      for (const Curve* c : own) {
        if (c->label != "commanded") cells.push_back(FormatNumber(c->y[row]));
      }
      table.Row(cells);
    }
    text += fmt::format("\n{}: {}\n{}", curve.panel, curve.y_label, table.Render());
  }
  return text;
}

// A policy of the command line and what its file says of its training.
struct NamedPolicy {
  std::string path;
  Policy policy;
  TrainingNotes notes;
};

// What becomes of the policies that cannot be measured. One among several is told by name and left
// out, so that a long comparison does not end with its first bad file; a single one is an error.
class Unmeasured {
 public:
  explicit Unmeasured(std::size_t policies) : policies_(policies) {}

  /// Whether `work` went through for the policy at `path`.
  template <typename Work>
  bool Try(const std::string& path, const Work& work) {
    try {
      work();
      return true;
    } catch (const ConfigError& error) {
      if (policies_ == 1) throw;
      LeaveOut(path, error.what());
    } catch (const RunError& error) {
      if (policies_ == 1) throw RunError(path + ": " + error.what());
      asked_wrongly_ = false;
      LeaveOut(path, error.what());
    }
    return false;
  }

  /// Throws when any was left out: ConfigError when all were and each was asked for wrongly, as a
  /// single one would be; else RunError.
  void ThrowIfAny() const {
    if (paths_.empty()) return;
    std::string list;
    for (const std::string& path : paths_) list += (list.empty() ? "" : ", ") + path;
    const std::string text =
        fmt::format("{} of {} policies could not be measured: {}", paths_.size(), policies_, list);
    if (paths_.size() == policies_ && asked_wrongly_) throw ConfigError(text);
    throw RunError(text);
  }

 private:
  void LeaveOut(const std::string& path, const std::string& why) {
    paths_.push_back(path);
    const bool named = why.starts_with(path);  // most messages begin with the file
    fmt::print(stderr,
               "silc: {}\n  This policy is left out.\n",
               Printable(named ? why : fmt::format("{}: {}", path, why)));
  }

  std::size_t policies_;
  bool asked_wrongly_ = true;  // every one that was left out
  std::vector<std::string> paths_;
};

// Those of the command line that can be read.
std::vector<NamedPolicy> LoadAll(const EvalArguments& args,
                                 const RobotModel& robot,
                                 Unmeasured* unmeasured) {
  std::vector<NamedPolicy> policies;
  for (std::size_t k = 0; k < args.policies.size(); ++k) {
    const std::string layout = args.layouts.empty()       ? ""
                               : args.layouts.size() == 1 ? args.layouts[0]
                                                          : args.layouts[k];
    unmeasured->Try(args.policies[k], [&] {
      TrainingNotes notes;
      Policy policy = LoadPolicy(args.policies[k], layout == "-" ? "" : layout, robot, &notes);
      policies.push_back({args.policies[k], std::move(policy), std::move(notes)});
    });
  }
  return policies;
}

// The budget of a comparison is one for all: what the user said, else the one inside the policies,
// else the default. Two that were trained under different ones need the user's word. A policy whose
// budget is unknown is taken out of `policies`.
UserBudget ChooseForAll(const EvalArguments& args,
                        const RobotModel& robot,
                        std::vector<NamedPolicy>* policies,
                        Unmeasured* unmeasured) {
  const bool any_commanded =
      std::any_of(policies->begin(), policies->end(), [](const NamedPolicy& p) {
        return p.policy.sees_budget();
      });
  if (args.budget && !any_commanded && !policies->empty()) {
    BudgetOfPolicy(policies->front().notes, policies->front().path, args.budget);
  }
  std::optional<UserBudget> chosen;
  std::string from;
  for (std::size_t k = 0; k < policies->size();) {
    NamedPolicy& policy = (*policies)[k++];
    if (policy.notes.mode.empty() && policy.notes.budget.empty())
      continue;  // judged as what it stands beside
    // so is a policy that is told nothing, beside one that is told --budget
    if (!policy.policy.sees_budget() && (args.mode || args.budget)) continue;
    ChosenBudget choice;
    const bool known = unmeasured->Try(policy.path, [&] {
      choice =
          ChooseBudget(args.mode, args.budget, policy.notes, policy.path, robot, &policy.policy);
    });
    if (!known) {
      policies->erase(policies->begin() + static_cast<std::ptrdiff_t>(--k));
      continue;
    }
    const UserBudget own = TellChosenBudget(choice);
    if (args.mode) continue;
    if (!chosen) {
      chosen = own;
      from = policy.path;
    }
    if (own.spec == chosen->spec) continue;
    const bool same_name = own.name == chosen->name;
    const auto words = [&](const UserBudget& b) {
      return same_name
                 ? fmt::format("{} ({}; {})", b.name, BudgetNumbers(b.spec), BudgetTerms(b.spec))
                 : b.name;
    };
    throw ConfigError(fmt::format(
        "{} was trained under the budget {}, {} under {}: say which one to measure all with, as in "
        "--mode {}",
        from,
        words(*chosen),
        policy.path,
        words(own),
        chosen->name));
  }
  if (args.mode) chosen = ReadPlainBudget(*args.mode);
  if (!chosen) chosen = ReadBudget(kDefaultMode);
  if (!args.mode) {
    for (const NamedPolicy& policy : *policies) {
      if (!policy.notes.mode.empty() || !policy.notes.budget.empty()) continue;
      fmt::print("{}\n", Printable(NoBudgetText(policy.path, *chosen)));
    }
  }
  NeedPointsOf(chosen->spec, robot);  // where ChooseBudget() had nothing to choose
  return *chosen;
}

// File names alone where they tell the policies apart.
std::vector<std::string> ShortNames(const std::vector<std::string>& paths) {
  std::vector<std::string> names;
  for (const std::string& path : paths)
    names.push_back(std::filesystem::path(path).stem().string());
  std::vector<std::string> sorted = names;
  std::sort(sorted.begin(), sorted.end());
  const bool apart = std::adjacent_find(sorted.begin(), sorted.end()) == sorted.end();
  return apart ? names : paths;
}

// "gains falcon", or each policy's where they differ.
std::string GainsLine(const std::vector<ExperimentResult>& results,
                      const std::vector<std::string>& names) {
  bool same = true;
  std::string each;
  for (std::size_t k = 0; k < results.size(); ++k) {
    same = same && results[k].gains == results[0].gains;
    each += fmt::format("{}{} {}", k > 0 ? ", " : "", names[k], results[k].gains);
  }
  return "gains " + (same ? results[0].gains : each);
}

// The tables, and the files that were asked for.
// @param trained  TrainedOtherwise() of each policy
void Tell(const Experiment& experiment,
          const EvalArguments& args,
          const ExperimentOptions& options,
          const std::vector<ExperimentResult>& results,
          const std::vector<std::string>& names,
          const std::vector<std::string>& trained) {
  fmt::print("{}: {}\n", experiment.name, experiment.what);
  fmt::print("{} {} × {} seed{}\nbudget {}: {}; {}\n",
             options.episodes > 0 ? options.episodes : experiment.episodes,
             experiment.unit,
             options.seeds.size(),
             options.seeds.size() > 1 ? "s" : "",
             Printable(options.budget->name),
             BudgetNumbers(options.budget->spec),
             BudgetTerms(options.budget->spec));
  for (std::size_t k = 0; k < results.size(); ++k) {
    if (trained[k].empty()) continue;
    fmt::print("{}\n",
               Printable(fmt::format("{}: {}; judged on K_s, {}",
                                     names[k],
                                     trained[k],
                                     Name(options.budget->spec.condition))));
  }
  fmt::print("{}\n", Printable(GainsLine(results, names)));
  fmt::print("{}",
             Printable(results.size() <= 3 ? LinePerMetric(results, names)
                                           : LinePerPolicy(experiment, results, names)));
  for (std::size_t k = 0; k < results.size(); ++k) {
    for (const std::string& note : results[k].notes)
      fmt::print("{}\n", Printable(names[k] + ": " + note));
  }
  if (experiment.tabulates) {
    for (std::size_t k = 0; k < results.size(); ++k) {
      fmt::print("{}",
                 Printable((results.size() > 1 ? "\n" + names[k] : "") + CurveTables(results[k])));
    }
  }
  if (!args.json.empty()) {
    std::string lines;
    for (const ExperimentResult& result : results) lines += ToJson(result) + "\n";
    WriteFileAtomically(args.json, lines);
    fmt::print("wrote {}\n", Printable(args.json));
  }
  if (!args.plot.empty()) {
    std::vector<const ExperimentResult*> shown;
    for (const ExperimentResult& result : results) shown.push_back(&result);
    WriteFileAtomically(args.plot, RenderSvg(FigureOf(shown, names, experiment.plots_apart)));
    fmt::print("wrote {}\n", Printable(args.plot));
  }
}

void Run(const Experiment& experiment, const EvalArguments& args) {
  RequireWritable({{"--json", args.json}, {"--plot", args.plot}}, args.policies);
  ExperimentOptions options = args.options;
  if (options.threads <= 0) {
    options.threads = HardwareThreads();
  }
  if (args.layouts.size() > 1 && args.layouts.size() != args.policies.size()) {
    throw ConfigError(fmt::format("--layout: {} layouts for {} policies; give one, or one each",
                                  args.layouts.size(),
                                  args.policies.size()));
  }
  CheckSeeds(options.seeds);
  if (args.mode) ReadPlainBudget(*args.mode);  // a wrong one is told before any work begins
  const RobotModel robot = RobotModel::Load(options.robot);
  Unmeasured unmeasured(args.policies.size());
  std::vector<NamedPolicy> policies = LoadAll(args, robot, &unmeasured);
  options.budget = ChooseForAll(args, robot, &policies, &unmeasured);

  std::vector<ExperimentResult> results;
  std::vector<std::string> measured, trained;
  for (const NamedPolicy& policy : policies) {
    unmeasured.Try(policy.path, [&] {
      ProgressLine line(experiment.name + " " + policy.path);
      if (policy.policy.sees_budget()) {
        options.command = BudgetOfPolicy(policy.notes, policy.path).command;
      }
      results.push_back(
          RunExperiment(experiment, policy.path, policy.policy, options, line.callback()));
      measured.push_back(policy.path);
      trained.push_back(TrainedOtherwise(policy.notes, options.budget->spec));
    });
  }
  if (!results.empty()) Tell(experiment, args, options, results, ShortNames(measured), trained);
  unmeasured.ThrowIfAny();
}

// What the experiment measures, for its --help: the names that --json writes.
std::string MetricList(const Experiment& experiment) {
  Table table({{"metric", "", Align::kToLeft},
               {"meaning", "", Align::kToLeft},
               {"unit", "", Align::kToLeft},
               {"better", "", Align::kToLeft}});
  for (const MetricHandle what : experiment.metrics.All()) {
    table.Row({what->name, what->label, what->unit, Describe(what->better)});
  }
  return "Measures (docs/experiments.md):\n" + table.Render();
}

void AddExperiment(CLI::App* eval, const Experiment& experiment) {
  auto args = std::make_shared<EvalArguments>();
  ExperimentOptions& options = args->options;
  options.episodes = experiment.episodes;
  options.threads = 0;
  const std::string paper =
      experiment.paper.empty() ? "" : " (the paper's " + experiment.paper + ")";
  CLI::App* verb = eval->add_subcommand(experiment.name, experiment.what + paper);
  verb->add_option("--policy", args->policies, "ONNX files of policies")->required();
  verb->add_option("--robot", options.robot, "robot by name, or its robot.yaml")
      ->capture_default_str();
  AddModeOption(verb,
                &args->mode,
                "budget to hold them to",
                "the one inside the policies, else " + std::string(kDefaultMode));
  AddBudgetOption(verb, &args->budget);
  verb->add_option(
      "--layout",
      args->layouts,
      LayoutHelp("what the policies see, one or one per policy", "what each file says"));
  verb->add_option("--episodes", options.episodes, experiment.unit + " per seed")
      ->check(WholeIn(1, 100000))
      ->capture_default_str();
  auto* seed = verb->add_option("--seed", args->seed)->check(SeedNumber())->capture_default_str();
  verb->add_option("--seeds", options.seeds, "1,2,3: each repeats the experiment")
      ->delimiter(',')
      ->check(SeedNumber())
      ->excludes(seed);
  verb->add_option("--threads", options.threads, "0: all")->check(WholeIn(0, 1024));
  const bool episodes =
      &experiment.metrics == &metric::Walk() || &experiment.metrics == &metric::Stand();
  if (episodes) {
    verb->add_option(
            "--force-scale", options.force_scale, "of hand forces, 1: the task's full size")
        ->check(NumberIn(0.0, 1.0))
        ->capture_default_str();
    verb->add_option("--observe-every", options.observe_every, "control steps; 0: no stiffness")
        ->check(WholeIn(0, 100000))
        ->capture_default_str();
  }
  if (&experiment.metrics == &metric::Budget()) {
    verb->add_option("--seconds", options.seconds, "s of stepping observed per trial")
        ->check(NumberIn(0.1, 3600.0))
        ->capture_default_str();
  }
  const bool walks = &experiment.metrics == &metric::ComLoadWalk();
  if (walks) AddCommandOptions(verb, &args->walk);
  if (&experiment.metrics == &metric::Knob()) {
    verb->add_option("--values", options.values, "of each commanded number, over its range")
        ->check(WholeIn(2, 100))
        ->capture_default_str();
  }
  if (&experiment.metrics == &metric::Frequency()) {
    verb->add_option("--frequencies", options.frequencies, "Hz of the shaker [14 from 0.5 to 24]")
        ->delimiter(',')
        ->check(NumberIn(0.05, 1000.0));
    std::vector<std::string> points;
    for (const auto* point : metric::Frequency().points()) points.push_back(point->name);
    verb->add_option("--points", options.points, fmt::format("{} [all]", fmt::join(points, ", ")))
        ->delimiter(',');
  }
  AddRetiredFlag(
      verb,
      "--hold-gravity",
      "is part of the budget: --mode " + std::string(kDefaultMode) + ",gravity=held, for instance");
  AddRetiredFlag(verb,
                 "--with-gravity",
                 "is part of the budget: --mode " + std::string(kDefaultMode) +
                     ",gravity=followed, for instance");
  verb->add_option("--json", args->json, "file for one line of JSON per policy");
  if (!episodes) verb->add_option("--plot", args->plot, "SVG file for the curves");
  verb->footer([&experiment] { return MetricList(experiment); });
  verb->callback([args, seed, walks, &experiment] {
    if (walks) args->options.walk_command = CommandFrom(args->walk);
    if (seed->count() > 0) args->options.seeds = {args->seed};
    Run(experiment, *args);
  });
}

}  // namespace

void AddEval(CLI::App* app) {
  CLI::App* eval = app->add_subcommand("eval", "experiments on trained policies, in MuJoCo");
  eval->require_subcommand(1);
  for (const Experiment& experiment : Experiments()) AddExperiment(eval, experiment);
}

}  // namespace silc
