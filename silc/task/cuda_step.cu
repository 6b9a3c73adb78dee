// SPDX-License-Identifier: Apache-2.0
#include "silc/task/cuda_step.h"

#include <cuda_runtime.h>

namespace silc {
namespace {

constexpr int kThreads = 64;

__device__ StepOutput OutputOf(const DeviceOutputs& o, int env) {
  return {.reward = o.reward + 2 * env,
          .flag = o.flag + env,
          .actor_obs = o.actor_obs + static_cast<long>(env) * kActorObs,
          .critic_obs = o.critic_obs + static_cast<long>(env) * kCriticObs,
          .contact_mode = o.contact_mode + env,
          .jacobian = o.jacobian == nullptr ? nullptr
                                            : o.jacobian + static_cast<long>(env) * kSampleJacobian,
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
                                int* refused) {
  const int env = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (env >= num_envs) return;
  if (!BeginStep(
          context, view, env, actions + static_cast<long>(env) * kTaskJoints, &states[env])) {
    atomicMin(refused, env);
  }
}

__global__ void EndStepKernel(const __grid_constant__ TaskContext context,
                              const __grid_constant__ PhysicsView view,
                              int num_envs,
                              EnvState* states,
                              const __grid_constant__ DeviceOutputs outputs) {
  const int env = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (env >= num_envs) return;
  StepOutput out = OutputOf(outputs, env);
  outputs.survival[env] = EndStep(context, view, env, &states[env], &out);
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
      context, view, num_envs, actions, states, out.refused);
  return cudaGetLastError();
}

int LaunchEndStep(const TaskContext& context,
                  const PhysicsView& view,
                  int num_envs,
                  EnvState* states,
                  const DeviceOutputs& out,
                  CUstream_st* stream) {
  EndStepKernel<<<Blocks(num_envs), kThreads, 0, stream>>>(context, view, num_envs, states, out);
  return cudaGetLastError();
}

}  // namespace silc
