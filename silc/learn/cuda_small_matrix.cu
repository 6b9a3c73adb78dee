// SPDX-License-Identifier: Apache-2.0
#include <cuda_runtime.h>

#include "silc/learn/cuda_small_matrix.h"

namespace silc {
namespace {

constexpr int kSize = kMaxSmallMatrix;
constexpr int kPitch = kSize + 1;  // columns of a tile fall into different banks
constexpr int kThreads = 128;
constexpr int kMaxSweeps = 15;

// mapping  one block per matrix, which stays in shared memory
// work     a sweep turns each of the n(n−1)/2 pairs once, n/2 of them at a time (round robin: one
//          player stays, the others move on by one). For n = 29: 29 rounds of 15 rotations on rows
//          of A and V and on columns of A, 15·30·3·4 flop a round, 6 to 8 sweeps: 1.1 Mflop a
//          matrix.
__global__ void __launch_bounds__(kThreads)
    EigenKernel(const float* matrices, int n, float* values, float* vectors) {
  __shared__ float A[kSize][kPitch], V[kSize][kPitch];
  __shared__ float cosine[kSize / 2], sine[kSize / 2];
  __shared__ int first[kSize / 2], second[kSize / 2];
  const int k = static_cast<int>(threadIdx.x);
  const int m = n + n % 2;  // an odd size gets a row of zeros: nobody turns it
  const float* from = matrices + static_cast<long>(blockIdx.x) * n * n;
  for (int i = k; i < m * m; i += kThreads) {
    const int r = i / m, c = i % m;
    A[r][c] = r < n && c < n ? from[r * n + c] : 0.0f;
    V[r][c] = r == c ? 1.0f : 0.0f;
  }
  __syncthreads();
  float trace = 0;  // of absolute values: what rounding is measured against
  for (int i = 0; i < n; ++i) trace += fabsf(A[i][i]);
  const float negligible = 1e-8f * trace / static_cast<float>(n);
  for (int sweep = 0; sweep < kMaxSweeps; ++sweep) {
    int turned = 0;
    for (int round = 0; round < m - 1; ++round) {
      if (k < m / 2) {
        const auto player = [&](int seat) {
          return seat == 0 ? 0 : 1 + (seat - 1 + round) % (m - 1);
        };
        const int p = player(k), q = player(m - 1 - k);
        const float a = A[p][q];
        float c = 1, s = 0;
        if (fabsf(a) > negligible) {
          const float tau = (A[q][q] - A[p][p]) / (2 * a);
          const float t = copysignf(1.0f, tau) / (fabsf(tau) + sqrtf(1 + tau * tau));
          c = rsqrtf(1 + t * t);
          s = t * c;
          turned = 1;
        }
        cosine[k] = c;
        sine[k] = s;
        first[k] = p;
        second[k] = q;
      }
      __syncthreads();
      for (int i = k; i < m / 2 * m; i += kThreads) {
        const int pair = i / m, j = i % m, p = first[pair], q = second[pair];
        const float c = cosine[pair], s = sine[pair];
        const float a = A[p][j], b = A[q][j], v = V[p][j], w = V[q][j];
        A[p][j] = c * a - s * b;
        A[q][j] = s * a + c * b;
        V[p][j] = c * v - s * w;
        V[q][j] = s * v + c * w;
      }
      __syncthreads();
      for (int i = k; i < m / 2 * m; i += kThreads) {
        const int pair = i / m, j = i % m, p = first[pair], q = second[pair];
        const float c = cosine[pair], s = sine[pair];
        const float a = A[j][p], b = A[j][q];
        A[j][p] = c * a - s * b;
        A[j][q] = s * a + c * b;
      }
      __syncthreads();
    }
    if (!__syncthreads_or(turned)) break;
  }
  for (int i = k; i < n * n; i += kThreads) {
    const int row = i / n, j = i % n;
    const float own = A[row][row];
    int rank = 0;
    for (int other = 0; other < n; ++other) {
      const float value = A[other][other];
      rank += value > own || (value == own && other < row);
    }
    vectors[(static_cast<long>(blockIdx.x) * n + rank) * n + j] = V[row][j];
    if (j == 0) values[static_cast<long>(blockIdx.x) * n + rank] = own;
  }
}

// mapping  one warp per matrix, [A | I] in shared memory, lane j has column j and column n + j
// work     n steps of n × 2n multiply-adds: 49 k for n = 29
__global__ void __launch_bounds__(32) InverseKernel(const float* matrices, int n, float* inverse) {
  __shared__ float A[kSize][kPitch], B[kSize][kPitch];
  const int j = static_cast<int>(threadIdx.x);
  const long start = static_cast<long>(blockIdx.x) * n * n;
  for (int r = 0; r < n; ++r) {
    if (j < n) {
      A[r][j] = matrices[start + r * n + j];
      B[r][j] = r == j ? 1.0f : 0.0f;
    }
  }
  __syncwarp();
  for (int step = 0; step < n; ++step) {
    // the row below with the largest entry in this column
    float size = j >= step && j < n ? fabsf(A[j][step]) : -1.0f;
    int row = j;
    for (int offset = 16; offset > 0; offset /= 2) {
      const float other_size = __shfl_xor_sync(0xffffffffu, size, offset);
      const int other_row = __shfl_xor_sync(0xffffffffu, row, offset);
      if (other_size > size || (other_size == size && other_row < row)) {
        size = other_size;
        row = other_row;
      }
    }
    __syncwarp();
    if (row != step && j < n) {
      const float a = A[step][j], b = B[step][j];
      A[step][j] = A[row][j];
      B[step][j] = B[row][j];
      A[row][j] = a;
      B[row][j] = b;
    }
    __syncwarp();
    const float scale = 1.0f / A[step][step];
    __syncwarp();
    if (j < n) {
      A[step][j] *= scale;
      B[step][j] *= scale;
    }
    __syncwarp();
    for (int r = 0; r < n; ++r) {
      if (r == step) continue;
      const float factor = A[r][step];
      __syncwarp();
      if (j < n) {
        A[r][j] -= factor * A[step][j];
        B[r][j] -= factor * B[step][j];
      }
    }
    __syncwarp();
  }
  for (int r = 0; r < n; ++r) {
    if (j < n) inverse[start + r * n + j] = B[r][j];
  }
}

}  // namespace

int LaunchSymmetricEigen(
    const float* A, int count, int n, float* values, float* vectors, CUstream_st* stream) {
  if (count > 0) EigenKernel<<<count, kThreads, 0, stream>>>(A, n, values, vectors);
  return cudaGetLastError();
}

int LaunchInverse(const float* A, int count, int n, float* inverse, CUstream_st* stream) {
  if (count > 0) InverseKernel<<<count, 32, 0, stream>>>(A, n, inverse);
  return cudaGetLastError();
}

}  // namespace silc
