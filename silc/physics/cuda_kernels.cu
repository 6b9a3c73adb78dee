// SPDX-License-Identifier: Apache-2.0
#define SILC_KERNEL cuda_team
#define SILC_CUDA_VOTES

#include "silc/physics/cuda_kernels.h"

#include <algorithm>

#include "silc/physics/outputs.h"

namespace silc {
namespace {

using cuda_team::OutputWorkspace;
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
// work     the workspace of a thread's own links is local memory, interleaved by the hardware in
// the
//          same way
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

// A robot's workspace and its state, in shared memory. Neighbours start an odd number of words
// apart: threads that read the same word of several robots read different banks.
template <int kLinks>
int OutputWords(const StepModel<float>& model) {
  const int words = static_cast<int>(sizeof(OutputWorkspace<float, kLinks>) / sizeof(float));
  return (words + model.nq + model.nv) | 1;
}

// layout   as above; eight neighbouring robots are a sector of 32 bytes
// mapping  one block per 8 robots, 32 threads each: thread t is member t / 8 of robot t % 8's group
// work     the phases of outputs.h with everything between them in shared memory
// twin     ComputeOutputs() on the CPU; silc/physics_tools/gpu_check.cc holds the two together
template <int kLinks, bool kInParameter>
__global__ void __launch_bounds__(kOutputMembers* kOutputRobots, 2)
    OutputsKernel(const __grid_constant__ KernelArgs a,
                  const __grid_constant__ TeamPlan plan,
                  const __grid_constant__ cuda_team::Chains chains,
                  KinematicsLevel wanted,
                  int words,
                  const __grid_constant__ ModelParameter m) {
  const StepModel<float>& model = ModelOf<kInParameter>(m, a.model);
  const int lane = static_cast<int>(threadIdx.x) % kOutputRobots;
  const int member = static_cast<int>(threadIdx.x) / kOutputRobots;
  float* own = reinterpret_cast<float*>(block_memory) + lane * words;
  auto& work = *reinterpret_cast<OutputWorkspace<float, kLinks>*>(own);
  float* qpos = own + sizeof(work) / sizeof(float);
  float* qvel = qpos + model.nq;
  float* memory = a.memory + blockIdx.x * kOutputRobots + lane;
  RobotData<float> robot = cuda_team::BindRobot(a.layout, memory, a.stride);
  const auto column = [&](Field f) {
    return cuda_team::FieldColumn(a.layout, memory, a.stride, f);
  };
  for (int i = member; i < model.nq; i += kOutputMembers) qpos[i] = robot.qpos[i];
  for (int i = member; i < model.nv; i += kOutputMembers) qvel[i] = robot.qvel[i];
  robot.qpos = {qpos, 1};
  robot.qvel = {qvel, 1};
  __syncthreads();

  // the chains of the plan by four members, each of another warp
  if (member == 0) {
    cuda_team::PlaceLinks<float>(
        model, robot, [&](int i) { return plan.link[i]; }, plan.num_trunk, work);
  }
  __syncthreads();
  constexpr int kApart = kLanes / kOutputRobots;
  if (member % kApart == 0 && member / kApart < plan.size) {
    const int chain = member / kApart;
    const int first = plan.begin[chain] + (chain == 0 ? plan.num_trunk : 0);
    cuda_team::PlaceLinks<float>(
        model,
        robot,
        [&](int i) { return plan.link[first + i]; },
        plan.begin[chain + 1] - first,
        work);
  }
  __syncthreads();
  cuda_team::LinkMoments<float>(model, robot, {member, kOutputMembers}, work);
  cuda_team::FramePoses<float>(model,
                               robot,
                               column(Field::kPose),
                               column(Field::kVelocity),
                               {kOutputMembers - 1 - member, kOutputMembers},
                               work);
  __syncthreads();
  const cuda_team::JacobianColumns<float> out = {column(Field::kComJacobian),
                                                 column(Field::kFrameJacobian),
                                                 column(Field::kStanceJacobian),
                                                 wanted != KinematicsLevel::kFrames};
  // the first warp sums up masses while the others write the frames' columns
  if (member == 0) {
    cuda_team::CentreOfMass<float>(model, robot, column(Field::kCom), work);
  } else if (member >= kApart) {
    const cuda_team::Share share = {member - kApart, kOutputMembers - kApart};
    cuda_team::Jacobians<float>(model, chains, 1, 1 + model.num_frames, out, share, work);
  }
  __syncthreads();
  cuda_team::Jacobians<float>(model, chains, 0, 1, out, {member, kOutputMembers}, work);
}

using Advance = void (*)(KernelArgs, TeamPlan, ModelParameter);
Advance AdvanceOf(const CudaLaunch& l) {
  return l.small ? AdvanceKernel<kSmallLinks, kSmallContacts, true>
                 : AdvanceKernel<kMaxLinks, kMaxContacts, false>;
}
using Outputs =
    void (*)(KernelArgs, TeamPlan, cuda_team::Chains, KinematicsLevel, int, ModelParameter);
Outputs OutputsOf(const CudaLaunch& l) {
  return l.small ? OutputsKernel<kSmallOutputLinks, true> : OutputsKernel<kMaxLinks, false>;
}

// all of a model but its contacts is in every launch
const StepModel<float>& HostModel(const CudaLaunch& l) {
  return *reinterpret_cast<const StepModel<float>*>(l.model.bytes);
}

int OutputWords(const CudaLaunch& l) {
  return l.small ? OutputWords<kSmallOutputLinks>(HostModel(l))
                 : OutputWords<kMaxLinks>(HostModel(l));
}
int OutputBytes(const CudaLaunch& l) {
  return OutputWords(l) * kOutputRobots * static_cast<int>(sizeof(float));
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
  status = cudaFuncSetAttribute(
      AdvanceOf(*launch), cudaFuncAttributeMaxDynamicSharedMemorySize, SharedBytes(*launch));
  if (status != cudaSuccess) return status;
  return cudaFuncSetAttribute(
      OutputsOf(*launch), cudaFuncAttributeMaxDynamicSharedMemorySize, OutputBytes(*launch));
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

cudaError_t LaunchOutputs(const CudaLaunch& l, KinematicsLevel wanted, cudaStream_t stream) {
  OutputsOf(
      l)<<<l.args.stride / kOutputRobots, kOutputMembers * kOutputRobots, OutputBytes(l), stream>>>(
      l.args, l.plan, cuda_team::ChainsOf(HostModel(l)), wanted, OutputWords(l), l.model);
  return cudaGetLastError();
}

}  // namespace silc
