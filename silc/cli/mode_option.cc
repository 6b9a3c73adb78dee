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

UserBudget ChooseBudget(const std::optional<std::string>& mode,
                        const TrainingNotes& notes,
                        const std::string& onnx_path) {
  if (mode) return ReadBudget(*mode);
  PolicyBudget found = BudgetOfPolicy(notes, onnx_path);
  if (!found.warning.empty()) fmt::print(stderr, "silc: {}\n", found.warning);
  return std::move(found.budget);
}

}  // namespace silc
