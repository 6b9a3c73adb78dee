// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "silc/config/policy_budget.h"
#include "silc/policy/policy.h"
#include "silc/robot/robot_model.h"

namespace silc {

/// The budget a policy is judged by, and what a commanded policy is told.
struct ChosenBudget {
  UserBudget judged;
  BudgetCommand command;             // the ranges of a commanded policy; none for the others
  std::optional<BudgetValues> told;  // what a commanded policy is told
  std::string told_text;             // the same as a sentence for the user; "" for the others
  std::string default_text;          // a sentence for the user: the file has none inside; or ""
  std::string warning;               // a sentence for the user: the file lacks its numbers; or ""
};

/// "a.onnx: no budget inside; judged by 'compliance'".
std::string NoBudgetText(const std::string& onnx_path, const UserBudget& judged);

/// Chooses by what the user said: `mode` (--mode) judges, else the budget inside the policy's file,
/// else the default mode.
/// A commanded policy is told `budget` (--budget), and judged by it where there is no `mode`.
///
/// Throws ConfigError for a budget that bounds points which the robot does not have
/// (NeedPointsOf()), and wherever ReadPlainBudget() and BudgetOfPolicy() do.
ChosenBudget ChooseBudget(const std::optional<std::string>& mode,
                          const std::optional<std::string>& budget,
                          const TrainingNotes& notes,
                          const std::string& onnx_path,
                          const RobotModel& robot,
                          Policy* policy);

}  // namespace silc
