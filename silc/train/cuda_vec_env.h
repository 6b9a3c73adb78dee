// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "silc/task/cuda_loco_env.h"
#include "silc/train/diverged_log.h"
#include "silc/train/loco_vec_env.h"

namespace silc {

/// LocoVecEnv's twin on a GPU. Making one puts this thread's LibTorch on a stream of its own, which
/// the environment shares: a learner on the same thread and the environment take turns without
/// waiting for each other.
class CudaVecEnv : public VecEnv {
 public:
  explicit CudaVecEnv(LocoVecEnvOptions options);

  const EnvSpec& spec() const override { return spec_; }
  void Reset(const ObservationView& first) override;
  void Step(const float* action, const OutcomeView& outcome, const ObservationView& next) override;
  std::vector<std::pair<std::string, double>> TakeMetrics() override;
  double TaskScore() const override { return score_; }
  std::string SaveState() const override { return env_.Save(); }
  std::string JoinStates(std::span<const std::string> parts) const override {
    return env_.Join(parts);
  }
  void LoadState(std::string_view bytes) override {
    env_.Load(std::string(bytes));
    begun_ = true;
  }
  Curricula SaveCurricula() const override;
  void LoadCurricula(const Curricula& curricula) override { start_ = curricula; }

 private:
  CudaLocoEnv env_;
  EnvSpec spec_;
  DivergedLog diverged_log_;
  double score_;
  std::optional<Curricula> start_;  // what a Reset() puts the curricula to; none: the task's start
  bool begun_ = false;              // the robots have a state
};

}  // namespace silc
