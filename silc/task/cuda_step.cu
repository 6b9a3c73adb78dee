// SPDX-License-Identifier: Apache-2.0
#include "silc/task/cuda_step.h"

#include <cuda_runtime.h>

namespace silc {
namespace {

constexpr int kThreads = 32;  // 4,096 robots are one warp on each of 128 multiprocessors
constexpr int kReduceThreads = 1024;

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

// One thread, one robot; what it computes is that robot's alone.
__global__ void ResetKernel(const __grid_constant__ TaskContext context,
                            const __grid_constant__ PhysicsView view,
                            int num_envs,
                            bool stagger,
                            EnvState* states,
                            const __grid_constant__ DeviceOutputs outputs) {
  const int env = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (env >= num_envs) return;
  StepOutput out = OutputOf(outputs, env);
  StartEnv(context, view, env, stagger, &states[env], &out);
}

__global__ void BeginStepKernel(const __grid_constant__ TaskContext context,
                                const __grid_constant__ PhysicsView view,
                                int num_envs,
                                const float* actions,
                                EnvState* states,
                                const __grid_constant__ DeviceOutputs outputs) {
  const int env = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (env >= num_envs) return;
  for (int i = 0; i < context.robot.nq; ++i) {
    outputs.qpos_before[static_cast<long>(i) * num_envs + env] = view.qpos(env, i);
  }
  for (int i = 0; i < context.robot.nv; ++i) {
    outputs.qvel_before[static_cast<long>(i) * num_envs + env] = view.qvel(env, i);
  }
  const float* action = actions + static_cast<long>(env) * context.robot.num_joints;
  if (!BeginStep(context, view, env, action, &states[env])) {
    atomicMin(outputs.refused, env);
  }
}

__global__ void EndStepKernel(const __grid_constant__ TaskContext context,
                              const __grid_constant__ PhysicsView view,
                              int num_envs,
                              const float* actions,
                              EnvState* states,
                              const __grid_constant__ DeviceOutputs outputs) {
  const int env = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (env >= num_envs) return;
  const int fault = static_cast<int>(view.fault(env, 0));  // gone once the robot is reset
  StepOutput out = OutputOf(outputs, env);
  outputs.survival[env] = EndStep(context, view, env, &states[env], &out);
  if (!(*out.flag & kDiverged)) return;
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

__global__ void FillSamplesKernel(const __grid_constant__ TaskContext context,
                                  const __grid_constant__ PhysicsView view,
                                  int num_envs,
                                  const __grid_constant__ DeviceOutputs outputs) {
  const int env = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (env >= num_envs) return;
  const int size = SampleSize(context.robot.num_joints);
  float* jacobian = outputs.jacobian + static_cast<long>(env) * size;
  if (outputs.contact_mode[env] == kModeUnknown) {
    for (int i = 0; i < size; ++i) jacobian[i] = 0;
  } else {
    step::FillSample(context.robot, view, env, outputs.contact_mode[env], jacobian);
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
    to.critic_obs[env * from.critic_width + i] = from.critic_obs[env * from.critic_width + i];
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

int Blocks(int num_envs) { return (num_envs + kThreads - 1) / kThreads; }

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
