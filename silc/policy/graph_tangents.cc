// SPDX-License-Identifier: Apache-2.0
// Directional derivatives of a graph, pushed node by node, and the Jacobian made of them.
#include <algorithm>
#include <cmath>

#include "silc/base/check.h"
#include "silc/policy/graph.h"
#include "silc/policy/graph_compute.h"
#include "silc/policy/graph_maps.h"

namespace silc {
namespace {

// dy/dx at x, where y is the value.
template <typename Real>
Real UnarySlope(const GraphNode& node, Real x, Real y) {
  const Real alpha = static_cast<Real>(node.alpha);
  switch (node.op) {
    case Op::kElu:
      return x > 0 ? Real(1) : alpha * std::exp(x);
    case Op::kRelu:
      return x > 0 ? Real(1) : Real(0);
    case Op::kLeakyRelu:
      return x < 0 ? alpha : Real(1);
    case Op::kTanh:
      return 1 - y * y;
    case Op::kSigmoid:
      return y * (1 - y);
    case Op::kSoftplus:
      return x >= 0 ? 1 / (1 + std::exp(-x)) : std::exp(x) / (1 + std::exp(x));
    case Op::kSqrt:
      return Real(0.5) / y;
    case Op::kNeg:
      return Real(-1);
    case Op::kAbs:
      return x < 0 ? Real(-1) : Real(1);
    case Op::kExp:
      return y;
    case Op::kLog:
      return 1 / x;
    case Op::kReciprocal:
      return -y * y;
    case Op::kErf:
      return Real(1.1283791670955126) * std::exp(-x * x);  // 2/√π
    case Op::kClip:
      return x < alpha || x > static_cast<Real>(node.beta) ? Real(0) : Real(1);
    default:
      SILC_CHECK(false);
      return x;
  }
}

// ∂y/∂a and ∂y/∂b. The second is only right when b depends on an input; it is not used otherwise
// (the logarithm of a negative base would be a NaN for the harmless x²).
template <typename Real>
void BinarySlopes(Op op, Real a, Real b, bool b_active, Real* da, Real* db) {
  switch (op) {
    case Op::kAdd:
      *da = 1;
      *db = 1;
      return;
    case Op::kSub:
      *da = 1;
      *db = -1;
      return;
    case Op::kMul:
      *da = b;
      *db = a;
      return;
    case Op::kDiv:
      *da = 1 / b;
      *db = -a / (b * b);
      return;
    case Op::kPow:
      *da = b == 0 ? Real(0) : b * std::pow(a, b - 1);
      *db = b_active ? (a == 0 ? Real(0) : std::pow(a, b) * std::log(a)) : Real(0);
      return;
    case Op::kMin:
      *da = b < a ? Real(0) : Real(1);
      *db = 1 - *da;
      return;
    case Op::kMax:
      *da = b > a ? Real(0) : Real(1);
      *db = 1 - *da;
      return;
    default:
      SILC_CHECK(false);
  }
}

/// An operand of a node: its value, and its `T` directions where it depends on an input.
template <typename Real>
struct Operand {
  const Shape& shape;
  const Real* value;
  const Real* tangent;  // element-major
  bool active;
};

template <typename Real>
void PushMatMul(const NodeMaps& maps,
                std::int64_t T,
                const Operand<Real>& a,
                const Operand<Real>& b,
                Real* dy) {
  for (std::size_t batch = 0; batch < maps.a.size(); ++batch) {
    const std::int64_t at_a = maps.a[batch] * maps.m * maps.k;
    const std::int64_t at_b = maps.b[batch] * maps.k * maps.n;
    Real* d = dy + static_cast<std::int64_t>(batch) * maps.m * maps.n * T;
    for (std::int64_t m = 0; m < maps.m; ++m) {
      for (std::int64_t n = 0; n < maps.n; ++n, d += T) {
        for (std::int64_t k = 0; k < maps.k; ++k) {
          const std::int64_t ea = at_a + m * maps.k + k, eb = at_b + k * maps.n + n;
          if (a.active) Axpy(b.value[eb], a.tangent + ea * T, d, T);
          if (b.active) Axpy(a.value[ea], b.tangent + eb * T, d, T);
        }
      }
    }
  }
}

template <typename Real, typename In>
void PushGemm(const GraphNode& node,
              const NodeMaps& maps,
              std::int64_t T,
              const Shape& out_shape,
              const In& in,
              Real* dy) {
  const Real alpha = static_cast<Real>(node.alpha), beta = static_cast<Real>(node.beta);
  const Operand<Real> a = in(0), b = in(1);
  const std::int64_t rows = out_shape[0], cols = out_shape[1];
  const std::int64_t depth = node.trans_a ? a.shape[0] : a.shape[1];
  for (std::int64_t m = 0; m < rows; ++m) {
    for (std::int64_t n = 0; n < cols; ++n) {
      const std::int64_t e = m * cols + n;
      for (std::int64_t k = 0; k < depth; ++k) {
        const std::int64_t ea = node.trans_a ? k * rows + m : m * depth + k;
        const std::int64_t eb = node.trans_b ? n * depth + k : k * cols + n;
        if (a.active) Axpy(alpha * b.value[eb], a.tangent + ea * T, dy + e * T, T);
        if (b.active) Axpy(alpha * a.value[ea], b.tangent + eb * T, dy + e * T, T);
      }
      if (node.inputs.size() == 3 && in(2).active) {
        Axpy(beta, in(2).tangent + maps.a[U(e)] * T, dy + e * T, T);
      }
    }
  }
}

template <typename Real, typename In>
void PushConcat(
    const GraphNode& node, std::int64_t T, const Shape& out_shape, const In& in, Real* dy) {
  std::int64_t outer = 1;
  for (int i = 0; i < node.axis; ++i) outer *= out_shape[U(i)];
  const std::int64_t stride = NumElements(out_shape) / outer * T;
  std::int64_t at = 0;
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    const Operand<Real> part = in(i);
    const std::int64_t block = NumElements(part.shape) / outer * T;
    for (std::int64_t o = 0; part.active && o < outer; ++o) {
      std::copy_n(part.tangent + o * block, block, dy + o * stride + at);
    }
    at += block;
  }
}

/// dy_e = y_e (dx_e − Σ_group y dx). @param mean scratch, T numbers per group
template <typename Real>
void PushSoftmax(const NodeMaps& maps,
                 std::int64_t T,
                 std::int64_t size,
                 const Real* dx,
                 const Real* y,
                 Real* mean,
                 Real* dy) {
  std::fill_n(mean, maps.groups * T, Real(0));
  for (std::int64_t e = 0; e < size; ++e) Axpy(y[e], dx + e * T, mean + maps.a[U(e)] * T, T);
  for (std::int64_t e = 0; e < size; ++e) {
    const Real* group = mean + maps.a[U(e)] * T;
    for (std::int64_t t = 0; t < T; ++t) dy[e * T + t] = y[e] * (dx[e * T + t] - group[t]);
  }
}

/// n = (x − μ)/s:  dn = (dx − mean(dx) − n mean(n dx)) / s
template <typename Real, typename In>
void PushLayerNorm(
    const GraphNode& node, std::int64_t T, const Shape& out_shape, const In& in, Real* dy) {
  const Operand<Real> input = in(0), scale = in(1);
  const std::int64_t size = NumElements(out_shape);
  std::int64_t width = 1;
  for (std::size_t i = U(node.axis); i < out_shape.size(); ++i) width *= out_shape[i];
  const bool wide_scale = NumElements(scale.shape) > 1;
  const bool wide_bias = node.inputs.size() == 3 && NumElements(in(2).shape) > 1;
  const Real inverse_width = 1 / static_cast<Real>(width);
  for (std::int64_t begin = 0; begin < size; begin += width) {
    const Real* x = input.value + begin;
    Real mean = 0, variance = 0;
    for (std::int64_t e = 0; e < width; ++e) mean += x[e] * inverse_width;
    for (std::int64_t e = 0; e < width; ++e)
      variance += (x[e] - mean) * (x[e] - mean) * inverse_width;
    const Real inverse = 1 / std::sqrt(variance + static_cast<Real>(node.alpha));
    Real* d = dy + begin * T;
    for (std::int64_t t = 0; input.active && t < T; ++t) {
      const Real* dx = input.tangent + begin * T;
      Real mean_dx = 0, mean_ndx = 0;
      for (std::int64_t e = 0; e < width; ++e) {
        mean_dx += dx[e * T + t] * inverse_width;
        mean_ndx += (x[e] - mean) * inverse * dx[e * T + t] * inverse_width;
      }
      for (std::int64_t e = 0; e < width; ++e) {
        const Real n = (x[e] - mean) * inverse;
        d[e * T + t] =
            (dx[e * T + t] - mean_dx - n * mean_ndx) * inverse * scale.value[wide_scale ? e : 0];
      }
    }
    for (std::int64_t e = 0; e < width; ++e) {
      if (scale.active)
        Axpy((x[e] - mean) * inverse, scale.tangent + (wide_scale ? e : 0) * T, d + e * T, T);
      if (node.inputs.size() == 3 && in(2).active) {
        Axpy(Real(1), in(2).tangent + (wide_bias ? e : 0) * T, d + e * T, T);
      }
    }
  }
}

}  // namespace

template <typename Real>
void GraphEvaluator<Real>::SetTangentCount(int count) {
  SILC_CHECK(count > 0);
  tangent_count_ = count;
  tangents_.assign(tangent_elements_ * U(count), Real(0));
  tangent_scratch_.assign((scratch_.size() + 1) * U(count), Real(0));
}

template <typename Real>
std::span<Real> GraphEvaluator<Real>::input_tangents(int i) {
  return {Tangent(graph_->inputs()[U(i)]), U(graph_->input_width(i)) * U(tangent_count_)};
}

template <typename Real>
std::span<const Real> GraphEvaluator<Real>::output_tangents(int i) const {
  return {Tangent(graph_->outputs()[U(i)]), U(graph_->output_width(i)) * U(tangent_count_)};
}

template <typename Real>
void GraphEvaluator<Real>::PushTangents() {
  const auto& nodes = graph_->nodes();
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (Active(nodes[i].output)) PushNode(nodes[i], maps_[i]);
  }
}

template <typename Real>
void GraphEvaluator<Real>::PushNode(const GraphNode& node, const NodeMaps& maps) {
  const std::int64_t T = tangent_count_;
  const auto in = [&](std::size_t i) -> Operand<Real> {
    const ValueId id = node.inputs[i];
    return {graph_->value(id).shape, Value(id), Tangent(id), Active(id)};
  };
  const Shape& out_shape = graph_->value(node.output).shape;
  const std::int64_t size = NumElements(out_shape);
  const Real* y = Value(node.output);
  Real* dy = Tangent(node.output);

  if (IsUnary(node.op)) {
    const Operand<Real> x = in(0);
    for (std::int64_t e = 0; e < size; ++e) {
      const Real slope = UnarySlope(node, x.value[e], y[e]);
      for (std::int64_t t = 0; t < T; ++t) dy[e * T + t] = slope * x.tangent[e * T + t];
    }
    return;
  }

  std::fill_n(dy, size * T, Real(0));
  if (IsBinary(node.op)) {
    const Operand<Real> a = in(0), b = in(1);
    for (std::int64_t e = 0; e < size; ++e) {
      const std::int64_t ea = maps.a.empty() ? e : maps.a[U(e)];
      const std::int64_t eb = maps.b.empty() ? e : maps.b[U(e)];
      Real slope_a, slope_b;
      BinarySlopes(node.op, a.value[ea], b.value[eb], b.active, &slope_a, &slope_b);
      if (a.active) Axpy(slope_a, a.tangent + ea * T, dy + e * T, T);
      if (b.active) Axpy(slope_b, b.tangent + eb * T, dy + e * T, T);
    }
    return;
  }
  switch (node.op) {
    case Op::kMatMul:
      return PushMatMul(maps, T, in(0), in(1), dy);
    case Op::kGemm:
      return PushGemm(node, maps, T, out_shape, in, dy);
    case Op::kConcat:
      return PushConcat(node, T, out_shape, in, dy);
    case Op::kSelect: {
      const Real* dx = in(0).tangent;
      for (std::int64_t e = 0; e < size; ++e) {
        std::copy_n(dx + (node.index.empty() ? e : node.index[U(e)]) * T, T, dy + e * T);
      }
      return;
    }
    case Op::kSoftmax:
      return PushSoftmax(maps, T, size, in(0).tangent, y, tangent_scratch_.data(), dy);
    case Op::kReduceMean:
    case Op::kReduceSum: {
      const Operand<Real> x = in(0);
      const std::int64_t count = NumElements(x.shape);
      const Real share =
          node.op == Op::kReduceMean ? static_cast<Real>(size) / static_cast<Real>(count) : Real(1);
      for (std::int64_t e = 0; e < count; ++e)
        Axpy(share, x.tangent + e * T, dy + maps.a[U(e)] * T, T);
      return;
    }
    case Op::kLayerNorm:
      return PushLayerNorm(node, T, out_shape, in, dy);
    default:
      SILC_CHECK(false);
  }
}

// the members defined here; graph_evaluate.cc instantiates the class
template void GraphEvaluator<float>::SetTangentCount(int);
template std::span<float> GraphEvaluator<float>::input_tangents(int);
template std::span<const float> GraphEvaluator<float>::output_tangents(int) const;
template void GraphEvaluator<float>::PushTangents();
template void GraphEvaluator<float>::PushNode(const GraphNode&, const NodeMaps&);
template void GraphEvaluator<double>::SetTangentCount(int);
template std::span<double> GraphEvaluator<double>::input_tangents(int);
template std::span<const double> GraphEvaluator<double>::output_tangents(int) const;
template void GraphEvaluator<double>::PushTangents();
template void GraphEvaluator<double>::PushNode(const GraphNode&, const NodeMaps&);

template <typename Real>
std::vector<Real> GraphJacobian(GraphEvaluator<Real>* evaluator, int output, int input, int chunk) {
  const int rows = evaluator->graph().output_width(output);
  const int cols = evaluator->graph().input_width(input);
  chunk = std::min(chunk, cols);
  std::vector<Real> jacobian(U(rows) * U(cols));
  evaluator->SetTangentCount(chunk);
  for (int begin = 0; begin < cols; begin += chunk) {
    const int count = std::min(chunk, cols - begin);
    const std::span<Real> seed = evaluator->input_tangents(input);
    std::fill(seed.begin(), seed.end(), Real(0));
    for (int t = 0; t < count; ++t) seed[U(begin + t) * U(chunk) + U(t)] = Real(1);
    evaluator->PushTangents();
    const std::span<const Real> d = evaluator->output_tangents(output);
    for (int r = 0; r < rows; ++r) {
      for (int t = 0; t < count; ++t)
        jacobian[U(r) * U(cols) + U(begin + t)] = d[U(r) * U(chunk) + U(t)];
    }
  }
  return jacobian;
}

template std::vector<float> GraphJacobian(GraphEvaluator<float>*, int, int, int);
template std::vector<double> GraphJacobian(GraphEvaluator<double>*, int, int, int);

}  // namespace silc
