// SPDX-License-Identifier: Apache-2.0
#include "silc/train/sweep.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>

#include "silc/base/error.h"
#include "silc/base/file.h"
#include "silc/base/nearest.h"
#include "silc/base/shell.h"
#include "silc/base/table.h"
#include "silc/base/yaml.h"
#include "silc/policy/onnx/reader.h"
#include "silc/policy/onnx/writer.h"
#include "silc/stiffness/condition.h"

namespace silc {
namespace {

namespace fs = std::filesystem;

constexpr char kResults[] = "## Results";

// What a row says, laid over what all rows share.
struct Row {
  std::string name, from;
  TrainRequest request;
  std::vector<int> seeds = {1};
  bool collect = true;
};

const std::vector<std::string>& SharedKeys() {
  static const std::vector<std::string> keys = {
      "task", "method", "mode", "preset", "envs", "iterations", "seeds", "motions", "overrides"};
  return keys;
}

void ReadShared(const YamlNode& node, Row* row) {
  TrainRequest& request = row->request;
  if (node.Has("task")) request.task = node["task"].AsString();
  if (node.Has("method")) request.method = node["method"].AsString();
  if (node.Has("mode")) request.mode = node["mode"].AsString();
  if (node.Has("preset")) request.preset = node["preset"].AsString();
  if (node.Has("envs")) request.envs = node["envs"].AsIntIn(1, 1 << 20);
  if (node.Has("iterations")) request.iterations = node["iterations"].AsIntIn(0, 1000000000);
  if (node.Has("motions")) request.motions = node["motions"].AsStrings();
  if (node.Has("overrides")) {
    for (const std::string& text : node["overrides"].AsStrings()) request.overrides.push_back(text);
  }
  if (!node.Has("seeds")) return;
  const YamlNode seeds = node["seeds"];
  if (!seeds.IsList() || seeds.size() == 0) seeds.Fail("must be a list, as in [1, 2, 3]");
  row->seeds.clear();
  for (int i = 0; i < seeds.size(); ++i) {
    const int seed = seeds[i].AsIntIn(0, std::numeric_limits<int>::max());
    if (std::find(row->seeds.begin(), row->seeds.end(), seed) != row->seeds.end()) {
      seeds[i].Fail(fmt::format("{}: is there twice", seed));
    }
    row->seeds.push_back(seed);
  }
}

// it names folders and files
void CheckName(const YamlNode& node) {
  const std::string name = node.AsString();
  const bool plain = std::all_of(name.begin(), name.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.';
  });
  if (name.empty() || !plain || name.front() == '.') {
    node.Fail("'" + name + "': letters, digits, '-', '_' and '.' only: it names files");
  }
}

// The jobs that --only names, by row or as ROW-seedN, and those they start from.
void KeepOnly(const std::vector<std::string>& only, std::vector<SweepJob>* jobs) {
  if (only.empty()) return;
  std::vector<std::string> rows, names;
  for (const SweepJob& job : *jobs) {
    rows.push_back(job.row);
    names.push_back(job.name);
  }
  rows.erase(std::unique(rows.begin(), rows.end()), rows.end());
  const auto among = [](const std::string& word, const std::vector<std::string>& list) {
    return std::find(list.begin(), list.end(), word) != list.end();
  };
  for (const std::string& word : only) {
    if (among(word, rows) || among(word, names)) continue;
    const bool seed = word.find("-seed") != std::string::npos;
    throw ConfigError(fmt::format("--only {}: no such {}{}",
                                  word,
                                  seed ? "training" : "row",
                                  DidYouMean(word, seed ? names : rows)));
  }
  // from the last to the first: what a job starts from stands before it
  std::vector<bool> wanted(jobs->size());
  for (std::size_t i = jobs->size(); i-- > 0;) {
    const SweepJob& job = (*jobs)[i];
    if (among(job.row, only) || among(job.name, only)) wanted[i] = true;
    if (wanted[i] && job.from >= 0) wanted[static_cast<std::size_t>(job.from)] = true;
  }
  std::vector<SweepJob> kept;
  std::vector<int> place(jobs->size(), -1);  // where a job has gone
  for (std::size_t i = 0; i < jobs->size(); ++i) {
    if (!wanted[i]) continue;
    place[i] = static_cast<int>(kept.size());
    kept.push_back(std::move((*jobs)[i]));
    int& from = kept.back().from;
    if (from >= 0) from = place[static_cast<std::size_t>(from)];
  }
  *jobs = std::move(kept);
}

std::vector<Row> ReadRows(const YamlNode& root) {
  Row shared;
  if (root.Has("defaults")) {
    root["defaults"].Keys({}, SharedKeys());
    ReadShared(root["defaults"], &shared);
  }
  std::vector<std::string> keys = SharedKeys();
  keys.insert(keys.end(), {"from", "collect"});
  std::vector<Row> rows;
  std::vector<std::string> names;
  const YamlNode list = root["rows"];
  if (!list.IsList() || list.size() == 0) list.Fail("must be a list of trainings");
  for (int i = 0; i < list.size(); ++i) {
    const YamlNode node = list[i];
    node.Keys({"name"}, keys);
    Row row = shared;
    CheckName(node["name"]);
    row.name = node["name"].AsString();
    if (std::find(names.begin(), names.end(), row.name) != names.end()) {
      node["name"].Fail("'" + row.name + "': another row has this name");
    }
    ReadShared(node, &row);
    if (node.Has("from")) {
      row.from = node["from"].AsString();
      if (std::find(names.begin(), names.end(), row.from) == names.end()) {
        node["from"].Fail("'" + row.from + "': is no row above this one" +
                          DidYouMean(row.from, names));
      }
    }
    if (node.Has("collect")) row.collect = node["collect"].AsBool();
    if (row.request.task.empty()) node.Fail("task: is missing, here and in the defaults");
    names.push_back(row.name);
    rows.push_back(std::move(row));
  }
  return rows;
}

// The first setting in which two trainings differ, for a person; "" when they are the same. What a
// run may change while it goes on is left out, and where its networks came from.
std::string Difference(TrainConfig there, TrainConfig here) {
  for (TrainConfig* config : {&there, &here}) {
    config->learn.iterations = config->learn.threads = 0;
    config->learn.checkpoint_every = config->learn.keep_checkpoints = 0;
    config->init.reset();
    config->mode_from = "default";
  }
  std::istringstream old_lines(ToYaml(there)), new_lines(ToYaml(here));
  std::string old_line, new_line;
  while (std::getline(old_lines, old_line) && std::getline(new_lines, new_line)) {
    if (old_line == new_line) continue;
    const auto trimmed = [](const std::string& line) {
      return line.substr(std::min(line.size(), line.find_first_not_of(' ')));
    };
    return fmt::format("trained with {}; the row says {}", trimmed(old_line), trimmed(new_line));
  }
  return {};
}

// the last iteration's figures, those a reader of a card looks for
std::string LastFigures(const std::string& folder) {
  const nlohmann::json last = LastMetrics(folder);
  std::string text;
  for (const auto& [key, label] : std::vector<std::pair<const char*, std::string>>{
           {"train/reward", "reward {}"},
           {"task/episode_length", "episodes of {} s"},
           {"task/velocity_error", "velocity error {} m/s"},
           {"task/arm_error", "arms {} rad"},
           {"stiffness/sigma_mean", "σ {} in the mean"},
           {"stiffness/sigma_p99", "p99 {}"},
           {"stiffness/violating", fmt::format("share over {:g}: {{}}", kKeptSigma)}}) {
    const auto found = last.find(key);
    if (found == last.end() || !found->is_number()) continue;
    text += (text.empty() ? "" : ", ") +
            fmt::format(fmt::runtime(label), FormatNumber(found->get<double>()));
  }
  return text.empty() ? "–" : text;
}

// What `silc observe` and `silc eval` judge the policy by: a number on a card holds under these
// channels and this condition alone.
std::string JudgedBy(const TrainConfig& config) {
  const UserBudget budget =
      IsBounded(config) ? UserBudget{config.mode, config.budget} : ReadBudget(kDefaultMode);
  return fmt::format(
      "`{}`: {}; {}", budget.name, BudgetNumbers(budget.spec), BudgetTerms(budget.spec));
}

std::string Card(const Sweep& sweep, const SweepJob& job, const std::string& results) {
  const YamlNode run = YamlNode::ParseFile(job.folder + "/run.yaml");
  const TrainConfig config = ReadTrainConfig(job.folder + "/config.yaml");
  const RunInfo info = InspectRun(job.folder);
  std::string start;
  if (job.from >= 0) {
    start = fmt::format("| starts from | the networks of `{}` |\n",
                        sweep.jobs[static_cast<std::size_t>(job.from)].name);
  }
  const double samples = 1.0 * config.envs * config.learn.steps * info.iteration;
  return fmt::format(
      "# {0}.onnx\n\n"
      "Task `{1}`, method `{2}`{3}. Float16 weights behind a Cast; layout, gains and gait clock "
      "are "
      "inside.\n\n"
      "| | |\n|---|---|\n"
      "| judged by | {14} |\n"
      "| command | `{4}` |\n{5}"
      "| commit | {6} |\n"
      "| seed | {7} |\n"
      "| iterations | {8} of {9} robots × {10} steps, {11:.0f} M control steps in all |\n"
      "| last iteration of training | {12} |\n\n{13}",
      job.row,
      config.task,
      config.learn.penalty.method,
      IsBounded(config) ? ", " + BudgetNote(config) : "",
      "silc " + ShellCommand(job.TrainWords(
                    job.from < 0 ? "" : sweep.jobs[static_cast<std::size_t>(job.from)].folder)),
      start,
      run["commit"].AsString(),
      config.learn.seed,
      info.iteration,
      config.envs,
      config.learn.steps,
      samples / 1e6,
      LastFigures(job.folder),
      results,
      JudgedBy(config));
}

// Writes ROW.onnx and ROW.md; the line for the user.
std::string CollectPolicy(const Sweep& sweep, const SweepJob& job, const std::string& folder) {
  const std::string policy = folder + "/" + job.row + ".onnx", card = folder + "/" + job.row;
  const OnnxModel model = ReadOnnx(job.folder + "/policy.onnx");
  const auto network = RecogniseMlp(*model.graph, 0, 0);
  if (!network) throw RunError(job.folder + "/policy.onnx: is no plain MLP");
  std::string bytes;
  try {
    bytes = SerializeOnnx(*network,
                          model.graph->value(model.graph->inputs()[0]).name,
                          model.graph->output_names()[0],
                          model.metadata,
                          OnnxWeights::kHalf);
  } catch (const ConfigError& too_large) {
    throw RunError(job.folder + "/policy.onnx: --collect: " + too_large.what());
  }
  // figures somebody measured belong to the policy they were measured on
  std::string results =
      fmt::format("{}\n\nNot measured yet: `silc eval {} --policy {}`.\n",
                  kResults,
                  job.config.task_config.commands.walk_prob > 0 ? "walk" : "stand",
                  policy);
  std::string kept;
  if (fs::exists(card + ".md")) {
    const std::string text = ReadFile(card + ".md");
    const std::size_t at = text.find(kResults);
    const bool same = fs::exists(policy) && ReadFile(policy) == bytes;
    if (same && at != std::string::npos) {
      results = text.substr(at);
    } else {
      kept = "; the card's results were of another policy and are gone";
    }
  }
  WriteFileAtomically(policy, bytes);
  WriteFileAtomically(card + ".md", Card(sweep, job, results));
  return fmt::format(
      "{}: {}, {:.2f} MB{}", job.name, policy, static_cast<double>(bytes.size()) / 1e6, kept);
}

}  // namespace

std::vector<std::string> SweepJob::TrainWords(const std::string& init_folder) const {
  std::vector<std::string> words = {"train", request.task};
  const auto add = [&](const char* option, const auto& value) {
    words.insert(words.end(), {option, fmt::format("{}", value)});
  };
  if (request.method) add("--method", *request.method);
  if (request.mode) add("--mode", *request.mode);
  if (!request.preset.empty()) add("--preset", request.preset);
  if (request.backend) add("--backend", *request.backend);
  if (request.envs) add("--envs", *request.envs);
  if (request.iterations) add("--iterations", *request.iterations);
  if (request.seed) add("--seed", *request.seed);
  if (request.threads) add("--threads", *request.threads);
  if (!init_folder.empty()) add("--init", init_folder);
  add("--out", folder);
  words.insert(words.end(), request.overrides.begin(), request.overrides.end());
  if (!request.motions.empty()) {
    words.emplace_back("--motions");  // takes all that follows
    words.insert(words.end(), request.motions.begin(), request.motions.end());
  }
  return words;
}

std::vector<std::string> SweepJob::ResumeWords() const {
  std::vector<std::string> words = {"train", "--resume", folder};
  words.insert(words.end(), {"--iterations", fmt::format("{}", config.learn.iterations)});
  if (request.threads)
    words.insert(words.end(), {"--threads", fmt::format("{}", *request.threads)});
  return words;
}

Sweep ReadSweep(const std::string& path, const SweepOptions& options) {
  const YamlNode root = YamlNode::ParseFile(path);
  root.Keys({"rows"}, {"title", "folder", "defaults"});
  std::vector<Row> rows = ReadRows(root);
  Sweep sweep;
  if (root.Has("title")) sweep.title = root["title"].AsString();
  std::string folder = options.folder;
  if (folder.empty()) folder = root.Has("folder") ? root["folder"].AsString() : "runs/sweep";

  for (Row& row : rows) {
    row.request.backend = options.backend;
    row.request.threads = options.threads;
    row.request.overrides.insert(
        row.request.overrides.end(), options.overrides.begin(), options.overrides.end());
    for (const int seed : row.seeds) {
      SweepJob job;
      job.row = row.name;
      job.rank =
          static_cast<int>(std::find(row.seeds.begin(), row.seeds.end(), seed) - row.seeds.begin());
      job.name = fmt::format("{}-seed{}", row.name, seed);
      job.folder = folder + "/" + job.name;
      job.request = row.request;
      job.collect = row.collect;
      job.request.seed = seed;
      try {
        job.config = ResolveTrainConfig(job.request);
      } catch (const ConfigError& error) {
        throw ConfigError(path + ": row " + row.name + ": " + error.what());
      }
      // the same seed, or the first of that row
      for (std::size_t i = 0; i < sweep.jobs.size(); ++i) {
        const SweepJob& other = sweep.jobs[i];
        if (row.from.empty() || other.row != row.from) continue;
        if (job.from < 0 || other.request.seed == job.request.seed) job.from = static_cast<int>(i);
      }
      sweep.jobs.push_back(std::move(job));
    }
  }
  KeepOnly(options.only, &sweep.jobs);
  return sweep;
}

SweepState StateOf(const SweepJob& job) {
  using Kind = SweepState::Kind;
  SweepState state;
  state.run = InspectRun(job.folder);
  if (state.run.state == "none") return state;
  if (state.run.state == "running") {
    state.kind = Kind::kElsewhere;
  } else if (state.run.state == "done" || state.run.state == "stopped") {
    // the row may ask for more than the run was told
    state.kind = state.run.iteration >= job.config.learn.iterations ? Kind::kDone : Kind::kCut;
  } else {
    state.kind = Kind::kBroken;
    state.note = state.run.state;
    return state;
  }
  state.note = Difference(ReadTrainConfig(job.folder + "/config.yaml"), job.config);
  return state;
}

Collected CollectPolicies(const Sweep& sweep, const std::string& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) throw RunError(folder + ": cannot be made: " + error.message());
  Collected out;
  for (const SweepJob& job : sweep.jobs) {
    // --only may have left the first seed out; another one is not the row's policy
    if (job.rank != 0 || !job.collect) continue;
    try {
      const bool done = StateOf(job).kind == SweepState::Kind::kDone;
      out.said.push_back(done ? CollectPolicy(sweep, job, folder)
                              : fmt::format("{}: not finished; not collected", job.name));
    } catch (const std::runtime_error& bad) {
      out.said.push_back(fmt::format("{}: not collected: {}", job.name, bad.what()));
      out.failed.push_back(job.row);
    }
  }
  return out;
}

}  // namespace silc
