// SPDX-License-Identifier: Apache-2.0
#include "silc/policy/graph.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "silc/base/check.h"
#include "silc/base/error.h"

namespace silc {
namespace {

std::size_t U(std::int64_t i) { return static_cast<std::size_t>(i); }

/// Row-major strides, 0 along axes where `from` is stretched to fill `to`. Ranks are aligned at the
/// end.
Shape BroadcastStrides(const Shape& from, const Shape& to) {
  Shape strides(to.size(), 0);
  std::int64_t stride = 1;
  for (std::size_t i = 0; i < from.size(); ++i) {
    const std::size_t axis_from = from.size() - 1 - i;
    const std::size_t axis_to = to.size() - 1 - i;
    if (from[axis_from] != 1) strides[axis_to] = stride;
    stride *= from[axis_from];
  }
  return strides;
}

/// For every element of `shape` in row-major order, Σ index·strides + start.
std::vector<std::int32_t> WalkStrides(const Shape& shape,
                                      const Shape& strides,
                                      std::int64_t start) {
  std::vector<std::int32_t> map(U(NumElements(shape)));
  Shape index(shape.size(), 0);
  std::int64_t at = start;
  for (std::int32_t& element : map) {
    element = static_cast<std::int32_t>(at);
    for (std::size_t axis = shape.size(); axis-- > 0;) {
      at += strides[axis];
      if (++index[axis] < shape[axis]) break;
      at -= strides[axis] * shape[axis];
      index[axis] = 0;
    }
  }
  return map;
}

bool IsBinary(Op op) { return op <= Op::kMax; }
bool IsUnary(Op op) { return op >= Op::kElu && op <= Op::kClip; }

/// A matrix product's operands as stacks of matrices, after numpy's rules for vectors.
struct MatMulShapes {
  Shape a, b;              // at least two axes each
  Shape batch_a, batch_b;  // the axes before
  Shape batch;             // broadcast
  std::int64_t m, k, n;
};

bool SplitMatMul(const Shape& a_in, const Shape& b_in, MatMulShapes* s) {
  s->a = a_in;
  s->b = b_in;
  if (s->a.empty() || s->b.empty()) return false;
  if (s->a.size() == 1) s->a.insert(s->a.begin(), 1);
  if (s->b.size() == 1) s->b.push_back(1);
  s->m = s->a[s->a.size() - 2];
  s->k = s->a.back();
  s->n = s->b.back();
  if (s->b[s->b.size() - 2] != s->k) return false;
  s->batch_a.assign(s->a.begin(), s->a.end() - 2);
  s->batch_b.assign(s->b.begin(), s->b.end() - 2);
  return BroadcastShapes(s->batch_a, s->batch_b, &s->batch);
}

/// Group of each element when `axes` are reduced: all elements that differ only along them share
/// one.
std::vector<std::int32_t> GroupMap(const Shape& shape, const std::vector<int>& axes, int* groups) {
  Shape kept = shape;
  for (const int axis : axes) kept[U(axis)] = 1;
  *groups = static_cast<int>(NumElements(kept));
  return WalkStrides(shape, BroadcastStrides(kept, shape), 0);
}

NodeMaps MakeMaps(const GraphNode& node, const std::vector<GraphValue>& values) {
  NodeMaps maps;
  const auto shape = [&](int i) -> const Shape& { return values[U(node.inputs[U(i)])].shape; };
  const Shape& out = values[U(node.output)].shape;
  if (IsBinary(node.op)) {
    if (shape(0) != out) maps.a = WalkStrides(out, BroadcastStrides(shape(0), out), 0);
    if (shape(1) != out) maps.b = WalkStrides(out, BroadcastStrides(shape(1), out), 0);
  } else if (node.op == Op::kMatMul) {
    MatMulShapes s;
    SILC_CHECK(SplitMatMul(shape(0), shape(1), &s));
    maps.a = WalkStrides(s.batch, BroadcastStrides(s.batch_a, s.batch), 0);
    maps.b = WalkStrides(s.batch, BroadcastStrides(s.batch_b, s.batch), 0);
    maps.m = s.m;
    maps.k = s.k;
    maps.n = s.n;
  } else if (node.op == Op::kGemm && node.inputs.size() == 3) {
    maps.a = WalkStrides(out, BroadcastStrides(shape(2), out), 0);
  } else if (node.op == Op::kSoftmax || node.op == Op::kReduceMean || node.op == Op::kReduceSum) {
    maps.a = GroupMap(shape(0), node.axes, &maps.groups);
  }
  return maps;
}

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

}  // namespace

std::int64_t NumElements(const Shape& shape) {
  std::int64_t count = 1;
  for (const std::int64_t size : shape) count *= size;
  return count;
}

std::string ShapeText(const Shape& shape) {
  std::string text = "[";
  for (std::size_t i = 0; i < shape.size(); ++i) {
    text += (i > 0 ? ", " : "") + std::to_string(shape[i]);
  }
  return text + "]";
}

bool BroadcastShapes(const Shape& a, const Shape& b, Shape* result) {
  Shape out(std::max(a.size(), b.size()));
  for (std::size_t i = 0; i < out.size(); ++i) {
    const std::int64_t size_a = i < a.size() ? a[a.size() - 1 - i] : 1;
    const std::int64_t size_b = i < b.size() ? b[b.size() - 1 - i] : 1;
    if (size_a != size_b && size_a != 1 && size_b != 1) return false;
    out[out.size() - 1 - i] = std::max(size_a, size_b);
  }
  *result = std::move(out);
  return true;
}

// ----------------------------------------------------------------------------------------------
// Graph

int Graph::FindInput(const std::string& name) const {
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    if (value(inputs_[i]).name == name) return static_cast<int>(i);
  }
  return -1;
}

int Graph::FindOutput(const std::string& name) const {
  for (std::size_t i = 0; i < output_names_.size(); ++i) {
    if (output_names_[i] == name) return static_cast<int>(i);
  }
  return -1;
}

int Graph::input_width(int input) const {
  return static_cast<int>(NumElements(value(inputs_[U(input)]).shape));
}

int Graph::output_width(int output) const {
  return static_cast<int>(NumElements(value(outputs_[U(output)]).shape));
}

// ---------------------------------------------------------------------------------------
// GraphBuilder

struct GraphBuilder::Impl {
  GraphLimits limits;
  Graph graph;
  std::int64_t total_elements = 0;
  std::int64_t total_work = 0;

  [[noreturn]] static void Fail(const std::string& name, const std::string& what) {
    throw ConfigError("node '" + name + "': " + what);
  }

  const Shape& shape(ValueId id) const { return graph.value(id).shape; }

  // Everything that is about to be allocated comes through here first.
  void Admit(const std::string& what, const Shape& new_shape) {
    if (static_cast<std::int64_t>(new_shape.size()) > limits.max_rank) {
      throw ConfigError(what + ": " + std::to_string(new_shape.size()) + " axes, at most " +
                        std::to_string(limits.max_rank) + " are supported");
    }
    std::int64_t count = 1;
    for (const std::int64_t size : new_shape) {
      if (size < 1)
        throw ConfigError(what + ": shape " + ShapeText(new_shape) + " has an empty axis");
      if (size > limits.max_elements / count) {
        throw ConfigError(what + ": shape " + ShapeText(new_shape) + " is larger than " +
                          std::to_string(limits.max_elements) + " elements");
      }
      count *= size;
    }
    if (total_elements + count > limits.max_total_elements) {
      throw ConfigError(what + ": the graph's tensors together are larger than " +
                        std::to_string(limits.max_total_elements) + " elements");
    }
    total_elements += count;
  }

  ValueId NewValue(std::string name, Shape new_shape) {
    GraphValue value;
    value.name = std::move(name);
    value.shape = std::move(new_shape);
    graph.values_.push_back(std::move(value));
    return static_cast<ValueId>(graph.values_.size()) - 1;
  }

  // Adds the node, or its value when all operands are constants. `work` is in multiply-adds.
  ValueId AddNode(GraphNode node, Shape out_shape, std::int64_t work) {
    const std::string what = "node '" + node.name + "'";
    if (static_cast<std::int64_t>(graph.nodes_.size()) >= limits.max_nodes) {
      throw ConfigError(what + ": more than " + std::to_string(limits.max_nodes) + " nodes");
    }
    Admit(what, out_shape);
    const std::int64_t count = NumElements(out_shape);
    if (work < 0 || work > limits.max_work - total_work) {
      throw ConfigError(what + ": one evaluation takes more than " +
                        std::to_string(limits.max_work) + " multiply-adds");
    }
    total_work += std::max(work, count);

    bool constant = true;
    for (const ValueId id : node.inputs) constant = constant && graph.value(id).is_constant;
    node.output = NewValue(node.name, std::move(out_shape));
    if (!constant) {
      graph.nodes_.push_back(std::move(node));
      return graph.nodes_.back().output;
    }

    // rounded once, at the end: closer to the truth than a chain in float32
    std::vector<std::vector<double>> operands;
    for (const ValueId id : node.inputs) {
      operands.emplace_back(graph.value(id).data.begin(), graph.value(id).data.end());
    }
    const NodeMaps maps = MakeMaps(node, graph.values_);
    std::vector<double> scratch(U(maps.groups)), result(U(count));
    ComputeNode<double>(
        node,
        graph.values_,
        maps,
        [&](int i) { return static_cast<const double*>(operands[U(i)].data()); },
        scratch.data(),
        result.data());
    GraphValue& value = graph.values_[U(node.output)];
    value.is_constant = true;
    value.data.resize(result.size());
    std::transform(result.begin(), result.end(), value.data.begin(), [](double x) {
      return static_cast<float>(x);
    });
    return node.output;
  }

  ValueId AddSelect(const std::string& name,
                    ValueId x,
                    Shape out_shape,
                    std::vector<std::int32_t> index) {
    GraphNode node;
    node.op = Op::kSelect;
    node.name = name;
    node.inputs = {x};
    node.index = std::move(index);
    return AddNode(std::move(node), std::move(out_shape), 0);
  }
};

GraphBuilder::GraphBuilder(GraphLimits limits) : impl_(std::make_unique<Impl>()) {
  impl_->limits = limits;
}
GraphBuilder::~GraphBuilder() = default;

const Shape& GraphBuilder::shape(ValueId id) const { return impl_->shape(id); }
bool GraphBuilder::is_constant(ValueId id) const { return impl_->graph.value(id).is_constant; }
const std::vector<float>& GraphBuilder::data(ValueId id) const {
  SILC_CHECK(is_constant(id));
  return impl_->graph.value(id).data;
}

ValueId GraphBuilder::AddInput(const std::string& name, Shape input_shape) {
  impl_->Admit("input '" + name + "'", input_shape);
  const ValueId id = impl_->NewValue(name, std::move(input_shape));
  impl_->graph.values_[U(id)].is_input = true;
  impl_->graph.inputs_.push_back(id);
  return id;
}

ValueId GraphBuilder::AddConstant(const std::string& name,
                                  Shape constant_shape,
                                  std::vector<float> values) {
  impl_->Admit("constant '" + name + "'", constant_shape);
  if (NumElements(constant_shape) != static_cast<std::int64_t>(values.size())) {
    throw ConfigError("constant '" + name + "': shape " + ShapeText(constant_shape) + " but " +
                      std::to_string(values.size()) + " numbers");
  }
  const ValueId id = impl_->NewValue(name, std::move(constant_shape));
  impl_->graph.values_[U(id)].is_constant = true;
  impl_->graph.values_[U(id)].data = std::move(values);
  return id;
}

ValueId GraphBuilder::AddBinary(Op op, const std::string& name, ValueId a, ValueId b) {
  SILC_CHECK(IsBinary(op));
  Shape out;
  if (!BroadcastShapes(shape(a), shape(b), &out)) {
    Impl::Fail(
        name,
        "shapes " + ShapeText(shape(a)) + " and " + ShapeText(shape(b)) + " do not broadcast");
  }
  GraphNode node;
  node.op = op;
  node.name = name;
  node.inputs = {a, b};
  return impl_->AddNode(std::move(node), std::move(out), 0);
}

ValueId GraphBuilder::AddUnary(Op op, const std::string& name, ValueId x, float alpha, float beta) {
  SILC_CHECK(IsUnary(op));
  GraphNode node;
  node.op = op;
  node.name = name;
  node.inputs = {x};
  node.alpha = alpha;
  node.beta = beta;
  return impl_->AddNode(std::move(node), shape(x), 0);
}

ValueId GraphBuilder::AddMatMul(const std::string& name, ValueId a, ValueId b) {
  MatMulShapes s;
  if (!SplitMatMul(shape(a), shape(b), &s)) {
    Impl::Fail(
        name,
        "shapes " + ShapeText(shape(a)) + " and " + ShapeText(shape(b)) + " cannot be multiplied");
  }
  Shape out = s.batch;
  if (shape(a).size() > 1) out.push_back(s.m);
  if (shape(b).size() > 1) out.push_back(s.n);
  // in floating point: three sizes near the limit would overflow an integer
  const double work = static_cast<double>(NumElements(out)) * static_cast<double>(s.k);
  GraphNode node;
  node.op = Op::kMatMul;
  node.name = name;
  node.inputs = {a, b};
  return impl_->AddNode(
      std::move(node), std::move(out), work > 9e18 ? -1 : static_cast<std::int64_t>(work));
}

ValueId GraphBuilder::AddGemm(const std::string& name,
                              ValueId a,
                              ValueId b,
                              ValueId c,
                              float alpha,
                              float beta,
                              bool trans_a,
                              bool trans_b) {
  if (shape(a).size() != 2 || shape(b).size() != 2) {
    Impl::Fail(
        name,
        "operands must be matrices, got " + ShapeText(shape(a)) + " and " + ShapeText(shape(b)));
  }
  const std::int64_t m = shape(a)[trans_a ? 1 : 0], k = shape(a)[trans_a ? 0 : 1];
  const std::int64_t n = shape(b)[trans_b ? 0 : 1];
  if (k != shape(b)[trans_b ? 1 : 0]) {
    Impl::Fail(name,
               "shapes " + ShapeText(shape(a)) + (trans_a ? "ᵀ" : "") + " and " +
                   ShapeText(shape(b)) + (trans_b ? "ᵀ" : "") + " cannot be multiplied");
  }
  Shape out;
  if (c >= 0 && (!BroadcastShapes(shape(c), {m, n}, &out) || out != Shape{m, n})) {
    Impl::Fail(
        name,
        "the added tensor " + ShapeText(shape(c)) + " does not broadcast to " + ShapeText({m, n}));
  }
  const double work = static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
  GraphNode node;
  node.op = Op::kGemm;
  node.name = name;
  node.inputs = {a, b};
  if (c >= 0) node.inputs.push_back(c);
  node.alpha = alpha;
  node.beta = beta;
  node.trans_a = trans_a;
  node.trans_b = trans_b;
  return impl_->AddNode(
      std::move(node), {m, n}, work > 9e18 ? -1 : static_cast<std::int64_t>(work));
}

ValueId GraphBuilder::AddConcat(const std::string& name,
                                const std::vector<ValueId>& parts,
                                int axis) {
  if (parts.empty()) Impl::Fail(name, "nothing to concatenate");
  Shape out = shape(parts[0]);
  if (axis < 0 || axis >= static_cast<int>(out.size())) {
    Impl::Fail(name, "axis " + std::to_string(axis) + " of shape " + ShapeText(out));
  }
  for (std::size_t i = 1; i < parts.size(); ++i) {
    Shape part = shape(parts[i]);
    if (part.size() != out.size()) {
      Impl::Fail(name, "shapes " + ShapeText(out) + " and " + ShapeText(part));
    }
    const std::int64_t along = part[U(axis)];
    part[U(axis)] = out[U(axis)];
    if (part != out) {
      Impl::Fail(name,
                 "shapes " + ShapeText(out) + " and " + ShapeText(shape(parts[i])) +
                     " differ beside axis " + std::to_string(axis));
    }
    out[U(axis)] += along;
  }
  GraphNode node;
  node.op = Op::kConcat;
  node.name = name;
  node.inputs = parts;
  node.axis = axis;
  return impl_->AddNode(std::move(node), std::move(out), 0);
}

ValueId GraphBuilder::AddReshape(const std::string& name, ValueId x, Shape new_shape) {
  // compared axis by axis: the product of a hostile shape overflows
  std::int64_t count = 1;
  for (const std::int64_t size : new_shape) {
    if (size < 1 || size > NumElements(shape(x)) / count) {
      count = -1;
      break;
    }
    count *= size;
  }
  if (count != NumElements(shape(x))) {
    Impl::Fail(name, "cannot reshape " + ShapeText(shape(x)) + " to " + ShapeText(new_shape));
  }
  return impl_->AddSelect(name, x, std::move(new_shape), {});
}

ValueId GraphBuilder::AddTranspose(const std::string& name,
                                   ValueId x,
                                   const std::vector<int>& perm) {
  const Shape& in = shape(x);
  std::vector<char> seen(in.size(), 0);
  bool valid = perm.size() == in.size();
  for (std::size_t i = 0; valid && i < perm.size(); ++i) {
    valid = perm[i] >= 0 && U(perm[i]) < in.size() && !seen[U(perm[i])];
    if (valid) seen[U(perm[i])] = 1;
  }
  if (!valid) Impl::Fail(name, "perm is no permutation of the axes of " + ShapeText(in));
  const Shape strides = BroadcastStrides(in, in);
  Shape out(in.size()), walk(in.size());
  for (std::size_t i = 0; i < in.size(); ++i) {
    out[i] = in[U(perm[i])];
    walk[i] = strides[U(perm[i])];
  }
  std::vector<std::int32_t> index = WalkStrides(out, walk, 0);
  return impl_->AddSelect(name, x, std::move(out), std::move(index));
}

ValueId GraphBuilder::AddSlice(const std::string& name,
                               ValueId x,
                               const std::vector<std::int64_t>& starts,
                               const std::vector<std::int64_t>& steps,
                               const Shape& sizes) {
  const Shape& in = shape(x);
  SILC_CHECK(starts.size() == in.size() && steps.size() == in.size() && sizes.size() == in.size());
  Shape walk = BroadcastStrides(in, in);
  std::int64_t start = 0;
  for (std::size_t i = 0; i < in.size(); ++i) {
    if (sizes[i] < 1) Impl::Fail(name, "the slice along axis " + std::to_string(i) + " is empty");
    const std::int64_t last = starts[i] + steps[i] * (sizes[i] - 1);
    if (starts[i] < 0 || starts[i] >= in[i] || last < 0 || last >= in[i]) {
      Impl::Fail(name, "the slice leaves axis " + std::to_string(i) + " of " + ShapeText(in));
    }
    start += starts[i] * walk[i];
    walk[i] *= steps[i];
  }
  std::vector<std::int32_t> index = WalkStrides(sizes, walk, start);
  return impl_->AddSelect(name, x, sizes, std::move(index));
}

ValueId GraphBuilder::AddGather(const std::string& name,
                                ValueId x,
                                int axis,
                                const std::vector<std::int64_t>& indices,
                                const Shape& indices_shape) {
  const Shape& in = shape(x);
  if (axis < 0 || U(axis) >= in.size()) {
    Impl::Fail(name, "axis " + std::to_string(axis) + " of shape " + ShapeText(in));
  }
  for (const std::int64_t i : indices) {
    if (i < 0 || i >= in[U(axis)]) {
      Impl::Fail(name,
                 "index " + std::to_string(i) + " leaves axis " + std::to_string(axis) + " of " +
                     ShapeText(in));
    }
  }
  SILC_CHECK(NumElements(indices_shape) == static_cast<std::int64_t>(indices.size()));
  Shape out(in.begin(), in.begin() + axis);
  out.insert(out.end(), indices_shape.begin(), indices_shape.end());
  out.insert(out.end(), in.begin() + axis + 1, in.end());
  std::int64_t outer = 1, inner = 1;
  for (int i = 0; i < axis; ++i) outer *= in[U(i)];
  for (std::size_t i = U(axis) + 1; i < in.size(); ++i) inner *= in[i];
  // before the map is built: gathering can make a tensor larger than what it gathers from
  const double count =
      static_cast<double>(outer) * static_cast<double>(indices.size()) * static_cast<double>(inner);
  if (indices.empty() || count > static_cast<double>(impl_->limits.max_elements)) {
    Impl::Fail(name, "gathers " + std::to_string(indices.size()) + " rows of " + ShapeText(in));
  }
  std::vector<std::int32_t> index;
  index.reserve(static_cast<std::size_t>(count));
  for (std::int64_t o = 0; o < outer; ++o) {
    for (const std::int64_t i : indices) {
      for (std::int64_t e = 0; e < inner; ++e) {
        index.push_back(static_cast<std::int32_t>((o * in[U(axis)] + i) * inner + e));
      }
    }
  }
  return impl_->AddSelect(name, x, std::move(out), std::move(index));
}

ValueId GraphBuilder::AddExpand(const std::string& name, ValueId x, const Shape& to) {
  Shape out;
  if (!BroadcastShapes(shape(x), to, &out)) {
    Impl::Fail(name, "cannot expand " + ShapeText(shape(x)) + " to " + ShapeText(to));
  }
  const std::int64_t before = impl_->total_elements;
  impl_->Admit("node '" + name + "'", out);
  impl_->total_elements = before;  // AddSelect() counts it
  std::vector<std::int32_t> index = WalkStrides(out, BroadcastStrides(shape(x), out), 0);
  return impl_->AddSelect(name, x, std::move(out), std::move(index));
}

ValueId GraphBuilder::AddSoftmax(const std::string& name, ValueId x, const std::vector<int>& axes) {
  for (const int axis : axes) {
    if (axis < 0 || U(axis) >= shape(x).size()) {
      Impl::Fail(name, "axis " + std::to_string(axis) + " of shape " + ShapeText(shape(x)));
    }
  }
  GraphNode node;
  node.op = Op::kSoftmax;
  node.name = name;
  node.inputs = {x};
  node.axes = axes;
  return impl_->AddNode(std::move(node), shape(x), 0);
}

ValueId GraphBuilder::AddReduce(
    Op op, const std::string& name, ValueId x, std::vector<int> axes, bool keep_dims) {
  SILC_CHECK(op == Op::kReduceMean || op == Op::kReduceSum);
  std::sort(axes.begin(), axes.end());
  axes.erase(std::unique(axes.begin(), axes.end()), axes.end());
  Shape out;
  for (std::size_t i = 0, next = 0; i < shape(x).size(); ++i) {
    if (next < axes.size() && axes[next] == static_cast<int>(i)) {
      ++next;
      if (keep_dims) out.push_back(1);
    } else {
      out.push_back(shape(x)[i]);
    }
  }
  for (const int axis : axes) {
    if (axis < 0 || U(axis) >= shape(x).size()) {
      Impl::Fail(name, "axis " + std::to_string(axis) + " of shape " + ShapeText(shape(x)));
    }
  }
  const std::int64_t work = NumElements(shape(x));
  GraphNode node;
  node.op = op;
  node.name = name;
  node.inputs = {x};
  node.axes = std::move(axes);
  return impl_->AddNode(std::move(node), std::move(out), work);
}

ValueId GraphBuilder::AddLayerNorm(
    const std::string& name, ValueId x, ValueId scale, ValueId bias, int axis, float epsilon) {
  if (axis < 0 || U(axis) >= shape(x).size()) {
    Impl::Fail(name, "axis " + std::to_string(axis) + " of shape " + ShapeText(shape(x)));
  }
  const Shape normalised(shape(x).begin() + axis, shape(x).end());
  for (const ValueId id : {scale, bias}) {
    if (id < 0) continue;
    if (NumElements(shape(id)) != 1 && shape(id) != normalised) {
      Impl::Fail(name,
                 "scale and bias must have shape " + ShapeText(normalised) + ", got " +
                     ShapeText(shape(id)));
    }
  }
  GraphNode node;
  node.op = Op::kLayerNorm;
  node.name = name;
  node.inputs = {x, scale};
  if (bias >= 0) node.inputs.push_back(bias);
  node.axis = axis;
  node.alpha = epsilon;
  return impl_->AddNode(std::move(node), shape(x), 0);
}

void GraphBuilder::AddOutput(const std::string& name, ValueId value) {
  impl_->graph.outputs_.push_back(value);
  impl_->graph.output_names_.push_back(name);
}

Graph GraphBuilder::Finish() {
  Graph& full = impl_->graph;
  std::vector<char> live(full.values_.size(), 0);
  for (const ValueId id : full.outputs_) live[U(id)] = 1;
  for (const ValueId id : full.inputs_) live[U(id)] = 1;  // a caller still fills them
  std::vector<char> keep(full.nodes_.size(), 0);
  for (std::size_t i = full.nodes_.size(); i-- > 0;) {
    if (!live[U(full.nodes_[i].output)]) continue;
    keep[i] = 1;
    for (const ValueId id : full.nodes_[i].inputs) live[U(id)] = 1;
  }

  Graph graph;
  std::vector<ValueId> renamed(full.values_.size(), -1);
  for (std::size_t i = 0; i < full.values_.size(); ++i) {
    if (!live[i]) continue;
    renamed[i] = static_cast<ValueId>(graph.values_.size());
    graph.values_.push_back(std::move(full.values_[i]));
  }
  for (std::size_t i = 0; i < full.nodes_.size(); ++i) {
    if (!keep[i]) continue;
    GraphNode node = std::move(full.nodes_[i]);
    for (ValueId& id : node.inputs) id = renamed[U(id)];
    node.output = renamed[U(node.output)];
    graph.nodes_.push_back(std::move(node));
  }
  for (const ValueId id : full.inputs_) graph.inputs_.push_back(renamed[U(id)]);
  for (const ValueId id : full.outputs_) graph.outputs_.push_back(renamed[U(id)]);
  graph.output_names_ = std::move(full.output_names_);
  return graph;
}

// -------------------------------------------------------------------------------------
// GraphEvaluator

template <typename Real>
GraphEvaluator<Real>::GraphEvaluator(std::shared_ptr<const Graph> graph)
    : graph_(std::move(graph)) {
  const auto& values = graph_->values();
  std::size_t total = 0;
  offset_.reserve(values.size());
  for (const GraphValue& value : values) {
    offset_.push_back(total);
    total += U(NumElements(value.shape));
  }
  values_.assign(total, Real(0));
  active_.assign(values.size(), 0);
  for (std::size_t i = 0; i < values.size(); ++i) {
    std::copy(values[i].data.begin(),
              values[i].data.end(),
              values_.begin() + static_cast<std::ptrdiff_t>(offset_[i]));
    active_[i] = values[i].is_input;
  }
  int groups = 0;
  for (const GraphNode& node : graph_->nodes()) {
    for (const ValueId id : node.inputs) active_[U(node.output)] |= active_[U(id)];
    maps_.push_back(MakeMaps(node, values));
    groups = std::max(groups, maps_.back().groups);
  }
  // a constant output has a derivative too: zero, which its never written buffer holds
  for (const ValueId id : graph_->outputs()) active_[U(id)] = 1;
  scratch_.assign(U(groups), Real(0));
  tangent_offset_.assign(values.size(), 0);
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!active_[i]) continue;
    tangent_offset_[i] = tangent_elements_;
    tangent_elements_ += U(NumElements(values[i].shape));
  }
}

template <typename Real>
std::span<Real> GraphEvaluator<Real>::input(int i) {
  return {Value(graph_->inputs()[U(i)]), U(graph_->input_width(i))};
}

template <typename Real>
std::span<const Real> GraphEvaluator<Real>::output(int i) const {
  return {Value(graph_->outputs()[U(i)]), U(graph_->output_width(i))};
}

template <typename Real>
void GraphEvaluator<Real>::Evaluate() {
  const auto& nodes = graph_->nodes();
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const GraphNode& node = nodes[i];
    ComputeNode<Real>(
        node,
        graph_->values(),
        maps_[i],
        [&](int k) { return static_cast<const Real*>(Value(node.inputs[U(k)])); },
        scratch_.data(),
        Value(node.output));
  }
}

template <typename Real>
void GraphEvaluator<Real>::SetTangentCount(int count) {
  SILC_CHECK(count > 0);
  tangent_count_ = count;
  tangents_.assign(tangent_elements_ * U(count), Real(0));
  tangent_scratch_.assign((scratch_.size() + 1) * U(count), Real(0));
}

template <typename Real>
Real* GraphEvaluator<Real>::Tangent(ValueId id) {
  return tangents_.data() + tangent_offset_[U(id)] * U(tangent_count_);
}

template <typename Real>
const Real* GraphEvaluator<Real>::Tangent(ValueId id) const {
  return tangents_.data() + tangent_offset_[U(id)] * U(tangent_count_);
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
  const auto shape = [&](std::size_t i) -> const Shape& {
    return graph_->value(node.inputs[i]).shape;
  };
  const auto value = [&](std::size_t i) { return static_cast<const Real*>(Value(node.inputs[i])); };
  const auto active = [&](std::size_t i) { return Active(node.inputs[i]); };
  const auto tangent = [&](std::size_t i) {
    return static_cast<const Real*>(Tangent(node.inputs[i]));
  };
  const Shape& out_shape = graph_->value(node.output).shape;
  const std::int64_t size = NumElements(out_shape);
  const Real* y = Value(node.output);
  Real* dy = Tangent(node.output);

  if (IsUnary(node.op)) {
    const Real* x = value(0);
    const Real* dx = tangent(0);
    for (std::int64_t e = 0; e < size; ++e) {
      const Real slope = UnarySlope(node, x[e], y[e]);
      for (std::int64_t t = 0; t < T; ++t) dy[e * T + t] = slope * dx[e * T + t];
    }
    return;
  }

  std::fill_n(dy, size * T, Real(0));
  if (IsBinary(node.op)) {
    for (std::int64_t e = 0; e < size; ++e) {
      const std::int64_t ea = maps.a.empty() ? e : maps.a[U(e)];
      const std::int64_t eb = maps.b.empty() ? e : maps.b[U(e)];
      Real slope_a, slope_b;
      BinarySlopes(node.op, value(0)[ea], value(1)[eb], active(1), &slope_a, &slope_b);
      if (active(0)) Axpy(slope_a, tangent(0) + ea * T, dy + e * T, T);
      if (active(1)) Axpy(slope_b, tangent(1) + eb * T, dy + e * T, T);
    }
    return;
  }
  switch (node.op) {
    case Op::kMatMul: {
      for (std::size_t batch = 0; batch < maps.a.size(); ++batch) {
        const std::int64_t at_a = maps.a[batch] * maps.m * maps.k;
        const std::int64_t at_b = maps.b[batch] * maps.k * maps.n;
        Real* d = dy + static_cast<std::int64_t>(batch) * maps.m * maps.n * T;
        for (std::int64_t m = 0; m < maps.m; ++m) {
          for (std::int64_t n = 0; n < maps.n; ++n, d += T) {
            for (std::int64_t k = 0; k < maps.k; ++k) {
              const std::int64_t ea = at_a + m * maps.k + k, eb = at_b + k * maps.n + n;
              if (active(0)) Axpy(value(1)[eb], tangent(0) + ea * T, d, T);
              if (active(1)) Axpy(value(0)[ea], tangent(1) + eb * T, d, T);
            }
          }
        }
      }
      return;
    }
    case Op::kGemm: {
      const Real alpha = static_cast<Real>(node.alpha), beta = static_cast<Real>(node.beta);
      const std::int64_t rows = out_shape[0], cols = out_shape[1];
      const std::int64_t depth = node.trans_a ? shape(0)[0] : shape(0)[1];
      for (std::int64_t m = 0; m < rows; ++m) {
        for (std::int64_t n = 0; n < cols; ++n) {
          const std::int64_t e = m * cols + n;
          for (std::int64_t k = 0; k < depth; ++k) {
            const std::int64_t ea = node.trans_a ? k * rows + m : m * depth + k;
            const std::int64_t eb = node.trans_b ? n * depth + k : k * cols + n;
            if (active(0)) Axpy(alpha * value(1)[eb], tangent(0) + ea * T, dy + e * T, T);
            if (active(1)) Axpy(alpha * value(0)[ea], tangent(1) + eb * T, dy + e * T, T);
          }
          if (node.inputs.size() == 3 && active(2)) {
            Axpy(beta, tangent(2) + maps.a[U(e)] * T, dy + e * T, T);
          }
        }
      }
      return;
    }
    case Op::kConcat: {
      std::int64_t outer = 1;
      for (int i = 0; i < node.axis; ++i) outer *= out_shape[U(i)];
      const std::int64_t stride = size / outer * T;
      std::int64_t at = 0;
      for (std::size_t i = 0; i < node.inputs.size(); ++i) {
        const std::int64_t block = NumElements(shape(i)) / outer * T;
        for (std::int64_t o = 0; active(i) && o < outer; ++o) {
          std::copy_n(tangent(i) + o * block, block, dy + o * stride + at);
        }
        at += block;
      }
      return;
    }
    case Op::kSelect: {
      for (std::int64_t e = 0; e < size; ++e) {
        std::copy_n(tangent(0) + (node.index.empty() ? e : node.index[U(e)]) * T, T, dy + e * T);
      }
      return;
    }
    case Op::kSoftmax: {
      // dy_e = y_e (dx_e − Σ_group y dx)
      Real* mean = tangent_scratch_.data();
      std::fill_n(mean, maps.groups * T, Real(0));
      for (std::int64_t e = 0; e < size; ++e)
        Axpy(y[e], tangent(0) + e * T, mean + maps.a[U(e)] * T, T);
      for (std::int64_t e = 0; e < size; ++e) {
        const Real* group = mean + maps.a[U(e)] * T;
        for (std::int64_t t = 0; t < T; ++t)
          dy[e * T + t] = y[e] * (tangent(0)[e * T + t] - group[t]);
      }
      return;
    }
    case Op::kReduceMean:
    case Op::kReduceSum: {
      const std::int64_t count = NumElements(shape(0));
      const Real share =
          node.op == Op::kReduceMean ? static_cast<Real>(size) / static_cast<Real>(count) : Real(1);
      for (std::int64_t e = 0; e < count; ++e)
        Axpy(share, tangent(0) + e * T, dy + maps.a[U(e)] * T, T);
      return;
    }
    case Op::kLayerNorm: {
      // n = (x − μ)/s:  dn = (dx − mean(dx) − n mean(n dx)) / s
      std::int64_t width = 1;
      for (std::size_t i = U(node.axis); i < out_shape.size(); ++i) width *= out_shape[i];
      const bool wide_scale = NumElements(shape(1)) > 1;
      const bool wide_bias = node.inputs.size() == 3 && NumElements(shape(2)) > 1;
      const Real inverse_width = 1 / static_cast<Real>(width);
      for (std::int64_t begin = 0; begin < size; begin += width) {
        const Real* x = value(0) + begin;
        Real mean = 0, variance = 0;
        for (std::int64_t e = 0; e < width; ++e) mean += x[e] * inverse_width;
        for (std::int64_t e = 0; e < width; ++e)
          variance += (x[e] - mean) * (x[e] - mean) * inverse_width;
        const Real inverse = 1 / std::sqrt(variance + static_cast<Real>(node.alpha));
        Real* d = dy + begin * T;
        for (std::int64_t t = 0; active(0) && t < T; ++t) {
          const Real* dx = tangent(0) + begin * T;
          Real mean_dx = 0, mean_ndx = 0;
          for (std::int64_t e = 0; e < width; ++e) {
            mean_dx += dx[e * T + t] * inverse_width;
            mean_ndx += (x[e] - mean) * inverse * dx[e * T + t] * inverse_width;
          }
          for (std::int64_t e = 0; e < width; ++e) {
            const Real n = (x[e] - mean) * inverse;
            d[e * T + t] =
                (dx[e * T + t] - mean_dx - n * mean_ndx) * inverse * value(1)[wide_scale ? e : 0];
          }
        }
        for (std::int64_t e = 0; e < width; ++e) {
          if (active(1))
            Axpy((x[e] - mean) * inverse, tangent(1) + (wide_scale ? e : 0) * T, d + e * T, T);
          if (node.inputs.size() == 3 && active(2)) {
            Axpy(Real(1), tangent(2) + (wide_bias ? e : 0) * T, d + e * T, T);
          }
        }
      }
      return;
    }
    default:
      SILC_CHECK(false);
  }
}

template class GraphEvaluator<float>;
template class GraphEvaluator<double>;

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
