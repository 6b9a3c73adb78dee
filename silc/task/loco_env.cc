// SPDX-License-Identifier: Apache-2.0
#include "silc/task/loco_env.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <type_traits>

#include "silc/base/check.h"
#include "silc/base/error.h"
#include "silc/base/nearest.h"

namespace silc {
namespace {

constexpr int kChunk = 64;  // robots per task of the thread pool: whole SIMD groups
constexpr std::size_t kMaxDivergedKept = 1000;

// What a robot's next step depends on; masses come back from the seed.
constexpr Field kSavedFields[] = {Field::kQpos,
                                  Field::kQvel,
                                  Field::kQacc,
                                  Field::kFault,
                                  Field::kTarget,
                                  Field::kPreviousTarget,
                                  Field::kDelay,
                                  Field::kKp,
                                  Field::kKd,
                                  Field::kWrench,
                                  Field::kWrenchSteps,
                                  Field::kTorque,
                                  Field::kFootForce};

int Steps(float seconds, float dt) {
  return std::max(1, static_cast<int>(std::lround(seconds / dt)));
}

void Append(std::string* out, const void* data, std::size_t bytes) {
  out->append(static_cast<const char*>(data), bytes);
}

static_assert(std::is_trivially_copyable_v<EnvState> && std::is_trivially_copyable_v<TaskContext>,
              "what a GPU kernel is handed is copied as bytes");

}  // namespace

LocoEnv::LocoEnv(LocoEnvOptions options)
    : motions_(std::move(options.motions)),
      samples_(options.samples),
      stagger_(options.stagger),
      num_envs_(options.num_envs),
      pool_(std::max(1, options.threads)) {
  options.config.Validate("task");
  if (num_envs_ < 1) throw ConfigError(fmt::format("task: num_envs: {} is below 1", num_envs_));
  model_ = std::make_unique<RobotModel>(RobotModel::Load(options.robot));
  mujoco_.reset(mj_copyModel(nullptr, model_->model()), mj_deleteModel);
  RemoveSelfCollision(mujoco_.get());
  const BatchModel compiled =
      CompileBatchModel(*mujoco_, TaskBatchOptions(*model_, options.config));
  if (options.backend == "batch") {
    batch_ = std::make_unique<CpuBatch>(
        compiled, num_envs_, CpuBatchOptions{.threads = options.threads, .kernel = options.kernel});
  } else if (options.backend == "mujoco") {
    batch_ = std::make_unique<MujocoBatch>(*mujoco_, compiled, num_envs_, options.threads);
  } else {
    throw ConfigError("task: backend '" + options.backend + "' is unknown" +
                      DidYouMean(options.backend, {"batch", "mujoco"}));
  }

  context_.config = options.config;
  context_.robot = MakeTaskRobot(*model_, options.config);
  if (motions_.num_clips() == 0) reaches_ = MakeReachTable(*model_, {});
  context_.reaches = reaches_.view();
  context_.motions = motions_.view();
  context_.seed = options.seed;
  context_.episode_steps = Steps(options.config.episode.length, context_.robot.control_dt);
  context_.resample_steps = Steps(options.config.commands.resample, context_.robot.control_dt);
  context_.physics_dt = static_cast<float>(mujoco_->opt.timestep);

  const auto n = static_cast<std::size_t>(num_envs_);
  states_.resize(n);
  obs_.resize(n * kActorObs);
  critic_obs_.resize(n * kCriticObs);
  reward_.resize(n * 2);
  jacobian_.resize(samples_ ? n * kSampleJacobian : 0);
  terms_.resize(n * kNumRewards);
  tracking_.resize(n * kNumTracking);
  survival_.resize(n);
  qpos_before_.resize(n * context_.robot.nq);
  qvel_before_.resize(n * context_.robot.nv);
  flag_.resize(n);
  mode_.resize(n);
  BindViews();
  Randomise();
  Reset();
}

void LocoEnv::BindViews() {
  const auto bind = [&](Field field) {
    const FieldView v = batch_->view(field);
    SILC_CHECK(!v.on_device);
    return FieldPtr{v.data, v.lanes, v.group_stride};
  };
  physics_ = {.qpos = bind(Field::kQpos),
              .qvel = bind(Field::kQvel),
              .qacc = bind(Field::kQacc),
              .fault = bind(Field::kFault),
              .target = bind(Field::kTarget),
              .previous_target = bind(Field::kPreviousTarget),
              .delay = bind(Field::kDelay),
              .kp = bind(Field::kKp),
              .kd = bind(Field::kKd),
              .wrench = bind(Field::kWrench),
              .wrench_steps = bind(Field::kWrenchSteps),
              .torque = bind(Field::kTorque),
              .foot_force = bind(Field::kFootForce),
              .pose = bind(Field::kPose),
              .velocity = bind(Field::kVelocity),
              .com_jacobian = bind(Field::kComJacobian),
              .frame_jacobian = bind(Field::kFrameJacobian),
              .stance_jacobian = bind(Field::kStanceJacobian),
              .nv = context_.robot.nv};
}

void LocoEnv::Randomise() {
  const auto& c = context_.config.randomisation;
  const std::vector<std::string> scaled = {model_->spec().base,
                                           "left_hip_pitch_link",
                                           "left_hip_roll_link",
                                           "left_hip_yaw_link",
                                           "left_knee_link",
                                           "right_hip_pitch_link",
                                           "right_hip_roll_link",
                                           "right_hip_yaw_link",
                                           "right_knee_link"};
  std::vector<double> nominal;
  for (const BatchBody& body : batch_->model().bodies) nominal.push_back(body.mass);
  const FieldView friction = batch_->view(Field::kFriction);
  for (int env = 0; env < num_envs_; ++env) {
    Draw draw(context_.seed, static_cast<std::uint32_t>(env), 0, DrawPurpose::kStartup);
    friction(env, 0) = draw.Uniform(c.friction_min, c.friction_max) / context_.robot.sole_friction;
    std::vector<double> mass = nominal;
    for (std::size_t b = 0; b < mass.size(); ++b) {
      const std::string& name = batch_->model().bodies[b].name;
      if (std::find(scaled.begin(), scaled.end(), name) == scaled.end()) continue;
      mass[b] *= draw.Uniform(c.mass_min, c.mass_max);
      if (name == scaled[0]) mass[b] += draw.Uniform(c.pelvis_mass_min, c.pelvis_mass_max);
    }
    batch_->SetBodies(env, mass, {});
  }
}

StepOutput LocoEnv::OutputOf(int env) {
  const auto e = static_cast<std::size_t>(env);
  return {.reward = &reward_[e * 2],
          .flag = &flag_[e],
          .actor_obs = &obs_[e * kActorObs],
          .critic_obs = &critic_obs_[e * kCriticObs],
          .contact_mode = &mode_[e],
          .jacobian = samples_ ? &jacobian_[e * kSampleJacobian] : nullptr,
          .terms = &terms_[e * kNumRewards],
          .tracking = &tracking_[e * kNumTracking]};
}

void LocoEnv::ForEnvs(const std::function<void(int env)>& body) {
  pool_.For((num_envs_ + kChunk - 1) / kChunk, [&](int, int chunk) {
    const int end = std::min(num_envs_, (chunk + 1) * kChunk);
    for (int env = chunk * kChunk; env < end; ++env) body(env);
  });
}

LocoStep LocoEnv::view() const {
  return {.obs = obs_,
          .critic_obs = critic_obs_,
          .reward = reward_,
          .flag = flag_,
          .contact_mode = mode_,
          .jacobian = jacobian_};
}

LocoStep LocoEnv::Reset() {
  context_.step = 0;
  context_.penalty_scale = context_.config.curriculum.penalty_start;
  mean_survival_ = -1;
  std::fill(terms_.begin(), terms_.end(), 0.0f);
  std::fill(tracking_.begin(), tracking_.end(), 0.0f);
  std::fill(reward_.begin(), reward_.end(), 0.0f);
  std::fill(jacobian_.begin(), jacobian_.end(), 0.0f);
  std::fill(flag_.begin(), flag_.end(), std::uint8_t{kRunning});
  std::fill(mode_.begin(), mode_.end(), kModeUnknown);
  ForEnvs([&](int env) {
    StepOutput out = OutputOf(env);
    StartEnv(context_, physics_, env, stagger_, &states_[env], &out);
  });
  return view();
}

LocoStep LocoEnv::Step(std::span<const float> actions) {
  SILC_CHECK(actions.size() == static_cast<std::size_t>(num_envs_) * kTaskJoints);
  const TaskRobot& robot = context_.robot;
  ++context_.step;
  std::atomic<int> refused{num_envs_};
  ForEnvs([&](int env) {
    for (int i = 0; i < robot.nq; ++i) {
      qpos_before_[static_cast<std::size_t>(env) * robot.nq + i] = physics_.qpos(env, i);
    }
    for (int i = 0; i < robot.nv; ++i) {
      qvel_before_[static_cast<std::size_t>(env) * robot.nv + i] = physics_.qvel(env, i);
    }
    const float* action = &actions[static_cast<std::size_t>(env) * kTaskJoints];
    if (!BeginStep(context_, physics_, env, action, &states_[env])) {
      int lowest = refused.load();
      while (env < lowest && !refused.compare_exchange_weak(lowest, env)) {
      }
    }
  });
  if (refused.load() < num_envs_) {
    throw RunError(fmt::format(
        "task: the action for robot {} at control step {} is not finite: the policy has diverged; "
        "go back to a checkpoint or lower the learning rate",
        refused.load(),
        context_.step));
  }
  batch_->Advance(robot.substeps);
  batch_->UpdateKinematics();
  // the fault is gone once the robot is reset
  std::vector<std::pair<int, int>> lost;
  for (int env = 0; env < num_envs_; ++env) {
    if (physics_.fault(env, 0) != 0)
      lost.emplace_back(env, static_cast<int>(physics_.fault(env, 0)));
  }
  ForEnvs([&](int env) {
    StepOutput out = OutputOf(env);
    survival_[env] = EndStep(context_, physics_, env, &states_[env], &out);
  });

  // what concerns all robots, in their order
  double sum = 0;
  int ended = 0;
  for (int env = 0; env < num_envs_; ++env) {
    if (flag_[env] & kDiverged) {
      ++num_diverged_;
      if (diverged_.size() < kMaxDivergedKept) {
        DivergedRobot d{.seed = context_.seed, .env = env, .step = context_.step, .fault = 0};
        for (const auto& [who, fault] : lost) {
          if (who == env) d.fault = fault;
        }
        const auto e = static_cast<std::ptrdiff_t>(env);
        d.qpos.assign(qpos_before_.begin() + e * robot.nq,
                      qpos_before_.begin() + (e + 1) * robot.nq);
        d.qvel.assign(qvel_before_.begin() + e * robot.nv,
                      qvel_before_.begin() + (e + 1) * robot.nv);
        std::copy_n(
            &actions[static_cast<std::size_t>(env) * kTaskJoints], kTaskJoints, d.action.begin());
        diverged_.push_back(std::move(d));
      }
    }
    if (survival_[env] < 0) continue;
    sum += survival_[env];
    ++ended;
  }
  const auto& c = context_.config.curriculum;
  if (ended > 0) {
    const float weight = std::min(
        1.0f, static_cast<float>(ended) / (c.penalty_window * static_cast<float>(num_envs_)));
    const auto mean = static_cast<float>(sum / ended);
    mean_survival_ = mean_survival_ < 0 ? mean : mean_survival_ + weight * (mean - mean_survival_);
  }
  if (mean_survival_ < 0) {
    // no episode has ended: nothing is known
  } else if (mean_survival_ > c.penalty_up) {
    context_.penalty_scale = std::min(1.0f, context_.penalty_scale * (1 + c.penalty_rate));
  } else if (mean_survival_ < c.penalty_down) {
    context_.penalty_scale = std::max(std::min(c.penalty_min, context_.penalty_scale),
                                      context_.penalty_scale * (1 - c.penalty_rate));
  }
  return view();
}

void LocoEnv::SetCommand(const TaskCommand& command) {
  for (EnvState& s : states_) {
    if (s.command.walk < 0.5f || command.walk < 0.5f) s.phase = 0;
    s.command = command;
  }
}

LocoStats LocoEnv::TakeStats() {
  std::array<double, kNumTracking> t{};
  LocoStats stats;
  for (int env = 0; env < num_envs_; ++env) {
    for (int i = 0; i < kNumTracking; ++i)
      t[i] += tracking_[static_cast<std::size_t>(env) * kNumTracking + i];
    for (int i = 0; i < kNumRewards; ++i)
      stats.term[i] += terms_[static_cast<std::size_t>(env) * kNumRewards + i];
    stats.force_scale += states_[env].force_scale / num_envs_;
    stats.height_scale += states_[env].height_scale / num_envs_;
  }
  std::fill(tracking_.begin(), tracking_.end(), 0.0f);
  std::fill(terms_.begin(), terms_.end(), 0.0f);
  const auto share = [](double value, double of) { return of > 0 ? value / of : 0.0; };
  stats.steps = t[kTrackSteps];
  stats.episodes = t[kTrackEpisodes];
  stats.failures = t[kTrackFailures];
  stats.diverged = t[kTrackDiverged];
  stats.episode_length =
      share(t[kTrackEpisodeSteps], t[kTrackEpisodes]) * context_.robot.control_dt;
  stats.survival = share(t[kTrackSurvival], t[kTrackEpisodes]);
  stats.walk_share = share(t[kTrackWalkSteps], t[kTrackSteps]);
  stats.walk_velocity_error = share(t[kTrackWalkVelError], t[kTrackWalkSteps]);
  stats.walk_yaw_rate_error = share(t[kTrackWalkYawError], t[kTrackWalkSteps]);
  stats.stand_speed = share(t[kTrackStandSpeed], t[kTrackSteps] - t[kTrackWalkSteps]);
  stats.arm_error_rms = std::sqrt(share(t[kTrackArmError2], t[kTrackSteps]));
  stats.height_error = share(t[kTrackHeightError], t[kTrackSteps]);
  stats.phase_match = share(t[kTrackPhaseMatch], t[kTrackWalkSteps]);
  stats.penalty_scale = context_.penalty_scale;
  for (double& term : stats.term) term = share(term, stats.steps);
  return stats;
}

namespace {

struct SavedHeader {
  char magic[8];
  std::uint32_t num_envs, state_bytes, step;
  float penalty_scale, mean_survival;
  std::uint64_t seed;
};
constexpr char kMagic[8] = {'s', 'i', 'l', 'c', 'e', 'n', 'v', '1'};

}  // namespace

std::string LocoEnv::Save() const {
  SavedHeader header = {};
  std::memcpy(header.magic, kMagic, sizeof(kMagic));
  header.num_envs = static_cast<std::uint32_t>(num_envs_);
  header.state_bytes = sizeof(EnvState);
  header.step = context_.step;
  header.penalty_scale = context_.penalty_scale;
  header.mean_survival = mean_survival_;
  header.seed = context_.seed;
  std::string out;
  Append(&out, &header, sizeof(header));
  Append(&out, states_.data(), states_.size() * sizeof(EnvState));
  for (const std::vector<float>* values : {&obs_, &critic_obs_, &terms_, &tracking_}) {
    Append(&out, values->data(), values->size() * sizeof(float));
  }
  Append(&out, mode_.data(), mode_.size());
  for (const Field field : kSavedFields) {
    std::vector<float> values(static_cast<std::size_t>(num_envs_) * batch_->width(field));
    batch_->Read(field, values);
    Append(&out, values.data(), values.size() * sizeof(float));
  }
  return out;
}

void LocoEnv::Load(const std::string& bytes) {
  SavedHeader header = {};
  std::size_t expected = sizeof(header) + states_.size() * sizeof(EnvState) + mode_.size();
  std::vector<float>* const arrays[] = {&obs_, &critic_obs_, &terms_, &tracking_};
  for (const std::vector<float>* values : arrays) expected += values->size() * sizeof(float);
  for (const Field field : kSavedFields) {
    expected += static_cast<std::size_t>(num_envs_) * batch_->width(field) * sizeof(float);
  }
  if (bytes.size() >= sizeof(header)) std::memcpy(&header, bytes.data(), sizeof(header));
  if (bytes.size() != expected || std::memcmp(header.magic, kMagic, sizeof(kMagic)) != 0 ||
      header.num_envs != static_cast<std::uint32_t>(num_envs_) ||
      header.state_bytes != sizeof(EnvState) || header.seed != context_.seed) {
    throw RunError(fmt::format(
        "task: {} bytes of saved state are not of {} robots with seed {} ({} bytes expected)",
        bytes.size(),
        num_envs_,
        context_.seed,
        expected));
  }
  const char* at = bytes.data() + sizeof(header);
  const auto take = [&](void* to, std::size_t size) {
    std::memcpy(to, at, size);
    at += size;
  };
  take(states_.data(), states_.size() * sizeof(EnvState));
  for (std::vector<float>* values : arrays) take(values->data(), values->size() * sizeof(float));
  take(mode_.data(), mode_.size());
  std::vector<int> envs(num_envs_);
  for (int env = 0; env < num_envs_; ++env) envs[env] = env;
  for (const Field field : kSavedFields) {
    std::vector<float> values(static_cast<std::size_t>(num_envs_) * batch_->width(field));
    take(values.data(), values.size() * sizeof(float));
    batch_->Write(field, envs, values);
  }
  context_.step = header.step;
  context_.penalty_scale = header.penalty_scale;
  mean_survival_ = header.mean_survival;
  batch_->UpdateKinematics();
  if (!samples_) return;
  for (int env = 0; env < num_envs_; ++env) {
    float* jacobian = &jacobian_[static_cast<std::size_t>(env) * kSampleJacobian];
    if (mode_[env] == kModeUnknown) {
      std::fill_n(jacobian, kSampleJacobian, 0.0f);
    } else {
      step::FillSample(context_.robot, physics_, env, mode_[env], jacobian);
    }
  }
}

}  // namespace silc
