// SPDX-License-Identifier: Apache-2.0
#include "silc/task/loco_env.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>

#include "silc/base/check.h"
#include "silc/base/error.h"
#include "silc/base/nearest.h"

namespace silc {
namespace {

// Robots that a thread takes through a control step together: whole SIMD groups, and few enough
// that all threads have something to do to the end.
constexpr int kChunk = 16;

}  // namespace

LocoEnv::LocoEnv(const LocoEnvOptions& options)
    : setup_(MakeLocoSetup(options)),
      pool_(std::make_shared<ThreadPool>(std::max(1, options.threads))),
      samples_(options.samples),
      stagger_(options.stagger),
      num_envs_(options.num_envs),
      total_envs_(options.total_envs > 0 ? options.total_envs : options.num_envs),
      groups_(options.groups),
      sum_(options.sum) {
  if (options.backend == "batch") {
    batch_ = std::make_unique<CpuBatch>(
        setup_.compiled, num_envs_, CpuBatchOptions{.pool = pool_, .kernel = options.kernel});
  } else if (options.backend == "mujoco") {
    batch_ = std::make_unique<MujocoBatch>(*setup_.mujoco, setup_.compiled, num_envs_, pool_);
  } else {
    throw ConfigError("task: backend '" + options.backend + "' is unknown" +
                      DidYouMean(options.backend, {"batch", "mujoco"}));
  }
  setup_.context.progress = &memory_.progress;
  memory_.Resize(num_envs_, setup_.context.observation);
  const auto n = static_cast<std::size_t>(num_envs_);
  reward_.resize(n * 2);
  jacobian_.resize(samples_ ? n * sample_size() : 0);
  survival_.resize(n);
  qpos_before_.resize(n * setup_.context.robot.nq);
  qvel_before_.resize(n * setup_.context.robot.nv);
  flag_.resize(n);
  fault_.resize(n);
  physics_ = ViewOf(batch_.get());
  const FieldView friction = batch_->view(Field::kFriction);
  for (int env = 0; env < num_envs_; ++env) {
    const StartupDraw drawn = DrawStartup(setup_, env);
    friction(env, 0) = drawn.friction_scale;
    batch_->SetBodies(env, drawn.mass, drawn.com);
  }
  Reset();
}

StepOutput LocoEnv::OutputOf(int env) {
  const auto e = static_cast<std::size_t>(env);
  return {.reward = &reward_[e * 2],
          .flag = &flag_[e],
          .actor_obs = &memory_.obs[e * obs_width()],
          .critic_obs = &memory_.critic_obs[e * critic_width()],
          .contact_mode = &memory_.mode[e],
          .jacobian = samples_ ? &jacobian_[e * sample_size()] : nullptr,
          .terms = &memory_.terms[e * kNumRewards],
          .tracking = &memory_.tracking[e * kNumTracking]};
}

void LocoEnv::ForEnvs(const std::function<void(int env)>& body) {
  pool_->ParallelForRanges(num_envs_, kChunk, [&](int, int begin, int end) {
    for (int env = begin; env < end; ++env) body(env);
  });
}

LocoStep LocoEnv::view() const {
  return {.obs = memory_.obs,
          .critic_obs = memory_.critic_obs,
          .reward = reward_,
          .flag = flag_,
          .contact_mode = memory_.mode,
          .jacobian = jacobian_};
}

LocoStep LocoEnv::Reset() {
  memory_.progress = FirstProgress(config());
  std::fill(memory_.terms.begin(), memory_.terms.end(), 0.0f);
  std::fill(memory_.tracking.begin(), memory_.tracking.end(), 0.0f);
  std::fill(reward_.begin(), reward_.end(), 0.0f);
  std::fill(jacobian_.begin(), jacobian_.end(), 0.0f);
  std::fill(flag_.begin(), flag_.end(), std::uint8_t{kRunning});
  std::fill(memory_.mode.begin(), memory_.mode.end(), kModeUnknown);
  ForEnvs([&](int env) {
    StepOutput out = OutputOf(env);
    StartEnv(setup_.context, physics_, env, stagger_, &memory_.states[env], &out);
  });
  memory_.progress.step = 1;
  return view();
}

// What is told of a robot that the physics loses in the coming step.
void LocoEnv::Remember(int env) {
  const int nq = robot().nq, nv = robot().nv;
  const auto e = static_cast<std::size_t>(env);
  for (int i = 0; i < nq; ++i) qpos_before_[e * nq + i] = physics_.qpos(env, i);
  for (int i = 0; i < nv; ++i) qvel_before_[e * nv + i] = physics_.qvel(env, i);
}

LocoStep LocoEnv::Step(std::span<const float> actions,
                       const std::function<void(int begin, int end)>& then) {
  const TaskContext& context = setup_.context;
  const TaskRobot& robot = context.robot;
  const auto joints = static_cast<std::size_t>(robot.num_joints);
  SILC_CHECK(actions.size() == num_envs_ * joints);
  std::atomic<int> refused{num_envs_};
  pool_->ParallelForRanges(num_envs_, kChunk, [&](int worker, int begin, int end) {
    for (int env = begin; env < end; ++env) {
      Remember(env);
      const float* action = &actions[env * joints];
      if (BeginStep(context, physics_, env, action, &memory_.states[env])) continue;
      int lowest = refused.load();
      while (env < lowest && !refused.compare_exchange_weak(lowest, env)) {
      }
      return;
    }
    batch_->AdvanceRange(worker, begin, end, robot.substeps, NeededKinematics(samples_));
    for (int env = begin; env < end; ++env) {
      fault_[env] = static_cast<int>(physics_.fault(env, 0));
      StepOutput out = OutputOf(env);
      survival_[env] = EndStep(context, physics_, env, &memory_.states[env], &out);
    }
    if (then) then(begin, end);
  });
  if (refused.load() < num_envs_) {
    throw RunError(fmt::format(
        "task: the action for robot {} at control step {} is not finite: the policy has diverged; "
        "go back to a checkpoint or lower the learning rate",
        RobotId(context, refused.load()),
        memory_.progress.step));
  }

  // what concerns all robots, in their order: of each block the survival's sum, and how many ended
  std::vector<double> of_groups(2 * groups_);
  const std::size_t robots = static_cast<std::size_t>(num_envs_) / groups_;
  for (int env = 0; env < num_envs_; ++env) {
    if (flag_[env] & kDiverged) {
      ++num_diverged_;
      if (diverged_.size() < kMaxDivergedKept) {
        DivergedRobot d{.seed = context.seed,
                        .env = static_cast<int>(RobotId(context, env)),
                        .step = memory_.progress.step,
                        .fault = fault_[env]};
        const auto e = static_cast<std::ptrdiff_t>(env);
        d.qpos.assign(qpos_before_.begin() + e * robot.nq,
                      qpos_before_.begin() + (e + 1) * robot.nq);
        d.qvel.assign(qvel_before_.begin() + e * robot.nv,
                      qvel_before_.begin() + (e + 1) * robot.nv);
        d.action.assign(&actions[env * joints], &actions[env * joints] + joints);
        diverged_.push_back(std::move(d));
      }
    }
    if (survival_[env] < 0) continue;
    double* own = &of_groups[2 * (static_cast<std::size_t>(env) / robots)];
    own[0] += survival_[env];
    own[1] += 1;
  }
  const std::vector<double> all = SumParts(of_groups, groups_, sum_);
  EndStepOfAll(
      context.config.curriculum, total_envs_, all[0], static_cast<int>(all[1]), &memory_.progress);
  return view();
}

void LocoEnv::SetCommand(const TaskCommand& command) {
  for (EnvState& s : memory_.states) {
    if (s.command.walk < 0.5f || command.walk < 0.5f) s.phase = 0;
    s.command = command;
  }
}

LocoStats LocoEnv::TakeStats() {
  const std::vector<double> sums =
      SumParts(StatSums(memory_.tracking, memory_.terms, groups_), groups_, sum_);
  const LocoStats stats = MakeStats(sums, robot().control_dt, memory_.progress.penalty_scale);
  std::fill(memory_.tracking.begin(), memory_.tracking.end(), 0.0f);
  std::fill(memory_.terms.begin(), memory_.terms.end(), 0.0f);
  return stats;
}

std::string LocoEnv::Save() const { return PackState(memory_, setup_.context.seed, batch_.get()); }

std::string LocoEnv::Join(std::span<const std::string> parts) const {
  return JoinStates(parts, memory_, batch_.get());
}

LocoCurricula LocoEnv::SaveCurricula() const {
  return PackCurricula(memory_.progress, memory_.states);
}

void LocoEnv::LoadCurricula(const LocoCurricula& curricula) {
  UnpackCurricula(
      curricula, static_cast<int>(setup_.context.first_env), &memory_.progress, memory_.states);
}

void LocoEnv::Load(const std::string& bytes) {
  UnpackState(bytes,
              setup_.context.seed,
              static_cast<int>(setup_.context.first_env),
              total_envs_,
              batch_.get(),
              &memory_);
  batch_->UpdateKinematics(NeededKinematics(samples_));
  if (!samples_) return;
  for (int env = 0; env < num_envs_; ++env) {
    float* jacobian = &jacobian_[env * sample_size()];
    if (memory_.mode[env] == kModeUnknown) {
      std::fill_n(jacobian, sample_size(), 0.0f);
    } else {
      step::FillSample(robot(), physics_, env, memory_.mode[env], jacobian);
    }
  }
}

}  // namespace silc
