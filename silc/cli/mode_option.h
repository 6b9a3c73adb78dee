// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>

#include "silc/config/policy_budget.h"

namespace silc {

/// --mode, the same in every verb: a budget as ReadBudget() takes it. `purpose` begins the help,
/// `otherwise` says what holds where it is left out.
CLI::Option* AddModeOption(CLI::App* verb,
                           std::optional<std::string>* mode,
                           const std::string& purpose,
                           const std::string& otherwise);

/// A flag of earlier versions, with or without a value: answered with a ConfigError that says where
/// the thing is now, and left out of the help.
void AddRetiredFlag(CLI::App* verb, const std::string& flag, const std::string& where);

/// The budget to judge a policy by: the user's --mode, else the one inside the policy's file. A
/// file without its numbers is warned of on stderr.
UserBudget ChooseBudget(const std::optional<std::string>& mode,
                        const TrainingNotes& notes,
                        const std::string& onnx_path);

}  // namespace silc
