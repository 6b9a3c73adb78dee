// SPDX-License-Identifier: Apache-2.0
#include "silc/train/train_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <thread>

#include "silc/base/error.h"
#include "silc/base/file.h"
#include "silc/base/nearest.h"
#include "silc/base/yaml.h"
#include "silc/config/budget_file.h"
#include "silc/learn/crc32c.h"
#include "silc/robot/robot_model.h"

namespace silc {
namespace {

namespace fs = std::filesystem;

constexpr int kMaxEnvs = 1 << 20;
const std::vector<std::string> kBackends = {"batch", "mujoco", "cuda"};

bool IsPath(const std::string& name) {
  return name.find('/') != std::string::npos || fs::path(name).extension() == ".yaml";
}

std::string Underscored(std::string name) {
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

// configs/train of this folder, the source tree or the installation
std::string PresetFolder() {
  for (const char* folder : {"configs/train", SILC_TRAIN_SOURCE_DIR}) {
    if (fs::is_directory(folder)) return folder;
  }
  return SILC_TRAIN_INSTALL_DIR;
}

std::string FindPreset(const std::string& task, const std::string& preset) {
  if (IsPath(preset)) return preset;
  const std::string folder = PresetFolder(), prefix = Underscored(fs::path(task).stem()) + "_";
  const std::string file = folder + "/" + prefix + Underscored(preset) + ".yaml";
  if (fs::is_regular_file(file)) return file;
  std::vector<std::string> known;
  std::error_code missing;
  for (const auto& entry : fs::directory_iterator(folder, missing)) {
    const std::string stem = entry.path().stem();
    if (stem.starts_with(prefix)) known.push_back(stem.substr(prefix.size()));
  }
  std::sort(known.begin(), known.end());
  throw ConfigError("--preset " + preset + ": " + task + " has no such preset" +
                    DidYouMean(preset, known) +
                    "\n  A file of your own is given by its path, as in --preset ./mine.yaml.");
}

void ReadMotions(const YamlNode& node, TrainConfig* config) {
  if (!node.IsList()) node.Fail("must be a list of motion files");
  config->motions.clear();
  for (int i = 0; i < node.size(); ++i) {
    MotionSource source;
    if (node[i].IsScalar()) {
      source.file = node[i].AsString();
    } else {
      node[i].Keys({"file"}, {"crc32c"});
      source.file = node[i]["file"].AsString();
      if (node[i].Has("crc32c")) {
        source.crc32c = static_cast<std::uint32_t>(node[i]["crc32c"].AsDoubleIn(0, 4294967295.0));
      }
    }
    config->motions.push_back(source);
  }
}

// One file over what `config` holds. `method`: asked for by the user, or empty.
void ReadLayer(const std::string& path, const std::string& method, TrainConfig* config) {
  const YamlNode root = YamlNode::ParseFile(path);
  root.Keys({},
            {"title",
             "name",
             "mode",
             "budget",
             "backend",
             "envs",
             "motions",
             "task",
             "learn",
             "methods"});
  if (root.Has("name")) config->name = root["name"].AsString();
  if (root.Has("mode")) {
    config->mode = root["mode"].AsString();
    config->budget.reset();
  }
  if (root.Has("budget")) config->budget = ParseBudget(root["budget"]);
  if (root.Has("backend")) config->backend = root["backend"].AsChoice(kBackends);
  if (root.Has("envs")) config->envs = root["envs"].AsIntIn(1, kMaxEnvs);
  if (root.Has("motions")) ReadMotions(root["motions"], config);
  if (root.Has("task")) ReadTaskConfig(root["task"], &config->task);
  if (root.Has("learn")) ReadLearnConfig(root["learn"], &config->learn);
  // another method than the file's: what the file says of its own method's penalty is not for it
  if (!method.empty() && config->learn.penalty.method != method) {
    ApplyMethod(method, "--method", &config->learn);
  }
  if (root.Has("methods")) {
    const YamlNode methods = root["methods"];
    methods.Keys({}, MethodNames());
    if (methods.Has(config->learn.penalty.method)) {
      ReadLearnConfig(methods[config->learn.penalty.method], &config->learn);
    }
  }
}

std::pair<std::string, std::string> Split(const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0) {
    throw ConfigError("command line: " + text + ": must be key=value, such as learn.epochs=3");
  }
  return {text.substr(0, equals), text.substr(equals + 1)};
}

constexpr char kMethodKey[] = "learn.penalty.method";

// --method, or the same as an override
std::string MethodAsked(const TrainRequest& request) {
  std::string method = request.method;
  for (const std::string& text : request.overrides) {
    const auto [key, value] = Split(text);
    if (key == kMethodKey) method = value;
  }
  if (method.empty()) return method;
  LearnConfig unused;
  ApplyMethod(method, "command line", &unused);  // throws where there is no such method
  return method;
}

void ApplyOverride(const std::string& text, TrainConfig* config) {
  const auto [key, value] = Split(text);
  if (key == "learn.device") {
    throw ConfigError("command line: learn.device: follows from --backend; set that");
  }
  if (key == kMethodKey) return;  // done before everything else
  if (key.starts_with("learn.")) return ApplyOverrides(std::vector{text}, &config->learn);
  if (key.starts_with("task.")) return SetTaskField(&config->task, key.substr(5), value);
  throw ConfigError("command line: " + key + ": must begin with learn. or task." +
                    DidYouMean(key.substr(0, key.find('.')), {"learn", "task"}));
}

void Check(const TrainConfig& config) {
  if (config.needs_budget() && !config.budget) {
    throw ConfigError(fmt::format(
        "--method {}: bounds the stiffness by a budget: add --mode compliance, another of "
        "configs/budgets, or a file",
        config.learn.penalty.method));
  }
}

}  // namespace

TrainConfig ResolveTrainConfig(const TrainRequest& request) {
  TrainConfig config;
  const std::string method = MethodAsked(request);
  config.task = ReadTaskConfig(FindTaskFile(request.task));
  if (!method.empty()) ApplyMethod(method, "--method", &config.learn);
  const std::string own = PresetFolder() + "/" + Underscored(request.task) + ".yaml";
  if (!IsPath(request.task) && fs::is_regular_file(own)) ReadLayer(own, method, &config);
  if (!request.preset.empty()) {
    ReadLayer(FindPreset(request.task, request.preset), method, &config);
  }
  config.name = request.task;

  if (!request.backend.empty()) config.backend = request.backend;
  if (std::find(kBackends.begin(), kBackends.end(), config.backend) == kBackends.end()) {
    throw ConfigError("--backend " + config.backend + ": unknown" +
                      DidYouMean(config.backend, kBackends));
  }
  config.learn.device = config.backend == "cuda" ? "cuda" : "cpu";
  if (!request.mode.empty()) {
    config.mode = request.mode;
    config.budget.reset();
  }
  if (!config.mode.empty() && !config.budget) config.budget = ReadBudget(config.mode).spec;
  if (request.envs) config.envs = *request.envs;
  if (request.threads) config.learn.threads = *request.threads;
  if (request.iterations) config.learn.iterations = *request.iterations;
  if (request.seed) config.learn.seed = *request.seed;
  if (!request.motions.empty()) {
    config.motions.clear();
    for (const std::string& file : request.motions) config.motions.push_back({file, {}});
  }
  for (MotionSource& source : config.motions) source.file = fs::absolute(source.file).string();
  for (const std::string& text : request.overrides) ApplyOverride(text, &config);
  Check(config);
  return config;
}

std::string ToYaml(const TrainConfig& config) {
  const auto quoted = [](const std::string& text) {
    std::string out = "\"";
    for (const char c : text) {
      if (c == '"' || c == '\\') out += '\\';
      out += c;
    }
    return out + "\"";
  };
  std::string text = fmt::format(
      "name: {}\nbackend: {}\nenvs: {}\n", quoted(config.name), config.backend, config.envs);
  if (!config.mode.empty()) text += "mode: " + quoted(config.mode) + "\n";
  if (config.budget) text += "budget: " + BudgetYaml(*config.budget) + "\n";
  if (!config.motions.empty()) text += "motions:\n";
  for (const MotionSource& source : config.motions) {
    text += "  - {file: " + quoted(source.file);
    if (source.crc32c) text += fmt::format(", crc32c: {}", *source.crc32c);
    text += "}\n";
  }
  text += ToYaml(config.learn) + "task:\n";
  // a task file, two spaces in
  const std::string task = TaskConfigYaml(config.task);
  for (std::size_t begin = 0; begin < task.size();) {
    const std::size_t end = task.find('\n', begin) + 1;
    text += "  " + task.substr(begin, end - begin);
    begin = end;
  }
  return text;
}

TrainConfig ReadTrainConfig(const std::string& path) {
  TrainConfig config;
  ReadLayer(path, "", &config);
  Check(config);
  return config;
}

void ApplyToResumed(const TrainRequest& request, TrainConfig* config) {
  const auto refuse = [](const std::string& what) {
    throw ConfigError(what +
                      ": a resumed run keeps its settings; --iterations, --threads, "
                      "learn.checkpoint_every and learn.keep_checkpoints may change.\n  For "
                      "others begin a new run, as in silc train TASK --preset RUN/config.yaml");
  };
  for (const auto& [option, asked] : {std::pair("TASK", !request.task.empty()),
                                      {"--preset", !request.preset.empty()},
                                      {"--method", !request.method.empty()},
                                      {"--mode", !request.mode.empty()},
                                      {"--backend", !request.backend.empty()},
                                      {"--envs", request.envs.has_value()},
                                      {"--seed", request.seed.has_value()},
                                      {"--motions", !request.motions.empty()}}) {
    if (asked) refuse(option);
  }
  const std::vector<std::string> free = {
      "learn.iterations", "learn.threads", "learn.checkpoint_every", "learn.keep_checkpoints"};
  for (const std::string& text : request.overrides) {
    const std::string key = Split(text).first;
    if (std::find(free.begin(), free.end(), key) == free.end()) refuse(key);
    ApplyOverride(text, config);
  }
  if (request.iterations) config->learn.iterations = *request.iterations;
  if (request.threads) config->learn.threads = *request.threads;
}

LocoVecEnvOptions MakeEnvOptions(TrainConfig* config, const std::string& diverged_log) {
  LocoVecEnvOptions options;
  options.env.config = config->task;
  options.env.backend = config->backend;
  options.env.num_envs = config->envs;
  options.env.threads = config->learn.threads > 0
                            ? config->learn.threads
                            : std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  options.env.seed = config->learn.seed;
  options.env.samples = config->needs_budget();
  if (config->budget) options.budget = *config->budget;
  options.diverged_log = diverged_log;
  if (config->motions.empty()) return options;

  const RobotModel robot = RobotModel::Load(options.env.robot);
  std::vector<MotionClip> clips;
  for (MotionSource& source : config->motions) {
    clips.push_back(ReadMotion(source.file, robot));
    const std::uint32_t crc = Crc32c(ReadFile(source.file));
    if (source.crc32c.value_or(crc) != crc) {
      throw ConfigError(source.file +
                        ": is not the file the run began with; restore it, or begin a new run");
    }
    source.crc32c = crc;
  }
  options.env.motions = MotionLibrary(clips, robot.spec().control_period);
  return options;
}

}  // namespace silc
