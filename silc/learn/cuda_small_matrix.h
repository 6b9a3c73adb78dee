// SPDX-License-Identifier: Apache-2.0
#pragma once

struct CUstream_st;

namespace silc {

inline constexpr int kMaxSmallMatrix = 32;

/// Eigenvalues (largest first) and eigenvectors (one per row) of `count` symmetric n × n matrices
/// by cyclic Jacobi rotations. All pointers are device memory, matrices one after the other,
/// row-major. Enqueues and returns the launch's cudaError_t.
int LaunchSymmetricEigen(
    const float* A, int count, int n, float* values, float* vectors, CUstream_st* stream);

/// Singular values σ_k (largest first) of `count` n × n matrices A = U Σ Vᵀ and, one per row, σ_k
/// v_k: one-sided Jacobi rotations of the rows of A.
int LaunchSingular(
    const float* A, int count, int n, float* sigma, float* rows, CUstream_st* stream);

/// A⁻¹ by Gauss–Jordan elimination with partial pivoting.
int LaunchInverse(const float* A, int count, int n, float* inverse, CUstream_st* stream);

}  // namespace silc
