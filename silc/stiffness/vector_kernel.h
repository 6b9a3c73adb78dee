// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

namespace silc {

/// Two products of a double matrix with a vector in the fastest form this processor has, chosen
/// once at run time. Eigen's are compiled for the oldest processor the binary is to run on, at a
/// quarter of the speed.
///
/// A is column-major; its rows, and the vectors as long, are padded to whole kVectorLanes, and what
/// is in the padding takes part.
struct VectorKernel {
  const char* name;  // "avx512f", "avx2", "portable"
  /// y += A x
  void (*add_times)(const double* A, int rows, int cols, const double* x, double* y);
  /// x = Aᵀ y
  void (*transposed_times)(const double* A, int rows, int cols, const double* y, double* x);
};

/// Entries side by side.
inline constexpr int kVectorLanes = 8;

/// The best kernel for the processor this runs on.
const VectorKernel& BestVectorKernel();
/// All kernels this processor can run, best first; for tests.
std::vector<VectorKernel> AvailableVectorKernels();

}  // namespace silc
