// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "silc/base/yaml.h"
#include "silc/stiffness/budget.h"

namespace silc {

/// A budget and what to call it in tables.
struct UserBudget {
  std::string name;
  BudgetSpec spec;
};

/// A stiffness budget by name (the paper's modes: compliance, high-stiff, …; a file of that name in
/// configs/budgets of this folder, the source tree or the installation) or from a YAML file:
///
///     com: [200, 200, 20000]            # N/m along x, y, z of the world; optional
///     hands: [200, 200, 200]            # N/m, both hands; optional; or left_hand / right_hand
///     hand_floor: [0, 0, 0.75]          # least share of the hands' stiffness; optional
///     null_space: {weight: identity, stiffness: 50}   # N·m/rad; weight: gains is a fraction of Kp
///     channels: {torque: followed, gravity: held}     # default: followed; see Channel
///     condition: disc                   # the default; or two-sided, one-sided: (S7c), (S7b),
///     (S7a)
///
/// An argument with a dot or a slash in it is a file. Throws ConfigError.
UserBudget ReadBudget(const std::string& name_or_path);

/// The same from text; `path` stands for the file in messages.
UserBudget ParseBudget(std::string_view text, const std::string& path);
/// The same from a map.
BudgetSpec ParseBudget(const YamlNode& node);

/// The budget as such a file; reading it back gives the same numbers.
std::string BudgetYaml(const BudgetSpec& spec);

}  // namespace silc
