// SPDX-License-Identifier: Apache-2.0
#include "silc/cli/number.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <limits>
#include <string>

namespace silc {
namespace {

// The whole text as a number, with an optional plus: no blanks, no hexadecimal, nothing behind it.
template <typename T>
bool Parse(const std::string& text, T* value) {
  const char* begin = text.data() + (text.starts_with('+') ? 1 : 0);
  const auto [end, error] = std::from_chars(begin, text.data() + text.size(), *value);
  return error == std::errc() && end == text.data() + text.size();
}

}  // namespace

CLI::Validator NumberIn(double low, double high) {
  const std::string range = fmt::format("[{:g}, {:g}]", low, high);
  return CLI::Validator(
      [low, high, range](const std::string& text) -> std::string {
        double value = 0;
        if (!Parse(text, &value) || !std::isfinite(value)) {
          return "'" + text + "' is not a finite number";
        }
        if (value < low || value > high) return text + " is outside " + range;
        return {};
      },
      "in " + range);
}

CLI::Validator WholeIn(std::int64_t low, std::int64_t high) {
  const std::string range = fmt::format("[{}, {}]", low, high);
  return CLI::Validator(
      [low, high, range](const std::string& text) -> std::string {
        std::int64_t value = 0;
        if (!Parse(text, &value)) return "'" + text + "' is not a whole number";
        if (value < low || value > high) return text + " is outside " + range;
        return {};
      },
      "in " + range);
}

CLI::Validator SeedNumber() {
  CLI::Validator seed = WholeIn(0, std::numeric_limits<std::int64_t>::max());
  seed.description("");
  return seed;
}

void RefuseEmptyValues(CLI::App* app) {
  for (CLI::Option* option : app->get_options()) {
    if (option->get_items_expected_max() == 0) continue;  // a flag
    option->check(CLI::Validator(
        [](const std::string& text) -> std::string { return text.empty() ? "is empty" : ""; }, ""));
  }
  for (CLI::App* verb : app->get_subcommands(nullptr)) RefuseEmptyValues(verb);
}

}  // namespace silc
