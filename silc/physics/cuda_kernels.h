// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime.h>

#include <cstddef>

#include "silc/physics/fields.h"
#include "silc/physics/team_plan.h"

/// The kernels of CudaBatch, in a source of their own: there the step is compiled with a warp's
/// threads as lanes (SILC_CUDA_VOTES in lanes.h), which other CUDA code does not want.
namespace silc {

/// A block works on the 32 robots of one warp, one warp per member of their team: no warp's threads
/// have different jobs, and a member without work costs nothing.
inline constexpr int kRobotsPerBlock = 32;
inline constexpr int kCudaTeam = 4;
// What a member of a small team can hold of its own. The workspace is local memory, which the
// driver sets aside for every thread that the GPU could hold, whatever the batch.
inline constexpr int kSmallLinks = 12, kSmallContacts = 16;
// The outputs of a robot are the work of so many threads, of so many robots side by side: 32 bytes
// of a field, the least that memory moves.
inline constexpr int kOutputMembers = 32, kOutputRobots = 8;
inline constexpr int kSmallOutputLinks = 32;

// The model is read by all threads at the same address, which is what constant memory is for.
// Kernel parameters live there, come with the launch and belong to it: a captured graph and two
// batches of different models need no more. They are limited to 32,764 bytes, so a model travels
// without the contacts it does not have; one that is still too long is read from global memory.
inline constexpr std::size_t kParameterModel = 28 * 1024;
struct alignas(16) ModelParameter {
  unsigned char bytes[kParameterModel];
};
static_assert(offsetof(StepModel<float>, contact) + sizeof StepModel<float>::contact ==
                  sizeof(StepModel<float>),
              "the contacts are the end of the model, so that it can be cut there");

static_assert(offsetof(StepModel<float>, contact) <= kParameterModel);

struct KernelArgs {
  FieldLayout layout;
  const StepModel<float>* model;  // for models that do not fit a parameter
  float* memory;
  int stride;  // robots, rounded up to whole blocks
  int substeps;
  StepOptions options;
};

struct CudaLaunch {
  KernelArgs args;
  TeamPlan plan;
  bool small;    // workspaces of kSmallLinks, kSmallContacts and kSmallOutputLinks, model in the
                 // parameter
  int carveout;  // share of a multiprocessor's cache to use as shared memory [%]
  ModelParameter model;
};

/// Completes a launch with what depends on the device; once per batch.
cudaError_t PrepareKernels(CudaLaunch* launch, int device);
cudaError_t LaunchAdvance(const CudaLaunch& launch, cudaStream_t stream);
cudaError_t LaunchOutputs(const CudaLaunch& launch, KinematicsLevel wanted, cudaStream_t stream);

}  // namespace silc
