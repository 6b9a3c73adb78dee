// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "silc/physics/batch.h"

namespace silc {

struct CudaBatchOptions {
  int device = 0;
  std::string kernel;  ///< a name of CudaKernelNames(); empty: the first
  void* stream =
      nullptr;  ///< a cudaStream_t of the caller's that outlives the batch; null: its own
  StepOptions step = {.max_iterations = 30, .line_search = 10, .tolerance = 1e-8};
};

/// The batch stepper on a GPU: one thread per robot, everything in device memory. Advance() and
/// UpdateKinematics() return when the work is queued on stream(); Read() waits for it.
///
/// Advance() and UpdateKinematics() do nothing but launch kernels that carry the model with them:
/// they can be captured in a CUDA graph, and batches of several models can be in flight at once.
class CudaBatch final : public PhysicsBatch {
 public:
  /// Throws RunError when there is no usable GPU.
  CudaBatch(BatchModel model, int num_envs, const CudaBatchOptions& options = {});
  ~CudaBatch() override;

  FieldView view(Field field) override;
  void Read(Field field, std::span<float> values) override;
  void Write(Field field, std::span<const int> envs, std::span<const float> values) override;
  void SetBodies(int env, const std::vector<double>& mass, const std::vector<double>& com) override;
  void Advance(int substeps) override;
  void UpdateKinematics() override;
  std::string name() const override { return "cuda"; }

  void* stream() const;  ///< a cudaStream_t
  void Synchronize();
  /// Sums over blocks since construction, for kernels that keep them: see gpu_check.
  std::vector<unsigned long long> Profile();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

std::vector<std::string> CudaKernelNames();

/// Whether a GPU answers.
bool CudaAvailable();

}  // namespace silc
