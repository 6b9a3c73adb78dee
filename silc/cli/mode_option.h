// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>

#include "silc/config/policy_budget.h"
#include "silc/observe/choose_budget.h"

namespace silc {

/// --mode, the same in every verb: a budget as ReadBudget() takes it. `purpose` begins the help,
/// `otherwise` says what holds where it is left out.
CLI::Option* AddModeOption(CLI::App* verb,
                           std::optional<std::string>* mode,
                           const std::string& purpose,
                           const std::string& otherwise);

/// --budget, the same in every verb that runs policies: what a commanded policy is told, as
/// BudgetOfPolicy() takes it.
CLI::Option* AddBudgetOption(CLI::App* verb, std::optional<std::string>* budget);

/// A flag of earlier versions, with or without a value: answered with a ConfigError that says where
/// the thing is now, and left out of the help.
void AddRetiredFlag(CLI::App* verb, const std::string& flag, const std::string& where);

/// The budget to judge by, after the user has been told what ChooseBudget() has to say: a file
/// without its numbers on stderr; what a commanded policy is told, or that there was no budget
/// inside, on stdout.
UserBudget TellChosenBudget(const ChosenBudget& chosen);

}  // namespace silc
