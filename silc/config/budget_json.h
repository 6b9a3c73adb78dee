// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "silc/stiffness/budget.h"

namespace silc {

/// A budget under the keys of its file (ReadBudget), so that ParseBudget() of the text gives it
/// back: JSON is YAML. The keys hand_floor, channels and condition are always there.
nlohmann::ordered_json BudgetJson(const BudgetSpec& spec);
/// The same after its name: `budget` of what `silc observe` and `silc eval` write.
nlohmann::ordered_json BudgetJson(const std::string& name, const BudgetSpec& spec);

}  // namespace silc
