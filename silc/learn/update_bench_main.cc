// SPDX-License-Identifier: Apache-2.0
// The time of an update, method by method, as JSON lines:
//   update_bench ENVS ITERATIONS METHOD [learn.key=value...]
#include <fmt/format.h>

#include <cstdlib>
#include <exception>

#include "silc/learn/update_bench.h"

int main(int argc, char** argv) {
  if (argc < 4) {
    fmt::print(stderr, "usage: update_bench ENVS ITERATIONS METHOD [learn.key=value...]\n");
    return 2;
  }
  try {
    silc::UpdateBenchOptions options;
    options.num_envs = std::atoi(argv[1]);
    options.iterations = std::atoi(argv[2]);
    silc::ApplyMethod(argv[3], "command line", &options.learn);
    silc::ApplyOverrides(std::vector<std::string>(argv + 4, argv + argc), &options.learn);
    const silc::UpdateBenchResult result = silc::BenchUpdate(options);
    fmt::print(
        "{{\"name\": \"train.update_ms\", \"value\": {:.2f}, \"unit\": \"ms\", \"method\": "
        "\"{}\", \"envs\": {}, \"steps\": {}, \"device\": \"{}\", \"samples\": {}, "
        "\"sigmas\": \"{}\", \"probes\": {}, \"spectral\": \"{}\"}}\n",
        result.median_ms,
        result.method,
        options.num_envs,
        options.learn.steps,
        options.learn.device,
        options.learn.penalty.samples,
        options.learn.penalty.sigmas,
        options.learn.penalty.probes,
        options.learn.penalty.spectral);
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
}
