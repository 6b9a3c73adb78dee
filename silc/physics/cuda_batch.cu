// SPDX-License-Identifier: Apache-2.0
#include <cuda_runtime.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string>
#include <vector>

#include "silc/base/check.h"
#include "silc/base/error.h"
#include "silc/physics/cuda_batch.h"
#include "silc/physics/robot_data.h"

namespace silc {
namespace {

// 32: a warp is a block, so a block ends when its slowest warp does
constexpr int kBlock = 32;

// The model is read by all threads at the same address, which is what constant memory is for.
// Kernel parameters live there, come with the launch and belong to it: a captured graph and two
// batches of different models need no more. They are limited to 32,764 bytes, so a model travels
// without the contacts it does not have; one that is still too long is read from global memory.
constexpr std::size_t kParameterModel = 28 * 1024;
struct alignas(16) ModelParameter {
  unsigned char bytes[kParameterModel];
};
static_assert(offsetof(StepModel<float>, contact) + sizeof StepModel<float>::contact ==
                  sizeof(StepModel<float>),
              "the contacts are the end of the model, so that it can be cut there");

void Check(cudaError_t status, const char* what) {
  if (status != cudaSuccess) {
    throw RunError(std::string("CUDA: ") + what + ": " + cudaGetErrorString(status));
  }
}

struct KernelArgs {
  FieldLayout layout;
  const StepModel<float>* model;  // for models that do not fit a parameter
  float* memory;
  int stride;  // robots, rounded up to whole warps
  int num_envs;
  int substeps;
  StepOptions options;
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
// mapping  one thread per robot, n substeps per launch; state is read from and written to global
// memory work     the workspace is local memory, interleaved by the hardware in the same way twin
// AdvanceGroup() on the CPU; gpu_test.cc holds the two together
template <int kLinks, int kContacts, bool kInParameter>
__global__ void __launch_bounds__(kBlock)
    AdvanceKernel(const __grid_constant__ KernelArgs a, const __grid_constant__ ModelParameter m) {
  const int env = blockIdx.x * kBlock + threadIdx.x;
  if (env >= a.num_envs) return;
  portable::Workspace<float, kLinks, kContacts> work;
  const portable::RobotData<float> robot = portable::BindRobot(a.layout, a.memory + env, a.stride);
  portable::AdvanceRobot<float>(
      ModelOf<kInParameter>(m, a.model), robot, a.options, a.substeps, nullptr, work);
}

template <int kLinks, int kContacts, bool kInParameter>
__global__ void __launch_bounds__(kBlock)
    OutputsKernel(const __grid_constant__ KernelArgs a, const __grid_constant__ ModelParameter m) {
  const int env = blockIdx.x * kBlock + threadIdx.x;
  if (env >= a.num_envs) return;
  portable::Workspace<float, kLinks, kContacts> work;
  portable::ComputeOutputs<float>(
      ModelOf<kInParameter>(m, a.model), a.layout, a.memory + env, a.stride, work);
}

// values (count, width) to the rows of the given robots
__global__ void ScatterKernel(
    float* field, int stride, const int* envs, const float* values, int count, int width) {
  const int k = blockIdx.x * blockDim.x + threadIdx.x;
  if (k >= count * width) return;
  field[static_cast<long>(k % width) * stride + envs[k / width]] = values[k];
}

template <class T>
class DeviceArray {
 public:
  explicit DeviceArray(std::size_t count) {
    Check(cudaMalloc(&data_, std::max<std::size_t>(count, 1) * sizeof(T)),
          "allocating device memory");
  }
  ~DeviceArray() { cudaFree(data_); }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;
  T* get() const { return data_; }

 private:
  T* data_ = nullptr;
};

}  // namespace

bool CudaAvailable() {
  int count = 0;
  return cudaGetDeviceCount(&count) == cudaSuccess && count > 0;
}

struct CudaBatch::Impl {
  Impl(const BatchModel& model, int num_envs, const CudaBatchOptions& opts)
      : options(opts),
        step(ToFloat(model.step)),
        layout(MakeLayout(model.step)),
        stride((num_envs + kBlock - 1) / kBlock * kBlock),
        memory(static_cast<std::size_t>(layout.size) * stride),
        device_model(1) {
    const std::size_t bytes =
        offsetof(StepModel<float>, contact) + step.num_contacts * sizeof(ContactConstants<float>);
    small = step.num_links <= 32 && step.num_contacts <= 64 && bytes <= kParameterModel;
    std::memcpy(parameter.bytes, &step, std::min(bytes, kParameterModel));
    Check(cudaMemcpy(device_model.get(), &step, sizeof step, cudaMemcpyHostToDevice),
          "copying the model");
    stream = static_cast<cudaStream_t>(opts.stream);
    if (!stream) Check(cudaStreamCreate(&stream), "creating a stream");
    const std::vector<double> row = DefaultRow(model);
    std::vector<float> values(static_cast<std::size_t>(layout.size) * stride);
    for (int i = 0; i < layout.size; ++i) {
      std::fill_n(values.begin() + static_cast<std::size_t>(i) * stride,
                  stride,
                  static_cast<float>(row[i]));
    }
    Check(cudaMemcpy(
              memory.get(), values.data(), values.size() * sizeof(float), cudaMemcpyHostToDevice),
          "copying the initial state");
    // a copy from pageable memory may still be under way, and a stream of the caller's need not
    // wait for it
    Check(cudaDeviceSynchronize(), "copying the initial state");
  }
  ~Impl() {
    // the caller's stream may still be working on the memory that goes away
    cudaStreamSynchronize(stream);
    if (!options.stream) cudaStreamDestroy(stream);
  }

  float* At(Field field) const {
    return memory.get() + static_cast<long>(layout.offset[static_cast<int>(field)]) * stride;
  }

  // Small and large workspaces: local memory is set aside for every thread the GPU can hold.
  template <class Kernel>
  void Launch(Kernel* small_kernel, Kernel* large_kernel, int num_envs, int substeps) {
    const KernelArgs args = {
        layout, device_model.get(), memory.get(), stride, num_envs, substeps, options.step};
    (small ? small_kernel : large_kernel)<<<stride / kBlock, kBlock, 0, stream>>>(args, parameter);
    Check(cudaGetLastError(), "launching a kernel");
  }

  const CudaBatchOptions options;
  const StepModel<float> step;
  const FieldLayout layout;
  const int stride;
  cudaStream_t stream = nullptr;
  bool small = false;
  DeviceArray<float> memory;
  DeviceArray<StepModel<float>> device_model;
  ModelParameter parameter = {};
};

CudaBatch::CudaBatch(BatchModel model, int num_envs, const CudaBatchOptions& options)
    : PhysicsBatch(std::move(model), num_envs) {
  if (!CudaAvailable()) throw RunError("no CUDA device found; run with --backend cpu");
  Check(cudaSetDevice(options.device), "choosing the device");
  impl_ = std::make_unique<Impl>(model_, num_envs, options);
}

CudaBatch::~CudaBatch() = default;

FieldView CudaBatch::view(Field field) {
  return {impl_->At(field), impl_->stride, 0, width(field), true};
}

void CudaBatch::Read(Field field, std::span<float> values) {
  const int w = width(field), stride = impl_->stride;
  SILC_CHECK(values.size() == static_cast<std::size_t>(num_envs()) * w);
  std::vector<float> columns(static_cast<std::size_t>(w) * stride);
  Synchronize();
  Check(
      cudaMemcpy(
          columns.data(), impl_->At(field), columns.size() * sizeof(float), cudaMemcpyDeviceToHost),
      "reading a field");
  for (int env = 0; env < num_envs(); ++env) {
    for (int i = 0; i < w; ++i) {
      values[static_cast<std::size_t>(env) * w + i] =
          columns[static_cast<std::size_t>(i) * stride + env];
    }
  }
}

void CudaBatch::Write(Field field, std::span<const int> envs, std::span<const float> values) {
  const int w = width(field), count = static_cast<int>(envs.size());
  SILC_CHECK(values.size() == static_cast<std::size_t>(count) * w);
  for (const int env : envs) SILC_CHECK(env >= 0 && env < num_envs());
  if (count * w == 0) return;
  const DeviceArray<int> device_envs(count);
  const DeviceArray<float> device_values(values.size());
  Check(
      cudaMemcpyAsync(
          device_envs.get(), envs.data(), envs.size_bytes(), cudaMemcpyHostToDevice, impl_->stream),
      "writing a field");
  Check(cudaMemcpyAsync(device_values.get(),
                        values.data(),
                        values.size_bytes(),
                        cudaMemcpyHostToDevice,
                        impl_->stream),
        "writing a field");
  constexpr int kThreads = 256;
  ScatterKernel<<<(count * w + kThreads - 1) / kThreads, kThreads, 0, impl_->stream>>>(
      impl_->At(field), impl_->stride, device_envs.get(), device_values.get(), count, w);
  Check(cudaGetLastError(), "writing a field");
  Synchronize();  // the caller's memory and the two arrays go away
}

void CudaBatch::SetBodies(int env,
                          const std::vector<double>& mass,
                          const std::vector<double>& com) {
  const std::vector<double> inertia = LinkInertias(model_, mass, com);
  const std::vector<float> values(inertia.begin(), inertia.end());
  Write(Field::kInertia, std::vector<int>{env}, values);
}

void CudaBatch::Advance(int substeps) {
  SILC_CHECK(substeps >= 1);
  impl_->Launch(AdvanceKernel<32, 64, true>,
                AdvanceKernel<kMaxLinks, kMaxContacts, false>,
                num_envs(),
                substeps);
}

void CudaBatch::UpdateKinematics() {
  impl_->Launch(
      OutputsKernel<32, 64, true>, OutputsKernel<kMaxLinks, kMaxContacts, false>, num_envs(), 0);
}

void* CudaBatch::stream() const { return impl_->stream; }

void CudaBatch::Synchronize() {
  Check(cudaStreamSynchronize(impl_->stream), "running the physics");
}

}  // namespace silc
