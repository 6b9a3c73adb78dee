// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "silc/task/task_step.h"

struct CUstream_st;

namespace silc {

/// Where a batch's steps are written, in GPU memory: StepOutput of all robots, each array one robot
/// after the other.
struct DeviceOutputs {
  float* reward;
  std::uint8_t* flag;
  float* actor_obs;
  float* critic_obs;
  std::uint8_t* contact_mode;
  float* jacobian;  // or null
  float* terms;
  float* tracking;
  float* survival;  // (num_envs) what EndStep() returns
  int* refused;     // lowest robot whose action was not finite; num_envs: none
};

/// task_step.h on the GPU, one thread per robot. All pointers (those in the context, view and
/// outputs too) are device memory; the context itself is passed by value. Returns cudaError_t of
/// the launch.
int LaunchReset(const TaskContext& context,
                const PhysicsView& view,
                int num_envs,
                bool stagger,
                EnvState* states,
                const DeviceOutputs& out,
                CUstream_st* stream);
int LaunchBeginStep(const TaskContext& context,
                    const PhysicsView& view,
                    int num_envs,
                    const float* actions,
                    EnvState* states,
                    const DeviceOutputs& out,
                    CUstream_st* stream);
int LaunchEndStep(const TaskContext& context,
                  const PhysicsView& view,
                  int num_envs,
                  EnvState* states,
                  const DeviceOutputs& out,
                  CUstream_st* stream);

}  // namespace silc
