// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>

namespace silc {

// What the command line takes for a number, in one place. CLI11's own Range lets NaN through (no
// comparison with it is true) and reads −1 into an unsigned number.

/// A finite number with low ≤ value ≤ high.
CLI::Validator NumberIn(double low, double high);

/// A whole number with low ≤ value ≤ high.
CLI::Validator WholeIn(std::int64_t low, std::int64_t high);

/// A seed: 0 to 2⁶³ − 1.
CLI::Validator SeedNumber();

/// Refuses "" for every option of the app and its verbs: no option means anything by it.
void RefuseEmptyValues(CLI::App* app);

}  // namespace silc
