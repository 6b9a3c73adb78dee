// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

/// What an update without the tape spends its time in on the CPU, in float32, compiled once per
/// instruction set: docs/learning.md, "An update without the tape". All matrices are row-major.
/// Every sum has a fixed order that does not depend on how many rows a call has.
namespace silc {

/// Rows of buffers are filled up with zeros to a multiple of this: whole registers.
inline constexpr int kRowPadding = 16;
constexpr long InRegisters(long n) { return (n + kRowPadding - 1) / kRowPadding * kRowPadding; }

/// C = A B, and what is done to each entry before it is stored.
struct FloatProduct {
  enum class Finish {
    kNothing,
    kBias,     // + bias of the column
    kBiasElu,  // elu(… + bias)
    kSlope,    // · elu′(z), where h = elu(z) lies at `h`
  };
  int rows = 0, inner = 0, columns = 0;
  // A(r, i) = a[r a_row + i a_inner]; one of the two strides is 1
  const float* a = nullptr;
  long a_row = 0, a_inner = 0;
  // B(i, c) lies in the panel of c, c / panel: b[(c / panel) b_panel + i b_inner + c % panel]. Read
  // to the end of a register, so that B must go on to the next multiple of kRowPadding.
  const float* b = nullptr;
  long b_inner = 0, b_panel = 0;
  // C(r, c) = c[r c_row + c]. Nothing is written beyond `columns`.
  float* c = nullptr;
  long c_row = 0;
  bool add = false;  // C ← C + A B; only with kNothing
  Finish finish = Finish::kNothing;
  const float* bias = nullptr;  // (columns), padded as B is
  const float* h = nullptr;     // like C
  float* scratch = nullptr;     // FloatKernel::product_scratch()
};

/// (P4) over rows, with its gradient (P14), and the KL of (P7). Rows are `stride` apart, zero
/// beyond `count`. Sums are added to what is there.
struct ActorLossRows {
  int rows = 0, count = 0, stride = 0;
  const float* output = nullptr;                          // (rows, stride) μ
  const float *action = nullptr, *mean_old = nullptr;     // (rows, stride)
  const float *std = nullptr, *std_old = nullptr;         // (count)
  const float *logp_old = nullptr, *advantage = nullptr;  // (rows)
  float clip = 0;                                         // ε
  float scale = 1;                                        // of all sums: 1/rows of all pieces
  float* scratch = nullptr;                               // 4 · stride
  float *d_output = nullptr, *d_std = nullptr;            // (rows, stride), (count)
  float *surrogate = nullptr, *kl = nullptr;              // scale · sums
};

/// (P5) over rows, with its gradient. The sum is added to what is there.
struct CriticLossRows {
  int rows = 0, stride = 0;
  const float* output = nullptr;                        // (rows, stride), column 0
  const float *value_old = nullptr, *target = nullptr;  // (rows)
  float clip = 0;                                       // ε
  float weight = 1;                                     // of the value loss in the gradient
  float scale = 1;                                      // of all sums
  float* d_output = nullptr;                            // (rows, stride), column 0
  float* loss = nullptr;                                // scale · sum
};

/// (P8), (P9) of one network's parameters.
struct AdamRows {
  long count = 0;
  const float* gradient = nullptr;
  const float* held = nullptr;  // a gradient to add after clipping; null: none
  float *flat = nullptr, *m = nullptr, *v = nullptr;
  float clip = 1, rate = 0, c1 = 1, c2 = 1, weight_decay = 0;  // AdamStep of ppo_terms.h
};

struct FloatKernel {
  const char* name;
  int panel;  // columns of B that lie side by side
  void (*product)(const FloatProduct& product);
  /// How many floats a product needs beside its operands.
  long (*product_scratch)(const FloatProduct& product);
  /// out[c] ← out[c] + Σ_r d[r stride + c]
  void (*column_sums)(const float* d, long stride, int rows, int columns, float* out);
  void (*actor_loss)(const ActorLossRows& rows);
  void (*critic_loss)(const CriticLossRows& rows);
  /// out = first + second + … of rows that are `stride` apart
  void (*add_rows)(const float* first, long stride, int rows, long count, float* out);
  double (*sum_of_squares)(const float* x, long count);
  void (*adam)(const AdamRows& rows);
};

/// The kernels this processor can run, widest first; never empty.
std::vector<FloatKernel> AvailableFloatKernels();
const FloatKernel& BestFloatKernel();
/// The kernel whose products round their operands to bfloat16, 8 bits of mantissa, and add up in
/// float; all else is float. Null where the processor has no instruction for it.
const FloatKernel* Bfloat16Kernel();

}  // namespace silc
