// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "silc/config/budget_file.h"
#include "silc/policy/training_notes.h"

namespace silc {

/// The budget a policy is judged by where the user names none.
struct PolicyBudget {
  UserBudget budget;                 // without ranges
  BudgetCommand command;             // the ranges of a commanded policy (docs/command.md)
  std::optional<BudgetValues> told;  // what a commanded policy is told: `budget` is the one of it
  bool own = false;                  // the policy was trained under it; else the default mode
  std::string warning;               // a sentence for the user; "" when there is nothing to say
};

/// The budget inside a policy file: its numbers (silc_budget), whatever the file of that name in
/// configs/budgets says by now. A file that carries a name alone (silc_mode, and silc_gravity as
/// older ones have it) gets the budget of that name, with a warning; one that names none, the
/// default mode. Throws ConfigError that asks for --mode where the name is none of silc's or the
/// numbers cannot be read. `place` stands for the file in messages.
///
/// A commanded policy is judged by the budget that it is told: `asked`, else the middle of its
/// ranges to three digits. `asked` is com=400,hands=200,null_space=100 (a number left out stands at
/// the middle), or a plain budget as --mode takes it, whose numbers become the command. Throws
/// ConfigError for a number outside its range, and for `asked` where the policy is told nothing.
PolicyBudget BudgetOfPolicy(const TrainingNotes& notes,
                            const std::string& place,
                            const std::optional<std::string>& asked = std::nullopt);

/// "com 400 N/m, hands 200 N/m, null space 100 N·m/rad": what is commanded of `budget`.
std::string CommandText(const PolicyBudget& budget);

/// How a policy was trained where that is not how `judged` judges it, on K_s by its condition:
/// "trained by (S7a) on K₁ at limit 4". "" where the two agree, and for a training without a bound.
std::string TrainedOtherwise(const TrainingNotes& notes, const BudgetSpec& judged);

/// The budget as the metadata of a policy file carry it.
void PutBudget(const UserBudget& budget, TrainingNotes* notes);

}  // namespace silc
