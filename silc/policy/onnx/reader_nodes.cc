// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>
#include <utility>

#include "silc/policy/onnx/reader_impl.h"

namespace silc {

// ---- operands, attributes, results ----

const Binding& OnnxReader::In(int i) const {
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

ValueId OnnxReader::Float(int i) const {
  const Binding& binding = In(i);
  if (binding.is_int) FailNode("operand '" + node_->input(i) + "' is an integer tensor");
  return binding.value;
}

ValueId OnnxReader::FloatOrInt(int i) {
  const Binding& binding = In(i);
  if (!binding.is_int) return binding.value;
  return builder_.AddConstant(
      node_->input(i),
      binding.ints.shape,
      std::vector<float>(binding.ints.data.begin(), binding.ints.data.end()));
}

const IntTensor& OnnxReader::Ints(int i) const {
  const Binding& binding = In(i);
  if (!binding.is_int) {
    FailNode("operand '" + node_->input(i) +
             "' must be integers that are known when the file is read");
  }
  return binding.ints;
}

float OnnxReader::Scalar(int i) const {
  const ValueId id = Float(i);
  if (!builder_.is_constant(id) || builder_.data(id).size() != 1) {
    FailNode("operand '" + node_->input(i) + "' must be one constant number");
  }
  return builder_.data(id)[0];
}

const pb::AttributeProto* OnnxReader::Attribute(const char* name, int type) {
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

bool OnnxReader::HasAttribute(const char* name) const {
  for (const auto& attribute : node_->attribute()) {
    if (attribute.name() == name) return true;
  }
  return false;
}

std::int64_t OnnxReader::Int(const char* name, std::int64_t otherwise) {
  const auto* a = Attribute(name, pb::AttributeProto::INT);
  return a == nullptr ? otherwise : a->i();
}

float OnnxReader::FloatAttribute(const char* name, float otherwise) {
  const auto* a = Attribute(name, pb::AttributeProto::FLOAT);
  return a == nullptr ? otherwise : a->f();
}

std::optional<std::vector<std::int64_t>> OnnxReader::IntsAttribute(const char* name) {
  const auto* a = Attribute(name, pb::AttributeProto::INTS);
  if (a == nullptr) return std::nullopt;
  return std::vector<std::int64_t>(a->ints().begin(), a->ints().end());
}

int OnnxReader::Axis(std::int64_t axis, std::size_t rank) const {
  const auto r = static_cast<std::int64_t>(rank);
  if (axis < -r || axis >= r)
    FailNode("axis " + std::to_string(axis) + " of a tensor with " + std::to_string(rank) +
             " axes");
  return static_cast<int>(axis < 0 ? axis + r : axis);
}

std::vector<int> OnnxReader::Axes(const std::vector<std::int64_t>& axes, std::size_t rank) const {
  std::vector<int> result;
  for (const std::int64_t axis : axes) result.push_back(Axis(axis, rank));
  return result;
}

std::optional<std::vector<std::int64_t>> OnnxReader::AxesOf(int since) {
  if (opset_ < since) return IntsAttribute("axes");
  if (!Has(1)) return std::nullopt;
  return Ints(1).data;
}

void OnnxReader::Result(Binding binding) {
  if (node_->output_size() == 0 || node_->output(0).empty()) FailNode("has no output");
  for (int i = 1; i < node_->output_size(); ++i) {
    if (!node_->output(i).empty()) FailNode("a second output is not supported");
  }
  Define(node_->output(0), std::move(binding));
}

void OnnxReader::Result(ValueId id) {
  Binding binding;
  binding.value = id;
  Result(std::move(binding));
}

void OnnxReader::Result(Shape shape, std::vector<std::int64_t> data) {
  if (data.size() > kMaxInts) FailNode("more than " + std::to_string(kMaxInts) + " integers");
  Binding binding;
  binding.is_int = true;
  binding.ints.shape = std::move(shape);
  binding.ints.data = std::move(data);
  Result(std::move(binding));
}

// ---- operators that compute ----

void OnnxReader::ReadNode() {
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
  using Method = void (OnnxReader::*)();
  static const std::unordered_map<std::string, Method> kMethods = {
      {"Identity", &OnnxReader::ReadIdentity},
      {"Dropout", &OnnxReader::ReadDropout},
      {"Elu", &OnnxReader::ReadElu},
      {"LeakyRelu", &OnnxReader::ReadLeakyRelu},
      {"Clip", &OnnxReader::ReadClip},
      {"Min", &OnnxReader::ReadMinMax},
      {"Max", &OnnxReader::ReadMinMax},
      {"MatMul", &OnnxReader::ReadMatMul},
      {"Gemm", &OnnxReader::ReadGemm},
      {"Concat", &OnnxReader::ReadConcat},
      {"Slice", &OnnxReader::ReadSlice},
      {"Split", &OnnxReader::ReadSplit},
      {"Gather", &OnnxReader::ReadGather},
      {"Reshape", &OnnxReader::ReadReshape},
      {"Flatten", &OnnxReader::ReadFlatten},
      {"Squeeze", &OnnxReader::ReadSqueeze},
      {"Unsqueeze", &OnnxReader::ReadUnsqueeze},
      {"Expand", &OnnxReader::ReadExpand},
      {"Transpose", &OnnxReader::ReadTranspose},
      {"Constant", &OnnxReader::ReadConstant},
      {"ConstantOfShape", &OnnxReader::ReadConstantOfShape},
      {"Shape", &OnnxReader::ReadShape},
      {"Cast", &OnnxReader::ReadCast},
      {"Softmax", &OnnxReader::ReadSoftmax},
      {"LayerNormalization", &OnnxReader::ReadLayerNorm},
      {"ReduceMean", &OnnxReader::ReadReduce},
      {"ReduceSum", &OnnxReader::ReadReduce}};

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

void OnnxReader::ReadDropout() {
  // at inference it does nothing
  FloatAttribute("ratio", 0.5f);
  Int("seed", 0);
  if (Has(2) && (!In(2).is_int || In(2).ints.data != std::vector<std::int64_t>{0}))
    FailNode("is in training mode");
  Result(In(0));
}

void OnnxReader::ReadBinary(Op op) {
  if (In(0).is_int && In(1).is_int) {
    ReadIntBinary(op);
  } else {
    const ValueId a = Float(0);
    Result(builder_.AddBinary(op, label_, a, op == Op::kPow ? FloatOrInt(1) : Float(1)));
  }
}

void OnnxReader::ReadIntBinary(Op op) {
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

void OnnxReader::ReadElu() {
  Result(builder_.AddUnary(Op::kElu, label_, Float(0), FloatAttribute("alpha", 1.0f)));
}

void OnnxReader::ReadLeakyRelu() {
  Result(builder_.AddUnary(Op::kLeakyRelu, label_, Float(0), FloatAttribute("alpha", 0.01f)));
}

void OnnxReader::ReadClip() {
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

void OnnxReader::ReadMinMax() {
  const Op op = node_->op_type() == "Min" ? Op::kMin : Op::kMax;
  ValueId value = Float(0);
  for (int i = 1; i < num_inputs(); ++i) value = builder_.AddBinary(op, label_, value, Float(i));
  Result(value);
}

void OnnxReader::ReadGemm() {
  const float alpha = FloatAttribute("alpha", 1.0f), beta = FloatAttribute("beta", 1.0f);
  const bool trans_a = Int("transA", 0) != 0, trans_b = Int("transB", 0) != 0;
  const ValueId a = Float(0), b = Float(1);
  Result(builder_.AddGemm(label_, a, b, Has(2) ? Float(2) : -1, alpha, beta, trans_a, trans_b));
}

void OnnxReader::ReadSoftmax() {
  const ValueId x = Float(0);
  const std::size_t rank = builder_.shape(x).size();
  const int axis = Axis(Int("axis", opset_ < 13 ? 1 : -1), rank);
  std::vector<int> axes = {axis};
  // before opset 13 everything from the axis on was one group
  for (std::size_t i = U(axis) + 1; opset_ < 13 && i < rank; ++i)
    axes.push_back(static_cast<int>(i));
  Result(builder_.AddSoftmax(label_, x, axes));
}

void OnnxReader::ReadLayerNorm() {
  const float epsilon = FloatAttribute("epsilon", 1e-5f);
  const std::int64_t axis = Int("axis", -1);
  Int("stash_type", 1);
  const ValueId x = Float(0), scale = Float(1);
  const int at = Axis(axis, builder_.shape(x).size());
  Result(builder_.AddLayerNorm(label_, x, scale, Has(2) ? Float(2) : -1, at, epsilon));
}

void OnnxReader::ReadReduce() {
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

}  // namespace silc
