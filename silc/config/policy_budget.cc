// SPDX-License-Identifier: Apache-2.0
#include "silc/config/policy_budget.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>
#include <vector>

#include "silc/base/error.h"
#include "silc/base/nearest.h"

namespace silc {

namespace {

// The middle as a person would write it down, 775 for 200 to 3000, where the range is wide enough.
double RoundMiddle(const BudgetRange& range) {
  const double rounded = std::stod(fmt::format("{:.3g}", range.Middle()));
  return range.Contains(rounded) ? rounded : range.Middle();
}

// com=400,hands=200,null_space=100
void ReadNumbers(const std::string& asked, const BudgetCommand& command, BudgetValues* values) {
  const auto fail = [&](const std::string& why) {
    throw ConfigError("--budget " + asked + ": " + why);
  };
  std::array<bool, kNumCommanded> said = {};
  std::vector<std::string> known;
  for (int i = 0; i < kNumCommanded; ++i) {
    if (command.range[i]) known.emplace_back(Name(static_cast<CommandedNumber>(i)));
  }
  for (std::size_t at = 0; at <= asked.size();) {
    const std::size_t comma = std::min(asked.find(',', at), asked.size());
    const std::string word = asked.substr(at, comma - at);
    at = comma + 1;
    const std::size_t equals = word.find('=');
    const std::string key = word.substr(0, equals);
    int number = 0;
    while (number < kNumCommanded && key != Name(static_cast<CommandedNumber>(number))) ++number;
    if (number == kNumCommanded || !command.range[number]) {
      fail("'" + key + "' is nothing that this policy is told" + DidYouMean(key, known));
    }
    if (std::exchange(said[static_cast<std::size_t>(number)], true)) fail(key + ": is given twice");
    const std::string text = equals == std::string::npos ? "" : word.substr(equals + 1);
    const char* const end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, (*values)[number]);
    if (error != std::errc() || stop != end || text.empty()) {
      fail(key + ": '" + text + "' is no number");
    }
  }
}

// The numbers of a plain budget, as a command.
void TakeNumbers(const std::string& asked, const BudgetCommand& command, BudgetValues* values) {
  const auto fail = [&](const std::string& why) {
    throw ConfigError("--budget " + asked + ": " + why);
  };
  const BudgetSpec spec = ReadPlainBudget(asked).spec;
  if (command.range[kCommandCom]) {
    if (!spec.com || (*spec.com)[0] != (*spec.com)[1]) {
      fail("a command has one number for x and y of the centre of mass, and this budget has not");
    }
    (*values)[kCommandCom] = (*spec.com)[0];
  }
  // a budget that says nothing of the hands leaves them at the middle
  if (command.range[kCommandHands] && (spec.hand[0] || spec.hand[1])) {
    const Eigen::Vector3d k = spec.hand[0] ? *spec.hand[0] : *spec.hand[1];
    if (!spec.hand[0] || spec.hand[0] != spec.hand[1] || (k.array() != k[0]).any()) {
      fail("a command has one number for both hands and every axis, and this budget has more");
    }
    (*values)[kCommandHands] = k[0];
  }
  if (command.range[kCommandNull]) (*values)[kCommandNull] = spec.null_stiffness;
}

// A budget's name without its change of `key`: "compliance,com=300..900" without com.
std::string Without(const std::string& name, const std::string& key) {
  const std::size_t from = name.find("," + key + "=");
  if (from == std::string::npos) return name;
  const std::size_t to = std::min(name.find(',', from + 1), name.size());
  return name.substr(0, from) + name.substr(to);
}

// The policy's budget at what it is told, named so that --mode takes the name.
void Tell(const std::optional<std::string>& asked, const std::string& place, PolicyBudget* found) {
  const BudgetSpec ranges = found->budget.spec;
  found->command = ranges.command;
  BudgetValues values = MiddleOf(ranges.command);
  for (int i = 0; i < kNumCommanded; ++i) {
    if (ranges.command.range[i]) values[i] = RoundMiddle(*ranges.command.range[i]);
  }
  if (asked && asked->find('=') < asked->find(',')) {
    ReadNumbers(*asked, ranges.command, &values);
  } else if (asked) {
    TakeNumbers(*asked, ranges.command, &values);
  }
  for (int i = 0; i < kNumCommanded; ++i) {
    const auto& range = ranges.command.range[i];
    if (!range) continue;
    if (!range->Contains(values[i])) {
      throw ConfigError(
          fmt::format("--budget {}: {}: {:g} is outside [{:g}, {:g}], for which {} was "
                      "trained",
                      asked.value_or(""),
                      Name(static_cast<CommandedNumber>(i)),
                      values[i],
                      range->low,
                      range->high,
                      place));
    }
    const char* const key = Name(static_cast<CommandedNumber>(i));
    found->budget.name = Without(found->budget.name, key);
    found->budget.name += fmt::format(",{}={:g}", key, values[i]);
    if (i == kCommandCom) {
      found->budget.name += fmt::format("/{:g}/{:g}", values[i], (*ranges.com)[2]);
    }
  }
  found->told = values;
  found->budget.spec = BudgetAt(ranges, values);
}

}  // namespace

PolicyBudget BudgetOfPolicy(const TrainingNotes& notes,
                            const std::string& place,
                            const std::optional<std::string>& asked) {
  PolicyBudget found;
  found.own = true;
  if (!notes.budget.empty()) {
    found.budget = ParseBudget(notes.budget, place + ", silc_budget");
    found.budget.name = notes.mode.empty() ? "unnamed" : notes.mode;
    if (found.budget.spec.IsCommanded()) Tell(asked, place, &found);
  }
  if (asked && !found.told) {
    throw ConfigError("--budget " + *asked + ": " + place +
                      " is not told its budget, which policies trained under --mode command are"
                      "\n  To judge it by another budget, give that as --mode.");
  }
  if (!notes.budget.empty()) return found;
  if (notes.mode.empty()) {
    found.budget = ReadBudget(kDefaultMode);
    found.own = false;
    return found;
  }
  try {
    found.budget = ReadBudget(notes.mode);
  } catch (const ConfigError&) {
    throw ConfigError(place + ": was trained under a budget '" + notes.mode +
                      "' that does not come with silc, and does not carry its numbers: give its "
                      "file, or another budget, by --mode");
  }
  found.budget.spec.gravity = notes.gravity_held ? Channel::kHeld : Channel::kFollowed;
  found.warning = place + ": carries the name of its budget but not its numbers; judged by '" +
                  notes.mode + "' as silc has it now, gravity " + Name(found.budget.spec.gravity) +
                  "\n  silc export IN.onnx OUT.onnx --mode MODE writes the numbers into a file.";
  return found;
}

std::string CommandText(const PolicyBudget& budget) {
  constexpr const char* kNames[] = {"com", "hands", "null space"};
  std::string text;
  for (int i = 0; i < kNumCommanded; ++i) {
    if (!budget.command.range[i]) continue;
    const bool share = i == kCommandNull && budget.budget.spec.weight == NullWeight::kServo;
    text += fmt::format("{}{} {:g} {}",
                        text.empty() ? "" : ", ",
                        kNames[i],
                        (*budget.told)[i],
                        share               ? "× Kp"
                        : i == kCommandNull ? "N·m/rad"
                                            : "N/m");
  }
  return text;
}

std::string TrainedOtherwise(const TrainingNotes& notes, const BudgetSpec& judged) {
  const std::string bounded = BoundedBy(notes.method);
  const bool agree = notes.method == Name(Method::kSilc) && judged.condition == Condition::kDisc;
  if (bounded.empty() || agree) return "";
  return "trained by " + bounded + (notes.bound.empty() ? "" : " at limit " + notes.bound);
}

void PutBudget(const UserBudget& budget, TrainingNotes* notes) {
  notes->mode = budget.name;
  notes->budget = BudgetYaml(budget.spec);
}

}  // namespace silc
