// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "silc/physics/cuda_kernels.h"
#include "silc/physics/robot_data.h"

/// The step on a GPU. Included by one source for each number of robots that stand side by side in a
/// warp, which sets SILC_KERNEL and SILC_CUDA_VOTES, that number.
namespace silc {
namespace {

namespace kernel = SILC_KERNEL;

extern __shared__ float4 block_memory[];

/// Where the members of a team meet. With 32 robots side by side each member has a warp of its own;
/// with 16 two members share a warp, with 8 four.
struct Place {
  static constexpr int kLanes = SILC_CUDA_VOTES;
  static constexpr int kMembersPerWarp = 32 / kLanes;
  __device__ static int Member() {
    return static_cast<int>(threadIdx.y * kMembersPerWarp + threadIdx.x / kLanes);
  }
  __device__ static int Lane() { return static_cast<int>(threadIdx.x) % kLanes; }
  __device__ static float* Memory() { return reinterpret_cast<float*>(block_memory); }
  __device__ static void Meet() {
    if constexpr (kMembersPerWarp == 1) {
      __syncthreads();
    } else if constexpr (kMembersPerWarp >= kCudaTeam) {
      __syncwarp();
    } else {
      // __syncthreads() wants whole warps; members that share one come each in its own time
      asm volatile("barrier.sync 0;" ::: "memory");
    }
  }
  __device__ static bool MeetAny(bool flag) {
    if constexpr (kMembersPerWarp == 1) {
      return __syncthreads_or(flag);
    } else if constexpr (kMembersPerWarp >= kCudaTeam) {
      const bool any = __any_sync(0xffffffffu, flag);
      __syncwarp();
      return any;
    } else {
      int any;
      asm volatile(
          "{ .reg .pred p, q; setp.ne.s32 p, %1, 0; barrier.red.or.pred q, 0, p; "
          "selp.s32 %0, 1, 0, q; }"
          : "=r"(any)
          : "r"(static_cast<int>(flag))
          : "memory");
      return any != 0;
    }
  }
};

// layout   value i of robot e at memory[i · stride + e]: neighbouring threads read neighbours
// mapping  one block per kLanes robots, kLanes threads per member of the team, n substeps per
//          launch; state is read from and written to global memory; robots that only fill up the
//          last block sleep
// work     the workspace of a thread's own links is local memory, interleaved by the hardware in
//          the same way
// twin     AdvanceGroup() on the CPU; silc/physics_tools/gpu_check.cc holds the two together
template <int kLinks, int kContacts, bool kInParameter>
__global__ void __launch_bounds__(Place::kLanes* kCudaTeam, 2 * Place::kMembersPerWarp)
    AdvanceKernel(const __grid_constant__ KernelArgs a,
                  const __grid_constant__ TeamPlan plan,
                  const __grid_constant__ ModelParameter m) {
  static_assert(sizeof(TeamPlan) % 4 == 0);
  for (int i = threadIdx.y * 32 + threadIdx.x; i < static_cast<int>(sizeof(TeamPlan)) / 4;
       i += blockDim.x * blockDim.y) {
    reinterpret_cast<int*>(block_memory)[i] = reinterpret_cast<const int*>(&plan)[i];
  }
  __syncthreads();
  kernel::Workspace<float, kLinks, kContacts, kernel::Team<Place>> work;
  const kernel::RobotData<float> robot =
      kernel::BindRobot(a.layout, a.memory + blockIdx.x * Place::kLanes + Place::Lane(), a.stride);
  kernel::AdvanceRobot<float>(
      ModelOf<kInParameter>(m, a.model), robot, a.options, a.substeps, nullptr, work);
}

AdvancePointer FindAdvance(WorkSize size) {
  switch (size) {
    case WorkSize::kSmall:
      return AdvanceKernel<kSmallLinks, kSmallContacts, true>;
    case WorkSize::kMiddle:
      return AdvanceKernel<kMiddleLinks, kMiddleContacts, true>;
    case WorkSize::kLarge:
      break;
  }
  return AdvanceKernel<kMaxLinks, kMaxContacts, false>;
}

}  // namespace
}  // namespace silc
