// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "silc/base/host_device.h"
#include "silc/learn/float_kernel.h"
#include "silc/learn/ppo_terms.h"

/// Included by one source per instruction set, which sets SILC_KERNEL and the compiler's flags.
/// Inline functions of the standard library are not called here: they would be compiled with those
/// flags, too, and the linker could keep that copy for everyone.
namespace silc::SILC_KERNEL {

template <int N>
struct VectorOf {
  typedef float Float __attribute__((vector_size(4 * N)));
  typedef int Int __attribute__((vector_size(4 * N)));
};

/// N floats in one register.
template <int N>
struct Register {
  using Float = typename VectorOf<N>::Float;
  using Int = typename VectorOf<N>::Int;

  static SILC_HD Float Load(const float* from) {
    Float v;
    __builtin_memcpy(&v, from, sizeof(v));
    return v;
  }
  static SILC_HD void Store(Float v, float* to) { __builtin_memcpy(to, &v, sizeof(v)); }
  static SILC_HD float Sum(Float v) {
    float sum = 0;
    for (int i = 0; i < N; ++i) sum += v[i];
    return sum;
  }
};

/// elu(z) = z, or e^z − 1 under zero, to about one unit in the last place. NaN stays.
template <int N>
SILC_HD typename Register<N>::Float Elu(typename Register<N>::Float z) {
  using Float = typename Register<N>::Float;
  using Int = typename Register<N>::Int;
  constexpr float kLog2E = 1.44269504f, kRound = 12582912.0f;  // 1.5 · 2²³
  constexpr float kLn2High = 0.693359375f, kLn2Low = -2.12194440e-4f;
  // under −30 it is −1 to the last bit; above zero it is not used
  const Float zero = {}, low = zero - 30.0f;
  Float x = z < zero ? z : zero;
  x = x > low ? x : low;
  // x = n ln 2 + r, |r| ≤ ½ ln 2; n stands in the low bits of `shifted`
  const Float shifted = x * kLog2E + kRound, n = shifted - kRound;
  const Float r = x - n * kLn2High - n * kLn2Low;
  // e^r − 1 = r + r² (1/2! + r/3! + …)
  Float q = r * (1.0f / 5040) + 1.0f / 720;
  q = q * r + 1.0f / 120;
  q = q * r + 1.0f / 24;
  q = q * r + 1.0f / 6;
  q = q * r + 0.5f;
  const Float e = r * r * q + r;
  // 2ⁿ e^r − 1 without losing the digits of a small x
  const Float power = (Float)(((Int)shifted << 23) + 0x3f800000);
  const Float negative = power * e + (power - 1.0f);
  return z <= zero ? negative : z;
}

/// The first `count` numbers of a register; those that are there are added to. Not inlined: a
/// number picked at run time would send the sums of a tile to memory.
template <int N>
__attribute__((noinline)) void StoreSome(typename Register<N>::Float v,
                                         int count,
                                         bool add,
                                         float* to) {
  float all[N];
  Register<N>::Store(v, all);
  for (int k = 0; k < count; ++k) to[k] = all[k] + (add ? to[k] : 0.0f);
}

/// What the entries of A and B are in a product: floats.
template <int N>
struct FloatEntries {
  using Float = typename Register<N>::Float;
  static SILC_HD float Load(const float* x) { return *x; }
  static SILC_HD Float MultiplyAdd(Float sum, Float row, float x) { return sum + row * x; }
};

/// R rows and C registers of A B. kAlong: the rows of A lie side by side (a_row = 1), else what is
/// summed over does (a_inner = 1).
template <int N, class Entries, int R, int C, bool kAlong>
SILC_HD void MultiplyTile(const float* a,
                          long stride,
                          const float* b,
                          long b_inner,
                          int inner,
                          typename Register<N>::Float (&sum)[R][C]) {
  using Float = typename Register<N>::Float;
  // three rows to a pointer: x86 reaches p, p + s and p + 2 s from two registers
  constexpr int kBases = (R + 2) / 3;
  const float* base[kBases];
  for (int g = 0; g < kBases; ++g) base[g] = a + 3 * g * (kAlong ? 1 : stride);
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
    for (int c = 0; c < C; ++c) sum[r][c] = Float{};
  }
  for (int i = 0; i < inner; ++i) {
    Float row[C];
#pragma GCC unroll 4
    for (int c = 0; c < C; ++c) row[c] = Register<N>::Load(b + c * N);
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) {
      const auto x = Entries::Load(kAlong ? a + r : base[r / 3] + r % 3 * stride);
#pragma GCC unroll 4
      for (int c = 0; c < C; ++c) sum[r][c] = Entries::MultiplyAdd(sum[r][c], row[c], x);
    }
    b += b_inner;
    if constexpr (kAlong) {
      a += stride;
    } else {
#pragma GCC unroll 8
      for (int g = 0; g < kBases; ++g) ++base[g];
    }
  }
}

template <int N, class Entries, int R, int C, bool kAlong>
void Tile(const FloatProduct& p, int first_row, int first_column, const float* b) {
  using Float = typename Register<N>::Float;
  using Finish = FloatProduct::Finish;
  Float sum[R][C];
  const float* a = p.a + first_row * p.a_row;
  MultiplyTile<N, Entries, R, C, kAlong>(
      a, kAlong ? p.a_inner : p.a_row, b, p.b_inner, p.inner, sum);
  if (p.finish == Finish::kBias || p.finish == Finish::kBiasElu) {
    Float bias[C];
    for (int c = 0; c < C; ++c) bias[c] = Register<N>::Load(p.bias + first_column + c * N);
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
      for (int c = 0; c < C; ++c) sum[r][c] += bias[c];
    }
  }
  if (p.finish == Finish::kBiasElu) {
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
      for (int c = 0; c < C; ++c) sum[r][c] = Elu<N>(sum[r][c]);
    }
  }
  if (p.finish == Finish::kSlope) {
    const Float zero = {};
    const float* h = p.h + first_row * p.c_row + first_column;
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
      for (int c = 0; c < C; ++c) {
        // elu′(z) = e^z = 1 + h under zero
        const Float y = Register<N>::Load(h + r * p.c_row + c * N);
        sum[r][c] = y > zero ? sum[r][c] : sum[r][c] * (y + 1.0f);
      }
    }
  }
  float* out = p.c + first_row * p.c_row + first_column;
  const bool whole = first_column + C * N <= p.columns;
  if (p.add && whole) {
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
      for (int c = 0; c < C; ++c) sum[r][c] += Register<N>::Load(out + r * p.c_row + c * N);
    }
  }
  if (whole) {
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
      for (int c = 0; c < C; ++c) Register<N>::Store(sum[r][c], out + r * p.c_row + c * N);
    }
    return;
  }
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
    for (int c = 0; c < C; ++c) {
      const int count = p.columns - first_column - c * N;
      StoreSome<N>(sum[r][c], count < N ? count : N, p.add, out + r * p.c_row + c * N);
    }
  }
}

/// The tile of the last p.rows − row < R rows.
template <int N, class Entries, int R, int C, bool kAlong>
void LastTile(const FloatProduct& p, int row, int first_column, const float* b) {
  if constexpr (R > 1) {
    if (p.rows - row == R - 1) return Tile<N, Entries, R - 1, C, kAlong>(p, row, first_column, b);
    LastTile<N, Entries, R - 1, C, kAlong>(p, row, first_column, b);
  }
}

/// Columns [first_column, + C registers) of all rows.
template <int N, class Entries, int R, int C, bool kAlong>
void Panel(const FloatProduct& p, int first_column, const float* b) {
  int row = 0;
  for (; row + R <= p.rows; row += R) Tile<N, Entries, R, C, kAlong>(p, row, first_column, b);
  LastTile<N, Entries, R, C, kAlong>(p, row, first_column, b);
}

template <int N, class Entries, int R>
void MultiplyEntries(const FloatProduct& p) {
  constexpr int kPanel = 2 * N;
  for (int column = 0; column < p.columns; column += kPanel) {
    const float* b = p.b + column / kPanel * p.b_panel;
    const bool whole = p.columns - column > N;
    const bool along = p.a_row == 1;
    if (whole && along) Panel<N, Entries, R, 2, true>(p, column, b);
    if (whole && !along) Panel<N, Entries, R, 2, false>(p, column, b);
    if (!whole && along) Panel<N, Entries, R, 1, true>(p, column, b);
    if (!whole && !along) Panel<N, Entries, R, 1, false>(p, column, b);
  }
}

template <int N, int R>
void Multiply(const FloatProduct& p) {
  MultiplyEntries<N, FloatEntries<N>, R>(p);
}

inline long NoScratch(const FloatProduct&) { return 0; }

template <int N, int C>
SILC_HD void SumRegisters(const float* d, long stride, int rows, int columns, float* out) {
  typename Register<N>::Float sum[C] = {};
  for (int r = 0; r < rows; ++r, d += stride) {
#pragma GCC unroll 4
    for (int c = 0; c < C; ++c) sum[c] += Register<N>::Load(d + c * N);
  }
  for (int k = 0; k < C * N && k < columns; ++k) out[k] += sum[k / N][k % N];
}

template <int N>
void SumColumns(const float* d, long stride, int rows, int columns, float* out) {
  // four at a time: an addition takes as many cycles
  int column = 0;
  for (; column + 4 * N <= columns; column += 4 * N) {
    SumRegisters<N, 4>(d + column, stride, rows, columns - column, out + column);
  }
  for (; column < columns; column += N) {
    SumRegisters<N, 1>(d + column, stride, rows, columns - column, out + column);
  }
}

template <int N>
void ActorLoss(const ActorLossRows& p) {
  using Float = typename Register<N>::Float;
  float *inverse = p.scratch, *kl_weight = inverse + p.stride, *d_std = kl_weight + p.stride,
        *kl = d_std + p.stride;
  double log_std = 0, kl_constant = 0;
  for (int j = 0; j < p.stride; ++j) {
    inverse[j] = kl_weight[j] = d_std[j] = kl[j] = 0;
    if (j >= p.count) continue;
    const double std = p.std[j], old = p.std_old[j];
    inverse[j] = 1.0f / p.std[j];
    kl_weight[j] = 0.5f * inverse[j] * inverse[j];
    log_std += __builtin_log(std);
    kl_constant += __builtin_log(std / old) + old * old / (2 * std * std) - 0.5;
  }
  const float constant = static_cast<float>(log_std) + static_cast<float>(p.count) * kHalfLogTwoPi;
  float surrogate = 0;
  for (int r = 0; r < p.rows; ++r) {
    const long at = static_cast<long>(r) * p.stride;
    Float squares = {};
    for (int j = 0; j < p.stride; j += N) {
      const Float mu = Register<N>::Load(p.output + at + j);
      const Float x = (Register<N>::Load(p.action + at + j) - mu) * Register<N>::Load(inverse + j);
      const Float apart = Register<N>::Load(p.mean_old + at + j) - mu;
      squares += x * x;
      Register<N>::Store(x, p.d_output + at + j);
      Register<N>::Store(
          Register<N>::Load(kl + j) + apart * apart * Register<N>::Load(kl_weight + j), kl + j);
    }
    const float logp = -0.5f * Register<N>::Sum(squares) - constant;
    const LossTerm term =
        SurrogateTerm(__builtin_expf(logp - p.logp_old[r]), p.advantage[r], p.clip);
    surrogate += term.value;
    const float slope = term.slope * p.scale;
    // (P14)
    for (int j = 0; j < p.stride; j += N) {
      const Float x = Register<N>::Load(p.d_output + at + j);
      const Float y = Register<N>::Load(inverse + j) * slope;
      Register<N>::Store(x * y, p.d_output + at + j);
      Register<N>::Store(Register<N>::Load(d_std + j) + (x * x - 1.0f) * y, d_std + j);
    }
  }
  float kl_sum = 0;
  for (int j = 0; j < p.count; ++j) {
    p.d_std[j] += d_std[j];
    kl_sum += kl[j];
  }
  *p.surrogate += p.scale * surrogate;
  *p.kl += p.scale * (kl_sum + static_cast<float>(p.rows * kl_constant));
}

template <int N>
void CriticLoss(const CriticLossRows& p) {
  const float scale = p.weight * p.scale;
  float loss = 0;
  for (int r = 0; r < p.rows; ++r) {
    const long at = static_cast<long>(r) * p.stride;
    const LossTerm term = ValueTerm(p.output[at], p.value_old[r], p.target[r], p.clip);
    loss += term.value;
    p.d_output[at] = scale * term.slope;
  }
  *p.loss += p.scale * loss;
}

template <int N>
void AddRows(const float* first, long stride, int rows, long count, float* out) {
  long i = 0;
  for (; i + N <= count; i += N) {
    auto sum = Register<N>::Load(first + i);
    for (int r = 1; r < rows; ++r) sum += Register<N>::Load(first + r * stride + i);
    Register<N>::Store(sum, out + i);
  }
  for (; i < count; ++i) {
    float sum = first[i];
    for (int r = 1; r < rows; ++r) sum += first[r * stride + i];
    out[i] = sum;
  }
}

template <int N>
double SumOfSquares(const float* x, long count) {
  // sums of some thousand squares in float, their sum in double
  constexpr long kBlock = 4096;
  using Float = typename Register<N>::Float;
  double total = 0;
  for (long begin = 0; begin < count; begin += kBlock) {
    const long end = begin + kBlock < count ? begin + kBlock : count;
    Float sum[4] = {};
    long i = begin;
    for (; i + 4 * N <= end; i += 4 * N) {
#pragma GCC unroll 4
      for (int k = 0; k < 4; ++k) {
        const Float y = Register<N>::Load(x + i + k * N);
        sum[k] += y * y;
      }
    }
    float rest = 0;
    for (; i < end; ++i) rest += x[i] * x[i];
    total += Register<N>::Sum((sum[0] + sum[1]) + (sum[2] + sum[3])) + rest;
  }
  return total;
}

template <int N>
void Adam(const AdamRows& p) {
  const AdamStep step = {p.clip, p.rate, p.c1, p.c2, p.weight_decay};
  const float* __restrict gradient = p.gradient;
  float* __restrict flat = p.flat, * __restrict m = p.m, * __restrict v = p.v;
  if (p.held == nullptr) {
    for (long i = 0; i < p.count; ++i) {
      flat[i] = AdamParameter(step, flat[i], gradient[i], 0.0f, m + i, v + i);
    }
    return;
  }
  const float* __restrict held = p.held;
  for (long i = 0; i < p.count; ++i) {
    flat[i] = AdamParameter(step, flat[i], gradient[i], held[i], m + i, v + i);
  }
}

/// @tparam N floats in a register   @tparam R rows of a tile: R × 2 registers of sums, two of B and
/// one of A are to fit the processor's
template <int N, int R>
FloatKernel MakeFloatKernel(const char* name,
                            void (*product)(const FloatProduct&) = Multiply<N, R>,
                            long (*scratch)(const FloatProduct&) = NoScratch) {
  static_assert(kRowPadding % N == 0);
  return {name,
          2 * N,
          product,
          scratch,
          SumColumns<N>,
          ActorLoss<N>,
          CriticLoss<N>,
          AddRows<N>,
          SumOfSquares<N>,
          Adam<N>};
}

}  // namespace silc::SILC_KERNEL
