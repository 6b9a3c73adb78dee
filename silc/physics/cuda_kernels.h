// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime.h>

#include <cstddef>

#include "silc/physics/fields.h"
#include "silc/physics/team_plan.h"

/// The kernels of CudaBatch. The step is compiled in sources of its own, with neighbouring threads
/// as lanes (SILC_CUDA_VOTES in lanes.h), which other CUDA code does not want.
namespace silc {

// Robots are rounded up to whole warps of them.
inline constexpr int kRobotsPerBlock = 32;
// Members of a team at most (team.h).
inline constexpr int kCudaTeam = 4;
// What a member of a team can hold of its own. The workspace is local memory, which the driver sets
// aside for every thread that the GPU could hold, whatever the batch.
inline constexpr int kSmallLinks = 12, kSmallContacts = 16;
inline constexpr int kMiddleLinks = 32, kMiddleContacts = 64;
enum class WorkSize : int {
  kSmall,   // kSmallLinks and kSmallContacts of a member, kMiddleLinks of the robot
  kMiddle,  // kMiddleLinks and kMiddleContacts
  kLarge,   // kMaxLinks and kMaxContacts, model in global memory
};
// The outputs of a robot are the work of so many threads, of so many robots side by side: 32 bytes
// of a field, the least that memory moves.
inline constexpr int kOutputMembers = 32, kOutputRobots = 8;

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
  WorkSize size;
  int robots_per_warp;  // of the step: 8, 16 or 32 side by side
  int carveout;         // share of a multiprocessor's cache to use as shared memory [%]
  ModelParameter model;
};

using AdvancePointer = void (*)(KernelArgs, TeamPlan, ModelParameter);
AdvancePointer Advance8(WorkSize size);
AdvancePointer Advance16(WorkSize size);
AdvancePointer Advance32(WorkSize size);

#ifdef __CUDACC__
template <bool kInParameter>
__device__ __forceinline__ const StepModel<float>& ModelOf(const ModelParameter& parameter,
                                                           const StepModel<float>* global) {
  if constexpr (kInParameter) {
    return *reinterpret_cast<const StepModel<float>*>(parameter.bytes);
  } else {
    return *global;
  }
}
#endif

/// Completes a launch with what depends on the device; once per batch.
cudaError_t PrepareKernels(CudaLaunch* launch, int device);
cudaError_t LaunchAdvance(const CudaLaunch& launch, cudaStream_t stream);
cudaError_t LaunchOutputs(const CudaLaunch& launch, KinematicsLevel wanted, cudaStream_t stream);

}  // namespace silc
