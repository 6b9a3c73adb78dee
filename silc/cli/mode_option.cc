// SPDX-License-Identifier: Apache-2.0
#include "silc/cli/mode_option.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "silc/base/error.h"

namespace silc {

CLI::Option* AddModeOption(CLI::App* verb,
                           std::optional<std::string>* mode,
                           const std::string& purpose,
                           const std::string& otherwise) {
  // by a function: an empty word into an optional would be as if it had not been given
  return verb->add_option_function<std::string>(
      "--mode",
      [mode](const std::string& text) { *mode = text; },
      fmt::format("{}: {}, or a YAML file; with changes as in "
                  "compliance,gravity=followed,com=400 [{}]",
                  purpose,
                  fmt::join(BudgetNames(), ", "),
                  otherwise));
}

void AddRetiredFlag(CLI::App* verb, const std::string& flag, const std::string& where) {
  const auto answer = [flag, where](const std::vector<std::string>&) -> bool {
    throw ConfigError(flag + ": " + where);
  };
  verb->add_option(flag, answer)->expected(0, 1)->group("");
}

CLI::Option* AddBudgetOption(CLI::App* verb, std::optional<std::string>* budget) {
  return verb->add_option_function<std::string>(
      "--budget",
      [budget](const std::string& text) { *budget = text; },
      "what a commanded policy is told, and judged by: com=400,hands=200,null=100 (N/m, N/m, "
      "N·m/rad), or a budget as --mode takes it [the middle of its ranges]");
}

ChosenBudget ChooseBudget(const std::optional<std::string>& mode,
                          const std::optional<std::string>& budget,
                          const TrainingNotes& notes,
                          const std::string& onnx_path,
                          Policy* policy) {
  ChosenBudget chosen;
  // what the file says of its own budget is of no interest beside --mode, but for a commanded one
  if (mode && !budget && !policy->sees_budget()) return {ReadPlainBudget(*mode), ""};
  const PolicyBudget found = BudgetOfPolicy(notes, onnx_path, budget);
  if (found.told) {
    if (!policy->sees_budget()) {
      throw ConfigError(onnx_path +
                        ": was trained under a budget with ranges, but its layout has no term that "
                        "tells it which\n  Choose the layout it was trained with (--layout).");
    }
    policy->SetBudget(*found.told);
    chosen.told =
        fmt::format("{}: is told {}{}",
                    onnx_path,
                    CommandText(found),
                    budget ? "" : ": the middle of its ranges, since no --budget was given");
  }
  if (mode) {
    chosen.judged = ReadPlainBudget(*mode);
    return chosen;
  }
  if (!found.warning.empty()) fmt::print(stderr, "silc: {}\n", found.warning);
  chosen.judged = found.budget;
  return chosen;
}

}  // namespace silc
