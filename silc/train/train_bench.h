// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "silc/train/train_config.h"

namespace silc {

/// Control steps per second of physics and task, without networks: random actions of the size an
/// untrained policy makes, everything delivered into memory of the learner's kind.
struct EnvRate {
  double per_s = 0, per_cpu_s = 0;  // of the clock; of processor time, all threads together
};
EnvRate BenchEnv(const TrainConfig& config, int steps);

/// What a training of these settings costs, medians over iterations.
struct TrainBenchResult {
  double first_s = 0;      // [s] environment, trainer and first iteration
  double iteration_s = 0;  // whole, as a training runs it
  double rollout_s = 0;    // environment and policy, waited for
  double env_s = 0;        // of the rollout; 0 on a GPU, where the two are not apart
  double update_s = 0;     // advantages, losses, penalty, optimiser
  double cpu_s = 0;        // processor time of an iteration, mean
};
TrainBenchResult BenchTraining(const TrainConfig& config, int iterations);

/// Peak so far of this process [bytes]: memory of the host, and what is taken on the GPU (0: none).
struct MemoryUse {
  double host = 0;
  double device = 0;
};
MemoryUse PeakMemory();

}  // namespace silc
