// SPDX-License-Identifier: Apache-2.0
#pragma once

// The value of one node from its operands, for GraphBuilder (constants, in double) and
// GraphEvaluator. Shared by graph*.cc; nobody else includes it.
#include <algorithm>
#include <cmath>
#include <limits>

#include "silc/base/check.h"
#include "silc/policy/graph_maps.h"

namespace silc {

// Eight partial sums: the compiler may then use vector registers without reordering any one sum.
template <typename Real>
Real Dot(const Real* a, const Real* b, std::int64_t n) {
  Real sum[8] = {};
  std::int64_t i = 0;
  for (; i + 8 <= n; i += 8) {
    for (int l = 0; l < 8; ++l) sum[l] += a[i + l] * b[i + l];
  }
  for (; i < n; ++i) sum[0] += a[i] * b[i];
  return ((sum[0] + sum[4]) + (sum[1] + sum[5])) + ((sum[2] + sum[6]) + (sum[3] + sum[7]));
}

// y += s·x
template <typename Real>
void Axpy(Real s, const Real* x, Real* y, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) y[i] += s * x[i];
}

template <typename Real>
Real Unary(const GraphNode& node, Real x) {
  const Real alpha = static_cast<Real>(node.alpha);
  switch (node.op) {
    case Op::kElu:
      return x > 0 ? x : alpha * std::expm1(x);
    case Op::kRelu:
      return x < 0 ? Real(0) : x;  // a NaN stays one
    case Op::kLeakyRelu:
      return x < 0 ? alpha * x : x;
    case Op::kTanh:
      return std::tanh(x);
    case Op::kSigmoid:
      // the exponent is never positive, so nothing overflows
      return x >= 0 ? 1 / (1 + std::exp(-x)) : std::exp(x) / (1 + std::exp(x));
    case Op::kSoftplus:
      return std::max(x, Real(0)) + std::log1p(std::exp(-std::abs(x)));
    case Op::kSqrt:
      return std::sqrt(x);
    case Op::kNeg:
      return -x;
    case Op::kAbs:
      return std::abs(x);
    case Op::kExp:
      return std::exp(x);
    case Op::kLog:
      return std::log(x);
    case Op::kReciprocal:
      return 1 / x;
    case Op::kErf:
      return std::erf(x);
    case Op::kClip:
      return x < alpha ? alpha
                       : (x > static_cast<Real>(node.beta) ? static_cast<Real>(node.beta) : x);
    default:
      SILC_CHECK(false);
      return x;
  }
}

template <typename Real>
Real Binary(Op op, Real a, Real b) {
  switch (op) {
    case Op::kAdd:
      return a + b;
    case Op::kSub:
      return a - b;
    case Op::kMul:
      return a * b;
    case Op::kDiv:
      return a / b;
    case Op::kPow:
      return std::pow(a, b);
    case Op::kMin:
      return b < a || std::isnan(b) ? b : a;
    case Op::kMax:
      return b > a || std::isnan(b) ? b : a;
    default:
      SILC_CHECK(false);
      return a;
  }
}

/// out = node(in...). `in(i)` is the data of operand i; `scratch` holds maps.groups numbers.
template <typename Real, typename In>
void ComputeNode(const GraphNode& node,
                 const std::vector<GraphValue>& values,
                 const NodeMaps& maps,
                 const In& in,
                 Real* scratch,
                 Real* out) {
  const auto shape = [&](std::size_t i) -> const Shape& { return values[U(node.inputs[i])].shape; };
  const Shape& out_shape = values[U(node.output)].shape;
  const std::int64_t size = NumElements(out_shape);

  if (IsUnary(node.op)) {
    const Real* x = in(0);
    for (std::int64_t e = 0; e < size; ++e) out[e] = Unary(node, x[e]);
    return;
  }
  if (IsBinary(node.op)) {
    const Real* a = in(0);
    const Real* b = in(1);
    for (std::int64_t e = 0; e < size; ++e) {
      out[e] = Binary(node.op,
                      a[maps.a.empty() ? U(e) : U(maps.a[U(e)])],
                      b[maps.b.empty() ? U(e) : U(maps.b[U(e)])]);
    }
    return;
  }
  switch (node.op) {
    case Op::kMatMul: {
      for (std::size_t batch = 0; batch < maps.a.size(); ++batch) {
        const Real* a = in(0) + maps.a[batch] * maps.m * maps.k;
        const Real* b = in(1) + maps.b[batch] * maps.k * maps.n;
        Real* y = out + static_cast<std::int64_t>(batch) * maps.m * maps.n;
        std::fill(y, y + maps.m * maps.n, Real(0));
        for (std::int64_t m = 0; m < maps.m; ++m) {
          for (std::int64_t k = 0; k < maps.k; ++k)
            Axpy(a[m * maps.k + k], b + k * maps.n, y + m * maps.n, maps.n);
        }
      }
      return;
    }
    case Op::kGemm: {
      const Real alpha = static_cast<Real>(node.alpha);
      const Real beta = static_cast<Real>(node.beta);
      const Real* a = in(0);
      const Real* b = in(1);
      const std::int64_t rows = out_shape[0], cols = out_shape[1];
      const std::int64_t depth = node.trans_a ? shape(0)[0] : shape(0)[1];
      std::fill(out, out + size, Real(0));
      for (std::int64_t m = 0; m < rows; ++m) {
        Real* y = out + m * cols;
        if (node.trans_b && !node.trans_a) {
          for (std::int64_t n = 0; n < cols; ++n) y[n] = Dot(a + m * depth, b + n * depth, depth);
        } else {
          for (std::int64_t k = 0; k < depth; ++k) {
            const Real a_mk = node.trans_a ? a[k * rows + m] : a[m * depth + k];
            if (node.trans_b) {
              for (std::int64_t n = 0; n < cols; ++n) y[n] += a_mk * b[n * depth + k];
            } else {
              Axpy(a_mk, b + k * cols, y, cols);
            }
          }
        }
      }
      for (std::int64_t e = 0; e < size; ++e) {
        out[e] *= alpha;
        if (node.inputs.size() == 3) out[e] += beta * in(2)[maps.a[U(e)]];
      }
      return;
    }
    case Op::kConcat: {
      std::int64_t outer = 1;
      for (int i = 0; i < node.axis; ++i) outer *= out_shape[U(i)];
      const std::int64_t stride = size / outer;
      std::int64_t at = 0;
      for (std::size_t i = 0; i < node.inputs.size(); ++i) {
        const std::int64_t block = NumElements(shape(i)) / outer;
        for (std::int64_t o = 0; o < outer; ++o) {
          std::copy_n(in(static_cast<int>(i)) + o * block, block, out + o * stride + at);
        }
        at += block;
      }
      return;
    }
    case Op::kSelect: {
      const Real* x = in(0);
      if (node.index.empty()) {
        std::copy_n(x, size, out);
      } else {
        for (std::int64_t e = 0; e < size; ++e) out[e] = x[node.index[U(e)]];
      }
      return;
    }
    case Op::kSoftmax: {
      const Real* x = in(0);
      // the largest of each group first: the exponent is then never positive
      std::fill_n(scratch, maps.groups, -std::numeric_limits<Real>::infinity());
      for (std::int64_t e = 0; e < size; ++e) {
        Real& top = scratch[maps.a[U(e)]];
        top = std::max(top, x[e]);
      }
      for (std::int64_t e = 0; e < size; ++e) out[e] = std::exp(x[e] - scratch[maps.a[U(e)]]);
      std::fill_n(scratch, maps.groups, Real(0));
      for (std::int64_t e = 0; e < size; ++e) scratch[maps.a[U(e)]] += out[e];
      for (std::int64_t e = 0; e < size; ++e) out[e] /= scratch[maps.a[U(e)]];
      return;
    }
    case Op::kReduceMean:
    case Op::kReduceSum: {
      const Real* x = in(0);
      const std::int64_t count = NumElements(shape(0));
      std::fill_n(out, size, Real(0));
      for (std::int64_t e = 0; e < count; ++e) out[maps.a[U(e)]] += x[e];
      if (node.op == Op::kReduceMean) {
        const Real share = static_cast<Real>(size) / static_cast<Real>(count);
        for (std::int64_t e = 0; e < size; ++e) out[e] *= share;
      }
      return;
    }
    case Op::kLayerNorm: {
      std::int64_t width = 1;
      for (std::size_t i = U(node.axis); i < out_shape.size(); ++i) width *= out_shape[i];
      const bool wide_scale = NumElements(shape(1)) > 1;
      const bool wide_bias = node.inputs.size() == 3 && NumElements(shape(2)) > 1;
      for (std::int64_t begin = 0; begin < size; begin += width) {
        const Real* x = in(0) + begin;
        Real mean = 0, variance = 0;
        for (std::int64_t e = 0; e < width; ++e) mean += x[e];
        mean /= static_cast<Real>(width);
        for (std::int64_t e = 0; e < width; ++e) variance += (x[e] - mean) * (x[e] - mean);
        variance /= static_cast<Real>(width);
        const Real inverse = 1 / std::sqrt(variance + static_cast<Real>(node.alpha));
        for (std::int64_t e = 0; e < width; ++e) {
          Real y = (x[e] - mean) * inverse * in(1)[wide_scale ? e : 0];
          if (node.inputs.size() == 3) y += in(2)[wide_bias ? e : 0];
          out[begin + e] = y;
        }
      }
      return;
    }
    default:
      SILC_CHECK(false);
  }
}

}  // namespace silc
