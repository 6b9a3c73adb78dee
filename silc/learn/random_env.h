// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "silc/learn/tensor.h"
#include "silc/learn/vec_env.h"

namespace silc {

/// Numbers of the sizes of FALCON's task, the same at every step, on the CPU or a GPU: what an
/// update is timed and tested with where no robot is wanted.
class RandomEnv : public VecEnv {
 public:
  static constexpr int kJoints = 29, kFrame = 115, kFrames = 5, kObs = kFrame * kFrames;
  static constexpr int kCritic = 128;

  /// On a GPU it makes a stream of its own the current one: the default stream cannot be recorded.
  RandomEnv(int num_envs, bool gpu);

  const EnvSpec& spec() const override { return spec_; }
  void Reset(const ObservationView& first) override;
  void Step(const float* action, const OutcomeView& outcome, const ObservationView& next) override;

 private:
  void Write(const ObservationView& view);

  EnvSpec spec_;
  at::TensorOptions options_;
  Tensor obs_, critic_obs_, reward_, mode_, jacobian_;
};

}  // namespace silc
