// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "silc/task/task_step.h"

struct CUstream_st;

namespace silc {

inline constexpr int kMaxTaskPositions = kTaskJoints + 7;
inline constexpr int kMaxTaskVelocities = kTaskJoints + 6;

/// A robot the physics lost, as the GPU notes it down: DivergedRobot (loco_setup.h).
struct DivergedNote {
  int env;
  std::uint32_t step;
  int fault;
  float qpos[kMaxTaskPositions], qvel[kMaxTaskVelocities];
  float action[kTaskJoints];
};

/// Where a batch's steps are written, in GPU memory: StepOutput of all robots, each array one robot
/// after the other.
struct DeviceOutputs {
  float* reward;
  std::uint8_t* flag;
  float* actor_obs;
  int actor_width;  // TaskObservation::width
  float* critic_obs;
  int critic_width;  // TaskObservation::critic_width()
  ContactMode* contact_mode;
  float* jacobian;  // or null
  int joints;       // of the robot
  float* terms;
  float* tracking;
  float* survival;  // (num_envs) what EndStep() returns
  int* refused;     // lowest robot whose action was not finite; num_envs: none
  // before the step, value i of robot e at [i · num_envs + e]
  float* qpos_before;
  float* qvel_before;
  DivergedNote* notes;  // (max_notes)
  int max_notes;
  int* num_notes;  // may pass max_notes: then not all were noted
};

/// Where a learner wants its copy (silc/learn/vec_env.h); null what it does not want.
struct DeviceDelivery {
  float* obs;
  int obs_stride;  // floats from one robot to the next
  float* critic_obs;
  int critic_obs_stride;
  float* reward;  // (num_envs, agents)
  int agents;     // 1: the lower alone
  std::uint8_t *done, *timed_out;
  ContactMode* mode;
  float *com, *hand_on_base, *closing, *gravity;  // SampleRows, each block by itself
};

/// task_step.h on the GPU, a group of threads per robot. All pointers (those in the context, view
/// and outputs too) are device memory; the context itself is passed by value. Each call enqueues on
/// `stream` and returns the launch's cudaError_t.
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
/// EndStep() of every robot, then EndStepOfAll(). @param actions those of BeginStep
int LaunchEndStep(const TaskContext& context,
                  const PhysicsView& view,
                  int num_envs,
                  const float* actions,
                  EnvState* states,
                  const DeviceOutputs& out,
                  CUstream_st* stream);
/// Sample Jacobians of the present state, after a state was loaded.
int LaunchFillSamples(const TaskContext& context,
                      const PhysicsView& view,
                      int num_envs,
                      const DeviceOutputs& out,
                      CUstream_st* stream);
/// A robot the physics lost ends as if for lack of time and without reward.
int LaunchDeliver(int num_envs,
                  const DeviceOutputs& out,
                  const DeviceDelivery& to,
                  CUstream_st* stream);

}  // namespace silc
