// SPDX-License-Identifier: Apache-2.0
#include "silc/train/train_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <sstream>

#include "silc/base/crc32c.h"
#include "silc/base/data_folder.h"
#include "silc/base/error.h"
#include "silc/base/file.h"
#include "silc/base/limits.h"
#include "silc/base/nearest.h"
#include "silc/base/thread_pool.h"
#include "silc/base/yaml.h"
#include "silc/config/budget_file.h"
#include "silc/learn/checkpoint.h"
#include "silc/policy/layout_file.h"
#include "silc/policy/method.h"
#include "silc/robot/gain_file.h"
#include "silc/robot/robot_model.h"
#include "silc/task/task_layout.h"

namespace silc {
namespace {

namespace fs = std::filesystem;

constexpr int kMaxEnvs = 1 << 20;
constexpr int kMaxAllEnvs = 1 << 30;  // of all processes

std::string Underscored(std::string name) {
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

// "" when the task has no file of its own and no preset was named
std::string FindPreset(const std::string& task, const std::string& preset) {
  if (preset.find('/') != std::string::npos || fs::path(preset).extension() == ".yaml" ||
      fs::exists(preset + "/config.yaml")) {
    return fs::is_directory(preset) ? preset + "/config.yaml" : preset;
  }
  if (task.empty()) throw ConfigError("train: name a task: g1-stand or g1-loco");
  const std::string stem = Underscored(fs::path(task).stem().string());
  const std::string name = preset.empty() ? stem : stem + "_" + Underscored(preset);
  std::vector<std::string> known;
  for (const std::string& folder : DataFolders("configs/train")) {
    const fs::path file = fs::path(folder) / (name + ".yaml");
    if (fs::is_regular_file(file)) return file.string();
    std::error_code missing;
    for (const auto& entry : fs::directory_iterator(folder, missing)) {
      const std::string other = entry.path().stem().string();
      if (other.starts_with(stem + "_")) known.push_back(other.substr(stem.size() + 1));
    }
  }
  if (preset.empty()) return {};
  std::sort(known.begin(), known.end());
  known.erase(std::unique(known.begin(), known.end()), known.end());
  throw ConfigError("--preset " + preset + ": '" + task + "' has none of this name" +
                    DidYouMean(preset, known));
}

// the checkpoint a warm start names: a file, or the newest whole one of a run
InputFile FindInit(const std::string& path) {
  if (fs::is_regular_file(path)) {
    ReadCheckpoint(path, "--init " + path);
    return InputFile::Of(path);
  }
  if (!fs::is_directory(path)) {
    throw ConfigError("--init " + path + ": neither a run's folder nor a checkpoint");
  }
  std::string broken;
  const auto newest = CheckpointFolder(path + "/checkpoints", 2).LoadNewest([&](const auto& why) {
    broken += "\n  " + why;
  });
  if (!newest) {
    throw ConfigError("--init " + path + ": there is no whole checkpoint in " + path +
                      "/checkpoints" + broken);
  }
  return InputFile::Of(newest->path);
}

// What of a layout decides which number a network sees where, as YAML.
std::string InputYaml(ObservationLayout layout) {
  layout.name.clear();
  layout.action = {};
  layout.kp.clear();
  layout.kd.clear();
  layout.effort_limit.clear();
  return LayoutYaml(layout);
}

// A network that learnt to read one layout cannot read another, though their widths agree. The run
// of a checkpoint is the folder above its own; a checkpoint that stands alone tells no layout.
void CheckLayoutOfInit(const ObservationLayout& own, const std::string& checkpoint) {
  const fs::path run = fs::absolute(checkpoint).parent_path().parent_path() / "config.yaml";
  if (!fs::is_regular_file(run)) return;
  const YamlNode root = YamlNode::ParseFile(run.string());
  if (!root.Has("layout")) return;  // runs made before layouts could be chosen
  std::istringstream here(InputYaml(own));
  std::istringstream there(InputYaml(ParseLayout(root["layout"]).layout));
  std::string here_line, there_line;
  while (true) {
    const bool here_goes_on = static_cast<bool>(std::getline(here, here_line));
    const bool there_goes_on = static_cast<bool>(std::getline(there, there_line));
    if (!here_goes_on && !there_goes_on) return;
    if (here_goes_on && there_goes_on && here_line == there_line) continue;
    throw ConfigError(fmt::format(
        "--init {}: its networks were trained with another layout\n  there: {}\n  here:  {}\n"
        "  Take what it had (task.layout, task.observation.history), or begin without --init.",
        checkpoint,
        there_goes_on ? there_line : "no more lines",
        here_goes_on ? here_line : "no more lines"));
  }
}

// a file as it is; of a folder all motions in it and below, by name
void AddMotions(const std::string& path, std::vector<InputFile>* motions) {
  if (!fs::exists(path)) throw ConfigError("--motions " + path + ": no such file or folder");
  if (!fs::is_directory(path)) {
    motions->push_back(InputFile::Of(path));
    return;
  }
  std::vector<std::string> files;
  std::error_code error;
  for (auto entry = fs::recursive_directory_iterator(path, error);
       !error && entry != fs::recursive_directory_iterator();
       entry.increment(error)) {
    const std::string ending = entry->path().extension().string();
    if (entry->is_regular_file() && (ending == ".csv" || ending == ".npz")) {
      files.push_back(entry->path().string());
    }
  }
  if (error) throw ConfigError("--motions " + path + ": cannot be read: " + error.message());
  if (files.empty()) throw ConfigError("--motions " + path + ": no .csv or .npz in this folder");
  std::sort(files.begin(), files.end());
  for (const std::string& file : files) motions->push_back(InputFile::Of(file));
}

void SetBackend(const std::string& backend, TrainConfig* config) {
  config->backend = backend;
  config->learn.device = backend == "cuda" ? "cuda" : "cpu";
}

// Settings of learn.penalty that are the budget's now: where each is said. "" for all others.
std::string InTheBudget(const std::string& key) {
  if (key == "gravity_channel") return "channels: {gravity: held} (or followed)";
  if (key == "torque_channel") return "channels: {torque: held} (or followed)";
  if (key == "hand_floor") return "hand_floor: [0, 0, 0.75]";
  return "";
}

// A `learn:` map; `run` is whether it is a run's config.yaml, which has the budget beside it.
void ReadLearn(const YamlNode& node, bool run, LearnConfig* learn) {
  if (node.Has("penalty") && node["penalty"].IsMap()) {
    const YamlNode penalty = node["penalty"];
    for (const std::string& key : penalty.KeyNames()) {
      const std::string now = InTheBudget(key);
      if (now.empty()) continue;
      penalty[key].Fail("is part of the budget now: take it out here and write `" + now + "` " +
                        (run ? "under `budget:` of this file"
                             : "into the budget's file, or change the mode, as in "
                               "compliance,gravity=held"));
    }
  }
  ReadLearnConfig(node, learn);
}

// Method and budget must fit together.
void CheckBudget(const TrainConfig& config) {
  if (config.budget.IsCommanded() && !IsBounded(config)) {
    throw ConfigError(fmt::format(
        "--mode {}: gives ranges, for a policy that is told its budget, and method {} takes no "
        "budget; say --method silc",
        config.mode,
        config.learn.penalty.method));
  }
  if (config.learn.penalty.method != Name(Method::kSilc) ||
      config.budget.condition == Condition::kDisc)
    return;
  throw ConfigError(fmt::format(
      "--mode {}: method silc trains the disc condition (S7c), and this budget asks for the {} "
      "one; "
      "say condition=disc (silc-paper trains (S7a) on K₁, whatever the budget's condition)",
      config.mode,
      Name(config.budget.condition)));
}

// The set a task names; its numbers are the run's from here on, whatever becomes of the file.
void SetGains(const std::string& name_or_path, TrainConfig* config) {
  if (name_or_path.empty()) return;
  config->gains = FindGains(ReadRobotSpec(FindRobotFile(config->robot)), name_or_path);
}

// YAML for any text
std::string Quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + "\"";
}

std::string Indented(const std::string& text) {
  std::string out;
  bool fresh = true;
  for (const char c : text) {
    if (fresh && c != '\n') out += "  ";
    out += c;
    fresh = c == '\n';
  }
  return out;
}

}  // namespace

InputFile InputFile::Of(const std::string& path) {
  return {fs::absolute(path).lexically_normal().string(),
          fmt::format("{:08x}", Crc32c(ReadFile(path, kMaxCheckpointBytes)))};
}

void InputFile::Check(const std::string& way_out) const {
  if (!fs::exists(path)) throw ConfigError(path + ": is gone\n  " + way_out);
  const std::string now = Of(path).crc32c;
  if (now == crc32c) return;
  throw ConfigError(
      fmt::format("{}: has changed since the run began (its checksum was {}, now it is {})\n  {}",
                  path,
                  crc32c,
                  now,
                  way_out));
}

namespace {

TrainConfig FromPreset(const TrainRequest& request, const std::string& preset) {
  TrainConfig config;
  config.task = request.task;
  TaskFile task = ReadTaskFile(FindTaskFile(request.task));
  const std::string method = request.method.value_or(config.learn.penalty.method);
  ApplyMethod(method, "--method", &config.learn);
  if (!preset.empty()) {
    const YamlNode root = YamlNode::ParseFile(preset);
    root.Keys({}, {"title", "envs", "mode", "learn", "task", "methods"});
    if (root.Has("envs")) config.envs = root["envs"].AsIntIn(1, kMaxEnvs);
    if (root.Has("mode")) {
      config.mode = root["mode"].AsString();
      config.mode_from = "preset";
    }
    if (root.Has("task")) OverlayTaskFile(root["task"], &task);
    const auto read = [&](const YamlNode& node) {
      ReadLearn(node, /*run=*/false, &config.learn);
      if (config.learn.penalty.method != method) {
        node.Fail("penalty.method: a preset does not choose the method; --method does");
      }
    };
    if (root.Has("learn")) read(root["learn"]);
    if (root.Has("methods")) {
      const YamlNode methods = root["methods"];
      methods.Keys({}, MethodNames());
      if (methods.Has(method)) read(methods[method]);
    }
  }
  config.robot = task.robot;
  config.task_config = task.config;
  config.layout = ReadTaskLayout(task.layout);
  SetGains(task.gains, &config);
  if (!request.mode) {
    const UserBudget budget = ReadBudget(config.mode);
    config.mode = budget.name;
    config.budget = budget.spec;
  }
  return config;
}

// somebody's run again
TrainConfig FromRun(const TrainRequest& request, const std::string& path) {
  TrainConfig config = ReadTrainConfig(path);
  if (!request.task.empty() && request.task != config.task) {
    throw ConfigError("--preset " + path + ": is a run of " + config.task + ", not of " +
                      request.task + "; leave the task out, or take another preset");
  }
  if (request.method && *request.method != config.learn.penalty.method) {
    config.learn.penalty = {};  // what it says is about its own method
    ApplyMethod(*request.method, "--method", &config.learn);
  }
  return config;
}

}  // namespace

TrainConfig ResolveTrainConfig(const TrainRequest& request) {
  const std::string preset = FindPreset(request.task, request.preset);
  const bool run = !preset.empty() && YamlNode::ParseFile(preset).Has("task_config");
  if (!run && request.task.empty()) {
    throw ConfigError("train: name a task: g1-stand or g1-loco");
  }
  TrainConfig config = run ? FromRun(request, preset) : FromPreset(request, preset);
  if (request.mode) {
    const UserBudget budget = ReadBudget(*request.mode);
    config.mode = budget.name;
    config.mode_from = "--mode";
    config.budget = budget.spec;
  }
  if (request.envs) config.envs = *request.envs;
  if (!run || request.envs) {
    if (config.envs > kMaxAllEnvs / request.processes) {
      throw ConfigError(fmt::format(
          "--envs {}: for each of {} processes are too many", config.envs, request.processes));
    }
    config.envs *= request.processes;
  }
  if (request.seed) config.learn.seed = *request.seed;
  if (request.threads) config.learn.threads = *request.threads;
  if (request.iterations) config.learn.iterations = *request.iterations;
  if (!request.motions.empty()) config.motions.clear();
  for (const std::string& path : request.motions) AddMotions(path, &config.motions);
  if (!request.init.empty()) config.init = FindInit(request.init);
  SetBackend(request.backend.value_or(config.backend), &config);
  ApplyTrainOverrides(request.overrides, &config);
  MatchLayout(&config.task_config, &config.layout);
  CheckBudget(config);
  if (IsBounded(config)) AddBudgetTerms(config.budget.command, &config.layout);
  if (config.init) CheckLayoutOfInit(config.layout, config.init->path);
  return config;
}

bool IsBounded(const TrainConfig& config) { return HasBudget(config.learn.penalty.method); }

std::string BudgetNote(const TrainConfig& config) {
  if (!IsBounded(config)) {
    if (config.mode_from != "--mode") return {};
    return fmt::format("{} takes no budget: --mode {} is written down and bounds nothing",
                       config.learn.penalty.method,
                       config.mode);
  }
  const std::string why = config.mode_from == "default"  ? " (no --mode was given: the default)"
                          : config.mode_from == "preset" ? " (the preset's)"
                                                         : "";
  // the paper's method has a condition of its own on K₁, in which nothing that is sensed follows
  const std::string terms = config.learn.penalty.method == Name(Method::kSilc)
                                ? BudgetTerms(config.budget)
                                : fmt::format("trained by {}; judged with {}",
                                              BoundedBy(config.learn.penalty.method),
                                              BudgetTerms(config.budget));
  return fmt::format("budget {}{}: {}; {}", config.mode, why, BudgetNumbers(config.budget), terms);
}

void ApplyTrainOverrides(std::span<const std::string> overrides, TrainConfig* config) {
  std::vector<std::string> learn;
  for (const std::string& text : overrides) {
    const std::size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0) {
      throw ConfigError("command line: " + text +
                        ": must be key=value, such as learn.epochs=3 or task.push.force=50");
    }
    const std::string key = text.substr(0, equals);
    std::vector<std::string> known = LearnKeys();
    known.insert(known.end(), {"task.layout", "task.gains"});
    for (const TaskField& field : TaskFields(&config->task_config)) {
      known.push_back("task." + field.path);
    }
    if (key == "learn.device") {
      throw ConfigError("command line: learn.device: follows from --backend; set that");
    }
    constexpr std::string_view kPenalty = "learn.penalty.";
    if (key.starts_with(kPenalty) && !InTheBudget(key.substr(kPenalty.size())).empty()) {
      throw ConfigError("command line: " + key +
                        ": is part of the budget now: change the mode, as in --mode "
                        "compliance,gravity=held, or write `" +
                        InTheBudget(key.substr(kPenalty.size())) + "` into the budget's file");
    }
    if (std::find(known.begin(), known.end(), key) == known.end()) {
      throw ConfigError("command line: " + key + ": unknown key" + DidYouMean(key, known));
    }
    if (key == "task.layout") {
      config->layout = ReadTaskLayout(text.substr(equals + 1));
    } else if (key == "task.gains") {
      if (equals + 1 == text.size()) {
        throw ConfigError("command line: task.gains: names no gain set, such as falcon");
      }
      SetGains(text.substr(equals + 1), config);
    } else if (key.starts_with("task.")) {
      SetTaskField(&config->task_config, key.substr(5), text.substr(equals + 1));
    } else {
      learn.push_back(text);
    }
  }
  ApplyOverrides(learn, &config->learn);
}

void ApplyResumeOverrides(std::span<const std::string> overrides, TrainConfig* config) {
  for (const std::string& text : overrides) {
    const std::string key = text.substr(0, text.find('='));
    if (key == "learn.iterations" || key == "learn.threads" || key == "learn.checkpoint_every" ||
        key == "learn.keep_checkpoints") {
      continue;
    }
    throw ConfigError(
        "--resume: " + key +
        ": a run keeps its settings; learn.iterations, learn.threads, learn.checkpoint_every and "
        "learn.keep_checkpoints may change\n  For others begin a new run.");
  }
  ApplyTrainOverrides(overrides, config);
}

std::string ToYaml(const TrainConfig& config) {
  const auto input = [](const InputFile& file) {
    return fmt::format("{{file: {}, crc32c: \"{}\"}}", Quoted(file.path), file.crc32c);
  };
  std::string motions;
  for (const InputFile& file : config.motions) motions += "\n  - " + input(file);
  return fmt::format(
      "# everything this run was made of: silc train --resume RUN goes on with it, --preset "
      "RUN/config.yaml makes it again\n"
      "task: {}\nrobot: {}\nbackend: {}\nenvs: {}\nmode: {}\nmode_from: {}\nmotions:{}\n"
      "{}{}budget:\n{}{}"
      "task_config:\n{}layout:\n{}",
      Quoted(config.task),
      Quoted(config.robot),
      config.backend,
      config.envs,
      Quoted(config.mode),
      config.mode_from,
      motions.empty() ? " []" : motions,
      config.init ? "init: " + input(*config.init) + "\n" : "",
      config.gains ? "gains:\n" + Indented(GainSetYaml(ReadRobotSpec(FindRobotFile(config.robot)),
                                                       *config.gains))
                   : "",
      Indented(BudgetYaml(config.budget)),
      ToYaml(config.learn),
      Indented(TaskConfigYaml(config.task_config)),
      Indented(LayoutYaml(config.layout)));
}

TrainConfig ReadTrainConfig(const std::string& path) {
  const YamlNode root = YamlNode::ParseFile(path);
  root.Keys(
      {"task", "robot", "backend", "envs", "mode", "motions", "budget", "learn", "task_config"},
      {"mode_from", "init", "layout", "gains"});
  TrainConfig config;
  config.task = root["task"].AsString();
  config.robot = root["robot"].AsString();
  if (root.Has("gains")) {
    config.gains = ParseOneGainSet(ReadRobotSpec(FindRobotFile(config.robot)), root["gains"]);
  }
  config.envs = root["envs"].AsIntIn(1, kMaxAllEnvs);
  config.mode = root["mode"].AsString();
  if (root.Has("mode_from")) {
    config.mode_from = root["mode_from"].AsChoice({"default", "preset", "--mode"});
  }
  const auto input = [](const YamlNode& node) {
    node.Keys({"file", "crc32c"});
    return InputFile{node["file"].AsString(), node["crc32c"].AsString()};
  };
  const YamlNode motions = root["motions"];
  for (int i = 0; i < motions.size(); ++i) config.motions.push_back(input(motions[i]));
  if (root.Has("init")) config.init = input(root["init"]);
  config.budget = ParseBudget(root["budget"]);
  ReadLearn(root["learn"], /*run=*/true, &config.learn);
  TaskFile task;
  OverlayTaskFile(root["task_config"], &task);
  config.task_config = task.config;
  // runs made before layouts could be chosen do not say
  config.layout =
      root.Has("layout") ? ParseLayout(root["layout"]).layout : ReadTaskLayout(task.layout);
  MatchLayout(&config.task_config, &config.layout);
  SetBackend(root["backend"].AsString(), &config);
  CheckBudget(config);
  return config;
}

LocoVecEnvOptions EnvOptionsOf(const TrainConfig& config) {
  LocoVecEnvOptions options;
  options.budget = config.budget;
  LocoEnvOptions& env = options.env;
  env.config = config.task_config;
  env.layout = config.layout;
  env.robot = config.robot;
  env.gains = config.gains;
  env.backend = config.backend;
  env.num_envs = config.envs;
  env.seed = config.learn.seed;
  env.threads = config.learn.threads > 0 ? config.learn.threads : HardwareThreads();
  env.samples = IsBounded(config);
  if (IsBounded(config)) env.budget = config.budget.command;
  if (!config.motions.empty()) {
    const RobotModel robot = RobotModel::Load(config.robot);
    std::vector<std::string> paths;
    for (const InputFile& file : config.motions) {
      file.Check("Put the file back, or begin a new run with --motions.");
      paths.push_back(file.path);
    }
    env.motions =
        MotionLibrary(ReadMotions(paths, robot), robot.spec().control_period, robot.spec());
  }
  return options;
}

}  // namespace silc
