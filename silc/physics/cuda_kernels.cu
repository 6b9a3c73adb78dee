// SPDX-License-Identifier: Apache-2.0
#include "silc/physics/cuda_kernels.h"

#include <cstdlib>

#include "silc/physics/robot_data.h"

#ifndef SILC_CUDA_TEAM
#define SILC_CUDA_TEAM 1
#endif
#ifndef SILC_CUDA_MODEL
#define SILC_CUDA_MODEL 0
#endif
#ifndef SILC_CUDA_BLOCKS
#define SILC_CUDA_BLOCKS 1
#endif
#define SILC_TEXT2(x) #x
#define SILC_TEXT(x) SILC_TEXT2(x)

namespace silc::SILC_KERNEL {
namespace {

extern __shared__ float4 block_memory[];

struct Warps {
  static constexpr int kLanes = 32;
  __device__ static int Member() { return threadIdx.y; }
  __device__ static int Lane() { return threadIdx.x; }
  __device__ static float* Memory() { return reinterpret_cast<float*>(block_memory); }
  __device__ static void Meet() { __syncthreads(); }
  __device__ static bool MeetAny(bool flag) { return __syncthreads_or(flag); }
};

#if SILC_CUDA_TEAM == 0
using Crew = Solo;
constexpr int kThreads = 32;
#else
using Crew = Team<Warps>;
constexpr int kThreads = 32 * SILC_CUDA_TEAM;
#endif

__host__ __device__ constexpr int TeamBytes(const TeamPlan& plan) {
  return SILC_CUDA_TEAM == 0 ? 0 : (kTeamPlanFloats + plan.memory * Warps::kLanes) * 4;
}

template <bool kInParameter>
__device__ __forceinline__ const StepModel<float>& ModelOf(const ModelParameter& parameter,
                                                           const StepModel<float>* global,
                                                           int memory_floats) {
  if constexpr (!kInParameter || SILC_CUDA_MODEL == 1) {
    return *global;
  } else if constexpr (SILC_CUDA_MODEL == 2) {
    float* copy = reinterpret_cast<float*>(block_memory) + memory_floats;
    const float* from = reinterpret_cast<const float*>(global);
    for (int i = threadIdx.y * 32 + threadIdx.x; i < kParameterModel / 4;
         i += blockDim.x * blockDim.y) {
      copy[i] = from[i];
    }
    __syncthreads();
    return *reinterpret_cast<const StepModel<float>*>(copy);
  } else {
    return *reinterpret_cast<const StepModel<float>*>(parameter.bytes);
  }
}

// layout   value i of robot e at memory[i · stride + e]: a warp reads 32 neighbours
// mapping  one block per 32 robots, one warp per member of the team, n substeps per launch; state
// is
//          read from and written to global memory
// work     the workspace is local memory, interleaved by the hardware in the same way
// twin     AdvanceGroup() on the CPU; gpu_check.cc holds the two together
template <int kLinks, int kContacts, bool kInParameter>
__global__ void __launch_bounds__(kThreads, SILC_CUDA_BLOCKS)
    AdvanceKernel(const __grid_constant__ KernelArgs a,
                  const __grid_constant__ TeamPlan plan,
                  const __grid_constant__ ModelParameter m) {
  const int env = blockIdx.x * kRobotsPerBlock + threadIdx.x;
#ifndef SILC_CUDA_VOTES
  if (env >= a.num_envs) return;
#endif
#if SILC_CUDA_TEAM > 0
  for (int i = threadIdx.y * 32 + threadIdx.x; i < static_cast<int>(sizeof(TeamPlan)) / 4;
       i += blockDim.x * blockDim.y) {
    reinterpret_cast<int*>(block_memory)[i] = reinterpret_cast<const int*>(&plan)[i];
  }
  __syncthreads();
#endif
  Workspace<float, kLinks, kContacts, Crew> work;
  const RobotData<float> robot = BindRobot(a.layout, a.memory + env, a.stride);
  const StepModel<float>& model = ModelOf<kInParameter>(m, a.model, TeamBytes(plan) / 4);
#ifdef SILC_CUDA_PROFILE
  StepCounts counts;
  AdvanceRobot<float>(model, robot, a.options, a.substeps, &counts, work);
  if (threadIdx.y == 0) {
    const long values[5] = {counts.steps,
                            counts.iterations,
                            counts.group_iterations,
                            counts.contacts,
                            counts.live_links};
    for (int i = 0; i < 5; ++i)
      atomicAdd(&a.profile[i], static_cast<unsigned long long>(values[i]));
  } else {
    atomicAdd(&a.profile[3], static_cast<unsigned long long>(counts.contacts));
    atomicAdd(&a.profile[4], static_cast<unsigned long long>(counts.live_links));
  }
  if (threadIdx.x == 0) {
    for (int i = 0; i < kNumStages; ++i) {
      atomicAdd(&a.profile[8 + kNumStages * threadIdx.y + i],
                static_cast<unsigned long long>(counts.ticks[i]));
    }
  }
#else
  AdvanceRobot<float>(model, robot, a.options, a.substeps, nullptr, work);
#endif
}

template <int kLinks, int kContacts, bool kInParameter>
__global__ void __launch_bounds__(32)
    OutputsKernel(const __grid_constant__ KernelArgs a, const __grid_constant__ ModelParameter m) {
  const int env = blockIdx.x * kRobotsPerBlock + threadIdx.x;
  if (env >= a.num_envs) return;
  Workspace<float, kLinks, kContacts> work;
  const StepModel<float>& model =
      kInParameter ? *reinterpret_cast<const StepModel<float>*>(m.bytes) : *a.model;
  ComputeOutputs<float>(model, a.layout, a.memory + env, a.stride, work);
}

constexpr auto kAdvanceSmall = AdvanceKernel<32, 64, true>;
constexpr auto kAdvanceLarge = AdvanceKernel<kMaxLinks, kMaxContacts, false>;

int SharedBytes(const CudaLaunch& l) {
  return TeamBytes(l.plan) +
         (SILC_CUDA_MODEL == 2 && l.small ? static_cast<int>(kParameterModel) : 0);
}

cudaError_t Prepare(const CudaLaunch& l) {
  const char* carveout = std::getenv("SILC_CARVEOUT");
  if (carveout) {
    const cudaError_t status = cudaFuncSetAttribute(l.small ? kAdvanceSmall : kAdvanceLarge,
                                                    cudaFuncAttributePreferredSharedMemoryCarveout,
                                                    std::atoi(carveout));
    if (status != cudaSuccess) return status;
  }
  return cudaFuncSetAttribute(l.small ? kAdvanceSmall : kAdvanceLarge,
                              cudaFuncAttributeMaxDynamicSharedMemorySize,
                              SharedBytes(l));
}

cudaError_t Advance(const CudaLaunch& l, cudaStream_t stream) {
  const dim3 block(32, SILC_CUDA_TEAM == 0 ? 1 : l.plan.size);
  (l.small ? kAdvanceSmall
           : kAdvanceLarge)<<<l.args.stride / kRobotsPerBlock, block, SharedBytes(l), stream>>>(
      l.args, l.plan, l.model);
  return cudaGetLastError();
}

// Small and large workspaces: local memory is set aside for every thread the GPU can hold.
cudaError_t Outputs(const CudaLaunch& l, cudaStream_t stream) {
  (l.small
       ? OutputsKernel<32, 64, true>
       : OutputsKernel<kMaxLinks,
                       kMaxContacts,
                       false>)<<<l.args.stride / kRobotsPerBlock, 32, 0, stream>>>(l.args, l.model);
  return cudaGetLastError();
}

}  // namespace

extern const CudaKernels kCudaKernels;
const CudaKernels kCudaKernels = {
    SILC_TEXT(SILC_KERNEL), SILC_CUDA_TEAM == 0 ? 1 : SILC_CUDA_TEAM, Prepare, Advance, Outputs};

}  // namespace silc::SILC_KERNEL
