// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "silc/learn/vec_env.h"
#include "silc/stiffness/budget.h"
#include "silc/task/loco_env.h"
#include "silc/train/diverged_log.h"

namespace silc {

/// The task as the learner wants it, on any backend.
struct LocoVecEnvOptions {
  LocoEnvOptions env;  // env.backend "batch", "mujoco" or "cuda"; env.samples: Jacobians wanted
  BudgetSpec budget;   // (S6), for the methods that need one
  std::string diverged_log;  // file that gets a line of JSON for each robot the physics lost; or ""
};

/// Throws ConfigError for a backend this build does not have.
std::unique_ptr<VecEnv> MakeLocoVecEnv(LocoVecEnvOptions options);

/// What the logs say of the task: "task/…", then "reward/…" per term that has a weight.
std::vector<std::pair<std::string, double>> LocoMetrics(const LocoStats& stats,
                                                        const TaskConfig& config);
/// How well the task goes: the tracking terms, mean per control step, times the chance to live
/// through an episode at the present rate of falls. The penalties on effort and style are not in
/// it: a soft robot may pay them differently.
double LocoScore(const LocoStats& stats, const TaskConfig& config);

/// LocoEnv on the CPU. A robot the physics lost ends its episode as if for lack of time and without
/// reward: it says nothing about the policy.
class LocoVecEnv : public VecEnv {
 public:
  explicit LocoVecEnv(LocoVecEnvOptions options);

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
  std::shared_ptr<ThreadPool> pool() const override { return env_.pool(); }

  LocoEnv& env() { return env_; }

 private:
  // of robots [begin, end)
  void WriteOutcome(int begin, int end, const OutcomeView& outcome) const;
  void WriteObservation(int begin, int end, const ObservationView& view) const;
  void Check(const ObservationView& view) const;

  LocoEnv env_;
  EnvSpec spec_;
  DivergedLog diverged_log_;
  double score_;
  std::optional<Curricula> start_;  // what a Reset() puts the curricula to; none: the task's start
  bool begun_ = false;              // the robots have a state
};

}  // namespace silc
