// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "silc/base/yaml.h"
#include "silc/stiffness/budget.h"
#include "silc/stiffness/default_mode.h"

namespace silc {

/// A budget and what to call it in tables.
struct UserBudget {
  std::string name;
  BudgetSpec spec;
};

/// A stiffness budget as every verb's --mode takes it: NAME|FILE[,key=value…].
///
/// NAME is a file of configs/budgets in this folder, the source tree or the installation
/// (high-stiff is high_stiff.yaml). A word with a dot or a slash in it is a FILE of one's own:
///
///     com: [200, 200, 20000]            # N/m along x, y, z of the world; optional
///     hands: [200, 200, 200]            # N/m, both hands; optional; or left_hand / right_hand
///     hand_floor: [0, 0, 0.75]          # least share of the hands' stiffness; optional
///     null_space: {weight: identity, stiffness: 50}   # N·m/rad; weight: gains is a fraction of Kp
///     channels: {torque: followed, gravity: held}     # default: followed; see Channel
///     condition: disc                   # default; (S7c); or two-sided (S7b), one-sided (S7a)
///
/// Ranges make it the budget of a policy that is told its budget (docs/command.md):
///
///     com: {from: 200, to: 3000, z: 20000}                     # N/m along x and y; z has a number
///     hands: {from: 100, to: 1000}                             # N/m, every axis
///     null_space: {weight: identity, from: 20, to: 300}        # N·m/rad
///
/// key=value changes one thing: com=400 (all axes), com=400/400/20000, hands=…, left_hand=…,
/// right_hand=…, hand_floor=0/0/0.75, null_space=80, torque=held, gravity=followed,
/// condition=two-sided; com=600..3000, hands=…, null_space=… a range. The changes are part of the
/// budget's name. Throws ConfigError.
UserBudget ReadBudget(const std::string& mode);

/// The same where a budget without ranges is needed. Throws ConfigError for one that has them.
UserBudget ReadPlainBudget(const std::string& mode);

/// The names that ReadBudget() finds a file for, sorted.
std::vector<std::string> BudgetNames();
/// Those without ranges.
std::vector<std::string> PlainBudgetNames();

/// The same from text; `path` stands for the file in messages.
UserBudget ParseBudget(std::string_view text, const std::string& path);
/// The same from a map.
BudgetSpec ParseBudget(const YamlNode& node);

/// The budget as such a file; reading it back gives the same numbers.
std::string BudgetYaml(const BudgetSpec& spec);

/// What is bounded: "CoM 200/200/20000 N/m, null space 50 N·m/rad".
std::string BudgetNumbers(const BudgetSpec& spec);
/// How it is judged: "gravity held, torque followed, disc; hands' floor none".
std::string BudgetTerms(const BudgetSpec& spec);

}  // namespace silc
