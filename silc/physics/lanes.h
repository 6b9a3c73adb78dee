// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>

#include "silc/base/host_device.h"
#include "silc/physics/kernel.h"

#if defined(__SSE__) && !defined(__CUDACC__)
#include <immintrin.h>
#endif

/// Scalars the step can be compiled for: double, float, and Lanes<N>, N floats side by side that
/// belong to N robots. All offer the same few functions (Select, Min, Max, Abs, Sqrt, SinCos, All,
/// Any), so the step reads as if it were about one robot. A comparison yields MaskOf<Real>: bool,
/// or one flag per lane.
///
/// Lanes never talk: nothing here mixes two of them but All() and Any(), which may decide what is
/// worth computing and must not decide what a lane's value becomes.
namespace silc::SILC_KERNEL {

template <class Real>
struct ScalarTraits;

template <>
struct ScalarTraits<double> {
  using Scalar = double;
  using Mask = bool;
  static constexpr int kLanes = 1;
};
template <>
struct ScalarTraits<float> {
  using Scalar = float;
  using Mask = bool;
  static constexpr int kLanes = 1;
};

/// The type of the model's constants for a Real: double for double, float for the others.
template <class Real>
using ScalarOf = typename ScalarTraits<Real>::Scalar;
template <class Real>
using MaskOf = typename ScalarTraits<Real>::Mask;

SILC_HD double Select(bool m, double a, double b) { return m ? a : b; }
SILC_HD float Select(bool m, float a, float b) { return m ? a : b; }
SILC_HD double Min(double a, double b) { return a < b ? a : b; }
SILC_HD float Min(float a, float b) { return a < b ? a : b; }
SILC_HD double Max(double a, double b) { return a > b ? a : b; }
SILC_HD float Max(float a, float b) { return a > b ? a : b; }
SILC_HD double Abs(double a) { return a < 0 ? -a : a; }
SILC_HD float Abs(float a) { return a < 0 ? -a : a; }
SILC_HD double Sqrt(double a) { return std::sqrt(a); }
SILC_HD float Sqrt(float a) { return sqrtf(a); }
#if defined(__CUDA_ARCH__) && defined(SILC_CUDA_VOTES)
// the 32 threads of a warp are the lanes of a vector: they take every branch together, so that
// their accesses stay side by side
SILC_HD bool All(bool m) { return __all_sync(0xffffffffu, m); }
SILC_HD bool Any(bool m) { return __any_sync(0xffffffffu, m); }
#else
SILC_HD bool All(bool m) { return m; }
SILC_HD bool Any(bool m) { return m; }
#endif
SILC_HD bool Not(bool m) { return !m; }
SILC_HD int Count(bool m) { return m ? 1 : 0; }

#ifndef __CUDACC__

template <int N>
struct VectorOf {
  typedef float Float __attribute__((vector_size(4 * N)));
  typedef int Int __attribute__((vector_size(4 * N)));
};

/// One flag per lane, all bits set or none.
template <int N>
struct LaneMask {
  typename VectorOf<N>::Int v;
  LaneMask() = default;
  SILC_HD LaneMask(typename VectorOf<N>::Int bits) : v(bits) {}
  SILC_HD LaneMask(bool all) : v((typename VectorOf<N>::Int){} - (all ? 1 : 0)) {}
  friend SILC_HD LaneMask operator&(LaneMask a, LaneMask b) { return {a.v & b.v}; }
  friend SILC_HD LaneMask operator|(LaneMask a, LaneMask b) { return {a.v | b.v}; }
  friend SILC_HD LaneMask operator!=(LaneMask a, LaneMask b) { return {a.v ^ b.v}; }
};

/// N robots' values of one quantity.
template <int N>
struct Lanes {
  using Float = typename VectorOf<N>::Float;
  using Int = typename VectorOf<N>::Int;
  Float v;

  Lanes() = default;
  SILC_HD Lanes(Float values) : v(values) {}
  SILC_HD Lanes(float value) : v((Float){} + value) {}

  friend SILC_HD Lanes operator+(Lanes a, Lanes b) { return {a.v + b.v}; }
  friend SILC_HD Lanes operator-(Lanes a, Lanes b) { return {a.v - b.v}; }
  friend SILC_HD Lanes operator*(Lanes a, Lanes b) { return {a.v * b.v}; }
  friend SILC_HD Lanes operator/(Lanes a, Lanes b) { return {a.v / b.v}; }
  friend SILC_HD Lanes operator-(Lanes a) { return {-a.v}; }
  SILC_HD Lanes& operator+=(Lanes b) {
    v += b.v;
    return *this;
  }
  SILC_HD Lanes& operator-=(Lanes b) {
    v -= b.v;
    return *this;
  }
  SILC_HD Lanes& operator*=(Lanes b) {
    v *= b.v;
    return *this;
  }
  friend SILC_HD LaneMask<N> operator<(Lanes a, Lanes b) { return {(Int)(a.v < b.v)}; }
  friend SILC_HD LaneMask<N> operator>(Lanes a, Lanes b) { return {(Int)(a.v > b.v)}; }
  friend SILC_HD LaneMask<N> operator<=(Lanes a, Lanes b) { return {(Int)(a.v <= b.v)}; }

  SILC_HD float lane(int i) const { return v[i]; }
  SILC_HD void set_lane(int i, float value) { v[i] = value; }
};

template <int N>
struct ScalarTraits<Lanes<N>> {
  using Scalar = float;
  using Mask = LaneMask<N>;
  static constexpr int kLanes = N;
};

template <int N>
SILC_HD Lanes<N> Select(LaneMask<N> m, Lanes<N> a, Lanes<N> b) {
  return {m.v ? a.v : b.v};
}
template <int N>
SILC_HD LaneMask<N> Not(LaneMask<N> m) {
  return {~m.v};
}
// a < b ? a : b and its mirror are what the hardware's min and max compute, NaN included
template <int N>
SILC_HD Lanes<N> Min(Lanes<N> a, Lanes<N> b) {
  return {a.v < b.v ? a.v : b.v};
}
template <int N>
SILC_HD Lanes<N> Max(Lanes<N> a, Lanes<N> b) {
  return {a.v > b.v ? a.v : b.v};
}
template <int N>
SILC_HD Lanes<N> Abs(Lanes<N> a) {
  using Int = typename VectorOf<N>::Int;
  return {(typename VectorOf<N>::Float)((Int)a.v & 0x7fffffff)};
}

template <int N>
SILC_HD Lanes<N> Sqrt(Lanes<N> a) {
#ifdef __AVX512F__
  // the masked form: g++ 12 warns about an uninitialised operand inside the plain one
  if constexpr (N == 16) {
    return {(typename VectorOf<N>::Float)_mm512_maskz_sqrt_ps(0xffff, (__m512)a.v)};
  }
#endif
#ifdef __AVX__
  if constexpr (N == 8) return {(typename VectorOf<N>::Float)_mm256_sqrt_ps((__m256)a.v)};
#endif
#ifdef __SSE__
  if constexpr (N == 4) return {(typename VectorOf<N>::Float)_mm_sqrt_ps((__m128)a.v)};
#endif
  Lanes<N> r;
  for (int i = 0; i < N; ++i) r.v[i] = __builtin_sqrtf(a.v[i]);
  return r;
}

/// One bit per lane.
template <int N>
SILC_HD unsigned Bits(LaneMask<N> m) {
#ifdef __AVX512F__
  if constexpr (N == 16) return _mm512_cmplt_epi32_mask((__m512i)m.v, _mm512_setzero_si512());
#endif
#ifdef __AVX__
  if constexpr (N == 8) return static_cast<unsigned>(_mm256_movemask_ps((__m256)m.v));
#endif
#ifdef __SSE__
  if constexpr (N == 4) return static_cast<unsigned>(_mm_movemask_ps((__m128)m.v));
#endif
  unsigned bits = 0;
  for (int i = 0; i < N; ++i) bits |= (m.v[i] ? 1u : 0u) << i;
  return bits;
}
template <int N>
SILC_HD bool Any(LaneMask<N> m) {
  return Bits(m) != 0;
}
template <int N>
SILC_HD int Count(LaneMask<N> m) {
  return __builtin_popcount(Bits(m));
}
template <int N>
SILC_HD bool All(LaneMask<N> m) {
  return !Any(Not(m));
}

#endif  // __CUDACC__

/// The flag of lane i, and the mask that has it alone.
SILC_HD bool LaneBit(bool m, int) { return m; }
template <class Real>
SILC_HD MaskOf<Real> OneLane(int i) {
  if constexpr (ScalarTraits<Real>::kLanes == 1) {
    return true;
  } else {
    MaskOf<Real> m(false);
    m.v[i] = -1;
    return m;
  }
}
#ifndef __CUDACC__
template <int N>
SILC_HD bool LaneBit(LaneMask<N> m, int i) {
  return m.v[i] != 0;
}
#endif

/// The value of lane i, and its replacement; a plain scalar has one lane.
SILC_HD double Lane(double a, int) { return a; }
SILC_HD float Lane(float a, int) { return a; }
SILC_HD void SetLane(double* a, int, double value) { *a = value; }
SILC_HD void SetLane(float* a, int, float value) { *a = value; }
#ifndef __CUDACC__
template <int N>
SILC_HD float Lane(Lanes<N> a, int i) {
  return a.lane(i);
}
template <int N>
SILC_HD void SetLane(Lanes<N>* a, int i, float value) {
  a->set_lane(i, value);
}
#endif

/// NaN stays NaN: the order of the operands matters.
template <class Real>
SILC_HD Real Clamp(Real x, Real low, Real high) {
  return Min(high, Max(low, x));
}

SILC_HD void SinCos(double x, double* s, double* c) {
  *s = std::sin(x);
  *c = std::cos(x);
}
#ifdef __CUDACC__
SILC_HD void SinCos(float x, float* s, float* c) { sincosf(x, s, c); }
#else
/// Sine and cosine in float: reduction to |r| ≤ π/4 with π/2 in three parts, then the minimax
/// polynomials of Moshier's Cephes. Within 1.2e-7 of the exact value for |x| < 1000 rad
/// (lanes_test).
template <int N>
SILC_HD void SinCos(Lanes<N> x, Lanes<N>* s, Lanes<N>* c) {
  using Float = typename VectorOf<N>::Float;
  using Int = typename VectorOf<N>::Int;
  // adding and taking away 1.5·2²³ rounds to the nearest integer, which then sits in the low
  // mantissa bits
  const Float magic = (Float){} + 12582912.0f;
  const Float shifted = x.v * 0.636619772f + magic;
  const Float k = shifted - magic;
  const Int n = (Int)shifted;
  Float r = x.v - k * 1.5703125f;
  r = r - k * 4.837512969970703125e-4f;
  r = r - k * 7.549789948768648e-8f;
  const Float z = r * r;
  const Float sine =
      r + r * z * (-1.6666654611e-1f + z * (8.3321608736e-3f - z * 1.9515295891e-4f));
  const Float cosine =
      1.0f - 0.5f * z +
      z * z * (4.166664568298827e-2f + z * (-1.388731625493765e-3f + z * 2.443315711809948e-5f));
  const Int odd = (n & 1) != 0;
  const Float a = odd ? cosine : sine;
  const Float b = odd ? sine : cosine;
  *s = {(Float)((Int)a ^ ((n & 2) << 30))};
  *c = {(Float)((Int)b ^ (((n + 1) & 2) << 30))};
}
SILC_HD void SinCos(float x, float* s, float* c) {
  *s = sinf(x);
  *c = cosf(x);
}
#endif

}  // namespace silc::SILC_KERNEL
