// SPDX-License-Identifier: Apache-2.0
// Shapes, and a graph built node by node; graph_evaluate.cc and graph_tangents.cc run it.
#include "silc/policy/graph.h"

#include <algorithm>
#include <utility>

#include "silc/base/check.h"
#include "silc/base/error.h"
#include "silc/policy/graph_compute.h"
#include "silc/policy/graph_maps.h"

namespace silc {

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

// ---- Graph ----

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

// ---- GraphBuilder ----

struct GraphBuilder::Impl {
  GraphLimits limits;
  Graph graph;
  std::int64_t total_elements = 0;
  std::int64_t active_elements = 0;
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

  // Derivatives keep many directions of what depends on the input.
  void AdmitActive(const std::string& what, std::int64_t count) {
    active_elements += count;
    if (active_elements <= limits.max_active_elements) return;
    throw ConfigError(what + ": what depends on the input is together larger than " +
                      std::to_string(limits.max_active_elements) + " elements");
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
    if (!constant) AdmitActive(what, count);
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
  impl_->AdmitActive("input '" + name + "'", NumElements(input_shape));
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

}  // namespace silc
