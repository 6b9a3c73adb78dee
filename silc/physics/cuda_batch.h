// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "silc/physics/batch.h"

namespace silc {

struct CudaBatchOptions {
  int device = 0;
  void* stream =
      nullptr;  ///< a cudaStream_t of the caller's that outlives the batch; null: its own
  StepOptions step = {.max_iterations = 30, .line_search = 10, .tolerance = 1e-8};
};

/// The batch stepper on a GPU: four warps per 32 robots (team.h), everything in device memory.
/// Advance() and UpdateKinematics() return when the work is queued on stream(); Read() waits for
/// it.
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
  using PhysicsBatch::UpdateKinematics;
  void UpdateKinematics(KinematicsLevel wanted) override;
  std::string name() const override { return "cuda"; }

  void* stream() const;  ///< a cudaStream_t
  void Synchronize();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Whether a GPU answers.
bool CudaAvailable();

}  // namespace silc
