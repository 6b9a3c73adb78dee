// SPDX-License-Identifier: Apache-2.0
#define SILC_KERNEL cuda_team
#define SILC_CUDA_VOTES

#include "silc/physics/cuda_kernels.h"

#include <algorithm>

#include "silc/physics/robot_data.h"

namespace silc {
namespace {

using cuda_team::RobotData;
using cuda_team::Team;
using cuda_team::Workspace;

constexpr int kLanes = 32;
static_assert(kRobotsPerBlock == kLanes);

extern __shared__ float4 block_memory[];

/// Where the members of a team meet: a block, one warp each.
struct Warps {
  static constexpr int kLanes = silc::kLanes;
  __device__ static int Member() { return threadIdx.y; }
  __device__ static int Lane() { return threadIdx.x; }
  __device__ static float* Memory() { return reinterpret_cast<float*>(block_memory); }
  __device__ static void Meet() { __syncthreads(); }
  __device__ static bool MeetAny(bool flag) { return __syncthreads_or(flag); }
};

template <bool kInParameter>
__device__ __forceinline__ const StepModel<float>& ModelOf(const ModelParameter& parameter,
                                                           const StepModel<float>* global) {
  if constexpr (kInParameter) {
    return *reinterpret_cast<const StepModel<float>*>(parameter.bytes);
  } else {
    return *global;
  }
}

// layout   value i of robot e at memory[i · stride + e]: a warp reads 32 neighbours
// mapping  one block per 32 robots, one warp per member of the team, n substeps per launch; state
// is
//          read from and written to global memory; robots that only fill up the last block sleep
// work     the workspace is local memory, interleaved by the hardware in the same way
// twin     AdvanceGroup() on the CPU; silc/physics_tools/gpu_check.cc holds the two together
template <int kLinks, int kContacts, bool kInParameter>
__global__ void __launch_bounds__(kLanes* kCudaTeam, 2)
    AdvanceKernel(const __grid_constant__ KernelArgs a,
                  const __grid_constant__ TeamPlan plan,
                  const __grid_constant__ ModelParameter m) {
  static_assert(sizeof(TeamPlan) % 4 == 0);
  for (int i = threadIdx.y * kLanes + threadIdx.x; i < static_cast<int>(sizeof(TeamPlan)) / 4;
       i += blockDim.x * blockDim.y) {
    reinterpret_cast<int*>(block_memory)[i] = reinterpret_cast<const int*>(&plan)[i];
  }
  __syncthreads();
  Workspace<float, kLinks, kContacts, Team<Warps>> work;
  const RobotData<float> robot = cuda_team::BindRobot(
      a.layout, a.memory + blockIdx.x * kRobotsPerBlock + threadIdx.x, a.stride);
  cuda_team::AdvanceRobot<float>(
      ModelOf<kInParameter>(m, a.model), robot, a.options, a.substeps, nullptr, work);
}

template <int kLinks, int kContacts, bool kInParameter>
__global__ void __launch_bounds__(kLanes)
    OutputsKernel(const __grid_constant__ KernelArgs a, const __grid_constant__ ModelParameter m) {
  Workspace<float, kLinks, kContacts> work;
  cuda_team::ComputeOutputs<float>(ModelOf<kInParameter>(m, a.model),
                                   a.layout,
                                   a.memory + blockIdx.x * kRobotsPerBlock + threadIdx.x,
                                   a.stride,
                                   work);
}

// Small and large workspaces: local memory is set aside for every thread the GPU can hold.
using Advance = void (*)(KernelArgs, TeamPlan, ModelParameter);
Advance AdvanceOf(const CudaLaunch& l) {
  return l.small ? AdvanceKernel<32, 64, true> : AdvanceKernel<kMaxLinks, kMaxContacts, false>;
}

int SharedBytes(const CudaLaunch& l) {
  return (kTeamPlanFloats + l.plan.memory * kLanes) * static_cast<int>(sizeof(float));
}

}  // namespace

cudaError_t PrepareKernels(CudaLaunch* launch, int device) {
  int processors = 0, shared = 0, reserved = 0;
  cudaError_t status = cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device);
  if (status == cudaSuccess) {
    status = cudaDeviceGetAttribute(&shared, cudaDevAttrMaxSharedMemoryPerMultiprocessor, device);
  }
  if (status == cudaSuccess) {
    status = cudaDeviceGetAttribute(&reserved, cudaDevAttrReservedSharedMemoryPerBlock, device);
  }
  if (status != cudaSuccess) return status;
  // The workspaces live on what the L1 cache keeps of them, so shared memory gets no more than the
  // blocks that run at once need: registers allow two.
  const int blocks = launch->args.stride / kRobotsPerBlock;
  const int at_once = std::clamp((blocks + processors - 1) / processors, 1, 2);
  launch->carveout = (100 * at_once * (SharedBytes(*launch) + reserved) + shared - 1) / shared;
  return cudaFuncSetAttribute(
      AdvanceOf(*launch), cudaFuncAttributeMaxDynamicSharedMemorySize, SharedBytes(*launch));
}

cudaError_t LaunchAdvance(const CudaLaunch& l, cudaStream_t stream) {
  cudaLaunchAttribute carveout = {};
  carveout.id = cudaLaunchAttributePreferredSharedMemoryCarveout;
  carveout.val.sharedMemCarveout = static_cast<unsigned>(l.carveout);
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(l.args.stride / kRobotsPerBlock);
  config.blockDim = dim3(kLanes, l.plan.size);
  config.dynamicSmemBytes = SharedBytes(l);
  config.stream = stream;
  config.attrs = &carveout;
  config.numAttrs = 1;
  return cudaLaunchKernelEx(&config, AdvanceOf(l), l.args, l.plan, l.model);
}

cudaError_t LaunchOutputs(const CudaLaunch& l, cudaStream_t stream) {
  const auto kernel =
      l.small ? OutputsKernel<32, 64, true> : OutputsKernel<kMaxLinks, kMaxContacts, false>;
  kernel<<<l.args.stride / kRobotsPerBlock, kLanes, 0, stream>>>(l.args, l.model);
  return cudaGetLastError();
}

}  // namespace silc
