// SPDX-License-Identifier: Apache-2.0
#include "silc/learn/update_bench.h"

#include <algorithm>

#include "silc/learn/random_env.h"
#include "silc/learn/trainer.h"

namespace silc {

UpdateBenchResult BenchUpdate(const UpdateBenchOptions& options) {
  RandomEnv env(options.num_envs, options.learn.device == "cuda");
  Trainer trainer(options.learn, &env);
  UpdateBenchResult result;
  result.method = options.learn.penalty.method;
  trainer.Iterate();
  trainer.Iterate();            // on a GPU the one that records
  trainer.MeasureStages(true);  // else the update is charged with what the rollout left running
  for (int i = 0; i < options.iterations; ++i) {
    trainer.Iterate();
    result.update_ms.push_back(1e3 * trainer.last_times().update);
  }
  std::vector<double> sorted = result.update_ms;
  std::sort(sorted.begin(), sorted.end());
  if (!sorted.empty()) result.median_ms = sorted[sorted.size() / 2];
  return result;
}

}  // namespace silc
