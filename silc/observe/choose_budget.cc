// SPDX-License-Identifier: Apache-2.0
#include "silc/observe/choose_budget.h"

#include <fmt/format.h>

#include "silc/base/error.h"
#include "silc/robot/robot_fit.h"

namespace silc {

std::string NoBudgetText(const std::string& onnx_path, const UserBudget& judged) {
  return fmt::format("{}: no budget inside; judged by '{}'", onnx_path, judged.name);
}

ChosenBudget ChooseBudget(const std::optional<std::string>& mode,
                          const std::optional<std::string>& budget,
                          const TrainingNotes& notes,
                          const std::string& onnx_path,
                          const RobotModel& robot,
                          Policy* policy) {
  ChosenBudget chosen;
  // what the file says of its own budget is of no interest beside --mode, but for a commanded one
  if (!mode || budget || policy->sees_budget()) {
    const PolicyBudget found = BudgetOfPolicy(notes, onnx_path, budget);
    if (found.told) {
      if (!policy->sees_budget()) {
        throw ConfigError(
            onnx_path +
            ": was trained under a budget with ranges, but its layout has no term that "
            "tells it which\n  Choose the layout it was trained with (--layout).");
      }
      policy->SetBudget(*found.told);
      chosen.command = found.command;
      chosen.told = found.told;
      chosen.told_text =
          fmt::format("{}: is told {}{}",
                      onnx_path,
                      CommandText(found),
                      budget ? "" : ": the middle of its ranges, since no --budget was given");
    }
    if (!mode) {
      chosen.judged = found.budget;
      chosen.warning = found.warning;
      if (!found.own) chosen.default_text = NoBudgetText(onnx_path, found.budget);
    }
  }
  if (mode) chosen.judged = ReadPlainBudget(*mode);
  NeedPointsOf(chosen.judged.spec, robot);
  return chosen;
}

}  // namespace silc
