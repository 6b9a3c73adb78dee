// SPDX-License-Identifier: Apache-2.0
#include "silc/report/recorded.h"

#include <algorithm>
#include <filesystem>
#include <set>
#include <utility>

#include "silc/base/error.h"
#include "silc/base/file.h"
#include "silc/base/yaml.h"
#include "silc/policy/method.h"

namespace silc {
namespace {

namespace fs = std::filesystem;

// Throws ConfigError where the file is no result, or not one of all that the paper has.
ExperimentResult ReadResult(const std::string& file, const Paper& paper) {
  ExperimentResult result = FromJson(ReadFile(file, kMaxResultBytes), file);
  for (const PaperMeasure& measure : paper.measures) {
    if (measure.metric->experiment != result.experiment || result.Find(measure.metric)) continue;
    throw ConfigError(file + ": has no metric '" + measure.metric->name + "', which " +
                      measure.where + " has\n  Write it again with silc eval " + result.experiment +
                      " --json.");
  }
  return result;
}

}  // namespace

std::vector<RecordedResult> ReadRecorded(const std::string& folder,
                                         const Paper& paper,
                                         const std::string& default_gains,
                                         std::vector<std::string>* left_out) {
  const fs::path seeds = fs::path(folder) / "seeds";
  const std::string index = (seeds / "index.yaml").string();
  if (!fs::is_regular_file(index)) return {};
  const YamlNode list = YamlNode::ParseFile(index);
  if (!list.IsList()) list.Fail("must be a list of results");
  std::vector<RecordedResult> recorded;
  std::set<std::string> policies;  // by content and experiment
  for (int i = 0; i < list.size(); ++i) {
    const YamlNode node = list[i];
    node.Keys({"file", "method", "seed"}, {"mode"});
    RecordedResult one;
    one.row.method = node["method"].AsChoice(MethodNames());
    if (node.Has("mode")) one.row.mode = node["mode"].AsString();
    one.seed = node["seed"].AsString();
    const std::string file = (seeds / node["file"].AsString()).string();
    try {
      one.result = ReadResult(file, paper);
    } catch (const ConfigError& error) {
      left_out->emplace_back(error.what());
      continue;
    }
    if (one.result.gains != default_gains) one.row.gains = one.result.gains;
    if (!policies.insert(one.result.experiment + one.result.policy_hash).second) {
      node["file"].Fail("a result of the same policy is there already");
    }
    recorded.push_back(std::move(one));
  }
  return recorded;
}

std::vector<OthersResult> ReadOthers(const std::string& folder,
                                     const Paper& paper,
                                     const PagePlan& plan,
                                     std::vector<std::string>* left_out) {
  const fs::path others = fs::path(folder) / "others";
  const std::string index = (others / "index.yaml").string();
  if (!fs::is_regular_file(index)) return {};
  const YamlNode list = YamlNode::ParseFile(index);
  if (!list.IsList()) list.Fail("must be a list of results");
  const std::vector<std::string>& methods = MethodNames();
  std::vector<OthersResult> recorded;
  for (int i = 0; i < list.size(); ++i) {
    const YamlNode node = list[i];
    node.Keys({"file", "name", "source", "licence", "command"});
    OthersResult one;
    for (const auto& [key, value] : {std::pair{"name", &one.name},
                                     std::pair{"source", &one.source},
                                     std::pair{"licence", &one.licence},
                                     std::pair{"command", &one.command}}) {
      *value = node[key].AsString();
      if (value->empty()) node[key].Fail("must say something");
    }
    if (std::find(methods.begin(), methods.end(), one.name) != methods.end()) {
      node["name"].Fail("is a method of silc; name whose policy it is");
    }
    const std::string file = (others / node["file"].AsString()).string();
    try {
      one.result = ReadResult(file, paper);
      const std::string& experiment = one.result.experiment;
      if (!one.command.starts_with("silc eval " + experiment + " ")) {
        throw ConfigError(file + ": is a result of " + experiment + ", recorded with '" +
                          one.command + "'\n  Say the silc eval command that wrote it.");
      }
      if (!plan.Shows(experiment)) {
        throw ConfigError(file + ": the report has no experiment '" + experiment + "'");
      }
    } catch (const ConfigError& error) {
      left_out->emplace_back(error.what());
      continue;
    }
    for (const OthersResult& other : recorded) {
      if (other.name == one.name && other.result.experiment == one.result.experiment) {
        node["file"].Fail("a result of " + one.name + " in " + one.result.experiment +
                          " is there already");
      }
    }
    recorded.push_back(std::move(one));
  }
  return recorded;
}

}  // namespace silc
