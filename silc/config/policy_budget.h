// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "silc/config/budget_file.h"
#include "silc/policy/training_notes.h"

namespace silc {

/// The budget a policy is judged by where the user names none.
struct PolicyBudget {
  UserBudget budget;
  bool own = false;     // the policy was trained under it; else the default mode
  std::string warning;  // a sentence for the user; "" when there is nothing to say
};

/// The budget inside a policy file: its numbers (silc_budget), whatever the file of that name in
/// configs/budgets says by now. A file that carries a name alone (silc_mode, and silc_gravity as
/// older ones have it) gets the budget of that name, with a warning; one that names none, the
/// default mode. Throws ConfigError that asks for --mode where the name is none of silc's or the
/// numbers cannot be read. `place` stands for the file in messages.
PolicyBudget BudgetOfPolicy(const TrainingNotes& notes, const std::string& place);

/// The budget as the metadata of a policy file carry it.
void PutBudget(const UserBudget& budget, TrainingNotes* notes);

}  // namespace silc
