// SPDX-License-Identifier: Apache-2.0
#include "silc/eval/metric_table.h"

#include <algorithm>

#include "silc/base/check.h"

namespace silc {

const char* Describe(Better better) {
  switch (better) {
    case Better::kHigher:
      return "higher";
    case Better::kLower:
      return "lower";
    case Better::kNearZero:
      return "near 0";
    case Better::kNeither:
      return "";
  }
  return "";
}

std::string LabelWithUnit(MetricHandle metric) {
  return metric->label + (metric->unit.empty() ? "" : " [" + metric->unit + "]");
}

MetricHandle MetricTable::Declare(const std::string& name,
                                  const std::string& label,
                                  const std::string& unit,
                                  Better better) {
  SILC_CHECK(!name.empty() && !Find(name));
  specs_.push_back({experiment_, name, label, unit, better});
  return MetricHandle(&specs_.back());
}

MetricHandle MetricTable::DeclareOfBudget(const std::string& name,
                                          const std::string& label,
                                          const std::string& unit,
                                          Better better) {
  const MetricHandle handle = Declare(name, label, unit, better);
  specs_.back().of_budget = true;
  return handle;
}

AxisMetrics MetricTable::DeclareAxes(const std::string& name,
                                     const std::string& label,
                                     const std::string& unit,
                                     Better better) {
  return DeclareAlong(false, name, label, unit, better);
}

AxisMetrics MetricTable::DeclareAxesOfBudget(const std::string& name,
                                             const std::string& label,
                                             const std::string& unit,
                                             Better better) {
  return DeclareAlong(true, name, label, unit, better);
}

AxisMetrics MetricTable::DeclareAlong(bool of_budget,
                                      const std::string& name,
                                      const std::string& label,
                                      const std::string& unit,
                                      Better better) {
  const auto along = [&](const std::string& axis) {
    const MetricHandle handle = Declare(name + "_" + axis, label + ", " + axis, unit, better);
    specs_.back().of_budget = of_budget;
    return handle;
  };
  // one after the other: the order of declaration is the order of the list
  const MetricHandle x = along("x"), y = along("y"), z = along("z");
  return {x, y, z};
}

std::vector<MetricHandle> MetricTable::All() const {
  std::vector<MetricHandle> all;
  for (const MetricSpec& spec : specs_) all.push_back(MetricHandle(&spec));
  return all;
}

std::vector<std::string> MetricTable::Names() const {
  std::vector<std::string> names;
  for (const MetricSpec& spec : specs_) names.push_back(spec.name);
  return names;
}

std::optional<MetricHandle> MetricTable::Find(const std::string& name) const {
  const auto at = std::find_if(
      specs_.begin(), specs_.end(), [&](const MetricSpec& spec) { return spec.name == name; });
  if (at == specs_.end()) return std::nullopt;
  return MetricHandle(&*at);
}

}  // namespace silc
