// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "silc/physics/group_kernel.h"
#include "silc/physics/outputs.h"

/// Included by one source per instruction set, which sets SILC_KERNEL and the compiler's flags.
/// Nothing of the standard library is used here: its inline functions would be compiled with those
/// flags too.
namespace silc::SILC_KERNEL {

template <int N>
void AdvanceGroup(const StepModel<float>& model,
                  const PairModel<float>& pairs,
                  const FieldLayout& layout,
                  float* group,
                  const StepOptions& options,
                  int substeps,
                  StepCounts* counts,
                  void* workspace) {
  using Real = Lanes<N>;
  const RobotData<Real> robot = BindRobot(layout, reinterpret_cast<Real*>(group), 1);
  // two copies of the step: one knows of self-collision, the other need not pay for it
  if (pairs.num_pairs > 0) {
    auto& work = *static_cast<PairedWorkspace<Real>*>(workspace);
    work.pair.model = &pairs;
    AdvanceRobot<Real>(model, robot, options, substeps, counts, work);
  } else {
    auto& work = *static_cast<Workspace<Real>*>(workspace);
    AdvanceRobot<Real>(model, robot, options, substeps, counts, work);
  }
}

template <int N>
void GroupOutputs(const StepModel<float>& model,
                  const FieldLayout& layout,
                  float* group,
                  KinematicsLevel wanted,
                  void* workspace) {
  using Real = Lanes<N>;
  using Work = OutputWorkspace<Real>;
  static_assert(sizeof(Work) <= sizeof(PairedWorkspace<Real>));
  ComputeOutputs<Real>(
      model, layout, reinterpret_cast<Real*>(group), 1, wanted, *static_cast<Work*>(workspace));
}

template <int N>
float MultiplyAdd(long rounds) {
  // twelve independent chains cover the latency of two pipes
  Lanes<N> x[12];
  for (int i = 0; i < 12; ++i) x[i] = Lanes<N>(0.1f * static_cast<float>(i));
  const Lanes<N> a(0.999f), b(0.001f);
  for (long k = 0; k < rounds; ++k) {
    _Pragma("GCC unroll 12") for (int i = 0; i < 12; ++i) x[i] = x[i] * a + b;
  }
  Lanes<N> sum(0.0f);
  for (int i = 0; i < 12; ++i) sum += x[i];
  return sum.lane(0);
}

template <int N>
GroupKernel MakeGroupKernel(const char* name) {
  return {
      name, N, sizeof(PairedWorkspace<Lanes<N>>), AdvanceGroup<N>, GroupOutputs<N>, MultiplyAdd<N>};
}

}  // namespace silc::SILC_KERNEL
