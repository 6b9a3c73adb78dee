// SPDX-License-Identifier: Apache-2.0
#include "silc/cli/mode_option.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "silc/base/error.h"
#include "silc/base/utf8.h"

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
                  "{},gravity=followed,com=400 [{}]",
                  purpose,
                  fmt::join(BudgetNames(), ", "),
                  kDefaultMode,
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
      "what a commanded policy is told, and judged by: com=400,hands=200,null_space=100 (N/m, N/m, "
      "N·m/rad), or a budget as --mode takes it [the middle of its ranges]");
}

UserBudget TellChosenBudget(const ChosenBudget& chosen) {
  if (!chosen.warning.empty()) fmt::print(stderr, "silc: {}\n", Printable(chosen.warning));
  if (!chosen.told_text.empty()) fmt::print("{}\n", Printable(chosen.told_text));
  if (!chosen.default_text.empty()) fmt::print("{}\n", Printable(chosen.default_text));
  return chosen.judged;
}

}  // namespace silc
