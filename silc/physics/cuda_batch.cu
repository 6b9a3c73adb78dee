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
#include "silc/physics/cuda_kernels.h"
#include "silc/physics/device_array.h"

namespace silc {
namespace {

// values (count, width) to the rows of the given robots
__global__ void ScatterKernel(
    float* field, int stride, const int* envs, const float* values, int count, int width) {
  const int k = blockIdx.x * blockDim.x + threadIdx.x;
  if (k >= count * width) return;
  field[static_cast<long>(k % width) * stride + envs[k / width]] = values[k];
}

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
        stride((num_envs + kRobotsPerBlock - 1) / kRobotsPerBlock * kRobotsPerBlock),
        memory(static_cast<std::size_t>(layout.size) * stride),
        device_model(1),
        launch(std::make_unique<CudaLaunch>()) {
    launch->args = {layout, device_model.get(), memory.get(), stride, 0, options.step};
    launch->plan = PlanTeam(step, kCudaTeam);
    const std::size_t bytes =
        offsetof(StepModel<float>, contact) + step.num_contacts * sizeof(ContactConstants<float>);
    const TeamLoad load = LoadOf(step, launch->plan);
    launch->small = step.num_links <= kSmallOutputLinks && load.links <= kSmallLinks &&
                    load.contacts <= kSmallContacts && bytes <= kParameterModel;
    std::memcpy(launch->model.bytes, &step, std::min(bytes, kParameterModel));
    CudaCheck(cudaMemcpy(device_model.get(), &step, sizeof step, cudaMemcpyHostToDevice),
              "copying the model");
    stream = static_cast<cudaStream_t>(opts.stream);
    if (!stream) CudaCheck(cudaStreamCreate(&stream), "creating a stream");
    CudaCheck(PrepareKernels(launch.get(), opts.device), "preparing the kernels");
    const std::vector<double> row = DefaultRow(model);
    std::vector<float> values(static_cast<std::size_t>(layout.size) * stride);
    for (int i = 0; i < layout.size; ++i) {
      std::fill_n(values.begin() + static_cast<std::size_t>(i) * stride,
                  stride,
                  static_cast<float>(row[i]));
    }
    // robots that only fill up the last block sleep
    const long fault = layout.offset[static_cast<int>(Field::kFault)] * static_cast<long>(stride);
    std::fill(values.begin() + fault + num_envs,
              values.begin() + fault + stride,
              static_cast<float>(kFaultAbsurd));
    CudaCheck(
        cudaMemcpy(
            memory.get(), values.data(), values.size() * sizeof(float), cudaMemcpyHostToDevice),
        "copying the initial state");
    // a copy from pageable memory may still be under way, and a stream of the caller's need not
    // wait for it
    CudaCheck(cudaDeviceSynchronize(), "copying the initial state");
  }
  ~Impl() {
    // the caller's stream may still be working on the memory that goes away
    cudaStreamSynchronize(stream);
    if (!options.stream) cudaStreamDestroy(stream);
  }

  float* At(Field field) const {
    return memory.get() + static_cast<long>(layout.offset[static_cast<int>(field)]) * stride;
  }

  const CudaBatchOptions options;
  const StepModel<float> step;
  const FieldLayout layout;
  const int stride;
  cudaStream_t stream = nullptr;
  DeviceArray<float> memory;
  DeviceArray<StepModel<float>> device_model;
  const std::unique_ptr<CudaLaunch> launch;
};

CudaBatch::CudaBatch(BatchModel model, int num_envs, const CudaBatchOptions& options)
    : PhysicsBatch(std::move(model), num_envs) {
  if (model_.self_collision) {
    throw ConfigError("the CUDA back end has no self-collision; leave it off, or use 'batch'");
  }
  if (!CudaAvailable()) throw RunError("no CUDA device found; run with --backend cpu");
  CudaCheck(cudaSetDevice(options.device), "choosing the device");
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
  CudaCheck(
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
  CudaCheck(
      cudaMemcpyAsync(
          device_envs.get(), envs.data(), envs.size_bytes(), cudaMemcpyHostToDevice, impl_->stream),
      "writing a field");
  CudaCheck(cudaMemcpyAsync(device_values.get(),
                            values.data(),
                            values.size_bytes(),
                            cudaMemcpyHostToDevice,
                            impl_->stream),
            "writing a field");
  constexpr int kThreads = 256;
  ScatterKernel<<<(count * w + kThreads - 1) / kThreads, kThreads, 0, impl_->stream>>>(
      impl_->At(field), impl_->stride, device_envs.get(), device_values.get(), count, w);
  CudaCheck(cudaGetLastError(), "writing a field");
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
  impl_->launch->args.substeps = substeps;
  CudaCheck(LaunchAdvance(*impl_->launch, impl_->stream), "launching a kernel");
}

void CudaBatch::UpdateKinematics(KinematicsLevel wanted) {
  CudaCheck(LaunchOutputs(*impl_->launch, wanted, impl_->stream), "launching a kernel");
}

void* CudaBatch::stream() const { return impl_->stream; }

void CudaBatch::Synchronize() {
  CudaCheck(cudaStreamSynchronize(impl_->stream), "running the physics");
}

}  // namespace silc
