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

// One-sided Jacobi: rows of A are turned in pairs until all are orthogonal; then A = U Σ Vᵀ with
// rows σ_k v_kᵀ left where the rows of A were.
//
// mapping  half a warp per matrix, two rows in the registers of each lane; between rounds rows move
//          on by one seat (round robin: the first lane's upper row stays), so that every pair meets
//          once a sweep. No shared memory, no barrier.
// work     a round is 3 products of 32 and 4 · 32 multiply-adds on each of 15 lanes, 29 rounds a
//          sweep, 6 to 8 sweeps for n = 29: 1.5 Mflop a matrix, 3.3 kB read, 3.4 kB written
__global__ void __launch_bounds__(kThreads)
    SingularKernel(const float* matrices, int count, int n, float* sigma, float* rows) {
  constexpr int kLanes = kSize / 2;  // of a matrix
  const int lane = static_cast<int>(threadIdx.x) % kLanes;
  const long index = (static_cast<long>(blockIdx.x) * kThreads + threadIdx.x) / kLanes;
  const bool exists = index < count;  // the other half of the warp still needs this one's lanes
  const int half = (n + 1) / 2;
  const bool seated = lane < half;
  const float* from = matrices + (exists ? index : 0) * n * n;
  float a[kSize], b[kSize];
#pragma unroll
  for (int i = 0; i < kSize; ++i) {
    a[i] = exists && seated && i < n ? from[lane * n + i] : 0.0f;
    b[i] = exists && seated && half + lane < n && i < n ? from[(half + lane) * n + i] : 0.0f;
  }
  constexpr unsigned kAll = 0xffffffffu;
  float square = 0;
#pragma unroll
  for (int i = 0; i < kSize; ++i) square += a[i] * a[i] + b[i] * b[i];
  for (int offset = kLanes / 2; offset > 0; offset /= 2) {
    square += __shfl_xor_sync(kAll, square, offset, kLanes);
  }
  const float negligible = 1e-12f * square;  // of the whole matrix: what its rounding amounts to
  for (int sweep = 0; sweep < kMaxSweeps; ++sweep) {
    bool turned = false;
    for (int round = 0; round < 2 * half - 1; ++round) {
      float aa = 0, bb = 0, ab = 0;
#pragma unroll
      for (int i = 0; i < kSize; ++i) {
        aa += a[i] * a[i];
        bb += b[i] * b[i];
        ab += a[i] * b[i];
      }
      float c = 1, s = 0;
      // the angle between two rows counts, whatever their lengths
      if (fabsf(ab) > 1e-6f * sqrtf(aa * bb) + negligible) {
        const float tau = (bb - aa) / (2 * ab);
        const float t = copysignf(1.0f, tau) / (fabsf(tau) + sqrtf(1 + tau * tau));
        c = rsqrtf(1 + t * t);
        s = t * c;
        turned = true;
      }
#pragma unroll
      for (int i = 0; i < kSize; ++i) {
        const float x = c * a[i] - s * b[i], y = s * a[i] + c * b[i];
        // to the next seat: upper rows to the right, lower rows to the left
        const float right = __shfl_up_sync(kAll, lane == 0 ? y : x, 1, kLanes);
        const float left = __shfl_down_sync(kAll, y, 1, kLanes);
        a[i] = lane == 0 ? x : seated ? right : 0.0f;
        b[i] = half == 1 ? y : lane == half - 1 ? x : seated ? left : 0.0f;
      }
    }
    if (!__any_sync(kAll, turned)) break;
  }
  float aa = 0, bb = 0;
#pragma unroll
  for (int i = 0; i < kSize; ++i) {
    aa += a[i] * a[i];
    bb += b[i] * b[i];
  }
  // rows beyond n never turned and are zero: they come last, after real rows of length zero
  if (!seated) aa = bb = -1;
  int rank_a = 0, rank_b = 0;
#pragma unroll
  for (int other = 0; other < kLanes; ++other) {
    const float other_a = __shfl_sync(kAll, aa, other, kLanes);
    const float other_b = __shfl_sync(kAll, bb, other, kLanes);
    rank_a += other_a > aa || (other_a == aa && other < lane);
    rank_a += other_b > aa;
    rank_b += other_a > bb || other_a == bb;
    rank_b += other_b > bb || (other_b == bb && other < lane);
  }
  if (!exists) return;
  const auto put = [&](int rank, float length2, const float(&row)[kSize]) {
    if (length2 < 0 || rank >= n) return;
    sigma[index * n + rank] = sqrtf(length2);
#pragma unroll
    for (int i = 0; i < kSize; ++i) {
      if (i < n) rows[(index * n + rank) * n + i] = row[i];
    }
  };
  put(rank_a, aa, a);
  put(rank_b, bb, b);
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

int LaunchSingular(
    const float* A, int count, int n, float* sigma, float* rows, CUstream_st* stream) {
  const int blocks = (count * (kSize / 2) + kThreads - 1) / kThreads;
  if (count > 0) SingularKernel<<<blocks, kThreads, 0, stream>>>(A, count, n, sigma, rows);
  return cudaGetLastError();
}

int LaunchInverse(const float* A, int count, int n, float* inverse, CUstream_st* stream) {
  if (count > 0) InverseKernel<<<count, 32, 0, stream>>>(A, n, inverse);
  return cudaGetLastError();
}

}  // namespace silc
