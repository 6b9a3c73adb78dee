// SPDX-License-Identifier: Apache-2.0
#define SILC_KERNEL cuda_outputs

#include "silc/physics/cuda_kernels.h"

#include <algorithm>

#include "silc/physics/outputs.h"

namespace silc {
namespace {

using cuda_outputs::OutputWorkspace;
using cuda_outputs::RobotData;

extern __shared__ float4 block_memory[];

// A robot's workspace and its state, in shared memory. Neighbours start an odd number of words
// apart: threads that read the same word of several robots read different banks.
template <int kLinks>
int OutputWords(const StepModel<float>& model) {
  const int words = static_cast<int>(sizeof(OutputWorkspace<float, kLinks>) / sizeof(float));
  return (words + model.nq + model.nv) | 1;
}

// layout   value i of robot e at memory[i · stride + e]; eight neighbours are a sector of 32 bytes
// mapping  one block per 8 robots, 32 threads each: thread t is member t / 8 of robot t % 8's crew
// work     the phases of outputs.h with everything between them in shared memory
// twin     ComputeOutputs() on the CPU; silc/physics_tools/gpu_check.cc holds the two together
template <int kLinks, bool kInParameter>
__global__ void __launch_bounds__(kOutputMembers* kOutputRobots, 2)
    OutputsKernel(const __grid_constant__ KernelArgs a,
                  const __grid_constant__ TeamPlan plan,
                  const __grid_constant__ cuda_outputs::Chains chains,
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
  RobotData<float> robot = cuda_outputs::BindRobot(a.layout, memory, a.stride);
  const auto column = [&](Field f) {
    return cuda_outputs::FieldColumn(a.layout, memory, a.stride, f);
  };
  for (int i = member; i < model.nq; i += kOutputMembers) qpos[i] = robot.qpos[i];
  for (int i = member; i < model.nv; i += kOutputMembers) qvel[i] = robot.qvel[i];
  robot.qpos = {qpos, 1};
  robot.qvel = {qvel, 1};
  __syncthreads();

  // the chains of the plan by four members, each of another warp
  if (member == 0) {
    cuda_outputs::PlaceLinks<float>(
        model, robot, [&](int i) { return plan.link[i]; }, plan.num_trunk, work);
  }
  __syncthreads();
  constexpr int kApart = 32 / kOutputRobots;
  if (member % kApart == 0 && member / kApart < plan.size) {
    const int chain = member / kApart;
    const int first = plan.begin[chain] + (chain == 0 ? plan.num_trunk : 0);
    cuda_outputs::PlaceLinks<float>(
        model,
        robot,
        [&](int i) { return plan.link[first + i]; },
        plan.begin[chain + 1] - first,
        work);
  }
  __syncthreads();
  cuda_outputs::LinkMoments<float>(model, robot, {member, kOutputMembers}, work);
  cuda_outputs::FramePoses<float>(model,
                                  robot,
                                  column(Field::kPose),
                                  column(Field::kVelocity),
                                  {kOutputMembers - 1 - member, kOutputMembers},
                                  work);
  __syncthreads();
  const cuda_outputs::JacobianColumns<float> out = {column(Field::kComJacobian),
                                                    column(Field::kFrameJacobian),
                                                    column(Field::kStanceJacobian),
                                                    wanted != KinematicsLevel::kFrames};
  // the first warp sums up masses while the others write the frames' columns
  if (member == 0) {
    cuda_outputs::CentreOfMass<float>(model, robot, column(Field::kCom), work);
  } else if (member >= kApart) {
    const cuda_outputs::Share share = {member - kApart, kOutputMembers - kApart};
    cuda_outputs::Jacobians<float>(model, chains, 1, 1 + model.num_frames, out, share, work);
  }
  __syncthreads();
  cuda_outputs::Jacobians<float>(model, chains, 0, 1, out, {member, kOutputMembers}, work);
  if (wanted != KinematicsLevel::kAll || model.num_feet < 2) return;
  __syncthreads();
  if (member == 0) {
    cuda_outputs::ClosingRows<float>(model, column(Field::kClosingJacobian), work);
  }
  __syncthreads();
  cuda_outputs::ProjectRows<float>(
      model, out.stance, column(Field::kDoubleStanceJacobian), member, kOutputMembers, work);
}

AdvancePointer AdvanceOf(const CudaLaunch& l) {
  switch (l.robots_per_warp) {
    case 8:
      return Advance8(l.size);
    case 16:
      return Advance16(l.size);
    default:
      return Advance32(l.size);
  }
}
using Outputs =
    void (*)(KernelArgs, TeamPlan, cuda_outputs::Chains, KinematicsLevel, int, ModelParameter);
Outputs OutputsOf(const CudaLaunch& l) {
  return l.size == WorkSize::kLarge ? OutputsKernel<kMaxLinks, false>
                                    : OutputsKernel<kMiddleLinks, true>;
}

// all of a model but its contacts is in every launch
const StepModel<float>& HostModel(const CudaLaunch& l) {
  return *reinterpret_cast<const StepModel<float>*>(l.model.bytes);
}

int OutputWords(const CudaLaunch& l) {
  return l.size == WorkSize::kLarge ? OutputWords<kMaxLinks>(HostModel(l))
                                    : OutputWords<kMiddleLinks>(HostModel(l));
}
int OutputBytes(const CudaLaunch& l) {
  return OutputWords(l) * kOutputRobots * static_cast<int>(sizeof(float));
}

int SharedBytes(const CudaLaunch& l) {
  return (kTeamPlanFloats + l.plan.memory * l.robots_per_warp) * static_cast<int>(sizeof(float));
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
  // blocks that run at once need: registers allow eight warps.
  const int warps = launch->plan.size * launch->robots_per_warp / 32;  // of a block
  const int blocks = launch->args.stride / launch->robots_per_warp;
  const int at_once = std::clamp((blocks + processors - 1) / processors, 1, 8 / warps);
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
  config.gridDim = dim3(l.args.stride / l.robots_per_warp);
  config.blockDim = dim3(32, l.plan.size * l.robots_per_warp / 32);
  config.dynamicSmemBytes = SharedBytes(l);
  config.stream = stream;
  config.attrs = &carveout;
  config.numAttrs = 1;
  return cudaLaunchKernelEx(&config, AdvanceOf(l), l.args, l.plan, l.model);
}

cudaError_t LaunchOutputs(const CudaLaunch& l, KinematicsLevel wanted, cudaStream_t stream) {
  OutputsOf(
      l)<<<l.args.stride / kOutputRobots, kOutputMembers * kOutputRobots, OutputBytes(l), stream>>>(
      l.args, l.plan, cuda_outputs::ChainsOf(HostModel(l)), wanted, OutputWords(l), l.model);
  return cudaGetLastError();
}

}  // namespace silc
