// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "silc/base/yaml.h"
#include "silc/report/verdict.h"

namespace silc {

/// One row of a comparison: a method, and the mode it was trained for where it has one.
struct RowKey {
  std::string method, mode;
  bool operator==(const RowKey&) const = default;
};
RowKey ParseRow(const std::string& text);  ///< "silc-paper/compliance", "baseline"
std::string Name(const RowKey& row);       ///< the same text again

struct PaperRow {
  RowKey row;
  double value = kNoNumber, spread = kNoNumber;
  enum class Says { kNothing, kNone, kSome, kLarger, kSmaller } says = Says::kNothing;
};

/// One metric the paper reports.
struct PaperMeasure {
  std::string metric, experiment;  // ours, in `silc eval`
  std::string where;               // "Table II"
  std::string label, unit;
  std::optional<RowKey> against;
  std::vector<PaperRow> rows;

  const PaperRow* Find(const RowKey& row) const;
};

struct PaperMode {
  std::string name, where;
  std::array<double, 3> com{};                 // [N/m]
  double null_space = 0;                       // [N·m/rad]
  std::optional<std::array<double, 3>> hands;  // [N/m]
};

/// What the paper published (configs/paper.yaml).
struct Paper {
  std::string source;
  std::vector<PaperMode> modes;
  std::vector<PaperMeasure> measures;

  const PaperMeasure* Find(const std::string& experiment, const std::string& metric) const;
};

/// Throws ConfigError.
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
