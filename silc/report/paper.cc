// SPDX-License-Identifier: Apache-2.0
#include "silc/report/paper.h"

#include <algorithm>

#include "silc/report/project_file.h"

namespace silc {
namespace {

std::array<double, 3> ReadAxes(const YamlNode& node) {
  const std::vector<double> axes = node.AsDoubles();
  if (axes.size() != 3) node.Fail("must be three numbers, N/m along x, y, z");
  return {axes[0], axes[1], axes[2]};
}

PaperRow ReadRow(const YamlNode& node, bool has_reference) {
  node.Keys({"row"}, {"value", "spread", "says"});
  PaperRow row;
  row.row = ParseRow(node["row"].AsString());
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

PaperMeasure ReadMeasure(const YamlNode& node) {
  node.Keys({"metric", "experiment", "where", "label", "unit", "rows"}, {"against"});
  PaperMeasure measure;
  measure.metric = node["metric"].AsString();
  measure.experiment = node["experiment"].AsString();
  measure.where = node["where"].AsString();
  measure.label = node["label"].AsString();
  measure.unit = node["unit"].AsString();
  if (node.Has("against")) measure.against = ParseRow(node["against"].AsString());
  for (int i = 0; i < node["rows"].size(); ++i) {
    measure.rows.push_back(ReadRow(node["rows"][i], measure.against.has_value()));
  }
  if (measure.against && !measure.Find(*measure.against))
    node["against"].Fail("'" + Name(*measure.against) + "' is none of the rows");
  return measure;
}

}  // namespace

RowKey ParseRow(const std::string& text) {
  const auto slash = text.find('/');
  if (slash == std::string::npos) return {text, ""};
  return {text.substr(0, slash), text.substr(slash + 1)};
}

std::string Name(const RowKey& row) {
  return row.mode.empty() ? row.method : row.method + "/" + row.mode;
}

const PaperRow* PaperMeasure::Find(const RowKey& row) const {
  const auto at =
      std::find_if(rows.begin(), rows.end(), [&](const PaperRow& r) { return r.row == row; });
  return at == rows.end() ? nullptr : &*at;
}

const PaperMeasure* Paper::Find(const std::string& experiment, const std::string& metric) const {
  const auto at = std::find_if(measures.begin(), measures.end(), [&](const PaperMeasure& m) {
    return m.experiment == experiment && m.metric == metric;
  });
  return at == measures.end() ? nullptr : &*at;
}

Paper ReadPaper(const YamlNode& root) {
  root.Keys({"source", "modes", "measures"});
  Paper paper;
  paper.source = root["source"].AsString();
  for (int i = 0; i < root["modes"].size(); ++i) {
    const YamlNode node = root["modes"][i];
    node.Keys({"name", "where", "com", "null_space"}, {"hands"});
    PaperMode mode{node["name"].AsString(),
                   node["where"].AsString(),
                   ReadAxes(node["com"]),
                   node["null_space"].AsDouble(),
                   std::nullopt};
    if (node.Has("hands")) mode.hands = ReadAxes(node["hands"]);
    paper.modes.push_back(mode);
  }
  for (int i = 0; i < root["measures"].size(); ++i) {
    paper.measures.push_back(ReadMeasure(root["measures"][i]));
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
  const double share = measure.unit == "%" ? ours.value / 100 : ours.value;
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
