// SPDX-License-Identifier: Apache-2.0
#include "silc/learn/update_bench.h"

#include <algorithm>

#include "silc/learn/tensor.h"
#include "silc/learn/trainer.h"
#include "silc/learn/vec_env.h"

namespace silc {
namespace {

// Numbers of the right sizes, the same at every step.
class RandomEnv : public VecEnv {
 public:
  static constexpr int kJoints = 29, kFrame = 115, kFrames = 5, kObs = kFrame * kFrames;
  static constexpr int kCritic = 128;

  RandomEnv(int num_envs, bool gpu) {
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

  const EnvSpec& spec() const override { return spec_; }
  void Reset(const ObservationView& first) override { Write(first); }
  void Step(const float*, const OutcomeView& outcome, const ObservationView& next) override {
    Put(outcome.reward, reward_);
    Put(outcome.done, at::zeros({spec_.num_envs}, options_.dtype(at::kByte)));
    Put(outcome.timed_out, at::zeros({spec_.num_envs}, options_.dtype(at::kByte)));
    Write(next);
  }

 private:
  static void Put(void* to, const Tensor& from) {
    at::from_blob(to, from.sizes(), from.options()).copy_(from);
  }
  void Write(const ObservationView& view) {
    const std::int64_t stride = view.obs_stride > 0 ? view.obs_stride : kObs;
    at::from_blob(view.obs, obs_.sizes(), {stride, 1}, obs_.options()).copy_(obs_);
    Put(view.critic_obs, critic_obs_);
    if (view.stiffness.mode == nullptr) return;
    Put(view.stiffness.mode, mode_);
    Put(view.stiffness.com, jacobian_.narrow(1, 0, 3).contiguous());
    Put(view.stiffness.hand_on_base,
        at::stack({jacobian_.narrow(1, 0, 3), jacobian_.narrow(1, 3, 3)}, 1));
    Put(view.stiffness.closing, jacobian_.flip(2));
    Put(view.stiffness.gravity, jacobian_.narrow(1, 3, 3).contiguous());
  }

  EnvSpec spec_;
  at::TensorOptions options_;
  Tensor obs_, critic_obs_, reward_, mode_, jacobian_;
};

}  // namespace

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
