// SPDX-License-Identifier: Apache-2.0
#include "silc/config/policy_budget.h"

#include "silc/base/error.h"

namespace silc {

PolicyBudget BudgetOfPolicy(const TrainingNotes& notes, const std::string& place) {
  PolicyBudget found;
  found.own = true;
  if (!notes.budget.empty()) {
    found.budget = ParseBudget(notes.budget, place + ", silc_budget");
    found.budget.name = notes.mode.empty() ? "unnamed" : notes.mode;
    return found;
  }
  if (notes.mode.empty()) return {ReadBudget(kDefaultMode), false, ""};
  try {
    found.budget = ReadBudget(notes.mode);
  } catch (const ConfigError&) {
    throw ConfigError(place + ": was trained under a budget '" + notes.mode +
                      "' that does not come with silc, and does not carry its numbers: give its "
                      "file, or another budget, by --mode");
  }
  found.budget.spec.gravity = notes.gravity_held ? Channel::kHeld : Channel::kFollowed;
  found.warning = place + ": carries the name of its budget but not its numbers; judged by '" +
                  notes.mode + "' as silc has it now, gravity " + Name(found.budget.spec.gravity) +
                  "\n  silc export IN.onnx OUT.onnx --mode MODE writes the numbers into a file.";
  return found;
}

void PutBudget(const UserBudget& budget, TrainingNotes* notes) {
  notes->mode = budget.name;
  notes->budget = BudgetYaml(budget.spec);
}

}  // namespace silc
