// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

#include "silc/physics/fields.h"
#include "silc/physics/pair_model.h"

namespace silc {

/// The step compiled for one instruction set. A group is `lanes` robots side by side: field f,
/// value i of lane l lies at group[(layout.offset[f] + i) · lanes + l]. Groups are aligned to 64
/// bytes.
struct GroupKernel {
  const char* name;
  int lanes;
  std::size_t workspace_bytes;  // scratch per thread, aligned to 64 bytes
  void (*advance)(const StepModel<float>& model,
                  const PairModel<float>& pairs,
                  const FieldLayout& layout,
                  float* group,
                  const StepOptions& options,
                  int substeps,
                  StepCounts* counts,
                  void* workspace);
  void (*outputs)(const StepModel<float>& model,
                  const FieldLayout& layout,
                  float* group,
                  KinematicsLevel wanted,
                  void* workspace);
  /// 24 · lanes · rounds floating-point operations that touch no memory: what the core can do at
  /// most.
  float (*multiply_add)(long rounds);
};

/// The kernels this processor can run, widest first; never empty.
std::vector<GroupKernel> AvailableGroupKernels();

}  // namespace silc
