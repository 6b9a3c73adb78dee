// SPDX-License-Identifier: Apache-2.0
#include "silc/report/recorded.h"

#include <filesystem>
#include <set>

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

}  // namespace silc
