// SPDX-License-Identifier: Apache-2.0
#include "silc/learn/random_env.h"

#ifdef SILC_HAVE_CUDA
#include <c10/cuda/CUDAStream.h>
#endif

namespace silc {
namespace {

void CopyTo(void* to, const Tensor& from) {
  at::from_blob(to, from.sizes(), from.options()).copy_(from);
}

}  // namespace

RandomEnv::RandomEnv(int num_envs, bool gpu) {
#ifdef SILC_HAVE_CUDA
  if (gpu) c10::cuda::setCurrentCUDAStream(c10::cuda::getStreamFromPool(/*isHighPriority=*/true));
#endif
  spec_.num_envs = num_envs;
  spec_.obs_dim = kObs;
  spec_.critic_obs_dim = kCritic;
  spec_.agents = {{"lower", 15}, {"upper", 14}};
  spec_.on_gpu = gpu;
  spec_.stiffness = true;
  StiffnessSpec& s = spec_.stiffness_spec;
  s.servo.kp.setConstant(kJoints, 100);
  s.servo.kd.setConstant(kJoints, 2);
  s.servo.alpha.setConstant(kJoints, 0.25);
  s.budget.com = Eigen::Vector3d(200, 200, 20000);
  s.budget.null_stiffness = 50;
  for (int frame = 0; frame < kFrames; ++frame) {
    for (int j = 0; j < kJoints; ++j) {
      s.q.push_back({frame * kFrame + j, j, 1.f});
      s.a.push_back({frame * kFrame + 2 * kJoints + j, j, 1.f});
      if (frame == kFrames - 1) s.q0.push_back(s.q.back());
    }
  }
  at::manual_seed(1);
  options_ = at::TensorOptions(at::kFloat).device(gpu ? at::kCUDA : at::kCPU);
  obs_ = at::randn({num_envs, kObs}, options_);
  critic_obs_ = at::randn({num_envs, kCritic}, options_);
  reward_ = at::randn({num_envs, 2}, options_);
  mode_ = at::randint(0, 3, {num_envs}, options_.dtype(at::kByte));
  jacobian_ = 0.3 * at::randn({num_envs, 6, kJoints}, options_);
}

void RandomEnv::Reset(const ObservationView& first) { Write(first); }

void RandomEnv::Step(const float*, const OutcomeView& outcome, const ObservationView& next) {
  CopyTo(outcome.reward, reward_);
  CopyTo(outcome.done, at::zeros({spec_.num_envs}, options_.dtype(at::kByte)));
  CopyTo(outcome.timed_out, at::zeros({spec_.num_envs}, options_.dtype(at::kByte)));
  Write(next);
}

void RandomEnv::Write(const ObservationView& view) {
  const auto put = [](float* to, std::int64_t stride, const Tensor& from) {
    at::from_blob(to, from.sizes(), {stride, 1}, from.options()).copy_(from);
  };
  put(view.obs, view.obs_stride, obs_);
  put(view.critic_obs, view.critic_obs_stride, critic_obs_);
  if (view.stiffness.mode == nullptr) return;
  CopyTo(view.stiffness.mode, mode_);
  CopyTo(view.stiffness.com, jacobian_.narrow(1, 0, 3).contiguous());
  CopyTo(view.stiffness.hand_on_base,
         at::stack({jacobian_.narrow(1, 0, 3), jacobian_.narrow(1, 3, 3)}, 1));
  CopyTo(view.stiffness.closing, jacobian_.flip(2));
  CopyTo(view.stiffness.gravity, jacobian_.narrow(1, 3, 3).contiguous());
}

}  // namespace silc
