// SPDX-License-Identifier: Apache-2.0
#include "silc/train/train_bench.h"

#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <ctime>

#include "silc/learn/device_graph.h"
#include "silc/learn/tensor.h"
#include "silc/learn/trainer.h"
#ifdef SILC_HAVE_CUDA
#include <cuda_runtime_api.h>
#endif

namespace silc {
namespace {

using Clock = std::chrono::steady_clock;
double Since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

double ProcessorSeconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

double Median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

}  // namespace

EnvRate BenchEnv(const TrainConfig& config, int steps) {
  const LocoVecEnvOptions env_options = EnvOptionsOf(config);
  const auto env = MakeLocoVecEnv(env_options);
  const EnvSpec& spec = env->spec();
  const auto options = at::TensorOptions(at::kFloat).device(spec.on_gpu ? at::kCUDA : at::kCPU);
  const std::int64_t n = spec.num_envs, nv = spec.num_actions();
  at::manual_seed(1);
  const Tensor action = 0.5 * at::randn({n, nv}, options);
  Tensor obs = at::zeros({n, spec.obs_dim}, options),
         critic = at::zeros({n, spec.critic_obs_dim}, options),
         reward = at::zeros({n, static_cast<std::int64_t>(spec.agents.size())}, options);
  const auto bytes = options.dtype(at::kByte);
  Tensor done = at::zeros({n}, bytes), timed_out = at::zeros({n}, bytes);
  Tensor mode, jacobians;
  ObservationView next{.obs = obs.data_ptr<float>(),
                       .critic_obs = critic.data_ptr<float>(),
                       .obs_stride = spec.obs_dim,
                       .critic_obs_stride = spec.critic_obs_dim};
  if (env_options.env.samples) {
    mode = at::zeros({n}, bytes);
    jacobians = at::zeros({SampleRows::kEnd, n, nv}, options);
    const auto rows = [&](int first) { return jacobians[first].data_ptr<float>(); };
    next.stiffness = {.mode = reinterpret_cast<ContactMode*>(mode.data_ptr<std::uint8_t>()),
                      .com = rows(SampleRows::kCom),
                      .hand_on_base = rows(SampleRows::kHandOnBase),
                      .closing = rows(SampleRows::kClosing),
                      .gravity = rows(SampleRows::kGravity)};
  }
  const OutcomeView outcome{
      reward.data_ptr<float>(), done.data_ptr<std::uint8_t>(), timed_out.data_ptr<std::uint8_t>()};
  const auto run = [&](int count) {
    for (int i = 0; i < count; ++i) env->Step(action.data_ptr<float>(), outcome, next);
    WaitForDevice();
  };
  env->Reset(next);
  run(5);
  const double cpu = ProcessorSeconds();
  const auto start = Clock::now();
  run(steps);
  const double total = static_cast<double>(n) * steps;
  return {total / Since(start), total / (ProcessorSeconds() - cpu)};
}

TrainBenchResult BenchTraining(const TrainConfig& config, int iterations) {
  TrainBenchResult result;
  const auto start = Clock::now();
  const auto env = MakeLocoVecEnv(EnvOptionsOf(config));
  Trainer trainer(config.learn, env.get());
  trainer.Iterate();
  result.first_s = Since(start);
  trainer.Iterate();  // on a GPU the one that records
  std::vector<double> whole, rollout, stepping, update;
  const double cpu = ProcessorSeconds();
  for (int i = 0; i < iterations; ++i) {
    const auto begin = Clock::now();
    trainer.Iterate();
    whole.push_back(Since(begin));
  }
  result.cpu_s = (ProcessorSeconds() - cpu) / iterations;
  trainer.MeasureStages(true);
  for (int i = 0; i < iterations; ++i) {
    trainer.Iterate();
    rollout.push_back(trainer.last_times().rollout);
    stepping.push_back(trainer.last_times().env);
    update.push_back(trainer.last_times().update);
  }
  result.iteration_s = Median(whole);
  result.rollout_s = Median(rollout);
  result.env_s = env->spec().on_gpu ? 0 : Median(stepping);
  result.update_s = Median(update);
  return result;
}

MemoryUse PeakMemory() {
  MemoryUse use;
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  use.host = 1024.0 * static_cast<double>(usage.ru_maxrss);
#ifdef SILC_HAVE_CUDA
  std::size_t free = 0, total = 0;
  // the allocators keep what they once took, so what is taken now was the most
  if (cudaMemGetInfo(&free, &total) == cudaSuccess) {
    use.device = static_cast<double>(total - free);
  }
#endif
  return use;
}

}  // namespace silc
