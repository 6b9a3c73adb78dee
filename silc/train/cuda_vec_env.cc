// SPDX-License-Identifier: Apache-2.0
#include "silc/train/cuda_vec_env.h"

#include <c10/cuda/CUDAStream.h>

#include <limits>

#include "silc/base/check.h"
#include "silc/train/loco_spec.h"

namespace silc {
namespace {

CUstream_st* TakeStream() {
  // not the default stream: that one cannot be captured in a graph
  const c10::cuda::CUDAStream stream = c10::cuda::getStreamFromPool(/*isHighPriority=*/true);
  c10::cuda::setCurrentCUDAStream(stream);
  return stream.stream();
}

DeviceDelivery Delivery(const EnvSpec& spec, const ObservationView& view) {
  SILC_CHECK(view.obs_stride >= spec.obs_dim && view.critic_obs_stride >= spec.critic_obs_dim);
  return {.obs = view.obs,
          .obs_stride = view.obs_stride,
          .critic_obs = view.critic_obs,
          .critic_obs_stride = view.critic_obs_stride,
          .agents = static_cast<int>(spec.agents.size()),
          .mode = view.stiffness.mode,
          .com = view.stiffness.com,
          .hand_on_base = view.stiffness.hand_on_base,
          .closing = view.stiffness.closing,
          .gravity = view.stiffness.gravity};
}

}  // namespace

CudaVecEnv::CudaVecEnv(LocoVecEnvOptions options)
    : env_(options.env, TakeStream()),
      diverged_log_(std::move(options.diverged_log)),
      score_(std::numeric_limits<double>::quiet_NaN()) {
  spec_ = MakeLocoSpec(env_.robot_model(), env_.layout(), options.budget, env_.num_envs());
  spec_.on_gpu = true;
  spec_.first_env = options.env.first_env;
  spec_.total_envs = options.env.total_envs;
}

Curricula CudaVecEnv::SaveCurricula() const {
  if (!begun_) return start_.value_or(Curricula{});
  LocoCurricula saved = env_.SaveCurricula();
  return {std::move(saved.shared), std::move(saved.of_robots)};
}

void CudaVecEnv::Reset(const ObservationView& first) {
  env_.Reset();
  if (start_) env_.LoadCurricula({start_->shared, start_->of_robots});
  begun_ = true;
  env_.Deliver(Delivery(spec_, first));
}

void CudaVecEnv::Step(const float* action,
                      const OutcomeView& outcome,
                      const ObservationView& next) {
  env_.Step(action);
  DeviceDelivery to = Delivery(spec_, next);
  to.reward = outcome.reward;
  to.done = outcome.done;
  to.timed_out = outcome.timed_out;
  env_.Deliver(to);
}

std::vector<std::pair<std::string, double>> CudaVecEnv::TakeMetrics() {
  const LocoStats stats = env_.TakeStats();
  score_ = LocoScore(stats, env_.config());
  diverged_log_.Write(env_.diverged());
  return LocoMetrics(stats, env_.config());
}

}  // namespace silc
