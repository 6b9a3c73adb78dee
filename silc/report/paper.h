// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "silc/base/yaml.h"
#include "silc/eval/metric_table.h"
#include "silc/report/verdict.h"

namespace silc {

/// One row of a comparison: a method, the mode it was trained for where it has one, and its servo.
struct RowKey {
  std::string method, mode;
  std::string gains = {};  // a set of the robot's, or "own"; "" is the robot's default set
  bool operator==(const RowKey&) const = default;
};
std::string Name(const RowKey& row);  ///< "silc-paper/compliance", "baseline", "baseline@mjlab"

/// `what`, on the servo of `row`: a policy is compared with others of its own gains.
RowKey OnServoOf(const RowKey& row, RowKey what);

struct PaperRow {
  RowKey row;
  double value = kNoNumber, spread = kNoNumber;
  enum class Says { kNothing, kNone, kSome, kLarger, kSmaller } says = Says::kNothing;
};

/// One metric the paper reports.
struct PaperMeasure {
  MetricHandle metric;  // ours, in `silc eval`; its unit is that of the rows
  std::string where;    // "Table II"
  std::string label;    // what the paper calls it
  std::optional<RowKey> against;
  std::vector<PaperRow> rows;

  const PaperRow* Find(const RowKey& row) const;
};

/// A line of the page's first table: what the paper says of one row of a measure.
struct PaperClaim {
  std::string text;
  MetricHandle metric;
  RowKey row;
};

/// A budget of the paper: its numbers are those of the file of this name in configs/budgets.
struct PaperMode {
  std::string name, where;
};

/// What the paper published (configs/paper.yaml).
struct Paper {
  std::string source;
  std::string our_gains;  // of silc's own rows beside silc-paper's; "": the robot's default set
  std::vector<PaperMode> modes;
  std::vector<PaperMeasure> measures;
  std::vector<PaperClaim> claims;

  const PaperMeasure* Find(MetricHandle metric) const;
  const PaperMode* FindMode(const std::string& name) const;
  /// The rows that the paper has for these metrics, in its order, then silc's own row of each that
  /// is silc-paper's: what a comparison with the paper shows.
  std::vector<RowKey> RowsOf(const std::vector<MetricHandle>& metrics) const;
  /// The row of method silc beside one of silc-paper; nothing for other methods.
  std::optional<RowKey> OurRowBeside(const RowKey& row) const;
};

/// Every name in the file is looked up: metrics in their experiment's table, methods, modes, rows.
/// One that is not known is a ConfigError that names the nearest.
Paper ReadPaper(const YamlNode& root);
/// configs/paper.yaml of this folder, the source tree or the installation.
Paper ReadPaper();

/// The verdict on a row: on its ratio to the row it is compared with where the paper has both, else
/// on its value or on what the text says. `ours` and `ours_against` are NaN where not measured.
Verdict Judge(const PaperMeasure& measure,
              const RowKey& row,
              const Estimate& ours,
              const Estimate& ours_against);

}  // namespace silc
