// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <optional>
#include <string>
#include <vector>

namespace silc {

/// Which way a metric improves.
enum class Better {
  kHigher,
  kLower,
  kNearZero,  ///< a signed offset
  kNeither,   ///< a property, no merit: a stiffness, what was specified
};
const char* Describe(Better better);  ///< "higher", "lower", "near 0", ""

/// What a metric is. An experiment's table declares it once (experiment_metrics.h); JSON, tables,
/// the report and configs/paper.yaml all take it from there.
struct MetricSpec {
  std::string experiment;  // "walk"
  std::string name;        // "action_jitter": unique within the experiment, stable over versions
  std::string label;       // "action jitter": for tables
  std::string unit;        // "1/s³"; "" for none
  Better better = Better::kNeither;
  bool of_budget = false;  // held against a budget: two budgets make two quantities of it
};

/// Names one declared metric. Only a table hands handles out, so there is none of a metric that
/// does not exist, and a metric that is renamed in its table is renamed wherever it is used.
class MetricHandle {
 public:
  const MetricSpec& operator*() const { return *spec_; }
  const MetricSpec* operator->() const { return spec_; }
  bool operator==(const MetricHandle&) const = default;

 private:
  friend class MetricTable;
  explicit MetricHandle(const MetricSpec* spec) : spec_(spec) {}
  const MetricSpec* spec_;  // of a table, which lives as long as the program
};

/// "action jitter [1/s³]"
std::string LabelWithUnit(MetricHandle metric);

/// One metric per axis of the world.
struct AxisMetrics {
  MetricHandle x, y, z;
  MetricHandle operator[](int axis) const { return axis == 0 ? x : axis == 1 ? y : z; }
};

/// The metrics of one experiment. Derived tables declare theirs as members.
class MetricTable {
 public:
  MetricTable(const MetricTable&) = delete;
  MetricTable& operator=(const MetricTable&) = delete;

  const std::string& experiment() const { return experiment_; }
  /// All of them, in the order of their declaration.
  std::vector<MetricHandle> All() const;
  std::vector<std::string> Names() const;
  /// By name; nothing when there is none of that name.
  std::optional<MetricHandle> Find(const std::string& name) const;

 protected:
  explicit MetricTable(std::string experiment) : experiment_(std::move(experiment)) {}
  ~MetricTable() = default;
  /// @pre the table has no metric of that name yet
  MetricHandle Declare(const std::string& name,
                       const std::string& label,
                       const std::string& unit,
                       Better better);
  /// As Declare(), for what a stiffness is against the budget.
  MetricHandle DeclareOfBudget(const std::string& name,
                               const std::string& label,
                               const std::string& unit,
                               Better better);
  /// NAME_x "LABEL, x", NAME_y, NAME_z
  AxisMetrics DeclareAxes(const std::string& name,
                          const std::string& label,
                          const std::string& unit,
                          Better better);
  /// Likewise, of the budget.
  AxisMetrics DeclareAxesOfBudget(const std::string& name,
                                  const std::string& label,
                                  const std::string& unit,
                                  Better better);

 private:
  AxisMetrics DeclareAlong(bool of_budget,
                           const std::string& name,
                           const std::string& label,
                           const std::string& unit,
                           Better better);

  std::string experiment_;
  std::deque<MetricSpec> specs_;  // a deque: handles stay valid while it grows

 public:
  /// Share of the robots or trials that lasted; every experiment has it.
  const MetricHandle survival = Declare("survival", "survive", "%", Better::kHigher);
};

}  // namespace silc
