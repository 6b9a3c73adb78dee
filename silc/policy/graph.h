// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "silc/base/limits.h"

namespace silc {

/// Sizes of a tensor, outermost first. A scalar has none.
using Shape = std::vector<std::int64_t>;

/// Product of the sizes; 1 for a scalar.
std::int64_t NumElements(const Shape& shape);
/// "[1, 575]", for messages.
std::string ShapeText(const Shape& shape);
/// numpy's broadcasting rule. False when the shapes do not go together.
bool BroadcastShapes(const Shape& a, const Shape& b, Shape* result);

/// What is refused before anything is allocated. A policy is small; a file that asks for more than
/// this is broken or hostile.
struct GraphLimits {
  std::int64_t max_rank = 8;
  std::int64_t max_nodes = kMaxGraphNodes;
  std::int64_t max_elements = kMaxTensorElements;         ///< per tensor
  std::int64_t max_total_elements = kMaxGraphElements;    ///< over all tensors
  std::int64_t max_active_elements = kMaxActiveElements;  ///< of tensors that depend on an input
  std::int64_t max_work = kMaxGraphWork;                  ///< multiply-adds of one evaluation
};

/// The operations a graph is made of. Everything that only moves numbers (Slice, Split, Gather,
/// Transpose, Reshape, Flatten, Squeeze, Unsqueeze, Expand) is kSelect: output element e is input
/// element index[e].
enum class Op {
  kAdd,
  kSub,
  kMul,
  kDiv,
  kPow,
  kMin,
  kMax,  // two tensors, broadcast
  kElu,
  kRelu,
  kLeakyRelu,
  kTanh,
  kSigmoid,
  kSoftplus,
  kSqrt,
  kNeg,  // elementwise
  kAbs,
  kExp,
  kLog,
  kReciprocal,
  kErf,
  kClip,
  kMatMul,
  kGemm,
  kConcat,
  kSelect,
  kSoftmax,
  kLayerNorm,
  kReduceMean,
  kReduceSum,
};

/// Index of a tensor of the graph.
using ValueId = int;

struct GraphNode {
  Op op;
  std::string name;  // as the file has it; for messages
  std::vector<ValueId> inputs;
  ValueId output = -1;
  float alpha = 0;                  // Elu, LeakyRelu slope; Gemm α; Clip low; LayerNorm ε
  float beta = 0;                   // Gemm β; Clip high
  bool trans_a = false;             // Gemm
  bool trans_b = false;             // Gemm
  int axis = 0;                     // Concat, LayerNorm (first normalised axis)
  std::vector<int> axes;            // Softmax, ReduceMean, ReduceSum: reduced axes, ascending
  std::vector<std::int32_t> index;  // Select; empty means "same order", a reshape
};

struct GraphValue {
  std::string name;
  Shape shape;
  bool is_constant = false;
  bool is_input = false;
  std::vector<float> data;  // constants only
};

/// A policy as a graph of tensors with fixed shapes (batch 1), in an order in which it can be
/// evaluated. Constants are float32; nodes fed by constants alone were evaluated while building.
/// Built by GraphBuilder, immutable afterwards.
class Graph {
 public:
  const std::vector<GraphValue>& values() const { return values_; }
  const std::vector<GraphNode>& nodes() const { return nodes_; }
  const std::vector<ValueId>& inputs() const { return inputs_; }
  const std::vector<ValueId>& outputs() const { return outputs_; }
  const std::vector<std::string>& output_names() const { return output_names_; }
  const GraphValue& value(ValueId id) const { return values_[static_cast<std::size_t>(id)]; }

  /// Position in inputs() / outputs() of the one with this name, −1 when there is none.
  int FindInput(const std::string& name) const;
  int FindOutput(const std::string& name) const;
  int input_width(int input) const;    ///< elements of an input
  int output_width(int output) const;  ///< elements of an output

 private:
  friend class GraphBuilder;
  std::vector<GraphValue> values_;
  std::vector<GraphNode> nodes_;
  std::vector<ValueId> inputs_;
  std::vector<ValueId> outputs_;
  std::vector<std::string> output_names_;
};

/// Builds a Graph node by node: checks shapes, evaluates what is constant, and keeps within the
/// limits. Every method throws ConfigError that names the node when its operands do not fit
/// together.
class GraphBuilder {
 public:
  explicit GraphBuilder(GraphLimits limits = {});
  ~GraphBuilder();

  ValueId AddInput(const std::string& name, Shape shape);
  ValueId AddConstant(const std::string& name, Shape shape, std::vector<float> data);

  ValueId AddBinary(Op op, const std::string& name, ValueId a, ValueId b);
  ValueId AddUnary(Op op, const std::string& name, ValueId x, float alpha = 0, float beta = 0);
  ValueId AddMatMul(const std::string& name, ValueId a, ValueId b);
  /// α A′ B′ + β C with A′, B′ transposed as told; c = −1 for none.
  ValueId AddGemm(const std::string& name,
                  ValueId a,
                  ValueId b,
                  ValueId c,
                  float alpha = 1,
                  float beta = 1,
                  bool trans_a = false,
                  bool trans_b = false);
  ValueId AddConcat(const std::string& name, const std::vector<ValueId>& parts, int axis);
  ValueId AddReshape(const std::string& name, ValueId x, Shape shape);
  ValueId AddTranspose(const std::string& name, ValueId x, const std::vector<int>& perm);
  /// numpy's x[starts : : steps] with `sizes` elements along each axis; one entry per axis.
  ValueId AddSlice(const std::string& name,
                   ValueId x,
                   const std::vector<std::int64_t>& starts,
                   const std::vector<std::int64_t>& steps,
                   const Shape& sizes);
  /// Rows `indices` along `axis`; the axis is replaced by `indices_shape`.
  ValueId AddGather(const std::string& name,
                    ValueId x,
                    int axis,
                    const std::vector<std::int64_t>& indices,
                    const Shape& indices_shape);
  ValueId AddExpand(const std::string& name, ValueId x, const Shape& shape);
  ValueId AddSoftmax(const std::string& name, ValueId x, const std::vector<int>& axes);
  ValueId AddReduce(
      Op op, const std::string& name, ValueId x, std::vector<int> axes, bool keep_dims);
  /// Normalises over axes ≥ axis, then scales and (bias ≥ 0) shifts.
  ValueId AddLayerNorm(
      const std::string& name, ValueId x, ValueId scale, ValueId bias, int axis, float epsilon);

  void AddOutput(const std::string& name, ValueId value);

  const Shape& shape(ValueId id) const;
  bool is_constant(ValueId id) const;
  const std::vector<float>& data(ValueId id) const;  ///< of a constant

  /// The finished graph, without nodes that no output needs. The builder is spent afterwards.
  Graph Finish();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Where a node's operands are found, worked out once from the shapes. Binary: operand element of
/// each output element (empty: the same). MatMul: operand matrix of each output matrix. Softmax and
/// reductions: a holds the group of each input element.
struct NodeMaps {
  std::vector<std::int32_t> a;
  std::vector<std::int32_t> b;
  int groups = 0;
  std::int64_t m = 0, k = 0, n = 0;  // MatMul: (m × k) (k × n)
};

/// Values, and exact directional derivatives, of a graph at one input. Real is float (what runs on
/// the robot) or double (the reference). All memory is taken at construction and, for tangents, at
/// the first push of a given width; neither Evaluate() nor a repeated PushTangents() allocates.
template <typename Real>
class GraphEvaluator {
 public:
  /// The graph is shared, not copied.
  explicit GraphEvaluator(std::shared_ptr<const Graph> graph);

  /// Where input i is written before Evaluate().
  std::span<Real> input(int i);
  void Evaluate();
  std::span<const Real> output(int i) const;

  /// Pushes `count` directions through the graph at the point last evaluated. Directions of input i
  /// are written before into input_tangents(i), and come out in output_tangents(i): element-major,
  /// the `count` directions of one element next to each other.
  ///
  ///     output_tangents(j)[r * count + t] = Σ_i Σ_c ∂output_j[r]/∂input_i[c] · input_tangents(i)[c
  ///     * count + t]
  ///
  /// At a kink (Relu, Abs, Clip, Min, Max) one of the one-sided derivatives is taken.
  void SetTangentCount(int count);  ///< sizes the buffers and zeroes the input directions
  std::span<Real> input_tangents(int i);
  void PushTangents();
  std::span<const Real> output_tangents(int i) const;

  const Graph& graph() const { return *graph_; }

 private:
  Real* Value(ValueId id) { return values_.data() + offset_[static_cast<std::size_t>(id)]; }
  const Real* Value(ValueId id) const {
    return values_.data() + offset_[static_cast<std::size_t>(id)];
  }
  bool Active(ValueId id) const { return active_[static_cast<std::size_t>(id)] != 0; }
  Real* Tangent(ValueId id) {
    return tangents_.data() +
           tangent_offset_[static_cast<std::size_t>(id)] * static_cast<std::size_t>(tangent_count_);
  }
  const Real* Tangent(ValueId id) const { return const_cast<GraphEvaluator*>(this)->Tangent(id); }
  void PushNode(const GraphNode& node, const NodeMaps& maps);

  std::shared_ptr<const Graph> graph_;
  std::vector<std::size_t> offset_;  // of each value in values_
  std::vector<Real> values_;
  std::vector<char> active_;                 // depends on an input
  std::vector<std::size_t> tangent_offset_;  // of each active value, in elements
  std::size_t tangent_elements_ = 0;
  int tangent_count_ = 0;
  std::vector<Real> tangents_;
  std::vector<NodeMaps> maps_;  // per node
  std::vector<Real> scratch_;   // one number per group of a Softmax
  std::vector<Real> tangent_scratch_;
};

extern template class GraphEvaluator<float>;
extern template class GraphEvaluator<double>;

/// ∂output/∂input, row-major output_width × input_width, at the point last evaluated. `chunk`
/// directions are pushed at a time, which bounds the memory.
template <typename Real>
std::vector<Real> GraphJacobian(GraphEvaluator<Real>* evaluator,
                                int output,
                                int input,
                                int chunk = 64);

}  // namespace silc
