// SPDX-License-Identifier: Apache-2.0
#include "silc/stiffness/vector_kernel.h"

#include <cstddef>

#if defined(__x86_64__) && defined(__GNUC__)
#define SILC_X86_KERNELS 1
#include <immintrin.h>
#endif

// Functions with a target attribute use intrinsics and nothing else: an inline function of a
// library, compiled here for AVX, could be the copy the linker keeps for everyone.

namespace silc {
namespace {

void AddTimesPortable(const double* A, int rows, int cols, const double* x, double* y) {
  for (int c = 0; c < cols; ++c, A += rows) {
    for (int r = 0; r < rows; ++r) y[r] += x[c] * A[r];
  }
}

void TransposedTimesPortable(const double* A, int rows, int cols, const double* y, double* x) {
  for (int c = 0; c < cols; ++c, A += rows) {
    double sum[kVectorLanes] = {};
    for (int r = 0; r < rows; r += kVectorLanes) {
      for (int k = 0; k < kVectorLanes; ++k) sum[k] += A[r + k] * y[r + k];
    }
    x[c] = ((sum[0] + sum[1]) + (sum[2] + sum[3])) + ((sum[4] + sum[5]) + (sum[6] + sum[7]));
  }
}

#ifdef SILC_X86_KERNELS

__attribute__((target("avx2,fma"))) void AddTimesAvx2(
    const double* A, int rows, int cols, const double* x, double* y) {
  // eight entries of y stay in registers while all columns pass; a multiply-add takes four cycles,
  // so even and odd columns have sums of their own
  for (int r = 0; r < rows; r += kVectorLanes) {
    __m256d low[2] = {_mm256_loadu_pd(y + r), _mm256_setzero_pd()};
    __m256d high[2] = {_mm256_loadu_pd(y + r + 4), _mm256_setzero_pd()};
    const double* a = A + r;
    for (int c = 0; c < cols; ++c, a += rows) {
      const __m256d x_c = _mm256_broadcast_sd(x + c);
      low[c & 1] = _mm256_fmadd_pd(x_c, _mm256_loadu_pd(a), low[c & 1]);
      high[c & 1] = _mm256_fmadd_pd(x_c, _mm256_loadu_pd(a + 4), high[c & 1]);
    }
    _mm256_storeu_pd(y + r, _mm256_add_pd(low[0], low[1]));
    _mm256_storeu_pd(y + r + 4, _mm256_add_pd(high[0], high[1]));
  }
}

__attribute__((target("avx2,fma"))) void TransposedTimesAvx2(
    const double* A, int rows, int cols, const double* y, double* x) {
  for (int c = 0; c < cols; ++c, A += rows) {
    __m256d low = _mm256_setzero_pd(), high = _mm256_setzero_pd();
    for (int r = 0; r < rows; r += kVectorLanes) {
      low = _mm256_fmadd_pd(_mm256_loadu_pd(A + r), _mm256_loadu_pd(y + r), low);
      high = _mm256_fmadd_pd(_mm256_loadu_pd(A + r + 4), _mm256_loadu_pd(y + r + 4), high);
    }
    double sum[4];
    _mm256_storeu_pd(sum, _mm256_add_pd(low, high));
    x[c] = (sum[0] + sum[1]) + (sum[2] + sum[3]);
  }
}

__attribute__((target("avx512f"))) void AddTimesAvx512(
    const double* A, int rows, int cols, const double* x, double* y) {
  int r = 0;
  // 32 entries of y at a time, even and odd columns apart: eight sums, enough to hide the latency
  for (; r + 4 * kVectorLanes <= rows; r += 4 * kVectorLanes) {
    __m512d even[4], odd[4];
#pragma GCC unroll 4
    for (int k = 0; k < 4; ++k) {
      even[k] = _mm512_loadu_pd(y + r + 8 * k);
      odd[k] = _mm512_setzero_pd();
    }
    const double* a = A + r;
    int c = 0;
    for (; c + 2 <= cols; c += 2, a += 2 * static_cast<std::ptrdiff_t>(rows)) {
      const __m512d x_even = _mm512_set1_pd(x[c]), x_odd = _mm512_set1_pd(x[c + 1]);
#pragma GCC unroll 4
      for (int k = 0; k < 4; ++k) {
        even[k] = _mm512_fmadd_pd(x_even, _mm512_loadu_pd(a + 8 * k), even[k]);
        odd[k] = _mm512_fmadd_pd(x_odd, _mm512_loadu_pd(a + rows + 8 * k), odd[k]);
      }
    }
    if (c < cols) {
      const __m512d x_even = _mm512_set1_pd(x[c]);
#pragma GCC unroll 4
      for (int k = 0; k < 4; ++k)
        even[k] = _mm512_fmadd_pd(x_even, _mm512_loadu_pd(a + 8 * k), even[k]);
    }
#pragma GCC unroll 4
    for (int k = 0; k < 4; ++k) {
      _mm512_storeu_pd(y + r + 8 * k, _mm512_add_pd(even[k], odd[k]));
    }
  }
  for (; r < rows; r += kVectorLanes) {
    __m512d sum = _mm512_loadu_pd(y + r);
    const double* a = A + r;
    for (int c = 0; c < cols; ++c, a += rows) {
      sum = _mm512_fmadd_pd(_mm512_set1_pd(x[c]), _mm512_loadu_pd(a), sum);
    }
    _mm512_storeu_pd(y + r, sum);
  }
}

__attribute__((target("avx512f"))) void TransposedTimesAvx512(
    const double* A, int rows, int cols, const double* y, double* x) {
  for (int c = 0; c < cols; ++c, A += rows) {
    __m512d sum[2] = {_mm512_setzero_pd(), _mm512_setzero_pd()};
    int r = 0;
    for (; r + 2 * kVectorLanes <= rows; r += 2 * kVectorLanes) {
      sum[0] = _mm512_fmadd_pd(_mm512_loadu_pd(A + r), _mm512_loadu_pd(y + r), sum[0]);
      sum[1] = _mm512_fmadd_pd(_mm512_loadu_pd(A + r + 8), _mm512_loadu_pd(y + r + 8), sum[1]);
    }
    if (r < rows) sum[0] = _mm512_fmadd_pd(_mm512_loadu_pd(A + r), _mm512_loadu_pd(y + r), sum[0]);
    double part[8];
    _mm512_storeu_pd(part, _mm512_add_pd(sum[0], sum[1]));
    x[c] =
        ((part[0] + part[1]) + (part[2] + part[3])) + ((part[4] + part[5]) + (part[6] + part[7]));
  }
}

#endif  // SILC_X86_KERNELS

}  // namespace

std::vector<VectorKernel> AvailableVectorKernels() {
  std::vector<VectorKernel> kernels;
#ifdef SILC_X86_KERNELS
  if (__builtin_cpu_supports("avx512f")) {
    kernels.push_back({"avx512f", AddTimesAvx512, TransposedTimesAvx512});
  }
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
    kernels.push_back({"avx2", AddTimesAvx2, TransposedTimesAvx2});
  }
#endif
  kernels.push_back({"portable", AddTimesPortable, TransposedTimesPortable});
  return kernels;
}

const VectorKernel& BestVectorKernel() {
  static const VectorKernel kernel = AvailableVectorKernels().front();
  return kernel;
}

}  // namespace silc
