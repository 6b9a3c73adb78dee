// SPDX-License-Identifier: Apache-2.0
#include "silc/policy/onnx/reader.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "silc/base/error.h"
#include "silc/base/file.h"
#include "silc_onnx_schema.pb.h"

namespace silc {
namespace {

namespace pb = onnx_schema;

static_assert(std::endian::native == std::endian::little, "ONNX stores tensors little-endian");

constexpr int kMinOpset = 7;
constexpr int kMaxOpset = 21;
// Shapes and indices are short; a chain of Concat could double them without end.
constexpr std::size_t kMaxInts = std::size_t{1} << 16;
constexpr std::size_t kMaxTotalInts = std::size_t{1} << 22;

std::size_t U(std::int64_t i) { return static_cast<std::size_t>(i); }

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

float HalfToFloat(std::uint16_t half) {
  const int exponent = (half >> 10) & 31;
  const float fraction = static_cast<float>(half & 1023);
  float value;
  if (exponent == 31) {
    value = fraction == 0 ? std::numeric_limits<float>::infinity()
                          : std::numeric_limits<float>::quiet_NaN();
  } else if (exponent == 0) {
    value = std::ldexp(fraction, -24);  // subnormal
  } else {
    value = std::ldexp(fraction + 1024, exponent - 25);
  }
  return (half & 0x8000) != 0 ? -value : value;
}

bool IsFloatType(int type) {
  return type == pb::TensorProto::FLOAT || type == pb::TensorProto::DOUBLE ||
         type == pb::TensorProto::FLOAT16 || type == pb::TensorProto::BFLOAT16;
}

bool IsIntType(int type) {
  switch (type) {
    case pb::TensorProto::INT64:
    case pb::TensorProto::INT32:
    case pb::TensorProto::INT16:
    case pb::TensorProto::INT8:
    case pb::TensorProto::UINT8:
    case pb::TensorProto::UINT16:
    case pb::TensorProto::UINT32:
    case pb::TensorProto::BOOL:
      return true;
    default:
      return false;
  }
}

template <typename T>
void CopyRaw(const std::string& raw,
             std::size_t count,
             const std::function<void(std::size_t, T)>& take) {
  for (std::size_t i = 0; i < count; ++i) {
    T x;
    std::memcpy(&x, raw.data() + i * sizeof(T), sizeof(T));
    take(i, x);
  }
}

class Reader {
 public:
  Reader(std::string place, const GraphLimits& limits)
      : place_(std::move(place)), limits_(limits), builder_(limits) {}

  OnnxModel Read(const pb::ModelProto& model) {
    OnnxModel result;
    result.producer = model.producer_name();
    for (const auto& entry : model.metadata_props()) {
      if (!result.metadata.emplace(entry.key(), entry.value()).second) {
        Fail("metadata key '" + entry.key() + "' stands there twice");
      }
    }
    if (!model.has_graph() || model.graph().node_size() == 0)
      Fail("no graph in it: not an ONNX model?");
    if (model.functions_size() > 0)
      Fail("model-local functions are not supported; export without them");
    opset_ = FindOpset(model);
    result.opset = opset_;
    ReadGraph(model.graph());
    result.graph = std::make_shared<const Graph>(builder_.Finish());
    return result;
  }

 private:
  [[noreturn]] void Fail(const std::string& what) const { throw ConfigError(place_ + ": " + what); }
  [[noreturn]] void FailNode(const std::string& what) const {
    Fail("node '" + label_ + "': " + what);
  }

  int FindOpset(const pb::ModelProto& model) const {
    for (const auto& opset : model.opset_import()) {
      if (!opset.domain().empty() && opset.domain() != "ai.onnx") continue;
      if (opset.version() < kMinOpset || opset.version() > kMaxOpset) {
        Fail("opset " + std::to_string(opset.version()) + " is not supported; export with opset " +
             std::to_string(kMinOpset) + " to " + std::to_string(kMaxOpset));
      }
      return static_cast<int>(opset.version());
    }
    Fail("no opset version of the standard operators");
  }

  // ------------------------------------------------------------------------------------------
  // tensors

  Shape TensorShape(const pb::TensorProto& tensor, const std::string& what) const {
    Shape shape;
    std::int64_t count = 1;
    if (tensor.dims_size() > limits_.max_rank)
      Fail(what + ": " + std::to_string(tensor.dims_size()) + " axes");
    for (const std::int64_t size : tensor.dims()) {
      if (size < 0) Fail(what + ": size " + std::to_string(size));
      if (size > 0 && size > limits_.max_elements / std::max<std::int64_t>(count, 1)) {
        Fail(what + ": larger than " + std::to_string(limits_.max_elements) + " elements");
      }
      count *= size;
      shape.push_back(size);
    }
    return shape;
  }

  Binding ReadTensor(const pb::TensorProto& tensor, const std::string& name) {
    const std::string what = "tensor '" + name + "'";
    if (tensor.data_location() == pb::TensorProto::EXTERNAL || tensor.external_data_size() > 0) {
      Fail(what + ": its data is in another file; save the model with the weights inside");
    }
    if (tensor.has_segment()) Fail(what + ": segmented tensors are not supported");
    const Shape shape = TensorShape(tensor, what);
    const std::size_t count = U(NumElements(shape));
    const int type = tensor.data_type();
    Binding binding;
    if (IsFloatType(type)) {
      std::vector<float> data = ReadFloats(tensor, type, count, what);
      binding.value = builder_.AddConstant(name, shape, std::move(data));
    } else if (IsIntType(type)) {
      binding.is_int = true;
      binding.ints.shape = shape;
      binding.ints.data = ReadInts(tensor, type, count, what);
    } else {
      Fail(what + ": element type " + std::to_string(type) + " is not supported");
    }
    return binding;
  }

  void CheckSize(const std::string& what,
                 std::size_t got,
                 std::size_t expected,
                 const char* unit) const {
    if (got != expected) {
      Fail(what + ": " + std::to_string(got) + " " + unit + " where its shape needs " +
           std::to_string(expected) + "; the file is damaged");
    }
  }

  std::vector<float> ReadFloats(const pb::TensorProto& tensor,
                                int type,
                                std::size_t count,
                                const std::string& what) const {
    // sizes are compared before the vector is made: a shape may promise what the file does not hold
    const std::string& raw = tensor.raw_data();
    const bool has_raw = !raw.empty();
    std::vector<float> data;
    const auto make = [&](std::size_t got, std::size_t expected, const char* unit) {
      CheckSize(what, got, expected, unit);
      data.resize(count);
    };
    switch (type) {
      case pb::TensorProto::FLOAT:
        if (has_raw) {
          make(raw.size(), count * 4, "bytes");
          std::memcpy(data.data(), raw.data(), raw.size());
        } else {
          make(U(tensor.float_data_size()), count, "numbers");
          std::copy(tensor.float_data().begin(), tensor.float_data().end(), data.begin());
        }
        break;
      case pb::TensorProto::DOUBLE:
        if (has_raw) {
          make(raw.size(), count * 8, "bytes");
          CopyRaw<double>(
              raw, count, [&](std::size_t i, double x) { data[i] = static_cast<float>(x); });
        } else {
          make(U(tensor.double_data_size()), count, "numbers");
          for (std::size_t i = 0; i < count; ++i)
            data[i] = static_cast<float>(tensor.double_data(static_cast<int>(i)));
        }
        break;
      default: {
        const auto convert = [&](std::uint16_t bits) {
          return type == pb::TensorProto::FLOAT16
                     ? HalfToFloat(bits)
                     : std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
        };
        if (has_raw) {
          make(raw.size(), count * 2, "bytes");
          CopyRaw<std::uint16_t>(
              raw, count, [&](std::size_t i, std::uint16_t x) { data[i] = convert(x); });
        } else {
          make(U(tensor.int32_data_size()), count, "numbers");
          for (std::size_t i = 0; i < count; ++i) {
            data[i] = convert(static_cast<std::uint16_t>(tensor.int32_data(static_cast<int>(i))));
          }
        }
      }
    }
    return data;
  }

  std::vector<std::int64_t> ReadInts(const pb::TensorProto& tensor,
                                     int type,
                                     std::size_t count,
                                     const std::string& what) const {
    const std::string& raw = tensor.raw_data();
    std::vector<std::int64_t> data;
    if (!raw.empty()) {
      const auto read = [&]<typename T>(T) {
        CheckSize(what, raw.size(), count * sizeof(T), "bytes");
        data.resize(count);
        CopyRaw<T>(raw, count, [&](std::size_t i, T x) { data[i] = static_cast<std::int64_t>(x); });
      };
      switch (type) {
        case pb::TensorProto::INT64:
          read(std::int64_t{});
          break;
        case pb::TensorProto::INT32:
          read(std::int32_t{});
          break;
        case pb::TensorProto::INT16:
          read(std::int16_t{});
          break;
        case pb::TensorProto::INT8:
          read(std::int8_t{});
          break;
        case pb::TensorProto::UINT16:
          read(std::uint16_t{});
          break;
        case pb::TensorProto::UINT32:
          read(std::uint32_t{});
          break;
        default:
          read(std::uint8_t{});
          break;
      }
    } else if (type == pb::TensorProto::INT64) {
      CheckSize(what, U(tensor.int64_data_size()), count, "numbers");
      data.assign(tensor.int64_data().begin(), tensor.int64_data().end());
    } else if (type == pb::TensorProto::UINT32) {
      CheckSize(what, U(tensor.uint64_data_size()), count, "numbers");
      for (const auto x : tensor.uint64_data()) data.push_back(static_cast<std::int64_t>(x));
    } else {
      CheckSize(what, U(tensor.int32_data_size()), count, "numbers");
      data.assign(tensor.int32_data().begin(), tensor.int32_data().end());
    }
    return data;
  }

  // --------------------------------------------------------------------------------------------
  // graph

  void Define(const std::string& name, Binding binding) {
    if (name.empty()) Fail("a tensor without a name");
    total_ints_ += binding.ints.data.size();
    if (total_ints_ > kMaxTotalInts) {
      Fail("more than " + std::to_string(kMaxTotalInts) + " integers in shapes and indices");
    }
    if (!names_.emplace(name, std::move(binding)).second) Fail("'" + name + "' is defined twice");
  }

  void ReadGraph(const pb::GraphProto& graph) {
    if (graph.sparse_initializer_size() > 0) Fail("sparse tensors are not supported");
    if (graph.node_size() > limits_.max_nodes) {
      Fail(std::to_string(graph.node_size()) + " nodes, at most " +
           std::to_string(limits_.max_nodes));
    }
    for (const auto& tensor : graph.initializer())
      Define(tensor.name(), ReadTensor(tensor, tensor.name()));
    for (const auto& input : graph.input()) {
      // before IR version 4 the weights were listed among the inputs
      if (names_.count(input.name()) > 0 && builder_inputs_.count(input.name()) == 0) continue;
      Binding binding;
      binding.value = builder_.AddInput(input.name(), InputShape(input));
      builder_inputs_.insert(input.name());
      Define(input.name(), binding);
    }
    if (builder_inputs_.empty()) Fail("the graph has no input");

    for (const auto& node : graph.node()) {
      for (const std::string& output : node.output()) later_.insert(output);
    }
    int index = 0;
    for (const auto& node : graph.node()) {
      label_ = (node.name().empty() ? "#" + std::to_string(index) : node.name()) + " (" +
               node.op_type() + ")";
      ++index;
      node_ = &node;
      used_.clear();
      if (!node.domain().empty() && node.domain() != "ai.onnx") {
        FailNode("operators of domain '" + node.domain() + "' are not supported");
      }
      try {
        ReadNode();
      } catch (const ConfigError& error) {
        // the graph builder does not know the file
        const std::string text = error.what();
        if (text.rfind(place_, 0) == 0) throw;
        throw ConfigError(place_ + ": " + text);
      }
      for (const auto& attribute : node.attribute()) {
        if (used_.count(attribute.name()) == 0)
          FailNode("attribute '" + attribute.name() + "' is not supported");
      }
    }
    if (graph.output_size() == 0) Fail("the graph has no output");
    std::set<std::string> outputs;
    for (const auto& output : graph.output()) {
      if (!outputs.insert(output.name()).second)
        Fail("output '" + output.name() + "' is listed twice");
      const auto at = names_.find(output.name());
      if (at == names_.end()) Fail("output '" + output.name() + "' is made by no node");
      if (at->second.is_int)
        Fail("output '" + output.name() + "' is an integer tensor, which is not supported");
      builder_.AddOutput(output.name(), at->second.value);
    }
  }

  Shape InputShape(const pb::ValueInfoProto& input) const {
    const std::string what = "input '" + input.name() + "'";
    if (!input.type().has_tensor_type()) Fail(what + ": no tensor");
    const auto& type = input.type().tensor_type();
    if (!IsFloatType(type.elem_type()))
      Fail(what + ": element type " + std::to_string(type.elem_type()) +
           " is not supported; floats are");
    if (!type.has_shape()) Fail(what + ": no shape given");
    if (type.shape().dim_size() > limits_.max_rank)
      Fail(what + ": " + std::to_string(type.shape().dim_size()) + " axes");
    Shape shape;
    for (int i = 0; i < type.shape().dim_size(); ++i) {
      const auto& dim = type.shape().dim(i);
      if (dim.has_dim_value() && dim.dim_value() > 0) {
        shape.push_back(dim.dim_value());
      } else if (i == 0) {
        shape.push_back(1);  // the batch
      } else {
        Fail(what + ": axis " + std::to_string(i) + " has no fixed size" +
             (dim.dim_param().empty() ? "" : " ('" + dim.dim_param() + "')"));
      }
    }
    return shape;
  }

  // ------------------------------------------------------------------------------- operands,
  // attributes

  int num_inputs() const { return node_->input_size(); }
  bool Has(int i) const { return i < node_->input_size() && !node_->input(i).empty(); }

  const Binding& In(int i) const {
    if (!Has(i)) FailNode("operand " + std::to_string(i) + " is missing");
    const std::string& name = node_->input(i);
    const auto at = names_.find(name);
    if (at == names_.end()) {
      FailNode(later_.count(name) > 0
                   ? "reads '" + name + "' before it is made: the graph is cyclic or out of order"
                   : "reads '" + name + "', which nothing makes");
    }
    return at->second;
  }

  // A float operand. Integer constants are taken as floats where ONNX lets types differ (Pow,
  // Cast).
  ValueId Float(int i) const {
    const Binding& binding = In(i);
    if (binding.is_int) FailNode("operand '" + node_->input(i) + "' is an integer tensor");
    return binding.value;
  }

  ValueId FloatOrInt(int i) {
    const Binding& binding = In(i);
    if (!binding.is_int) return binding.value;
    return builder_.AddConstant(
        node_->input(i),
        binding.ints.shape,
        std::vector<float>(binding.ints.data.begin(), binding.ints.data.end()));
  }

  const IntTensor& Ints(int i) const {
    const Binding& binding = In(i);
    if (!binding.is_int) {
      FailNode("operand '" + node_->input(i) +
               "' must be integers that are known when the file is read");
    }
    return binding.ints;
  }

  float Scalar(int i) const {
    const ValueId id = Float(i);
    if (!builder_.is_constant(id) || builder_.data(id).size() != 1) {
      FailNode("operand '" + node_->input(i) + "' must be one constant number");
    }
    return builder_.data(id)[0];
  }

  const pb::AttributeProto* Attribute(const char* name, int type) {
    const pb::AttributeProto* found = nullptr;
    for (const auto& attribute : node_->attribute()) {
      if (attribute.name() != name) continue;
      if (found != nullptr) FailNode(std::string("attribute '") + name + "' stands there twice");
      if (attribute.type() != type)
        FailNode(std::string("attribute '") + name + "' has the wrong type");
      found = &attribute;
    }
    used_.insert(name);
    return found;
  }
  bool HasAttribute(const char* name) const {
    for (const auto& attribute : node_->attribute()) {
      if (attribute.name() == name) return true;
    }
    return false;
  }
  std::int64_t Int(const char* name, std::int64_t otherwise) {
    const auto* a = Attribute(name, pb::AttributeProto::INT);
    return a == nullptr ? otherwise : a->i();
  }
  float FloatAttribute(const char* name, float otherwise) {
    const auto* a = Attribute(name, pb::AttributeProto::FLOAT);
    return a == nullptr ? otherwise : a->f();
  }
  std::optional<std::vector<std::int64_t>> IntsAttribute(const char* name) {
    const auto* a = Attribute(name, pb::AttributeProto::INTS);
    if (a == nullptr) return std::nullopt;
    return std::vector<std::int64_t>(a->ints().begin(), a->ints().end());
  }

  int Axis(std::int64_t axis, std::size_t rank) const {
    const auto r = static_cast<std::int64_t>(rank);
    if (axis < -r || axis >= r)
      FailNode("axis " + std::to_string(axis) + " of a tensor with " + std::to_string(rank) +
               " axes");
    return static_cast<int>(axis < 0 ? axis + r : axis);
  }
  std::vector<int> Axes(const std::vector<std::int64_t>& axes, std::size_t rank) const {
    std::vector<int> result;
    for (const std::int64_t axis : axes) result.push_back(Axis(axis, rank));
    return result;
  }

  // Axes as attribute (before opset `since`) or operand 1.
  std::optional<std::vector<std::int64_t>> AxesOf(int since) {
    if (opset_ < since) return IntsAttribute("axes");
    if (!Has(1)) return std::nullopt;
    return Ints(1).data;
  }

  // ----------------------------------------------------------------------------------------
  // results

  void Result(Binding binding) {
    if (node_->output_size() == 0 || node_->output(0).empty()) FailNode("has no output");
    for (int i = 1; i < node_->output_size(); ++i) {
      if (!node_->output(i).empty()) FailNode("a second output is not supported");
    }
    Define(node_->output(0), std::move(binding));
  }
  void Result(ValueId id) {
    Binding binding;
    binding.value = id;
    Result(std::move(binding));
  }
  void Result(Shape shape, std::vector<std::int64_t> data) {
    if (data.size() > kMaxInts) FailNode("more than " + std::to_string(kMaxInts) + " integers");
    Binding binding;
    binding.is_int = true;
    binding.ints.shape = std::move(shape);
    binding.ints.data = std::move(data);
    Result(std::move(binding));
  }

  // --------------------------------------------------------------------------------------------
  // nodes

  void ReadNode() {
    const std::string& op = node_->op_type();
    static const std::unordered_map<std::string, Op> kUnary = {{"Relu", Op::kRelu},
                                                               {"Tanh", Op::kTanh},
                                                               {"Sigmoid", Op::kSigmoid},
                                                               {"Softplus", Op::kSoftplus},
                                                               {"Sqrt", Op::kSqrt},
                                                               {"Neg", Op::kNeg},
                                                               {"Abs", Op::kAbs},
                                                               {"Exp", Op::kExp},
                                                               {"Log", Op::kLog},
                                                               {"Reciprocal", Op::kReciprocal},
                                                               {"Erf", Op::kErf}};
    static const std::unordered_map<std::string, Op> kBinary = {{"Add", Op::kAdd},
                                                                {"Sub", Op::kSub},
                                                                {"Mul", Op::kMul},
                                                                {"Div", Op::kDiv},
                                                                {"Pow", Op::kPow}};
    using Method = void (Reader::*)();
    static const std::unordered_map<std::string, Method> kMethods = {
        {"Identity", &Reader::ReadIdentity},
        {"Dropout", &Reader::ReadDropout},
        {"Elu", &Reader::ReadElu},
        {"LeakyRelu", &Reader::ReadLeakyRelu},
        {"Clip", &Reader::ReadClip},
        {"Min", &Reader::ReadMinMax},
        {"Max", &Reader::ReadMinMax},
        {"MatMul", &Reader::ReadMatMul},
        {"Gemm", &Reader::ReadGemm},
        {"Concat", &Reader::ReadConcat},
        {"Slice", &Reader::ReadSlice},
        {"Split", &Reader::ReadSplit},
        {"Gather", &Reader::ReadGather},
        {"Reshape", &Reader::ReadReshape},
        {"Flatten", &Reader::ReadFlatten},
        {"Squeeze", &Reader::ReadSqueeze},
        {"Unsqueeze", &Reader::ReadUnsqueeze},
        {"Expand", &Reader::ReadExpand},
        {"Transpose", &Reader::ReadTranspose},
        {"Constant", &Reader::ReadConstant},
        {"ConstantOfShape", &Reader::ReadConstantOfShape},
        {"Shape", &Reader::ReadShape},
        {"Cast", &Reader::ReadCast},
        {"Softmax", &Reader::ReadSoftmax},
        {"LayerNormalization", &Reader::ReadLayerNorm},
        {"ReduceMean", &Reader::ReadReduce},
        {"ReduceSum", &Reader::ReadReduce}};

    if (const auto unary = kUnary.find(op); unary != kUnary.end()) {
      Result(builder_.AddUnary(unary->second, label_, Float(0)));
    } else if (const auto binary = kBinary.find(op); binary != kBinary.end()) {
      ReadBinary(binary->second);
    } else if (const auto method = kMethods.find(op); method != kMethods.end()) {
      (this->*method->second)();
    } else {
      Fail("node '" + (node_->name().empty() ? label_ : node_->name()) + "': operator type " +
           (op.empty() ? "(none)" : op) +
           " is not supported (docs/policies.md lists those that are)");
    }
  }

  void ReadIdentity() { Result(In(0)); }

  void ReadDropout() {
    // at inference it does nothing
    FloatAttribute("ratio", 0.5f);
    Int("seed", 0);
    if (Has(2) && (!In(2).is_int || In(2).ints.data != std::vector<std::int64_t>{0}))
      FailNode("is in training mode");
    Result(In(0));
  }

  void ReadBinary(Op op) {
    if (In(0).is_int && In(1).is_int) {
      ReadIntBinary(op);
    } else {
      const ValueId a = Float(0);
      Result(builder_.AddBinary(op, label_, a, op == Op::kPow ? FloatOrInt(1) : Float(1)));
    }
  }

  // Shape arithmetic: equal sizes, or one side a single number.
  void ReadIntBinary(Op op) {
    const IntTensor& a = Ints(0);
    const IntTensor& b = Ints(1);
    const std::size_t count = std::max(a.data.size(), b.data.size());
    if (a.data.empty() || b.data.empty() || (a.data.size() != count && a.data.size() != 1) ||
        (b.data.size() != count && b.data.size() != 1)) {
      FailNode("integer operands of " + std::to_string(a.data.size()) + " and " +
               std::to_string(b.data.size()) + " elements");
    }
    std::vector<std::int64_t> result(count);
    for (std::size_t i = 0; i < count; ++i) {
      const std::int64_t x = a.data[a.data.size() == 1 ? 0 : i],
                         y = b.data[b.data.size() == 1 ? 0 : i];
      bool overflow = false;
      switch (op) {
        case Op::kAdd:
          overflow = __builtin_add_overflow(x, y, &result[i]);
          break;
        case Op::kSub:
          overflow = __builtin_sub_overflow(x, y, &result[i]);
          break;
        case Op::kMul:
          overflow = __builtin_mul_overflow(x, y, &result[i]);
          break;
        case Op::kDiv:
          overflow = y == 0 || (y == -1 && x == std::numeric_limits<std::int64_t>::min());
          if (!overflow) result[i] = x / y;
          break;
        default:
          FailNode("is not supported on integers");
      }
      if (overflow) FailNode("integer overflow");
    }
    Shape shape = a.data.size() == count && a.shape.size() >= b.shape.size() ? a.shape : b.shape;
    if (NumElements(shape) != static_cast<std::int64_t>(count))
      shape = {static_cast<std::int64_t>(count)};
    Result(std::move(shape), std::move(result));
  }

  void ReadElu() {
    Result(builder_.AddUnary(Op::kElu, label_, Float(0), FloatAttribute("alpha", 1.0f)));
  }
  void ReadLeakyRelu() {
    Result(builder_.AddUnary(Op::kLeakyRelu, label_, Float(0), FloatAttribute("alpha", 0.01f)));
  }

  void ReadClip() {
    constexpr float kInfinity = std::numeric_limits<float>::infinity();
    float low = -kInfinity, high = kInfinity;
    if (opset_ < 11) {
      low = FloatAttribute("min", low);
      high = FloatAttribute("max", high);
    } else {
      if (Has(1)) low = Scalar(1);
      if (Has(2)) high = Scalar(2);
    }
    if (!(low <= high)) FailNode("clips to an empty range");
    Result(builder_.AddUnary(Op::kClip, label_, Float(0), low, high));
  }

  void ReadMinMax() {
    const Op op = node_->op_type() == "Min" ? Op::kMin : Op::kMax;
    ValueId value = Float(0);
    for (int i = 1; i < num_inputs(); ++i) value = builder_.AddBinary(op, label_, value, Float(i));
    Result(value);
  }

  void ReadMatMul() { Result(builder_.AddMatMul(label_, Float(0), Float(1))); }

  void ReadGemm() {
    const float alpha = FloatAttribute("alpha", 1.0f), beta = FloatAttribute("beta", 1.0f);
    const bool trans_a = Int("transA", 0) != 0, trans_b = Int("transB", 0) != 0;
    const ValueId a = Float(0), b = Float(1);
    Result(builder_.AddGemm(label_, a, b, Has(2) ? Float(2) : -1, alpha, beta, trans_a, trans_b));
  }

  void ReadConcat() {
    const auto* axis = Attribute("axis", pb::AttributeProto::INT);
    if (axis == nullptr) FailNode("attribute 'axis' is missing");
    if (In(0).is_int) {
      std::vector<std::int64_t> all;
      for (int i = 0; i < num_inputs(); ++i) {
        const IntTensor& part = Ints(i);
        if (part.shape.size() != 1) FailNode("integer tensors can be joined along one axis only");
        all.insert(all.end(), part.data.begin(), part.data.end());
        if (all.size() > kMaxInts) FailNode("more than " + std::to_string(kMaxInts) + " integers");
      }
      const auto size = static_cast<std::int64_t>(all.size());
      Result({size}, std::move(all));
      return;
    }
    std::vector<ValueId> parts;
    for (int i = 0; i < num_inputs(); ++i) parts.push_back(Float(i));
    const int at = Axis(axis->i(), builder_.shape(parts[0]).size());
    Result(builder_.AddConcat(label_, parts, at));
  }

  void ReadSlice() {
    std::vector<std::int64_t> starts, ends, steps;
    std::optional<std::vector<std::int64_t>> axes;
    if (opset_ < 10) {
      starts = IntsAttribute("starts").value_or(std::vector<std::int64_t>{});
      ends = IntsAttribute("ends").value_or(std::vector<std::int64_t>{});
      axes = IntsAttribute("axes");
    } else {
      starts = Ints(1).data;
      ends = Ints(2).data;
      if (Has(3)) axes = Ints(3).data;
      if (Has(4)) steps = Ints(4).data;
    }
    if (steps.empty()) steps.assign(starts.size(), 1);
    const bool ints = In(0).is_int;
    const Shape shape = ints ? Ints(0).shape : builder_.shape(Float(0));
    if (!axes) {
      axes.emplace();
      for (std::size_t i = 0; i < starts.size(); ++i) axes->push_back(static_cast<std::int64_t>(i));
    }
    if (starts.size() != ends.size() || starts.size() != axes->size() ||
        starts.size() != steps.size()) {
      FailNode("starts, ends, axes and steps differ in length");
    }
    std::vector<std::int64_t> from(shape.size(), 0), step(shape.size(), 1);
    Shape size = shape;
    std::vector<char> seen(shape.size(), 0);
    for (std::size_t i = 0; i < starts.size(); ++i) {
      const std::size_t axis = U(Axis((*axes)[i], shape.size()));
      if (seen[axis]++) FailNode("axis " + std::to_string(axis) + " is sliced twice");
      const std::int64_t n = shape[axis];
      const std::int64_t s = steps[i];
      if (s == 0) FailNode("step 0");
      // any step longer than the axis takes one element; bounded, its products cannot overflow
      const std::int64_t bounded = std::clamp<std::int64_t>(s, -n - 1, n + 1);
      // numpy's rules: negative counts from the end, then clamped to the axis
      const auto position = [n](std::int64_t p, std::int64_t low, std::int64_t high) {
        if (p < 0) p = p < -n ? low : p + n;
        return std::clamp(p, low, high);
      };
      const std::int64_t begin =
          bounded > 0 ? position(starts[i], 0, n) : position(starts[i], -1, n - 1);
      const std::int64_t end = bounded > 0 ? position(ends[i], 0, n) : position(ends[i], -1, n - 1);
      const std::int64_t span = bounded > 0 ? end - begin : begin - end;
      const std::int64_t stride = bounded > 0 ? bounded : -bounded;
      from[axis] = begin;
      step[axis] = bounded;
      size[axis] = span <= 0 ? 0 : (span + stride - 1) / stride;
    }
    if (ints) {
      if (shape.size() != 1) FailNode("integer tensors can be sliced along one axis only");
      std::vector<std::int64_t> data;
      for (std::int64_t i = 0; i < size[0]; ++i)
        data.push_back(Ints(0).data[U(from[0] + i * step[0])]);
      Result(size, std::move(data));
    } else {
      Result(builder_.AddSlice(label_, Float(0), from, step, size));
    }
  }

  void ReadSplit() {
    const ValueId x = Float(0);
    const Shape shape = builder_.shape(x);
    const std::size_t axis = U(Axis(Int("axis", 0), shape.size()));
    std::optional<std::vector<std::int64_t>> sizes;
    if (opset_ < 13) {
      sizes = IntsAttribute("split");
    } else if (Has(1)) {
      sizes = Ints(1).data;
    }
    const std::int64_t count = node_->output_size();
    if (count == 0) FailNode("has no output");
    if (Int("num_outputs", count) != count) FailNode("num_outputs does not match its outputs");
    if (!sizes) {
      // equal parts, the last one smaller
      const std::int64_t part = (shape[axis] + count - 1) / count;
      sizes.emplace(U(count), part);
      sizes->back() = shape[axis] - part * (count - 1);
    }
    if (sizes->size() != U(count))
      FailNode("split lists " + std::to_string(sizes->size()) + " sizes for " +
               std::to_string(count) + " outputs");
    std::int64_t at = 0;
    for (std::int64_t i = 0; i < count; ++i) {
      Shape size = shape;
      size[axis] = (*sizes)[U(i)];
      if (size[axis] < 1 || size[axis] > shape[axis] - at)
        FailNode("the parts do not fit the axis of " + std::to_string(shape[axis]));
      std::vector<std::int64_t> from(shape.size(), 0);
      from[axis] = at;
      at += size[axis];
      Binding binding;
      binding.value =
          builder_.AddSlice(label_, x, from, std::vector<std::int64_t>(shape.size(), 1), size);
      Define(node_->output(static_cast<int>(i)), std::move(binding));
    }
    if (at != shape[axis])
      FailNode("the parts do not fill the axis of " + std::to_string(shape[axis]));
  }

  void ReadGather() {
    const IntTensor indices = Ints(1);
    const std::int64_t axis_attribute = Int("axis", 0);
    const bool ints = In(0).is_int;
    const Shape shape = ints ? Ints(0).shape : builder_.shape(Float(0));
    const int axis = Axis(axis_attribute, shape.size());
    std::vector<std::int64_t> wrapped = indices.data;
    for (std::int64_t& i : wrapped) {
      if (i < -shape[U(axis)] || i >= shape[U(axis)]) {
        FailNode("index " + std::to_string(i) + " leaves an axis of " +
                 std::to_string(shape[U(axis)]));
      }
      if (i < 0) i += shape[U(axis)];
    }
    if (ints) {
      if (shape.size() != 1) FailNode("integer tensors can be gathered along one axis only");
      std::vector<std::int64_t> data;
      for (const std::int64_t i : wrapped) data.push_back(Ints(0).data[U(i)]);
      Result(indices.shape, std::move(data));
    } else {
      Result(builder_.AddGather(label_, Float(0), axis, wrapped, indices.shape));
    }
  }

  // The data of operand 0, in another shape.
  void ResultReshaped(Shape shape) {
    if (In(0).is_int) {
      Result(std::move(shape), std::vector<std::int64_t>(Ints(0).data));
    } else {
      Result(builder_.AddReshape(label_, Float(0), std::move(shape)));
    }
  }
  Shape ShapeOf(int i) const { return In(i).is_int ? Ints(i).shape : builder_.shape(Float(i)); }

  void ReadReshape() {
    const Shape from = ShapeOf(0);
    Shape to = Ints(1).data;
    const bool zero_is_zero = Int("allowzero", 0) != 0;
    if (static_cast<std::int64_t>(to.size()) > limits_.max_rank)
      FailNode(std::to_string(to.size()) + " axes");
    int unknown = -1;
    std::int64_t known = 1;
    for (std::size_t i = 0; i < to.size(); ++i) {
      if (to[i] == 0 && !zero_is_zero) {
        if (i >= from.size())
          FailNode("copies axis " + std::to_string(i) + " of " + ShapeText(from));
        to[i] = from[i];
      }
      if (to[i] == -1 && unknown < 0) {
        unknown = static_cast<int>(i);
      } else if (to[i] < 1 || to[i] > NumElements(from) / known) {
        FailNode("cannot reshape " + ShapeText(from) + " to " + ShapeText(to));
      } else {
        known *= to[i];
      }
    }
    if (unknown >= 0) {
      if (NumElements(from) % known != 0)
        FailNode("cannot reshape " + ShapeText(from) + " to " + ShapeText(to));
      to[U(unknown)] = NumElements(from) / known;
    }
    if (NumElements(to) != NumElements(from))
      FailNode("cannot reshape " + ShapeText(from) + " to " + ShapeText(to));
    ResultReshaped(std::move(to));
  }

  void ReadFlatten() {
    const ValueId x = Float(0);
    const Shape& shape = builder_.shape(x);
    const auto rank = static_cast<std::int64_t>(shape.size());
    std::int64_t axis = Int("axis", 1);
    if (axis < -rank || axis > rank) FailNode("axis " + std::to_string(axis));
    if (axis < 0) axis += rank;
    std::int64_t rows = 1;
    for (std::int64_t i = 0; i < axis; ++i) rows *= shape[U(i)];
    const std::int64_t cols = NumElements(shape) / rows;
    Result(builder_.AddReshape(label_, x, {rows, cols}));
  }

  void ReadSqueeze() {
    const auto axes = AxesOf(13);
    const Shape from = ShapeOf(0);
    std::vector<int> drop;
    if (axes) {
      drop = Axes(*axes, from.size());
    } else {
      for (std::size_t i = 0; i < from.size(); ++i) {
        if (from[i] == 1) drop.push_back(static_cast<int>(i));
      }
    }
    Shape to;
    for (std::size_t i = 0; i < from.size(); ++i) {
      if (std::find(drop.begin(), drop.end(), static_cast<int>(i)) == drop.end()) {
        to.push_back(from[i]);
      } else if (from[i] != 1) {
        FailNode("axis " + std::to_string(i) + " of " + ShapeText(from) + " is not 1");
      }
    }
    ResultReshaped(std::move(to));
  }

  void ReadUnsqueeze() {
    const auto axes = AxesOf(13);
    if (!axes) FailNode("axes are missing");
    const Shape from = ShapeOf(0);
    if (from.size() + axes->size() > U(limits_.max_rank)) FailNode("too many axes");
    std::vector<int> add = Axes(*axes, from.size() + axes->size());
    std::sort(add.begin(), add.end());
    if (std::adjacent_find(add.begin(), add.end()) != add.end())
      FailNode("an axis is listed twice");
    Shape to = from;
    for (const int axis : add) to.insert(to.begin() + axis, 1);
    ResultReshaped(std::move(to));
  }

  void ReadExpand() {
    const Shape& to = Ints(1).data;
    for (const std::int64_t size : to) {
      if (size < 1 || size > limits_.max_elements) FailNode("cannot expand to " + ShapeText(to));
    }
    Result(builder_.AddExpand(label_, Float(0), to));
  }

  void ReadTranspose() {
    const ValueId x = Float(0);
    const std::size_t rank = builder_.shape(x).size();
    std::vector<int> perm;
    if (const auto given = IntsAttribute("perm")) {
      perm = Axes(*given, rank);
    } else {
      for (std::size_t i = rank; i-- > 0;) perm.push_back(static_cast<int>(i));
    }
    Result(builder_.AddTranspose(label_, x, perm));
  }

  void ReadConstant() {
    if (const auto* a = Attribute("value", pb::AttributeProto::TENSOR)) {
      Result(ReadTensor(a->t(), label_));
    } else if (HasAttribute("value_float")) {
      Result(builder_.AddConstant(label_, {}, {FloatAttribute("value_float", 0)}));
    } else if (const auto* floats = Attribute("value_floats", pb::AttributeProto::FLOATS)) {
      Result(builder_.AddConstant(
          label_, {floats->floats_size()}, {floats->floats().begin(), floats->floats().end()}));
    } else if (HasAttribute("value_int")) {
      Result(Shape{}, {Int("value_int", 0)});
    } else if (const auto ints = IntsAttribute("value_ints")) {
      Result(Shape{static_cast<std::int64_t>(ints->size())}, *ints);
    } else {
      FailNode("holds no supported value");
    }
  }

  void ReadConstantOfShape() {
    const Shape shape = Ints(0).data;
    std::int64_t count = 1;
    if (static_cast<std::int64_t>(shape.size()) > limits_.max_rank)
      FailNode(std::to_string(shape.size()) + " axes");
    for (const std::int64_t size : shape) {
      if (size < 1 || size > limits_.max_elements / count)
        FailNode("cannot fill shape " + ShapeText(shape));
      count *= size;
    }
    const auto* value = Attribute("value", pb::AttributeProto::TENSOR);
    if (value == nullptr) {
      Result(builder_.AddConstant(label_, shape, std::vector<float>(U(count), 0.0f)));
      return;
    }
    const Binding one = ReadTensor(value->t(), label_);
    if (one.is_int) {
      if (one.ints.data.size() != 1 || U(count) > kMaxInts) FailNode("value must be one number");
      Result(shape, std::vector<std::int64_t>(U(count), one.ints.data[0]));
    } else {
      if (builder_.data(one.value).size() != 1) FailNode("value must be one number");
      Result(builder_.AddConstant(
          label_, shape, std::vector<float>(U(count), builder_.data(one.value)[0])));
    }
  }

  void ReadShape() {
    const Shape shape = ShapeOf(0);
    const auto rank = static_cast<std::int64_t>(shape.size());
    const auto bound = [&](std::int64_t p) {
      return std::clamp<std::int64_t>(p < 0 ? std::max<std::int64_t>(p, -rank) + rank : p, 0, rank);
    };
    const std::int64_t begin = bound(Int("start", 0));
    const std::int64_t end = std::max(begin, bound(Int("end", rank)));
    Result({end - begin}, std::vector<std::int64_t>(shape.begin() + begin, shape.begin() + end));
  }

  void ReadCast() {
    const auto to = static_cast<int>(Int("to", 0));
    Int("saturate", 1);
    const Binding& from = In(0);
    if (IsIntType(to) && to != pb::TensorProto::BOOL) {
      if (from.is_int) {
        Result(from);
        return;
      }
      if (!builder_.is_constant(from.value)) FailNode("a computed value is cast to integers");
      std::vector<std::int64_t> data;
      for (const float x : builder_.data(from.value)) {
        if (!(std::abs(x) < 9e18f)) FailNode("a value does not fit an integer");
        data.push_back(static_cast<std::int64_t>(x));
      }
      Result(builder_.shape(from.value), std::move(data));
      return;
    }
    if (!IsFloatType(to))
      FailNode("cast to element type " + std::to_string(to) + " is not supported");
    if (from.is_int) {
      Result(FloatOrInt(0));
      return;
    }
    // all arithmetic is in one precision; rounding to half is something the network would have seen
    if (to == pb::TensorProto::FLOAT16 || to == pb::TensorProto::BFLOAT16) {
      FailNode(
          "computes in half precision, which is not supported; export in float32 (half-precision "
          "weights are fine)");
    }
    Result(from);
  }

  void ReadSoftmax() {
    const ValueId x = Float(0);
    const std::size_t rank = builder_.shape(x).size();
    const int axis = Axis(Int("axis", opset_ < 13 ? 1 : -1), rank);
    std::vector<int> axes = {axis};
    // before opset 13 everything from the axis on was one group
    for (std::size_t i = U(axis) + 1; opset_ < 13 && i < rank; ++i)
      axes.push_back(static_cast<int>(i));
    Result(builder_.AddSoftmax(label_, x, axes));
  }

  void ReadLayerNorm() {
    const float epsilon = FloatAttribute("epsilon", 1e-5f);
    const std::int64_t axis = Int("axis", -1);
    Int("stash_type", 1);
    const ValueId x = Float(0), scale = Float(1);
    const int at = Axis(axis, builder_.shape(x).size());
    Result(builder_.AddLayerNorm(label_, x, scale, Has(2) ? Float(2) : -1, at, epsilon));
  }

  void ReadReduce() {
    const Op op = node_->op_type() == "ReduceMean" ? Op::kReduceMean : Op::kReduceSum;
    const bool keep = Int("keepdims", 1) != 0;
    const int since = op == Op::kReduceMean ? 18 : 13;
    const auto given = AxesOf(since);
    const bool noop = opset_ >= since && Int("noop_with_empty_axes", 0) != 0;
    const ValueId x = Float(0);
    const std::size_t rank = builder_.shape(x).size();
    std::vector<int> axes;
    if (given && !given->empty()) {
      axes = Axes(*given, rank);
    } else if (noop) {
      Result(x);
      return;
    } else {
      for (std::size_t i = 0; i < rank; ++i) axes.push_back(static_cast<int>(i));
    }
    Result(builder_.AddReduce(op, label_, x, std::move(axes), keep));
  }

  std::string place_;
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

}  // namespace

OnnxModel ParseOnnx(std::string_view bytes, const std::string& place, const GraphLimits& limits) {
  if (bytes.size() > kMaxOnnxBytes) {
    throw ConfigError(place + ": " + std::to_string(bytes.size()) +
                      " bytes, larger than any policy (" + std::to_string(kMaxOnnxBytes) + ")");
  }
  pb::ModelProto model;
  if (!model.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    throw ConfigError(place + ": not an ONNX file, or cut short");
  }
  try {
    return Reader(place, limits).Read(model);
  } catch (const ConfigError& error) {
    const std::string text = error.what();
    if (text.rfind(place, 0) == 0) throw;
    throw ConfigError(place + ": " + text);
  }
}

OnnxModel ReadOnnx(const std::string& path, const GraphLimits& limits) {
  return ParseOnnx(ReadFile(path, kMaxOnnxBytes), path, limits);
}

}  // namespace silc
