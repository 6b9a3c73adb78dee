// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cmath>
#include <optional>

namespace silc {

/// The numbers of a budget that a policy can be told at run time, (B1) of docs/command.md.
enum CommandedNumber : int {
  kCommandCom,    ///< centre of mass along x and y        [N/m]
  kCommandHands,  ///< both hands along x, y, z            [N/m]
  kCommandNull,   ///< null space                          [N·m/rad] or [1], as the budget's weight
  kNumCommanded
};

/// "com", "hands", "null_space": what a command line calls them.
inline const char* Name(CommandedNumber number) {
  constexpr const char* kNames[] = {"com", "hands", "null_space"};
  return kNames[number];
}

/// One command: the three numbers, in the order of CommandedNumber. Those without a range are not
/// read.
using BudgetValues = std::array<double, kNumCommanded>;

struct BudgetRange {
  double low = 0, high = 0;  // 0 < low ≤ high

  /// (B3): the middle of the logarithms.
  double Middle() const { return std::sqrt(low * high); }
  bool Contains(double value) const { return low <= value && value <= high; }
  bool operator==(const BudgetRange&) const = default;
};

/// What of a budget is commanded, and from where to where.
struct BudgetCommand {
  std::array<std::optional<BudgetRange>, kNumCommanded> range;

  /// Whether anything is.
  bool any() const {
    for (const auto& r : range) {
      if (r) return true;
    }
    return false;
  }
  bool operator==(const BudgetCommand&) const = default;
};

}  // namespace silc
