// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "silc/learn/tensor.h"

/// Batches of matrices as small as a robot has joints. On the CPU they are LibTorch's; on a GPU, up
/// to 32 × 32 in float, kernels of our own that neither wait for the device nor allocate, so that
/// an update can be captured in a graph (LibTorch's batched eigenvalue routine does both).
namespace silc {

struct SymmetricEigen {
  Tensor values;   // (B, n) largest first
  Tensor vectors;  // (B, n, n) one per row
};
/// @param A (B, n, n), symmetric
SymmetricEigen EigenOf(const Tensor& A);

struct Singular {
  Tensor sigma;  // (B, k) largest first
  Tensor u, v;   // (B, k, rows), (B, k, cols): one vector per row
};
/// @param A (B, rows, cols), not tall. Vectors of a σ far under the largest are inaccurate.
Singular SingularOf(const Tensor& A);

/// A⁻¹ with partial pivoting; entries are not finite where A is singular. @param A (B, n, n)
Tensor InverseOf(const Tensor& A);

}  // namespace silc
