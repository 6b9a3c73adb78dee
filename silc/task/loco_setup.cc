// SPDX-License-Identifier: Apache-2.0
#include "silc/task/loco_setup.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <type_traits>

#include "silc/base/check.h"
#include "silc/base/error.h"

namespace silc {
namespace {

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
static_assert(sizeof(ContactMode) == 1, "saved states hold a byte per mode");

struct SavedHeader {
  char magic[8];
  std::uint32_t num_envs, state_bytes;
  TaskProgress progress;
  std::uint64_t seed;
};
constexpr char kMagic[8] = {'s', 'i', 'l', 'c', 'e', 'n', 'v', '2'};

BudgetLimits LimitsOf(const BudgetCommand& command, const TaskConfig& config, float control_dt) {
  BudgetLimits limits = {};
  limits.used = command.any();
  for (int i = 0; i < kNumCommanded; ++i) {
    if (!command.range[i]) continue;
    limits.low[i] = static_cast<float>(std::log(command.range[i]->low));
    limits.high[i] = static_cast<float>(std::log(command.range[i]->high));
  }
  const float change = config.budget_command.change;
  limits.change_steps = change > 0 ? Steps(change, control_dt) : 0;
  return limits;
}

// The policy sees every number that is commanded, and no other: each once, as it is.
void CheckBudgetTerms(const BudgetCommand& command, const ObservationLayout& layout) {
  int seen[kNumCommanded] = {};
  const auto fail = [&](const std::string& key, const std::string& what) {
    throw ConfigError(layout.Place("task") + ": terms." + key + ": " + what);
  };
  for (const ObservationTerm& term : layout.terms) {
    const auto told = CommandedBy(term.source);
    if (!told) continue;
    if (++seen[*told] > 1) fail(term.name, "this number of the budget is shown twice");
    const auto& range = command.range[*told];
    if (!range) {
      fail(term.name,
           std::string("the budget has no range for '") + Name(*told) +
               "' to draw commands from\n  Train with one that has, as in --mode command, or take "
               "the term out.");
    }
    const double farthest = std::max(std::abs(std::log(range->low) - term.offset),
                                     std::abs(std::log(range->high) - term.offset));
    if (farthest > term.clip_input || farthest * std::abs(term.scale[0]) > term.clip) {
      fail(term.name, "a clip would hide the ends of the range; leave it out");
    }
  }
  for (int i = 0; i < kNumCommanded; ++i) {
    if (!command.range[i] || seen[i] > 0) continue;
    fail(TermSourceName(TermOf(static_cast<CommandedNumber>(i))),
         "is missing: the budget has a range that the policy must be told");
  }
}

// Bytes that a robot has in each section of a saved state, in the order of the sections.
std::vector<std::size_t> RobotBytes(const LocoMemory& memory, const PhysicsBatch& batch) {
  const std::size_t n = memory.states.size();
  std::vector<std::size_t> list = {sizeof(EnvState)};
  for (const auto* values : {&memory.obs, &memory.critic_obs, &memory.terms, &memory.tracking}) {
    list.push_back(values->size() / n * sizeof(float));
  }
  list.push_back(sizeof(ContactMode));
  for (const Field field : kSavedFields) list.push_back(batch.width(field) * sizeof(float));
  return list;
}

}  // namespace

LocoSetup MakeLocoSetup(LocoEnvOptions options) {
  options.config.Validate("task");
  if (options.num_envs < 1) {
    throw ConfigError(fmt::format("task: num_envs: {} is below 1", options.num_envs));
  }
  SILC_CHECK(options.groups > 0 && options.num_envs % options.groups == 0);
  LocoSetup setup;
  setup.model =
      std::make_unique<RobotModel>(RobotModel::Load(options.robot, {.gains = options.gains}));
  setup.mujoco.reset(mj_copyModel(nullptr, setup.model->model()), mj_deleteModel);
  RemoveSelfCollision(setup.mujoco.get());
  setup.compiled = CompileBatchModel(*setup.mujoco, TaskBatchOptions(*setup.model, options.config));
  setup.motions = std::move(options.motions);
  TaskContext& context = setup.context;
  context = {};
  context.robot = MakeTaskRobot(*setup.model, options.config);
  if (setup.motions.num_clips() == 0) setup.reaches = MakeReachTable(*setup.model, {});
  setup.layout = MakeTaskLayout(
      options.layout ? std::move(*options.layout) : ReadTaskLayout(kDefaultTaskLayout),
      setup.model->spec(),
      &options.config,
      options.gains.has_value());
  context.config = options.config;
  context.observation = setup.layout.view();
  context.reaches = setup.reaches.view();
  context.motions = setup.motions.view();
  context.seed = options.seed;
  context.first_env = static_cast<std::uint32_t>(options.first_env);
  context.episode_steps = Steps(options.config.episode.length, context.robot.control_dt);
  context.resample_steps = Steps(options.config.commands.resample, context.robot.control_dt);
  context.physics_dt = static_cast<float>(setup.mujoco->opt.timestep);
  context.budget = LimitsOf(options.budget, options.config, context.robot.control_dt);
  CheckBudgetTerms(options.budget, setup.layout.layout);
  return setup;
}

namespace {

// What a robot carries: draws of their own, so that a task without payload draws as it always did.
void AddPayload(const LocoSetup& setup, int env, StartupDraw* drawn) {
  const auto& c = setup.context.config.randomisation;
  const RobotSpec& spec = setup.model->spec();
  const std::string torso = TorsoBody(*setup.model);
  Draw draw(setup.context.seed, RobotId(setup.context, env), 0, DrawPurpose::kPayload);
  const float torso_mass = draw.Uniform(c.torso_mass_min, c.torso_mass_max);
  float hand_mass[2] = {}, shift[3] = {};
  for (float& mass : hand_mass) mass = draw.Uniform(c.hand_mass_min, c.hand_mass_max);
  for (float& metres : shift) metres = draw.Uniform(-c.torso_com, c.torso_com);
  for (std::size_t b = 0; b < setup.compiled.bodies.size(); ++b) {
    const BatchBody& body = setup.compiled.bodies[b];
    if (body.name == torso) drawn->mass[b] += torso_mass;
    for (std::size_t h = 0; h < std::min(spec.hands.size(), std::size(hand_mass)); ++h) {
      if (body.name == spec.hands[h].body) drawn->mass[b] += hand_mass[h];
    }
    if (!(c.torso_com > 0)) continue;
    for (int k = 0; k < 3; ++k) {
      drawn->com.push_back(body.com[k] + (body.name == torso ? double(shift[k]) : 0.0));
    }
  }
}

}  // namespace

StartupDraw DrawStartup(const LocoSetup& setup, int env) {
  const TaskContext& context = setup.context;
  const auto& c = context.config.randomisation;
  // the base, and what hips and knees move
  const TaskRobot& robot = context.robot;
  const mjModel& m = *setup.mujoco;
  std::vector<std::string> scaled = {setup.model->spec().base};
  for (const int* pair : {robot.hip_pitch, robot.hip_roll, robot.hip_yaw, robot.knee}) {
    for (int s = 0; s < 2; ++s) {
      if (pair[s] < 0) continue;
      scaled.emplace_back(mj_id2name(&m, mjOBJ_BODY, m.dof_bodyid[robot.dof[pair[s]]]));
    }
  }
  Draw draw(context.seed, RobotId(context, env), 0, DrawPurpose::kStartup);
  StartupDraw drawn;
  drawn.friction_scale = draw.Uniform(c.friction_min, c.friction_max) / context.robot.sole_friction;
  for (const BatchBody& body : setup.compiled.bodies) {
    double mass = body.mass;
    if (std::find(scaled.begin(), scaled.end(), body.name) != scaled.end()) {
      mass *= draw.Uniform(c.mass_min, c.mass_max);
      if (body.name == scaled[0]) mass += draw.Uniform(c.pelvis_mass_min, c.pelvis_mass_max);
    }
    drawn.mass.push_back(mass);
  }
  AddPayload(setup, env, &drawn);
  return drawn;
}

TaskProgress FirstProgress(const TaskConfig& config) {
  return {.step = 0, .penalty_scale = config.curriculum.penalty_start, .mean_survival = -1};
}

std::vector<double> SumParts(std::span<const double> parts,
                             std::size_t groups,
                             const SumOverAll& sum) {
  if (sum) return sum(parts, groups);
  const std::size_t n = parts.size() / groups;
  std::vector<double> total(parts.begin(), parts.begin() + static_cast<std::ptrdiff_t>(n));
  for (std::size_t i = n; i < parts.size(); ++i) total[i % n] += parts[i];
  return total;
}

std::vector<double> StatSums(std::span<const float> tracking,
                             std::span<const float> terms,
                             std::size_t groups) {
  constexpr std::size_t kTracking = kNumTracking, kTerms = kNumRewards;
  std::vector<double> sums(groups * (kTracking + kTerms));
  const std::size_t robots = tracking.size() / kTracking / groups;  // of a block
  for (std::size_t i = 0; i < tracking.size(); ++i) {
    const std::size_t group = i / (robots * kTracking);
    sums[group * (kTracking + kTerms) + i % kTracking] += tracking[i];
  }
  for (std::size_t i = 0; i < terms.size(); ++i) {
    const std::size_t group = i / (robots * kTerms);
    sums[group * (kTracking + kTerms) + kTracking + i % kTerms] += terms[i];
  }
  return sums;
}

LocoStats MakeStats(std::span<const double> sums, float control_dt, float penalty_scale) {
  SILC_CHECK(sums.size() == std::size_t(kNumTracking) + kNumRewards);
  const std::span<const double> t = sums.first(kNumTracking);
  LocoStats stats;
  std::copy(sums.begin() + kNumTracking, sums.end(), stats.term.begin());
  const auto share = [](double value, double of) { return of > 0 ? value / of : 0.0; };
  stats.steps = t[kTrackSteps];
  stats.seconds = t[kTrackSteps] * control_dt;
  stats.episodes = t[kTrackEpisodes];
  stats.failures = t[kTrackFailures];
  stats.diverged = t[kTrackDiverged];
  stats.episode_length = share(t[kTrackEpisodeSteps], t[kTrackEpisodes]) * control_dt;
  stats.survival = share(t[kTrackSurvival], t[kTrackEpisodes]);
  stats.walk_share = share(t[kTrackWalkSteps], t[kTrackSteps]);
  stats.walk_velocity_error = share(t[kTrackWalkVelError], t[kTrackWalkSteps]);
  stats.walk_yaw_rate_error = share(t[kTrackWalkYawError], t[kTrackWalkSteps]);
  stats.stand_speed = share(t[kTrackStandSpeed], t[kTrackSteps] - t[kTrackWalkSteps]);
  stats.arm_error_rms = std::sqrt(share(t[kTrackArmError2], t[kTrackSteps]));
  stats.height_error = share(t[kTrackHeightError], t[kTrackSteps]);
  stats.phase_match = share(t[kTrackPhaseMatch], t[kTrackWalkSteps]);
  stats.penalty_scale = penalty_scale;
  stats.force_scale = share(t[kTrackForceScale], t[kTrackSteps]);
  stats.height_scale = share(t[kTrackHeightScale], t[kTrackSteps]);
  for (double& term : stats.term) term = share(term, stats.steps);
  return stats;
}

void LocoMemory::Resize(int num_envs, const TaskObservation& observation) {
  const auto n = static_cast<std::size_t>(num_envs);
  states.resize(n);
  obs.resize(n * observation.width);
  critic_obs.resize(n * observation.critic_width());
  terms.resize(n * kNumRewards);
  tracking.resize(n * kNumTracking);
  mode.resize(n);
}

std::string PackState(const LocoMemory& memory, std::uint64_t seed, PhysicsBatch* batch) {
  SavedHeader header = {};
  std::memcpy(header.magic, kMagic, sizeof(kMagic));
  header.num_envs = static_cast<std::uint32_t>(memory.states.size());
  header.state_bytes = sizeof(EnvState);
  header.progress = memory.progress;
  header.seed = seed;
  std::string out;
  Append(&out, &header, sizeof(header));
  Append(&out, memory.states.data(), memory.states.size() * sizeof(EnvState));
  for (const auto* values : {&memory.obs, &memory.critic_obs, &memory.terms, &memory.tracking}) {
    Append(&out, values->data(), values->size() * sizeof(float));
  }
  Append(&out, memory.mode.data(), memory.mode.size());
  for (const Field field : kSavedFields) {
    std::vector<float> values(memory.states.size() * batch->width(field));
    batch->Read(field, values);
    Append(&out, values.data(), values.size() * sizeof(float));
  }
  return out;
}

LocoCurricula PackCurricula(const TaskProgress& progress, std::span<const EnvState> states) {
  LocoCurricula saved;
  Append(&saved.shared, &progress, sizeof(progress));
  for (const EnvState& s : states) {
    const float scales[] = {s.force_scale, s.height_scale};
    Append(&saved.of_robots, scales, sizeof(scales));
  }
  return saved;
}

void UnpackCurricula(const LocoCurricula& from,
                     int first,
                     TaskProgress* progress,
                     std::span<EnvState> states) {
  constexpr std::size_t kRobotBytes = 2 * sizeof(float);
  const auto refuse = [](const char* what) {
    throw RunError(std::string("the curricula in the checkpoint: ") + what);
  };
  TaskProgress read = {};
  if (from.shared.size() != sizeof(read)) refuse("wrong size");
  if (from.of_robots.empty() || from.of_robots.size() % kRobotBytes != 0) refuse("wrong size");
  std::memcpy(&read, from.shared.data(), sizeof(read));
  const auto is_share = [](float value) { return value >= 0 && value <= 1; };
  const bool none_ended = read.mean_survival == -1;
  if (!is_share(read.penalty_scale) || !(none_ended || is_share(read.mean_survival))) {
    refuse("numbers outside 0 to 1");
  }
  std::vector<float> scales(from.of_robots.size() / sizeof(float));
  std::memcpy(scales.data(), from.of_robots.data(), from.of_robots.size());
  if (!std::all_of(scales.begin(), scales.end(), is_share)) refuse("numbers outside 0 to 1");
  const std::size_t robots = scales.size() / 2;
  for (std::size_t i = 0; i < states.size(); ++i) {
    const std::size_t robot = (static_cast<std::size_t>(first) + i) % robots;
    states[i].force_scale = scales[2 * robot];
    states[i].height_scale = scales[2 * robot + 1];
  }
  *progress = read;
}

std::string JoinStates(std::span<const std::string> parts,
                       const LocoMemory& memory,
                       PhysicsBatch* batch) {
  SavedHeader header = {};
  std::vector<std::size_t> robots;  // of each part
  std::uint32_t total = 0;
  for (const std::string& part : parts) {
    SILC_CHECK(part.size() >= sizeof(header));
    std::memcpy(&header, part.data(), sizeof(header));
    robots.push_back(header.num_envs);
    total += header.num_envs;
  }
  std::memcpy(&header, parts[0].data(), sizeof(header));
  header.num_envs = total;
  std::string out;
  Append(&out, &header, sizeof(header));
  std::vector<std::size_t> at(parts.size(), sizeof(header));
  for (const std::size_t bytes : RobotBytes(memory, *batch)) {
    for (std::size_t i = 0; i < parts.size(); ++i) {
      SILC_CHECK(at[i] + robots[i] * bytes <= parts[i].size());
      Append(&out, parts[i].data() + at[i], robots[i] * bytes);
      at[i] += robots[i] * bytes;
    }
  }
  return out;
}

void UnpackState(const std::string& bytes,
                 std::uint64_t seed,
                 int first,
                 int total,
                 PhysicsBatch* batch,
                 LocoMemory* memory) {
  const int num_envs = batch->num_envs();
  SILC_CHECK(first >= 0 && first + num_envs <= total);
  SavedHeader header = {};
  std::vector<float>* const arrays[] = {
      &memory->obs, &memory->critic_obs, &memory->terms, &memory->tracking};
  std::size_t expected = sizeof(header);
  for (const std::size_t of_robot : RobotBytes(*memory, *batch)) expected += total * of_robot;
  if (bytes.size() >= sizeof(header)) std::memcpy(&header, bytes.data(), sizeof(header));
  if (bytes.size() != expected || std::memcmp(header.magic, kMagic, sizeof(kMagic)) != 0 ||
      header.num_envs != static_cast<std::uint32_t>(total) ||
      header.state_bytes != sizeof(EnvState) || header.seed != seed) {
    throw RunError(fmt::format(
        "task: {} bytes of saved state are not of {} robots with seed {} ({} bytes expected)",
        bytes.size(),
        total,
        seed,
        expected));
  }
  memory->progress = header.progress;
  const char* at = bytes.data() + sizeof(header);
  // robots of other processes stand before and behind those of this one
  const auto take = [&](void* to, std::size_t size) {
    const std::size_t of_robot = size / num_envs;
    std::memcpy(to, at + first * of_robot, size);
    at += total * of_robot;
  };
  take(memory->states.data(), memory->states.size() * sizeof(EnvState));
  for (std::vector<float>* values : arrays) take(values->data(), values->size() * sizeof(float));
  take(memory->mode.data(), memory->mode.size());
  std::vector<int> envs(num_envs);
  for (int env = 0; env < num_envs; ++env) envs[env] = env;
  for (const Field field : kSavedFields) {
    std::vector<float> values(memory->states.size() * batch->width(field));
    take(values.data(), values.size() * sizeof(float));
    batch->Write(field, envs, values);
  }
}

PhysicsView ViewOf(PhysicsBatch* batch) {
  return {.qpos = batch->view(Field::kQpos),
          .qvel = batch->view(Field::kQvel),
          .qacc = batch->view(Field::kQacc),
          .fault = batch->view(Field::kFault),
          .target = batch->view(Field::kTarget),
          .previous_target = batch->view(Field::kPreviousTarget),
          .delay = batch->view(Field::kDelay),
          .kp = batch->view(Field::kKp),
          .kd = batch->view(Field::kKd),
          .wrench = batch->view(Field::kWrench),
          .wrench_steps = batch->view(Field::kWrenchSteps),
          .torque = batch->view(Field::kTorque),
          .foot_force = batch->view(Field::kFootForce),
          .pose = batch->view(Field::kPose),
          .velocity = batch->view(Field::kVelocity),
          .frame_jacobian = batch->view(Field::kFrameJacobian),
          .stance_jacobian = batch->view(Field::kStanceJacobian),
          .nv = batch->model().step.nv};
}

}  // namespace silc
