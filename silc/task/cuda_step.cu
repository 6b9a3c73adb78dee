// SPDX-License-Identifier: Apache-2.0
#include "silc/task/cuda_step.h"

#include <cuda_runtime.h>

namespace silc {
namespace {

// A group of 32 threads per robot, eight robots per block: 4,096 robots are four blocks on each of
// 128 multiprocessors. Eight neighbouring robots are 32 bytes of a field, the least that memory
// moves.
constexpr int kThreadsPerRobot = 32;
constexpr int kRobots = 8;
constexpr int kThreads = kThreadsPerRobot * kRobots;
constexpr int kReduceThreads = 1024;

/// Members of a robot's group are every eighth thread: threads side by side read the same value of
/// neighbouring robots. Jobs are four members apart, each in a warp of its own.
struct Spread {
  static constexpr int kSize = kThreadsPerRobot;
  int member;
  __device__ int first() const { return member; }
  __device__ bool Does(int job) const { return member == job * (32 / kRobots) % kThreadsPerRobot; }
};

/// A robot's group is a warp: threads side by side write neighbouring values of one robot.
struct Together {
  static constexpr int kSize = kThreadsPerRobot;
  int member;
  __device__ int first() const { return member; }
  __device__ void Sync() const { __syncwarp(); }
};

/// Neighbours an odd number of words apart: threads that read the same word of several robots read
/// different banks of shared memory.
template <class T>
struct Odd {
  static constexpr int kWords = sizeof(T) / 4;
  static_assert(sizeof(T) % 4 == 0 && alignof(T) == 4);
  T value;
  int gap[1 + kWords % 2];
};

/// The robots of a block and what they observe, in shared memory.
struct Block {
  static constexpr int kEntries = 160;
  TaskEntry entries[kEntries];
  Odd<EnvState> state[kRobots];
  Odd<step::Scratch> scratch[kRobots];
};

/// Where this thread stands: in the block's robots for a spread group, and for one together.
struct Place {
  int robot, env;
  bool there;  // the last block may have robots that do not exist
  Spread threads;
  int own_robot, own_env;
  bool own_there;
  Together own_threads;
  __device__ explicit Place(int num_envs)
      : robot(static_cast<int>(threadIdx.x) % kRobots),
        env(static_cast<int>(blockIdx.x) * kRobots + robot),
        there(env < num_envs),
        threads{static_cast<int>(threadIdx.x) / kRobots},
        own_robot(static_cast<int>(threadIdx.x) / kThreadsPerRobot),
        own_env(static_cast<int>(blockIdx.x) * kRobots + own_robot),
        own_there(own_env < num_envs),
        own_threads{static_cast<int>(threadIdx.x) % kThreadsPerRobot} {}
};

// States of the block's robots, word by word, to and from shared memory.
__device__ void LoadStates(const EnvState* states, int num_envs, Block* block) {
  constexpr int kWords = Odd<EnvState>::kWords;
  const int first = static_cast<int>(blockIdx.x) * kRobots;
  const int count = min(kRobots, num_envs - first) * kWords;
  const int* from = reinterpret_cast<const int*>(states + first);
  for (int i = static_cast<int>(threadIdx.x); i < count; i += kThreads) {
    reinterpret_cast<int*>(&block->state[i / kWords].value)[i % kWords] = from[i];
  }
}
__device__ void StoreStates(const Block& block, int num_envs, EnvState* states) {
  constexpr int kWords = Odd<EnvState>::kWords;
  const int first = static_cast<int>(blockIdx.x) * kRobots;
  const int count = min(kRobots, num_envs - first) * kWords;
  int* to = reinterpret_cast<int*>(states + first);
  for (int i = static_cast<int>(threadIdx.x); i < count; i += kThreads) {
    to[i] = reinterpret_cast<const int*>(&block.state[i / kWords].value)[i % kWords];
  }
}

// The observation with its entries in shared memory, where they fit. To be met after.
__device__ TaskObservation LoadEntries(const TaskObservation& o, Block* block) {
  TaskObservation near = o;
  if (o.frame_width > Block::kEntries) return near;
  const int count = o.frame_width * static_cast<int>(sizeof(TaskEntry) / 4);
  const int* from = reinterpret_cast<const int*>(o.entries);
  for (int i = static_cast<int>(threadIdx.x); i < count; i += kThreads) {
    reinterpret_cast<int*>(block->entries)[i] = from[i];
  }
  near.entries = block->entries;
  return near;
}

__device__ StepOutput OutputOf(const DeviceOutputs& o, int env) {
  return {.reward = o.reward + 2 * env,
          .flag = o.flag + env,
          .actor_obs = o.actor_obs + static_cast<long>(env) * o.actor_width,
          .critic_obs = o.critic_obs + static_cast<long>(env) * o.critic_width,
          .contact_mode = o.contact_mode + env,
          .jacobian = o.jacobian == nullptr
                          ? nullptr
                          : o.jacobian + static_cast<long>(env) * SampleSize(o.joints),
          .terms = o.terms + static_cast<long>(env) * kNumRewards,
          .tracking = o.tracking + static_cast<long>(env) * kNumTracking};
}

// Last phase of a step or a reset, by the robots' own warps.
__device__ void Observe(const TaskContext& context,
                        const TaskObservation& observation,
                        const DeviceOutputs& outputs,
                        const Place& at,
                        const Block& block) {
  if (!at.own_there) return;
  StepOutput out = OutputOf(outputs, at.own_env);
  step::ObserveValues(context,
                      observation,
                      at.own_env,
                      block.state[at.own_robot].value,
                      at.own_threads,
                      &out,
                      block.scratch[at.own_robot].value);
}

// The kernels run the phases of task_step.h; all threads of a block meet between two.
// twin     StartEnv(), BeginStep() and EndStep() on the CPU; cuda_loco_env_test.cc holds the two
//          together
__global__ void __launch_bounds__(kThreads)
    ResetKernel(const __grid_constant__ TaskContext context,
                const __grid_constant__ PhysicsView view,
                int num_envs,
                bool stagger,
                EnvState* states,
                const __grid_constant__ DeviceOutputs outputs) {
  __shared__ Block block;
  const Place at(num_envs);
  EnvState* s = &block.state[at.robot].value;
  step::Scratch* scratch = &block.scratch[at.robot].value;
  StepOutput out = OutputOf(outputs, at.env);
  const TaskObservation observation = LoadEntries(context.observation, &block);
  LoadStates(states, num_envs, &block);
  __syncthreads();
  if (at.there) step::StartScales(context, at.threads, s, scratch);
  __syncthreads();
  if (at.there) step::ClearEnv(context, view, at.env, at.threads, s);
  __syncthreads();
  if (at.there) {
    step::PlaceEnv(context, view, at.env, at.threads, s);
    step::StaggerEnv(context, at.env, stagger, at.threads, s);
  }
  __syncthreads();
  if (at.there) step::GatherValues(context, view, at.env, *s, true, at.threads, &out, scratch);
  __syncthreads();
  Observe(context, observation, outputs, at, block);
  StoreStates(block, num_envs, states);
}

__global__ void __launch_bounds__(kThreads)
    BeginStepKernel(const __grid_constant__ TaskContext context,
                    const __grid_constant__ PhysicsView view,
                    int num_envs,
                    const float* actions,
                    EnvState* states,
                    const __grid_constant__ DeviceOutputs outputs) {
  __shared__ Block block;
  const Place at(num_envs);
  EnvState* s = &block.state[at.robot].value;
  step::Scratch* scratch = &block.scratch[at.robot].value;
  const float* action = actions + static_cast<long>(at.env) * context.robot.num_joints;
  LoadStates(states, num_envs, &block);
  if (at.threads.Does(0)) scratch->refused = false;
  if (at.there) {
    for (int i = at.threads.first(); i < context.robot.nq; i += kThreadsPerRobot) {
      outputs.qpos_before[static_cast<long>(i) * num_envs + at.env] = view.qpos(at.env, i);
    }
    for (int i = at.threads.first(); i < context.robot.nv; i += kThreadsPerRobot) {
      outputs.qvel_before[static_cast<long>(i) * num_envs + at.env] = view.qvel(at.env, i);
    }
  }
  __syncthreads();
  if (at.there) step::CheckAction(context.robot, action, at.threads, scratch);
  __syncthreads();
  if (at.there && scratch->refused) {
    if (at.threads.Does(0)) atomicMin(outputs.refused, at.env);
  } else if (at.there) {
    step::Act(context, view, at.env, action, at.threads, s);
  }
  __syncthreads();
  StoreStates(block, num_envs, states);
}

// A robot that the physics lost, for the log.
__device__ void NoteDiverged(const TaskContext& context,
                             int num_envs,
                             int env,
                             int fault,
                             const float* actions,
                             const DeviceOutputs& outputs) {
  const int note = atomicAdd(outputs.num_notes, 1);
  if (note >= outputs.max_notes) return;
  DivergedNote& n = outputs.notes[note];
  n.env = env;
  n.step = context.progress->step;
  n.fault = fault;
  for (int i = 0; i < context.robot.nq; ++i) {
    n.qpos[i] = outputs.qpos_before[static_cast<long>(i) * num_envs + env];
  }
  for (int i = 0; i < context.robot.nv; ++i) {
    n.qvel[i] = outputs.qvel_before[static_cast<long>(i) * num_envs + env];
  }
  const int joints = context.robot.num_joints;
  for (int j = 0; j < joints; ++j) n.action[j] = actions[static_cast<long>(env) * joints + j];
}

__global__ void __launch_bounds__(kThreads, 4)
    EndStepKernel(const __grid_constant__ TaskContext context,
                  const __grid_constant__ PhysicsView view,
                  int num_envs,
                  const float* actions,
                  EnvState* states,
                  const __grid_constant__ DeviceOutputs outputs) {
  __shared__ Block block;
  const Place at(num_envs);
  EnvState* s = &block.state[at.robot].value;
  step::Scratch* scratch = &block.scratch[at.robot].value;
  StepOutput out = OutputOf(outputs, at.env);
  const TaskObservation observation = LoadEntries(context.observation, &block);
  LoadStates(states, num_envs, &block);
  if (at.threads.Does(0)) scratch->lost = false;
  __syncthreads();
  // gone once the robot is reset
  const int fault = at.there && at.threads.Does(0) ? static_cast<int>(view.fault(at.env, 0)) : 0;
  if (at.there) step::Look(context, view, at.env, *s, at.threads, scratch);
  __syncthreads();
  if (at.there) step::MoveOn(context, view, at.env, at.threads, scratch, s);
  __syncthreads();
  if (at.there) step::Judge(context, at.threads, &out, scratch);
  __syncthreads();
  if (at.there) step::Settle(context, at.env, at.threads, &out, scratch, s);
  __syncthreads();
  const bool ended = at.there && scratch->flag != kRunning;
  if (at.there) step::Sample(context, view, at.env, *s, at.threads, &out, scratch);
  if (ended) step::ClearEnv(context, view, at.env, at.threads, s);
  __syncthreads();
  if (ended) step::PlaceEnv(context, view, at.env, at.threads, s);
  __syncthreads();
  if (at.there) step::GatherValues(context, view, at.env, *s, ended, at.threads, &out, scratch);
  __syncthreads();
  Observe(context, observation, outputs, at, block);
  StoreStates(block, num_envs, states);
  if (!at.there || !at.threads.Does(0)) return;
  outputs.survival[at.env] = scratch->survival;
  if (scratch->lost) NoteDiverged(context, num_envs, at.env, fault, actions, outputs);
}

// One block. Each thread adds every 1024th robot, then the threads are added as a tree: one order,
// whatever the GPU.
__global__ void EndStepOfAllKernel(const __grid_constant__ TaskContext context,
                                   int num_envs,
                                   const float* survival) {
  __shared__ double sum[kReduceThreads];
  __shared__ int ended[kReduceThreads];
  const int k = static_cast<int>(threadIdx.x);
  sum[k] = 0;
  ended[k] = 0;
  for (int env = k; env < num_envs; env += kReduceThreads) {
    if (survival[env] < 0) continue;
    sum[k] += survival[env];
    ended[k] += 1;
  }
  for (int half = kReduceThreads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (k < half) {
      sum[k] += sum[k + half];
      ended[k] += ended[k + half];
    }
  }
  if (k == 0) {
    EndStepOfAll(context.config.curriculum, num_envs, sum[0], ended[0], context.progress);
  }
}

__global__ void __launch_bounds__(kThreads)
    FillSamplesKernel(const __grid_constant__ TaskContext context,
                      const __grid_constant__ PhysicsView view,
                      int num_envs,
                      const __grid_constant__ DeviceOutputs outputs) {
  const Place at(num_envs);
  if (!at.there) return;
  const int size = SampleSize(context.robot.num_joints);
  float* jacobian = outputs.jacobian + static_cast<long>(at.env) * size;
  const ContactMode mode = outputs.contact_mode[at.env];
  if (mode == kModeUnknown) {
    for (int i = at.threads.first(); i < size; i += kThreadsPerRobot) jacobian[i] = 0;
  } else {
    step::FillSample(context.robot, view, at.env, mode, jacobian, at.threads);
  }
}

// A block per robot: neighbouring threads copy neighbouring numbers.
__global__ void DeliverKernel(const __grid_constant__ DeviceOutputs from,
                              const __grid_constant__ DeviceDelivery to) {
  const long env = blockIdx.x;
  const int k = static_cast<int>(threadIdx.x), step = static_cast<int>(blockDim.x);
  for (int i = k; i < from.actor_width; i += step) {
    to.obs[env * to.obs_stride + i] = from.actor_obs[env * from.actor_width + i];
  }
  for (int i = k; i < from.critic_width; i += step) {
    to.critic_obs[env * to.critic_obs_stride + i] = from.critic_obs[env * from.critic_width + i];
  }
  if (to.reward != nullptr && k < to.agents) {
    const std::uint8_t flag = from.flag[env];
    const bool lost = (flag & kDiverged) != 0;
    to.reward[env * to.agents + k] = lost ? 0.0f : from.reward[env * 2 + k];
    if (k == 0) {
      to.done[env] = flag != kRunning;
      to.timed_out[env] = flag == kTimedOut || lost;
    }
  }
  if (to.mode == nullptr) return;
  if (k == 0) to.mode[env] = from.contact_mode[env];
  const int joints = from.joints, size = SampleSize(joints);
  const float* sample = from.jacobian + env * size;
  for (int i = k; i < size; i += step) {
    const auto put = [&](float* block, int first, int rows) {
      block[(env * rows - first) * joints + i] = sample[i];
    };
    if (i < SampleRows::kHandOnBase * joints) {
      put(to.com, SampleRows::kCom, SampleRows::kComSize);
    } else if (i < SampleRows::kClosing * joints) {
      put(to.hand_on_base, SampleRows::kHandOnBase, SampleRows::kHandOnBaseSize);
    } else if (i < SampleRows::kGravity * joints) {
      put(to.closing, SampleRows::kClosing, SampleRows::kClosingSize);
    } else {
      put(to.gravity, SampleRows::kGravity, SampleRows::kGravitySize);
    }
  }
}

int Blocks(int num_envs) { return (num_envs + kRobots - 1) / kRobots; }

}  // namespace

int LaunchReset(const TaskContext& context,
                const PhysicsView& view,
                int num_envs,
                bool stagger,
                EnvState* states,
                const DeviceOutputs& out,
                CUstream_st* stream) {
  ResetKernel<<<Blocks(num_envs), kThreads, 0, stream>>>(
      context, view, num_envs, stagger, states, out);
  return cudaGetLastError();
}

int LaunchBeginStep(const TaskContext& context,
                    const PhysicsView& view,
                    int num_envs,
                    const float* actions,
                    EnvState* states,
                    const DeviceOutputs& out,
                    CUstream_st* stream) {
  BeginStepKernel<<<Blocks(num_envs), kThreads, 0, stream>>>(
      context, view, num_envs, actions, states, out);
  return cudaGetLastError();
}

int LaunchEndStep(const TaskContext& context,
                  const PhysicsView& view,
                  int num_envs,
                  const float* actions,
                  EnvState* states,
                  const DeviceOutputs& out,
                  CUstream_st* stream) {
  EndStepKernel<<<Blocks(num_envs), kThreads, 0, stream>>>(
      context, view, num_envs, actions, states, out);
  EndStepOfAllKernel<<<1, kReduceThreads, 0, stream>>>(context, num_envs, out.survival);
  return cudaGetLastError();
}

int LaunchFillSamples(const TaskContext& context,
                      const PhysicsView& view,
                      int num_envs,
                      const DeviceOutputs& out,
                      CUstream_st* stream) {
  FillSamplesKernel<<<Blocks(num_envs), kThreads, 0, stream>>>(context, view, num_envs, out);
  return cudaGetLastError();
}

int LaunchDeliver(int num_envs,
                  const DeviceOutputs& out,
                  const DeviceDelivery& to,
                  CUstream_st* stream) {
  DeliverKernel<<<num_envs, 128, 0, stream>>>(out, to);
  return cudaGetLastError();
}

}  // namespace silc
