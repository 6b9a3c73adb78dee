// SPDX-License-Identifier: Apache-2.0
// Products in bfloat16: what is summed over is laid out in pairs, and one instruction multiplies
// and adds both, for twice the speed of float. All else is float_kernel_impl.h's.
#include <immintrin.h>

#include "silc/learn/float_kernel_impl.h"

namespace silc::SILC_KERNEL {
namespace {

constexpr int kLanes = 16, kPanel = 2 * kLanes;

/// Entries of A and B are pairs: 2 i in the low half of a float's bits, 2 i + 1 in the high one.
struct PairEntries {
  using Float = Register<kLanes>::Float;
  static SILC_HD __m512i Load(const float* pair) {
    int bits;
    __builtin_memcpy(&bits, pair, sizeof(bits));
    return _mm512_set1_epi32(bits);
  }
  static SILC_HD Float MultiplyAdd(Float sum, Float row, __m512i x) {
    return (Float)_mm512_dpbf16_ps((__m512)sum, (__m512bh)row, (__m512bh)x);
  }
};

constexpr __mmask16 kAll = 0xffff;
constexpr long PairsIn(long n) { return (n + 1) / 2; }

__mmask16 FirstLanes(long count) {
  return count >= kLanes ? kAll : count <= 0 ? 0 : static_cast<__mmask16>((1 << count) - 1);
}
__m512 LoadSome(const float* from, long count) {
  return _mm512_maskz_loadu_ps(FirstLanes(count), from);
}

// Each number of `first` with the one of `second` below it; without a second, with zero.
void PairRows(const float* first, const float* second, long count, float* to) {
  for (long i = 0; i < count; i += kLanes) {
    // the masked forms: g++ 12 warns about an uninitialised operand inside the plain ones
    const auto half = [&](const float* row) {
      return _mm512_maskz_cvtepu16_epi32(kAll,
                                         (__m256i)_mm512_cvtneps_pbh(LoadSome(row + i, count - i)));
    };
    __m512i pairs = half(first);
    if (second != nullptr) {
      pairs = _mm512_or_si512(pairs, _mm512_maskz_slli_epi32(kAll, half(second), 16));
    }
    _mm512_mask_storeu_epi32(to + i, FirstLanes(count - i), pairs);
  }
}

// Each number with its neighbour.
void PairNeighbours(const float* from, long count, float* to) {
  for (long i = 0; i < count; i += 2 * kLanes, to += kLanes) {
    const __m512 low = LoadSome(from + i, count - i);
    const __m512 high = LoadSome(from + i + kLanes, count - i - kLanes);
    _mm512_storeu_si512(to, (__m512i)_mm512_cvtne2ps_pbh(high, low));
  }
}

long ScratchOfA(const FloatProduct& p) {
  const long pairs = PairsIn(p.inner);
  return p.a_row == 1 ? pairs * p.rows : p.rows * InRegisters(pairs);
}
long Scratch(const FloatProduct& p) {
  return ScratchOfA(p) + PairsIn(p.inner) * (p.columns + kPanel - 1) / kPanel * kPanel;
}

void MultiplyPairs(const FloatProduct& p) {
  const long pairs = PairsIn(p.inner);
  float *a = p.scratch, *b = a + ScratchOfA(p);
  FloatProduct paired = p;
  paired.inner = static_cast<int>(pairs);
  paired.a = a;
  paired.b = b;
  paired.b_inner = kPanel;
  paired.b_panel = kPanel * pairs;
  if (p.a_row == 1) {
    paired.a_inner = p.rows;
    for (int i = 0; i < p.inner; i += 2, a += p.rows) {
      const float* first = p.a + i * p.a_inner;
      PairRows(first, i + 1 < p.inner ? first + p.a_inner : nullptr, p.rows, a);
    }
  } else {
    paired.a_row = InRegisters(pairs);
    for (int r = 0; r < p.rows; ++r, a += paired.a_row) {
      PairNeighbours(p.a + r * p.a_row, p.inner, a);
    }
  }
  for (int column = 0; column < p.columns; column += kPanel) {
    const float* panel = p.b + column / kPanel * p.b_panel;
    const long width = p.columns - column > kLanes ? kPanel : kLanes;
    for (int i = 0; i < p.inner; i += 2, b += kPanel) {
      const float* first = panel + i * p.b_inner;
      PairRows(first, i + 1 < p.inner ? first + p.b_inner : nullptr, width, b);
    }
  }
  MultiplyEntries<kLanes, PairEntries, 14>(paired);
}

}  // namespace
}  // namespace silc::SILC_KERNEL

namespace silc {
FloatKernel FloatKernel_bfloat16() {
  using namespace bfloat16;
  return MakeFloatKernel<16, 14>("bfloat16", MultiplyPairs, Scratch);
}
}  // namespace silc
