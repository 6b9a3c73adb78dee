// SPDX-License-Identifier: Apache-2.0
#include "silc/train/loco_vec_env.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "silc/base/check.h"
#include "silc/base/error.h"
#include "silc/base/nearest.h"
#include "silc/train/loco_spec.h"
#ifdef SILC_HAVE_CUDA
#include "silc/train/cuda_vec_env.h"
#endif

namespace silc {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

}  // namespace

std::vector<std::pair<std::string, double>> LocoMetrics(const LocoStats& stats,
                                                        const TaskConfig& config) {
  const bool ended = stats.episodes > 0;
  std::vector<std::pair<std::string, double>> list = {
      {"task/episode_length", ended ? stats.episode_length : kNone},
      {"task/survival", ended ? stats.survival : kNone}};
  if (config.commands.walk_prob > 0) {
    const bool walked = stats.walk_share > 0;
    list.insert(list.end(),
                {{"task/velocity_error", walked ? stats.walk_velocity_error : kNone},
                 {"task/yaw_rate_error", walked ? stats.walk_yaw_rate_error : kNone},
                 {"task/phase_match", walked ? stats.phase_match : kNone}});
  }
  list.insert(list.end(),
              {{"task/stand_speed", stats.walk_share < 1 ? stats.stand_speed : kNone},
               {"task/arm_error", stats.arm_error_rms},
               {"task/height_error", stats.height_error},
               {"task/penalty_scale", stats.penalty_scale},
               {"task/force_scale", stats.force_scale},
               {"task/height_scale", stats.height_scale},
               {"task/diverged", stats.diverged}});
  for (int i = 0; i < kNumRewards; ++i) {
    if (config.rewards.weight[i] == 0) continue;
    list.emplace_back(std::string("reward/") + kRewardTerms[i].name, stats.term[i]);
  }
  return list;
}

double LocoScore(const LocoStats& stats, const TaskConfig& config) {
  if (!(stats.steps > 0)) return kNone;
  double sum = 0;
  for (const RewardTerm term : {RewardTerm::kTrackingLinVelX,
                                RewardTerm::kTrackingLinVelY,
                                RewardTerm::kTrackingAngVel,
                                RewardTerm::kTrackingWalkBaseHeight,
                                RewardTerm::kTrackingStanceBaseHeight,
                                RewardTerm::kTrackingWaistDofsTapping,
                                RewardTerm::kTrackingWaistDofsStance,
                                RewardTerm::kTrackingUpperBodyDofs,
                                RewardTerm::kWalkLinVelX,
                                RewardTerm::kWalkLinVelY}) {
    sum += stats.term[static_cast<int>(term)];
  }
  // of falls per second, not of episodes that ended: among those are all that fell and few that
  // live
  return sum * std::exp(-stats.failures / stats.seconds * config.episode.length);
}

LocoVecEnv::LocoVecEnv(LocoVecEnvOptions options)
    : env_(options.env), diverged_log_(std::move(options.diverged_log)), score_(kNone) {
  spec_ = MakeLocoSpec(env_.robot_model(), env_.layout(), options.budget, env_.num_envs());
  spec_.first_env = options.env.first_env;
  spec_.total_envs = options.env.total_envs;
}

void LocoVecEnv::Check(const ObservationView& view) const {
  // a learner that wants the Jacobians has asked for them when the environment was made
  SILC_CHECK(view.stiffness.mode == nullptr || !env_.view().jacobian.empty());
  SILC_CHECK(view.obs_stride >= spec_.obs_dim && view.critic_obs_stride >= spec_.critic_obs_dim);
}

void LocoVecEnv::WriteOutcome(int begin, int end, const OutcomeView& outcome) const {
  const LocoStep step = env_.view();
  const std::size_t agents = spec_.agents.size();
  for (int i = begin; i < end; ++i) {
    const std::size_t env = i;
    const bool lost = (step.flag[env] & kDiverged) != 0;
    outcome.done[env] = step.flag[env] != kRunning;
    outcome.timed_out[env] = step.flag[env] == kTimedOut || lost;
    for (std::size_t a = 0; a < agents; ++a) {
      outcome.reward[agents * env + a] = lost ? 0.0f : step.reward[2 * env + a];
    }
  }
}

void LocoVecEnv::WriteObservation(int begin, int end, const ObservationView& view) const {
  const LocoStep step = env_.view();
  const StiffnessView& s = view.stiffness;
  const std::size_t first = begin, last = end;
  const auto copy = [&](float* to, int stride, std::span<const float> from, int width) {
    const std::size_t apart = stride, wide = width;
    for (std::size_t env = first; env < last; ++env) {
      std::memcpy(to + env * apart, &from[env * wide], wide * sizeof(float));
    }
  };
  copy(view.obs, view.obs_stride, step.obs, env_.obs_width());
  copy(view.critic_obs, view.critic_obs_stride, step.critic_obs, env_.critic_width());
  if (s.mode == nullptr) return;
  std::memcpy(s.mode + first, &step.contact_mode[first], (last - first) * sizeof(ContactMode));
  const std::size_t joints = env_.robot().num_joints;
  for (std::size_t env = first; env < last; ++env) {
    const float* sample = &step.jacobian[env * SampleSize(env_.robot().num_joints)];
    const auto take = [&](float* to, std::size_t first_row, std::size_t rows) {
      std::memcpy(
          to + env * rows * joints, sample + first_row * joints, rows * joints * sizeof(float));
    };
    take(s.com, SampleRows::kCom, SampleRows::kComSize);
    take(s.hand_on_base, SampleRows::kHandOnBase, SampleRows::kHandOnBaseSize);
    take(s.closing, SampleRows::kClosing, SampleRows::kClosingSize);
    take(s.gravity, SampleRows::kGravity, SampleRows::kGravitySize);
  }
}

Curricula LocoVecEnv::SaveCurricula() const {
  if (!begun_) return start_.value_or(Curricula{});
  LocoCurricula saved = env_.SaveCurricula();
  return {std::move(saved.shared), std::move(saved.of_robots)};
}

void LocoVecEnv::Reset(const ObservationView& first) {
  Check(first);
  env_.Reset();
  if (start_) env_.LoadCurricula({start_->shared, start_->of_robots});
  begun_ = true;
  WriteObservation(0, env_.num_envs(), first);
}

void LocoVecEnv::Step(const float* action,
                      const OutcomeView& outcome,
                      const ObservationView& next) {
  Check(next);
  const auto n = static_cast<std::size_t>(env_.num_envs());
  env_.Step({action, n * env_.robot().num_joints}, [&](int begin, int end) {
    WriteOutcome(begin, end, outcome);
    WriteObservation(begin, end, next);
  });
}

std::vector<std::pair<std::string, double>> LocoVecEnv::TakeMetrics() {
  const LocoStats stats = env_.TakeStats();
  score_ = LocoScore(stats, env_.config());
  diverged_log_.Write(env_.diverged());
  return LocoMetrics(stats, env_.config());
}

std::unique_ptr<VecEnv> MakeLocoVecEnv(LocoVecEnvOptions options) {
  const std::string& backend = options.env.backend;
  if (backend == "batch" || backend == "mujoco") {
    return std::make_unique<LocoVecEnv>(std::move(options));
  }
#ifdef SILC_HAVE_CUDA
  if (backend == "cuda") return std::make_unique<CudaVecEnv>(std::move(options));
#endif
  if (backend == "cuda") {
    throw ConfigError(
        "--backend cuda: this build has no CUDA; tools/gpu/build.sh silc makes one that has");
  }
  throw ConfigError("--backend " + backend + ": unknown" +
                    DidYouMean(backend, {"batch", "mujoco", "cuda"}));
}

}  // namespace silc
