// SPDX-License-Identifier: Apache-2.0
#pragma once

// What reader*.cc share; nobody else includes it. reader.cc goes through the file,
// reader_tensors.cc reads tensors, reader_nodes.cc operands, attributes and the operators that
// compute, reader_shapes.cc the operators that move numbers.
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "silc/base/error.h"
#include "silc/base/limits.h"
#include "silc/policy/index.h"
#include "silc/policy/onnx/reader.h"
#include "silc_onnx_schema.pb.h"

namespace silc {

namespace pb = onnx_schema;

inline constexpr int kMinOpset = 7;
inline constexpr int kMaxOpset = 21;

/// A tensor of integers: a shape, an axis, indices. Known when the file is read, or not supported.
struct IntTensor {
  Shape shape;
  std::vector<std::int64_t> data;
};

/// What a name stands for.
struct Binding {
  bool is_int = false;
  ValueId value = -1;  // floats, in the graph
  IntTensor ints;
};

bool IsFloatType(int type);
bool IsIntType(int type);

/// One file on its way to a graph.
class OnnxReader {
 public:
  /// @param folder  where external data may lie; "": nowhere
  OnnxReader(std::string place, const GraphLimits& limits, std::string folder)
      : place_(std::move(place)), folder_(std::move(folder)), limits_(limits), builder_(limits) {}

  OnnxModel Read(const pb::ModelProto& model);

 private:
  [[noreturn]] void Fail(const std::string& what) const { throw ConfigError(place_ + ": " + what); }
  [[noreturn]] void FailNode(const std::string& what) const;
  int FindOpset(const pb::ModelProto& model) const;
  void RequireFinite(const Graph& graph) const;

  // ---- tensors ----

  Shape TensorShape(const pb::TensorProto& tensor, const std::string& what) const;
  Binding ReadTensor(const pb::TensorProto& tensor, const std::string& name);
  std::uint64_t ExternalNumber(const std::string& text, const std::string& what) const;
  std::string ExternalBytes(const pb::TensorProto& tensor, const std::string& what);
  void CheckSize(const std::string& what,
                 std::size_t got,
                 std::size_t expected,
                 const char* unit) const;
  std::vector<float> ReadFloats(const pb::TensorProto& tensor,
                                int type,
                                std::size_t count,
                                const std::string& what) const;
  std::vector<std::int64_t> ReadInts(const pb::TensorProto& tensor,
                                     int type,
                                     std::size_t count,
                                     const std::string& what) const;

  // ---- graph ----

  void Define(const std::string& name, Binding binding);
  void ReadGraph(const pb::GraphProto& graph);
  Shape InputShape(const pb::ValueInfoProto& input) const;

  // ---- operands, attributes, results of the node being read ----

  int num_inputs() const { return node_->input_size(); }
  bool Has(int i) const { return i < node_->input_size() && !node_->input(i).empty(); }
  const Binding& In(int i) const;
  // A float operand. Integer constants are taken as floats where ONNX lets types differ (Pow,
  // Cast).
  ValueId Float(int i) const;
  ValueId FloatOrInt(int i);
  const IntTensor& Ints(int i) const;
  float Scalar(int i) const;
  const pb::AttributeProto* Attribute(const char* name, int type);
  bool HasAttribute(const char* name) const;
  std::int64_t Int(const char* name, std::int64_t otherwise);
  float FloatAttribute(const char* name, float otherwise);
  std::optional<std::vector<std::int64_t>> IntsAttribute(const char* name);
  int Axis(std::int64_t axis, std::size_t rank) const;
  std::vector<int> Axes(const std::vector<std::int64_t>& axes, std::size_t rank) const;
  // Axes as attribute (before opset `since`) or operand 1.
  std::optional<std::vector<std::int64_t>> AxesOf(int since);
  void Result(Binding binding);
  void Result(ValueId id);
  void Result(Shape shape, std::vector<std::int64_t> data);

  // ---- nodes ----

  void ReadNode();
  void ReadIdentity() { Result(In(0)); }
  void ReadDropout();
  void ReadBinary(Op op);
  // Shape arithmetic: equal sizes, or one side a single number.
  void ReadIntBinary(Op op);
  void ReadElu();
  void ReadLeakyRelu();
  void ReadClip();
  void ReadMinMax();
  void ReadMatMul() { Result(builder_.AddMatMul(label_, Float(0), Float(1))); }
  void ReadGemm();
  void ReadSoftmax();
  void ReadLayerNorm();
  void ReadReduce();
  void ReadConcat();
  void ReadSlice();
  void ReadSplit();
  void ReadGather();
  // The data of operand 0, in another shape.
  void ResultReshaped(Shape shape);
  Shape ShapeOf(int i) const { return In(i).is_int ? Ints(i).shape : builder_.shape(Float(i)); }
  void ReadReshape();
  void ReadFlatten();
  void ReadSqueeze();
  void ReadUnsqueeze();
  void ReadExpand();
  void ReadTranspose();
  void ReadConstant();
  void ReadConstantOfShape();
  void ReadShape();
  void ReadCast();

  std::string place_;
  std::string folder_;  // of external data
  std::uint64_t external_bytes_ = 0;
  std::string external_hash_;
  GraphLimits limits_;
  GraphBuilder builder_;
  int opset_ = 0;
  std::size_t total_ints_ = 0;
  std::unordered_map<std::string, Binding> names_;
  std::set<std::string> builder_inputs_;
  std::set<std::string> later_;  // everything some node makes
  // the node being read
  const pb::NodeProto* node_ = nullptr;
  std::string label_;
  std::set<std::string> used_;  // its attributes that were looked at
};

}  // namespace silc
