// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "silc/learn/config.h"

namespace silc {

struct UpdateBenchOptions {
  int num_envs = 4096;
  int iterations = 5;  // timed, after one that is not
  LearnConfig learn;   // method, widths, device, samples of the penalty
};

struct UpdateBenchResult {
  std::string method;
  std::vector<double> update_ms;  // one per timed iteration
  double median_ms = 0;
};

/// Times Trainer's update on random observations of FALCON's sizes (29 joints, 5 × 115 inputs, two
/// agents of 15 and 14 actions) with random Jacobians in every contact mode: what an iteration
/// costs without a simulator.
UpdateBenchResult BenchUpdate(const UpdateBenchOptions& options);

}  // namespace silc
