// SPDX-License-Identifier: Apache-2.0
#include "silc/task/cuda_loco_env.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "silc/base/check.h"
#include "silc/base/error.h"
#include "silc/physics/cuda_batch.h"
#include "silc/physics/device_array.h"

namespace silc {
namespace {

void Launched(int status, const char* what) { CudaCheck(static_cast<cudaError_t>(status), what); }

template <class T>
DeviceArray<T> ToDevice(const T* values, std::size_t count, cudaStream_t stream) {
  DeviceArray<T> array(count);
  if (count > 0) array.Upload(values, stream);
  return array;
}

}  // namespace

struct CudaLocoEnv::Impl {
  Impl(LocoEnvOptions options, cudaStream_t use)
      : setup(MakeLocoSetup(options)),
        stagger(options.stagger),
        num_envs(options.num_envs),
        total_envs(options.total_envs > 0 ? options.total_envs : options.num_envs),
        sum(options.sum),
        kinematics(NeededKinematics(options.samples)),
        batch(setup.compiled, options.num_envs, {.stream = use}),
        stream(static_cast<cudaStream_t>(batch.stream())) {
    SILC_CHECK(setup.context.robot.nq <= kMaxTaskPositions &&
               setup.context.robot.nv <= kMaxTaskVelocities);
    const auto n = static_cast<std::size_t>(num_envs);
    states = DeviceArray<EnvState>(n);
    states.Clear(stream);  // what a task does not use is saved too
    const TaskObservation& observation = setup.context.observation;
    obs = DeviceArray<float>(n * observation.width);
    critic_obs = DeviceArray<float>(n * observation.critic_width());
    reward = DeviceArray<float>(n * 2);
    if (options.samples) {
      jacobian = DeviceArray<float>(n * SampleSize(setup.context.robot.num_joints));
    }
    terms = DeviceArray<float>(n * kNumRewards);
    tracking = DeviceArray<float>(n * kNumTracking);
    survival = DeviceArray<float>(n);
    before = DeviceArray<float>(n * (setup.context.robot.nq + setup.context.robot.nv));
    flag = DeviceArray<std::uint8_t>(n);
    mode = DeviceArray<ContactMode>(n);
    notes = DeviceArray<DivergedNote>(kMaxDivergedKept);
    counters = DeviceArray<int>(2);
    progress = DeviceArray<TaskProgress>(1);

    context = setup.context;
    context.progress = progress.get();
    entries = ToDevice(observation.entries, observation.frame_width, stream);
    context.observation.entries = entries.get();
    const ReachTable& reach = setup.context.reaches;
    poses = ToDevice(reach.poses, std::size_t(reach.num_poses) * kUpperJoints, stream);
    next = ToDevice(reach.next, std::size_t(reach.num_poses) * reach.num_next, stream);
    context.reaches.poses = poses.get();
    context.reaches.next = next.get();
    const MotionTable& motion = setup.context.motions;
    if (motion.num_clips > 0) {
      first = ToDevice(motion.first, motion.num_clips + 1, stream);
      frames = ToDevice(
          motion.frames, std::size_t(motion.first[motion.num_clips]) * kUpperJoints, stream);
      context.motions.first = first.get();
      context.motions.frames = frames.get();
    }
    view = ViewOf(&batch);
    outputs = {.reward = reward.get(),
               .flag = flag.get(),
               .actor_obs = obs.get(),
               .actor_width = observation.width,
               .critic_obs = critic_obs.get(),
               .critic_width = observation.critic_width(),
               .contact_mode = mode.get(),
               .jacobian = options.samples ? jacobian.get() : nullptr,
               .joints = setup.context.robot.num_joints,
               .terms = terms.get(),
               .tracking = tracking.get(),
               .survival = survival.get(),
               .refused = counters.get(),
               .qpos_before = before.get(),
               .qvel_before = before.get() + n * setup.context.robot.nq,
               .notes = notes.get(),
               .max_notes = static_cast<int>(kMaxDivergedKept),
               .num_notes = counters.get() + 1};
    Randomise();
    Reset();
  }

  void Randomise() {
    std::vector<int> envs(num_envs);
    std::iota(envs.begin(), envs.end(), 0);
    std::vector<float> friction, inertia;
    for (const int env : envs) {
      const StartupDraw drawn = DrawStartup(setup, env);
      friction.push_back(drawn.friction_scale);
      const std::vector<double> rows = LinkInertias(setup.compiled, drawn.mass, drawn.com);
      inertia.insert(inertia.end(), rows.begin(), rows.end());
    }
    batch.Write(Field::kFriction, envs, friction);
    batch.Write(Field::kInertia, envs, inertia);
  }

  void SetProgress(const TaskProgress& value) {
    progress.Upload(&value, stream);
    Wait();  // the value is the caller's
  }
  void ClearCounters() {
    const int zero[2] = {num_envs, 0};
    counters.Upload(zero, stream);
    Wait();
  }
  void Wait() const { CudaCheck(cudaStreamSynchronize(stream), "running the task"); }

  void Reset() {
    TaskProgress start = FirstProgress(setup.context.config);
    SetProgress(start);
    ClearCounters();
    for (DeviceArray<float>* array : {&terms, &tracking, &reward, &jacobian}) {
      if (array->size() > 0) array->Clear(stream);
    }
    flag.Clear(stream);
    static_assert(kRunning == 0 && sizeof(ContactMode) == 1);
    CudaCheck(cudaMemsetAsync(mode.get(), static_cast<int>(kModeUnknown), mode.bytes(), stream),
              "clearing modes");
    Launched(LaunchReset(context, view, num_envs, stagger, states.get(), outputs, stream),
             "starting the episodes");
    start.step = 1;
    SetProgress(start);
  }

  LocoMemory Download() const {
    LocoMemory m;
    m.Resize(num_envs, setup.context.observation);
    progress.Download(&m.progress, stream);
    states.Download(m.states.data(), stream);
    obs.Download(m.obs.data(), stream);
    critic_obs.Download(m.critic_obs.data(), stream);
    terms.Download(m.terms.data(), stream);
    tracking.Download(m.tracking.data(), stream);
    mode.Download(m.mode.data(), stream);
    Wait();
    return m;
  }

  void TakeNotes() {
    int count[2];
    counters.Download(count, stream);
    Wait();
    if (count[0] < num_envs) {
      throw RunError(fmt::format(
          "task: an action for robot {} is not finite: the policy has diverged; go back to a "
          "checkpoint or lower the learning rate",
          RobotId(setup.context, count[0])));
    }
    if (count[1] == 0) return;
    num_diverged += count[1];
    std::vector<DivergedNote> list(notes.size());
    notes.Download(list.data(), stream);
    ClearCounters();
    list.resize(std::min<std::size_t>(count[1], list.size()));
    // the GPU notes them in no order
    std::sort(list.begin(), list.end(), [](const DivergedNote& a, const DivergedNote& b) {
      return a.step != b.step ? a.step < b.step : a.env < b.env;
    });
    for (const DivergedNote& n : list) {
      if (diverged.size() >= kMaxDivergedKept) break;
      DivergedRobot d{.seed = setup.context.seed,
                      .env = static_cast<int>(RobotId(setup.context, n.env)),
                      .step = n.step,
                      .fault = n.fault};
      d.qpos.assign(n.qpos, n.qpos + setup.context.robot.nq);
      d.qvel.assign(n.qvel, n.qvel + setup.context.robot.nv);
      d.action.assign(n.action, n.action + setup.context.robot.num_joints);
      diverged.push_back(std::move(d));
    }
  }

  LocoSetup setup;
  bool stagger;
  int num_envs, total_envs;
  SumOverAll sum;
  KinematicsLevel kinematics;
  mutable CudaBatch batch;
  cudaStream_t stream;
  DeviceArray<EnvState> states;
  DeviceArray<float> obs, critic_obs, reward, jacobian, terms, tracking, survival, before;
  DeviceArray<std::uint8_t> flag;
  DeviceArray<ContactMode> mode;
  DeviceArray<DivergedNote> notes;
  DeviceArray<int> counters;  // refused, notes
  DeviceArray<TaskProgress> progress;
  DeviceArray<TaskEntry> entries;
  DeviceArray<float> poses, frames;
  DeviceArray<int> next, first;
  TaskContext context{};  // the set-up's with device pointers
  PhysicsView view{};
  DeviceOutputs outputs{};
  std::vector<DivergedRobot> diverged;
  long num_diverged = 0;
};

CudaLocoEnv::CudaLocoEnv(LocoEnvOptions options, CUstream_st* stream)
    : impl_(std::make_unique<Impl>(std::move(options), stream)) {}
CudaLocoEnv::~CudaLocoEnv() = default;

int CudaLocoEnv::num_envs() const { return impl_->num_envs; }
const TaskConfig& CudaLocoEnv::config() const { return impl_->setup.context.config; }
const TaskLayout& CudaLocoEnv::layout() const { return impl_->setup.layout; }
const TaskRobot& CudaLocoEnv::robot() const { return impl_->setup.context.robot; }
const RobotModel& CudaLocoEnv::robot_model() const { return *impl_->setup.model; }
PhysicsBatch& CudaLocoEnv::physics() { return impl_->batch; }
CUstream_st* CudaLocoEnv::stream() const { return impl_->stream; }
const std::vector<DivergedRobot>& CudaLocoEnv::diverged() const { return impl_->diverged; }
long CudaLocoEnv::num_diverged() const { return impl_->num_diverged; }

void CudaLocoEnv::Reset() { impl_->Reset(); }

void CudaLocoEnv::Step(const float* actions) {
  Impl& i = *impl_;
  Launched(
      LaunchBeginStep(i.context, i.view, i.num_envs, actions, i.states.get(), i.outputs, i.stream),
      "beginning a control step");
  i.batch.Advance(i.setup.context.robot.substeps);
  i.batch.UpdateKinematics(i.kinematics);
  Launched(
      LaunchEndStep(i.context, i.view, i.num_envs, actions, i.states.get(), i.outputs, i.stream),
      "ending a control step");
}

void CudaLocoEnv::Deliver(const DeviceDelivery& to) {
  SILC_CHECK(to.mode == nullptr || impl_->outputs.jacobian != nullptr);
  Launched(LaunchDeliver(impl_->num_envs, impl_->outputs, to, impl_->stream),
           "handing over a control step");
}

LocoStats CudaLocoEnv::TakeStats() {
  Impl& i = *impl_;
  std::vector<float> terms(i.terms.size()), tracking(i.tracking.size());
  TaskProgress progress;
  i.terms.Download(terms.data(), i.stream);
  i.tracking.Download(tracking.data(), i.stream);
  i.progress.Download(&progress, i.stream);
  i.TakeNotes();  // waits
  i.terms.Clear(i.stream);
  i.tracking.Clear(i.stream);
  std::vector<double> sums = StatSums(tracking, terms, 1);
  if (!i.sum) return MakeStats(sums, robot().control_dt, progress.penalty_scale);
  const bool known = progress.mean_survival >= 0;
  sums.insert(sums.end(),
              {progress.penalty_scale, known ? progress.mean_survival : 0.0, known ? 1.0 : 0.0});
  std::vector<double> all = i.sum(sums, 1);
  const double* shared = &all[all.size() - 3];
  const double processes = double(i.total_envs) / i.num_envs;
  progress.penalty_scale = static_cast<float>(shared[0] / processes);
  if (shared[2] > 0) progress.mean_survival = static_cast<float>(shared[1] / shared[2]);
  i.SetProgress(progress);
  all.resize(all.size() - 3);
  return MakeStats(all, robot().control_dt, progress.penalty_scale);
}

std::string CudaLocoEnv::Save() const {
  return PackState(impl_->Download(), impl_->setup.context.seed, &impl_->batch);
}

std::string CudaLocoEnv::Join(std::span<const std::string> parts) const {
  LocoMemory sizes;
  sizes.Resize(impl_->num_envs, impl_->setup.context.observation);
  return JoinStates(parts, sizes, &impl_->batch);
}

LocoCurricula CudaLocoEnv::SaveCurricula() const {
  const Impl& i = *impl_;
  TaskProgress progress;
  std::vector<EnvState> states(i.num_envs);
  i.progress.Download(&progress, i.stream);
  i.states.Download(states.data(), i.stream);
  i.Wait();
  return PackCurricula(progress, states);
}

void CudaLocoEnv::LoadCurricula(const LocoCurricula& curricula) {
  Impl& i = *impl_;
  TaskProgress progress;
  std::vector<EnvState> states(i.num_envs);
  i.states.Download(states.data(), i.stream);
  i.Wait();
  UnpackCurricula(curricula, static_cast<int>(i.setup.context.first_env), &progress, states);
  i.states.Upload(states.data(), i.stream);
  i.SetProgress(progress);
  i.Wait();
}

void CudaLocoEnv::Load(const std::string& bytes) {
  Impl& i = *impl_;
  LocoMemory m;
  m.Resize(i.num_envs, i.setup.context.observation);
  UnpackState(bytes,
              i.setup.context.seed,
              static_cast<int>(i.setup.context.first_env),
              i.total_envs,
              &i.batch,
              &m);
  i.states.Upload(m.states.data(), i.stream);
  i.obs.Upload(m.obs.data(), i.stream);
  i.critic_obs.Upload(m.critic_obs.data(), i.stream);
  i.terms.Upload(m.terms.data(), i.stream);
  i.tracking.Upload(m.tracking.data(), i.stream);
  i.mode.Upload(m.mode.data(), i.stream);
  i.SetProgress(m.progress);
  i.batch.UpdateKinematics(i.kinematics);
  if (i.outputs.jacobian != nullptr) {
    Launched(LaunchFillSamples(i.context, i.view, i.num_envs, i.outputs, i.stream),
             "computing the samples");
  }
  i.Wait();
}

}  // namespace silc
