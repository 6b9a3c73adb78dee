// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime.h>

#include <cstddef>

#include "silc/physics/fields.h"
#include "silc/physics/team_plan.h"

namespace silc {

/// A block works on the 32 robots of one warp, one warp per member of their team: no warp's threads
/// have different jobs, and a member without work costs nothing.
inline constexpr int kRobotsPerBlock = 32;

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

struct KernelArgs {
  FieldLayout layout;
  const StepModel<float>* model;  // for models that do not fit a parameter
  float* memory;
  int stride;  // robots, rounded up to whole blocks
  int num_envs;
  int substeps;
  StepOptions options;
  unsigned long long* profile;
};
// steps, iterations, executed iterations, contacts, live links; then ticks by member and stage
inline constexpr int kNumProfile = 8 + kMaxTeam * kNumStages;

struct CudaLaunch {
  KernelArgs args;
  TeamPlan plan;
  bool small;  // workspace of 32 links and 64 contacts, model in the parameter
  ModelParameter model;
};

struct CudaKernels {
  const char* name;
  int team;  // members wanted
  cudaError_t (*prepare)(const CudaLaunch&);
  cudaError_t (*advance)(const CudaLaunch&, cudaStream_t);
  cudaError_t (*outputs)(const CudaLaunch&, cudaStream_t);
};

#ifdef SILC_CUDA_VARIANTS
#define SILC_CUDA_VARIANT(name)          \
  namespace name {                       \
  extern const CudaKernels kCudaKernels; \
  }
SILC_CUDA_VARIANTS
#undef SILC_CUDA_VARIANT
#endif

}  // namespace silc
