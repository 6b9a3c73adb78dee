// SPDX-License-Identifier: Apache-2.0
#include "silc/report/paper.h"

#include <algorithm>
#include <array>

#include "silc/base/nearest.h"
#include "silc/eval/experiment.h"
#include "silc/policy/method.h"
#include "silc/report/project_file.h"

namespace silc {
namespace {

// METHOD or METHOD/MODE; the mode is one of the paper's.
RowKey ReadRowKey(const YamlNode& node, const Paper& paper) {
  const std::string text = node.AsString();
  const auto slash = text.find('/');
  RowKey row{text.substr(0, slash), ""};
  if (std::find(MethodNames().begin(), MethodNames().end(), row.method) == MethodNames().end())
    node.Fail("there is no method '" + row.method + "'" + DidYouMean(row.method, MethodNames()));
  if (slash == std::string::npos) return row;
  row.mode = text.substr(slash + 1);
  std::vector<std::string> modes;
  for (const PaperMode& mode : paper.modes) modes.push_back(mode.name);
  if (!paper.FindMode(row.mode))
    node.Fail("there is no mode '" + row.mode + "'" + DidYouMean(row.mode, modes));
  return row;
}

// The keys `experiment` and `metric` of a map.
MetricHandle ReadMetric(const YamlNode& node) {
  std::vector<std::string> experiments;
  for (const Experiment& experiment : Experiments()) experiments.push_back(experiment.name);
  const MetricTable& declared = FindExperiment(node["experiment"].AsChoice(experiments)).metrics;
  const std::string name = node["metric"].AsString();
  const std::optional<MetricHandle> metric = declared.Find(name);
  if (!metric) {
    node["metric"].Fail("'" + name + "' is no metric of " + declared.experiment() +
                        DidYouMean(name, declared.Names()));
  }
  return *metric;
}

PaperRow ReadRow(const YamlNode& node, const Paper& paper, bool has_reference) {
  node.Keys({"row"}, {"value", "spread", "says"});
  PaperRow row;
  row.row = ReadRowKey(node["row"], paper);
  if (node.Has("value")) row.value = node["value"].AsDouble();
  if (node.Has("spread")) row.spread = node["spread"].AsDoubleIn(0, 1e30);
  if (node.Has("says")) {
    using Says = PaperRow::Says;
    const std::vector<std::string> words = {"none", "some", "larger", "smaller"};
    const std::string word = node["says"].AsChoice(words);
    const auto index = std::find(words.begin(), words.end(), word) - words.begin();
    row.says = std::array{Says::kNone, Says::kSome, Says::kLarger, Says::kSmaller}[index];
    if (index >= 2 && !has_reference)
      node["says"].Fail("compares, but no `against` says with what");
  }
  return row;
}

PaperMeasure ReadMeasure(const YamlNode& node, const Paper& paper) {
  node.Keys({"metric", "experiment", "where", "unit", "rows"}, {"label", "against"});
  PaperMeasure measure{ReadMetric(node), node["where"].AsString()};
  measure.label = node.Has("label") ? node["label"].AsString() : measure.metric->label;
  if (paper.Find(measure.metric)) node["metric"].Fail("is there already");
  if (node["unit"].AsString() != measure.metric->unit) {
    node["unit"].Fail("must be that of the metric, '" + measure.metric->unit +
                      "': numbers are compared as they stand");
  }
  if (node.Has("against")) measure.against = ReadRowKey(node["against"], paper);
  for (int i = 0; i < node["rows"].size(); ++i) {
    measure.rows.push_back(ReadRow(node["rows"][i], paper, measure.against.has_value()));
  }
  if (measure.against && !measure.Find(*measure.against))
    node["against"].Fail("'" + Name(*measure.against) + "' is none of the rows");
  return measure;
}

PaperClaim ReadClaim(const YamlNode& node, const Paper& paper) {
  node.Keys({"metric", "experiment", "row", "text"});
  PaperClaim claim{node["text"].AsString(), ReadMetric(node), ReadRowKey(node["row"], paper)};
  const PaperMeasure* measure = paper.Find(claim.metric);
  if (!measure) node["metric"].Fail("is none of the measures");
  if (!measure->Find(claim.row)) node["row"].Fail("is none of the measure's rows");
  return claim;
}

}  // namespace

std::string Name(const RowKey& row) {
  return row.method + (row.mode.empty() ? "" : "/" + row.mode) +
         (row.gains.empty() ? "" : "@" + row.gains);
}

RowKey OnServoOf(const RowKey& row, RowKey what) {
  what.gains = row.gains;
  return what;
}

const PaperRow* PaperMeasure::Find(const RowKey& row) const {
  const auto at =
      std::find_if(rows.begin(), rows.end(), [&](const PaperRow& r) { return r.row == row; });
  return at == rows.end() ? nullptr : &*at;
}

const PaperMeasure* Paper::Find(MetricHandle metric) const {
  const auto at = std::find_if(
      measures.begin(), measures.end(), [&](const auto& m) { return m.metric == metric; });
  return at == measures.end() ? nullptr : &*at;
}

const PaperMode* Paper::FindMode(const std::string& name) const {
  const auto at =
      std::find_if(modes.begin(), modes.end(), [&](const auto& m) { return m.name == name; });
  return at == modes.end() ? nullptr : &*at;
}

std::vector<RowKey> Paper::RowsOf(const std::vector<MetricHandle>& metrics) const {
  std::vector<RowKey> rows;
  const auto add = [&](const RowKey& row) {
    if (std::find(rows.begin(), rows.end(), row) == rows.end()) rows.push_back(row);
  };
  for (const MetricHandle metric : metrics) {
    const PaperMeasure* measure = Find(metric);
    if (!measure) continue;
    for (const PaperRow& row : measure->rows) add(row.row);
  }
  for (const RowKey& row : std::vector<RowKey>(rows)) {
    if (const std::optional<RowKey> ours = OurRowBeside(row)) add(*ours);
  }
  return rows;
}

std::optional<RowKey> Paper::OurRowBeside(const RowKey& row) const {
  if (row.method != Name(Method::kSilcPaper)) return std::nullopt;
  return RowKey{Name(Method::kSilc), row.mode, our_gains};
}

Paper ReadPaper(const YamlNode& root) {
  root.Keys({"source", "modes", "measures", "claims"}, {"our_gains"});
  Paper paper;
  paper.source = root["source"].AsString();
  if (root.Has("our_gains")) paper.our_gains = root["our_gains"].AsString();
  for (int i = 0; i < root["modes"].size(); ++i) {
    const YamlNode node = root["modes"][i];
    node.Keys({"name", "where"});
    paper.modes.push_back({node["name"].AsString(), node["where"].AsString()});
  }
  for (int i = 0; i < root["measures"].size(); ++i) {
    paper.measures.push_back(ReadMeasure(root["measures"][i], paper));
  }
  for (int i = 0; i < root["claims"].size(); ++i) {
    paper.claims.push_back(ReadClaim(root["claims"][i], paper));
  }
  return paper;
}

Paper ReadPaper() { return ReadPaper(YamlNode::ParseFile(FindProjectFile("configs/paper.yaml"))); }

Verdict Judge(const PaperMeasure& measure,
              const RowKey& row,
              const Estimate& ours,
              const Estimate& ours_against) {
  const PaperRow* paper = measure.Find(row);
  if (!paper) return Verdict::kOpen;
  const double share = measure.metric->unit == "%" ? ours.value / 100 : ours.value;
  switch (paper->says) {
    case PaperRow::Says::kNone:
      return JudgeNever(share);
    case PaperRow::Says::kSome:
      return JudgeSometimes(share);
    case PaperRow::Says::kLarger:
    case PaperRow::Says::kSmaller:
      return JudgeDirection(paper->says == PaperRow::Says::kLarger, Ratio(ours, ours_against));
    case PaperRow::Says::kNothing:
      break;
  }
  if (measure.against && *measure.against != row)
    return JudgeEffect(paper->value / measure.Find(*measure.against)->value,
                       Ratio(ours, ours_against));
  return JudgeValue(paper->value, ours);
}

}  // namespace silc
