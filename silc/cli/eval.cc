// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <thread>

#include "silc/base/error.h"
#include "silc/base/file.h"
#include "silc/base/table.h"
#include "silc/cli/load_policy.h"
#include "silc/cli/progress.h"
#include "silc/cli/verbs.h"
#include "silc/config/budget_file.h"
#include "silc/eval/episodes.h"

namespace silc {
namespace {

struct EvalArguments {
  std::vector<std::string> policies;
  std::string mode = "compliance", layout, json;
  int episodes = 0, threads = 0, observe_every = 10;
  std::uint64_t seed = 1;
  double force_scale = 0;
  bool hold_gravity = false;
};

nlohmann::ordered_json ToJson(const std::string& policy, const EpisodeReport& report) {
  const bool observed = !report.sigma.empty();
  nlohmann::ordered_json json = {{"policy", policy},
                                 {"episodes", report.episodes.size()},
                                 {"survival_share", report.SurvivalShare()},
                                 {"velocity_error_rms_m_s", report.VelocityErrorRms()},
                                 {"gait_velocity_error_rms_m_s", report.GaitErrorRms()},
                                 {"arm_error_rms_rad", report.ArmErrorRms()}};
  if (!observed) return json;
  json["moments"] = report.sigma.size();
  json["disc_within_1.05"] = report.DiscShare(1.05);
  json["paper_sigma_within_1.05"] = report.PaperShare(1.05);
  const auto quantile = [&](double p, auto value) {
    std::vector<double> list;
    for (const SigmaSample& s : report.sigma) list.push_back(value(s));
    const auto at = list.begin() + static_cast<std::ptrdiff_t>(p * double(list.size() - 1));
    std::nth_element(list.begin(), at, list.end());
    return *at;
  };
  const auto disc = [](const SigmaSample& s) { return s.sound ? s.disc : HUGE_VAL; };
  const auto paper_worst = [](const SigmaSample& s) { return s.paper_worst; };
  const auto worst = [](const SigmaSample& s) { return s.sound ? s.worst : HUGE_VAL; };
  json["disc_median"] = quantile(0.5, disc);
  json["disc_p95"] = quantile(0.95, disc);
  json["disc_p99"] = quantile(0.99, disc);
  json["static_worst_eigenvalue_p99"] = quantile(0.99, worst);
  json["one_step_worst_eigenvalue_p99"] = quantile(0.99, paper_worst);
  return json;
}

void Run(const EvalArguments& args, const std::string& task_name, TaskConfig task) {
  EpisodeOptions options;
  options.task = task;
  options.episodes = args.episodes;
  options.threads =
      args.threads > 0 ? args.threads : std::max(1, int(std::thread::hardware_concurrency()));
  options.seed = args.seed;
  options.budget = ReadBudget(args.mode).spec;
  options.observe_every = args.observe_every;
  options.gravity_channel = !args.hold_gravity;
  const RobotModel robot = RobotModel::Load("g1");
  Table table({{"policy", "", Align::kToLeft},
               {"survive", "%"},
               {"velocity", "m/s RMS"},
               {"over a gait", "m/s RMS"},
               {"arms", "rad RMS"},
               {"σ ≤ 1.05", "%"},
               {"σ median", ""},
               {"σ p95", ""}});
  std::string lines;
  for (const std::string& path : args.policies) {
    const Policy policy = LoadPolicy(path, args.layout, robot);
    ProgressLine line(path);
    const EpisodeReport report = RunEpisodes(policy, options, line.callback());
    nlohmann::ordered_json json = ToJson(path, report);
    json["task"] = task_name;
    json["seed"] = args.seed;
    json["force_scale"] = args.force_scale;
    json["budget"] = args.mode;
    lines += json.dump() + "\n";
    const auto number = [&](const char* key, double scale = 1) {
      return json.contains(key) ? FormatNumber(scale * json[key].get<double>()) : std::string("–");
    };
    table.Row({path,
               number("survival_share", 100),
               number("velocity_error_rms_m_s"),
               number("gait_velocity_error_rms_m_s"),
               number("arm_error_rms_rad"),
               number("disc_within_1.05", 100),
               number("disc_median"),
               number("disc_p95")});
  }
  fmt::print("{} episodes of {:g} s in MuJoCo, budget {}\n{}",
             options.episodes,
             options.task.episode.length,
             args.mode,
             table.Render());
  if (!args.json.empty()) {
    WriteFileAtomically(args.json, lines);
    fmt::print("wrote {}\n", args.json);
  }
}

CLI::App* AddExperiment(CLI::App* eval,
                        const std::string& name,
                        const std::string& what,
                        int episodes,
                        std::shared_ptr<EvalArguments> args) {
  CLI::App* verb = eval->add_subcommand(name, what);
  args->episodes = episodes;
  verb->add_option("--policy", args->policies, "ONNX files of policies")->required();
  verb->add_option("--mode", args->mode, "budget: compliance, soft-hand, … or a file")
      ->capture_default_str();
  verb->add_option("--layout", args->layout, "layout, where the file does not say");
  verb->add_option("--episodes", args->episodes, "one per robot")
      ->check(CLI::Range(1, 100000))
      ->capture_default_str();
  verb->add_option("--seed", args->seed)->capture_default_str();
  verb->add_option("--threads", args->threads, "0: all")->check(CLI::Range(0, 1024));
  verb->add_option("--force-scale", args->force_scale, "of hand forces, 1: the task's full size")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
  verb->add_option("--observe-every", args->observe_every, "control steps; 0: no stiffness")
      ->check(CLI::Range(0, 100000))
      ->capture_default_str();
  verb->add_flag("--hold-gravity",
                 args->hold_gravity,
                 "the budget leaves out what the policy does through gravity sensing");
  verb->add_option("--json", args->json, "file for one line of JSON per policy");
  return verb;
}

}  // namespace

void AddEval(CLI::App* app) {
  CLI::App* eval = app->add_subcommand("eval", "experiments on trained policies, in MuJoCo");
  eval->require_subcommand(1);
  {
    auto args = std::make_shared<EvalArguments>();
    AddExperiment(eval, "walk", "g1-loco: random commands and arm motions, 20 s each", 1000, args)
        ->callback([args] {
          const TaskConfig task = ReadTaskConfig(FindTaskFile("g1-loco"));
          Run(*args, "g1-loco", NominalTask(task, static_cast<float>(args->force_scale)));
        });
  }
  {
    auto args = std::make_shared<EvalArguments>();
    AddExperiment(
        eval, "stand", "g1-stand: 20 s through pushes of 50 N for 0.1 s from all sides", 100, args)
        ->callback([args] {
          TaskConfig task = NominalTask(ReadTaskConfig(FindTaskFile("g1-stand")), 1);
          task.push = {
              .force = 50, .min_share = 1, .duration = 0.1f, .interval_min = 2, .interval_max = 4};
          task.hand_force.max_x *= static_cast<float>(args->force_scale);
          task.hand_force.max_y *= static_cast<float>(args->force_scale);
          task.hand_force.max_up *= static_cast<float>(args->force_scale);
          task.hand_force.max_down *= static_cast<float>(args->force_scale);
          task.hand_force.noise *= static_cast<float>(args->force_scale);
          Run(*args, "g1-stand", task);
        });
  }
}

}  // namespace silc
