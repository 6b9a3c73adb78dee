// SPDX-License-Identifier: Apache-2.0
// Control steps per second of the task and its physics, without networks: random actions of the
// size an untrained policy makes. One JSON object per line.
//
//   task_bench [task] [robots] [threads] [steps] [samples 0|1] [backend]
#include <fmt/format.h>

#include <chrono>
#include <cstdlib>
#include <ctime>
#include <string>
#include <vector>

#include "silc/base/error.h"
#include "silc/base/rng.h"
#include "silc/task/loco_env.h"

int main(int argc, char** argv) {
  const auto arg = [&](int i, const char* fallback) {
    return std::string(i < argc ? argv[i] : fallback);
  };
  try {
    const std::string task = arg(1, silc::kDefaultTask);
    const int robots = std::atoi(arg(2, "1024").c_str());
    const int threads = std::atoi(arg(3, "1").c_str());
    const int steps = std::atoi(arg(4, "100").c_str());
    const bool samples = arg(5, "0") == "1";
    using Clock = std::chrono::steady_clock;
    const auto start = Clock::now();
    const silc::TaskFile file = silc::ReadTaskFile(silc::FindTaskFile(task));
    silc::LocoEnv env({.config = file.config,
                       .layout = silc::ReadTaskLayout(file.layout),
                       .backend = arg(6, "batch"),
                       .num_envs = robots,
                       .threads = threads,
                       .samples = samples});
    const std::chrono::duration<double> made = Clock::now() - start;
    std::vector<float> actions(static_cast<std::size_t>(robots) * silc::kTaskJoints);
    silc::Rng rng(1);
    for (float& a : actions) a = static_cast<float>(0.5 * rng.Normal());
    for (int i = 0; i < 5; ++i) env.Step(actions);
    const std::clock_t cpu_begin = std::clock();
    const auto begin = Clock::now();
    for (int i = 0; i < steps; ++i) env.Step(actions);
    const std::chrono::duration<double> time = Clock::now() - begin;
    const double cpu = static_cast<double>(std::clock() - cpu_begin) / CLOCKS_PER_SEC;
    const silc::LocoStats stats = env.TakeStats();
    fmt::print(
        "{{\"name\": \"train.env_steps_per_s\", \"value\": {:.1f}, \"unit\": \"1/s\", \"task\": "
        "\"{}\", "
        "\"backend\": \"{}\", \"per_cpu_s\": {:.1f}, \"envs\": {}, \"threads\": {}, \"samples\": "
        "{}, \"construction_s\": "
        "{:.3f}, "
        "\"episode_s\": {:.2f}, \"diverged\": {}}}\n",
        robots * static_cast<double>(steps) / time.count(),
        task,
        env.physics().name(),
        robots * static_cast<double>(steps) / cpu,
        robots,
        threads,
        samples,
        made.count(),
        stats.episode_length,
        env.num_diverged());
  } catch (const silc::ConfigError& e) {
    fmt::print(stderr, "{}\n", e.what());
    return 2;
  } catch (const silc::RunError& e) {
    fmt::print(stderr, "{}\n", e.what());
    return 1;
  }
  return 0;
}
