// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "silc/learn/config.h"

namespace silc {

/// Sizes of one penalised mini-batch: two actors on g1-loco's observation (655 inputs, 15 and 14
/// actions) and as many samples as a mini-batch penalises.
struct PenaltyBenchOptions {
  int samples = 2048;
  std::vector<int> hidden = {512, 256, 128};
  std::string device = "cpu";
  int repeats = 5;  // timed, after two that are not
};

/// Medians of the repeats.
struct PenaltyBenchResult {
  double wall_s = 0;
  double cpu_s = 0;  // of the process: tells more on a machine that others use too
};
/// Times value and gradient of the penalty with respect to every weight, forward pass included, on
/// one thread or one GPU. @param config  method and its choices
PenaltyBenchResult BenchPenalty(const PenaltyBenchOptions& options, const LearnConfig& config);

}  // namespace silc
