// SPDX-License-Identifier: Apache-2.0
#include "silc/report/page_plan.h"

#include <algorithm>

#include "silc/base/error.h"
#include "silc/base/nearest.h"
#include "silc/policy/method.h"
#include "silc/report/project_file.h"

namespace silc {
namespace {

const char kAny[] = "*";

RowPattern ReadPattern(const YamlNode& node) {
  const std::string text = node.AsString();
  if (text == kAny) return {kAny, kAny};
  const auto slash = text.find('/');
  RowPattern pattern{text.substr(0, slash), ""};
  const std::vector<std::string>& methods = MethodNames();
  if (pattern.method != kAny &&
      std::find(methods.begin(), methods.end(), pattern.method) == methods.end()) {
    node.Fail("there is no method '" + pattern.method + "'" + DidYouMean(pattern.method, methods));
  }
  // a mode may be anybody's budget: it is not looked up
  if (slash != std::string::npos) pattern.mode = text.substr(slash + 1);
  return pattern;
}

std::vector<RowPattern> ReadPatterns(const YamlNode& node, const std::string& key) {
  std::vector<RowPattern> patterns;
  if (!node.Has(key)) return patterns;
  for (int i = 0; i < node[key].size(); ++i) patterns.push_back(ReadPattern(node[key][i]));
  return patterns;
}

PageCertificates ReadCertificates(const YamlNode& node) {
  node.Keys({"id", "menu", "title", "intro", "moments", "quick", "also"});
  PageCertificates section;
  section.id = node["id"].AsString();
  section.menu = node["menu"].AsString();
  section.title = node["title"].AsString();
  section.intro = node["intro"].AsString();
  section.moments = node["moments"].AsIntIn(1, 100000);
  section.quick = node["quick"].AsIntIn(1, 100000);
  section.also = ReadPatterns(node, "also");
  return section;
}

bool AnyMatches(const std::vector<RowPattern>& patterns, const RowKey& row) {
  return std::any_of(patterns.begin(), patterns.end(), [&](const RowPattern& pattern) {
    return pattern.Matches(row);
  });
}

}  // namespace

bool RowPattern::Matches(const RowKey& row) const {
  return (method == kAny || method == row.method) && (mode == kAny || mode == row.mode);
}

bool PageExperiment::Shows(const RowKey& row) const {
  if (std::find(paper.begin(), paper.end(), row) != paper.end()) return true;
  return AnyMatches(also, row) && !AnyMatches(but_not, row);
}

bool PageCertificates::Shows(const RowKey& row) const { return AnyMatches(also, row); }

bool PagePlan::Shows(const std::string& experiment) const {
  return std::any_of(experiments.begin(), experiments.end(), [&](const PageExperiment& one) {
    return one.experiment->name == experiment;
  });
}

const PageExperiment& PagePlan::Find(const std::string& name) const {
  std::vector<std::string> names;
  for (const PageExperiment& one : experiments) {
    if (one.experiment->name == name) return one;
    names.push_back(one.experiment->name);
  }
  names.emplace_back(kCertificates);
  throw ConfigError("the report has no experiment '" + name + "'" + DidYouMean(name, names));
}

PagePlan ReadPagePlan(const YamlNode& root, const Paper& paper) {
  root.Keys({"experiments"}, {"certificates"});
  std::vector<std::string> known;
  for (const Experiment& experiment : Experiments()) known.push_back(experiment.name);
  PagePlan plan;
  const YamlNode list = root["experiments"];
  for (int i = 0; i < list.size(); ++i) {
    const YamlNode node = list[i];
    node.Keys({"name", "id", "menu", "title", "intro", "quick"}, {"also", "but_not", "commanded"});
    PageExperiment one;
    one.experiment = &FindExperiment(node["name"].AsChoice(known));
    one.id = node["id"].AsString();
    one.menu = node["menu"].AsString();
    one.title = node["title"].AsString();
    one.intro = node["intro"].AsString();
    one.quick = node["quick"].AsIntIn(1, 100000);
    one.also = ReadPatterns(node, "also");
    one.but_not = ReadPatterns(node, "but_not");
    one.commanded = node.Has("commanded") && node["commanded"].AsBool();
    std::vector<MetricHandle> metrics;
    for (const PaperMeasure& measure : paper.measures) {
      if (measure.metric->experiment == one.experiment->name) metrics.push_back(measure.metric);
    }
    one.paper = paper.RowsOf(metrics);
    for (const PageExperiment& other : plan.experiments) {
      if (other.experiment == one.experiment) node["name"].Fail("is there twice");
    }
    plan.experiments.push_back(std::move(one));
  }
  if (root.Has("certificates")) plan.certificates = ReadCertificates(root["certificates"]);
  // a table of the paper that no section shows would be lost without a word
  for (const PaperMeasure& measure : paper.measures) {
    if (!plan.Shows(measure.metric->experiment))
      list.Fail("has no '" + measure.metric->experiment + "', of which the paper has " +
                measure.where);
  }
  return plan;
}

PagePlan ReadPagePlan(const Paper& paper) {
  return ReadPagePlan(YamlNode::ParseFile(FindProjectFile("configs/report.yaml")), paper);
}

}  // namespace silc
