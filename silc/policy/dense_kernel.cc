// SPDX-License-Identifier: Apache-2.0
#include "silc/policy/dense_kernel.h"

#include <algorithm>
#include <cstring>

#if defined(__x86_64__) && defined(__GNUC__)
#define SILC_X86_KERNELS 1
#include <immintrin.h>
#endif

// Functions with a target attribute use intrinsics and nothing else: an inline function of a
// library, compiled here for AVX, could be the copy the linker keeps for everyone.

namespace silc {
namespace {

// Portable: four floats in the compilers' own vector type, which is a register of SSE and of NEON
// alike. Three columns times sixteen rows are twelve of the sixteen registers of SSE, six are 24 of
// the 32 of NEON.
using Vec4 = float __attribute__((vector_size(16)));
#if defined(__aarch64__)
constexpr int kPortablePanel = 6;
#else
constexpr int kPortablePanel = 3;
#endif

Vec4 Load(const float* from) {
  Vec4 v;
  std::memcpy(&v, from, sizeof(v));
  return v;
}

void PullBackPortable(
    const float* X, const float* panels, int depth, int cols, const float* scale, float* Y) {
  for (int begin = 0; begin < cols; begin += kPortablePanel) {
    Vec4 sum[kPortablePanel][4] = {};
    const float* x = X;
    for (int k = 0; k < depth; ++k, x += kRowLanes, panels += kPortablePanel) {
      const Vec4 x_k[4] = {Load(x), Load(x + 4), Load(x + 8), Load(x + 12)};
#pragma GCC unroll 6
      for (int c = 0; c < kPortablePanel; ++c) {
#pragma GCC unroll 4
        for (int r = 0; r < 4; ++r) sum[c][r] += panels[c] * x_k[r];
      }
    }
    for (int c = 0; c < kPortablePanel; ++c, Y += kRowLanes) {
      const float s = scale == nullptr || begin + c >= cols ? 1.0f : scale[begin + c];
      for (int r = 0; r < 4; ++r) {
        const Vec4 y = s * sum[c][r];
        std::memcpy(Y + 4 * r, &y, sizeof(y));
      }
    }
  }
}

void ForwardPortable(
    const float* x, const float* lanes, int depth, int outputs, const float* b, float* y) {
  for (int begin = 0; begin < outputs; begin += kForwardLanes) {
    float sum[kForwardLanes];
    for (int o = 0; o < kForwardLanes; ++o) sum[o] = b[begin + o];
    for (int k = 0; k < depth; ++k, lanes += kForwardLanes) {
      for (int o = 0; o < kForwardLanes; ++o) sum[o] += x[k] * lanes[o];
    }
    for (int o = 0; o < kForwardLanes; ++o) y[begin + o] = sum[o];
  }
}

#ifdef SILC_X86_KERNELS

// AVX2: six columns × two registers of rows = twelve accumulators of sixteen registers.
constexpr int kAvx2Panel = 6;

__attribute__((target("avx2,fma"))) void PullBackAvx2(
    const float* X, const float* panels, int depth, int cols, const float* scale, float* Y) {
  for (int begin = 0; begin < cols; begin += kAvx2Panel) {
    __m256 low[kAvx2Panel], high[kAvx2Panel];
#pragma GCC unroll 6
    for (int c = 0; c < kAvx2Panel; ++c) low[c] = high[c] = _mm256_setzero_ps();
    const float* x = X;
    for (int k = 0; k < depth; ++k, x += kRowLanes, panels += kAvx2Panel) {
      const __m256 x_low = _mm256_loadu_ps(x);
      const __m256 x_high = _mm256_loadu_ps(x + 8);
#pragma GCC unroll 6
      for (int c = 0; c < kAvx2Panel; ++c) {
        const __m256 w = _mm256_broadcast_ss(panels + c);
        low[c] = _mm256_fmadd_ps(w, x_low, low[c]);
        high[c] = _mm256_fmadd_ps(w, x_high, high[c]);
      }
    }
#pragma GCC unroll 6
    for (int c = 0; c < kAvx2Panel; ++c) {
      const __m256 s =
          _mm256_set1_ps(scale == nullptr || begin + c >= cols ? 1.0f : scale[begin + c]);
      _mm256_storeu_ps(Y + c * kRowLanes, _mm256_mul_ps(s, low[c]));
      _mm256_storeu_ps(Y + c * kRowLanes + 8, _mm256_mul_ps(s, high[c]));
    }
    Y += kAvx2Panel * kRowLanes;
  }
}

__attribute__((target("avx2,fma"))) void ForwardAvx2(
    const float* x, const float* lanes, int depth, int outputs, const float* b, float* y) {
  for (int begin = 0; begin < outputs; begin += kForwardLanes) {
    __m256 sum[8];
#pragma GCC unroll 8
    for (int o = 0; o < 8; ++o) sum[o] = _mm256_loadu_ps(b + begin + 8 * o);
    for (int k = 0; k < depth; ++k, lanes += kForwardLanes) {
      const __m256 x_k = _mm256_broadcast_ss(x + k);
#pragma GCC unroll 8
      for (int o = 0; o < 8; ++o)
        sum[o] = _mm256_fmadd_ps(x_k, _mm256_loadu_ps(lanes + 8 * o), sum[o]);
    }
#pragma GCC unroll 8
    for (int o = 0; o < 8; ++o) _mm256_storeu_ps(y + begin + 8 * o, sum[o]);
  }
}

// AVX-512: 28 columns, one register of rows each; the weight is a broadcast memory operand of the
// multiply-add itself, so 28 accumulators and X fit the 32 registers and an iteration is 28
// multiply-adds and one load.
constexpr int kAvx512Panel = 28;

__attribute__((target("avx512f"))) void PullBackAvx512(
    const float* X, const float* panels, int depth, int cols, const float* scale, float* Y) {
  for (int begin = 0; begin < cols; begin += kAvx512Panel) {
    __m512 sum[kAvx512Panel];
#pragma GCC unroll 28
    for (int c = 0; c < kAvx512Panel; ++c) sum[c] = _mm512_setzero_ps();
    const float* x = X;
    for (int k = 0; k < depth; ++k, x += kRowLanes, panels += kAvx512Panel) {
      const __m512 x_k = _mm512_loadu_ps(x);
#pragma GCC unroll 28
      for (int c = 0; c < kAvx512Panel; ++c)
        sum[c] = _mm512_fmadd_ps(_mm512_set1_ps(panels[c]), x_k, sum[c]);
    }
#pragma GCC unroll 28
    for (int c = 0; c < kAvx512Panel; ++c) {
      const float s = scale == nullptr || begin + c >= cols ? 1.0f : scale[begin + c];
      _mm512_storeu_ps(Y + c * kRowLanes, _mm512_mul_ps(_mm512_set1_ps(s), sum[c]));
    }
    Y += kAvx512Panel * kRowLanes;
  }
}

__attribute__((target("avx512f"))) void ForwardAvx512(
    const float* x, const float* lanes, int depth, int outputs, const float* b, float* y) {
  for (int begin = 0; begin < outputs; begin += kForwardLanes) {
    __m512 sum[4];
#pragma GCC unroll 4
    for (int o = 0; o < 4; ++o) sum[o] = _mm512_loadu_ps(b + begin + 16 * o);
    for (int k = 0; k < depth; ++k, lanes += kForwardLanes) {
      const __m512 x_k = _mm512_set1_ps(x[k]);
#pragma GCC unroll 4
      for (int o = 0; o < 4; ++o)
        sum[o] = _mm512_fmadd_ps(x_k, _mm512_loadu_ps(lanes + 16 * o), sum[o]);
    }
#pragma GCC unroll 4
    for (int o = 0; o < 4; ++o) _mm512_storeu_ps(y + begin + 16 * o, sum[o]);
  }
}

#endif  // SILC_X86_KERNELS

}  // namespace

std::vector<DenseKernel> AvailableKernels() {
  std::vector<DenseKernel> kernels;
#ifdef SILC_X86_KERNELS
  if (__builtin_cpu_supports("avx512f")) {
    kernels.push_back({"avx512f", kAvx512Panel, PullBackAvx512, ForwardAvx512});
  }
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
    kernels.push_back({"avx2", kAvx2Panel, PullBackAvx2, ForwardAvx2});
  }
#endif
  kernels.push_back({"portable", kPortablePanel, PullBackPortable, ForwardPortable});
  return kernels;
}

const DenseKernel& BestKernel() {
  static const DenseKernel kernel = AvailableKernels().front();
  return kernel;
}

std::vector<float> PackPanels(const float* W, int depth, int cols, int panel) {
  std::vector<float> packed(static_cast<std::size_t>(depth) *
                            static_cast<std::size_t>(RoundUp(cols, panel)));
  float* out = packed.data();
  for (int begin = 0; begin < cols; begin += panel) {
    const int count = std::min(panel, cols - begin);
    for (int k = 0; k < depth; ++k, out += panel) {
      std::copy_n(W + static_cast<std::ptrdiff_t>(k) * cols + begin, count, out);
    }
  }
  return packed;
}

}  // namespace silc
