// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <utility>

#include "silc/policy/onnx/reader_impl.h"

namespace silc {

void OnnxReader::ReadConcat() {
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

void OnnxReader::ReadSlice() {
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

void OnnxReader::ReadSplit() {
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

void OnnxReader::ReadGather() {
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

void OnnxReader::ResultReshaped(Shape shape) {
  if (In(0).is_int) {
    Result(std::move(shape), std::vector<std::int64_t>(Ints(0).data));
  } else {
    Result(builder_.AddReshape(label_, Float(0), std::move(shape)));
  }
}

void OnnxReader::ReadReshape() {
  const Shape from = ShapeOf(0);
  Shape to = Ints(1).data;
  const bool zero_is_zero = Int("allowzero", 0) != 0;
  if (static_cast<std::int64_t>(to.size()) > limits_.max_rank)
    FailNode(std::to_string(to.size()) + " axes");
  int unknown = -1;
  std::int64_t known = 1;
  for (std::size_t i = 0; i < to.size(); ++i) {
    if (to[i] == 0 && !zero_is_zero) {
      if (i >= from.size()) FailNode("copies axis " + std::to_string(i) + " of " + ShapeText(from));
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

void OnnxReader::ReadFlatten() {
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

void OnnxReader::ReadSqueeze() {
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

void OnnxReader::ReadUnsqueeze() {
  const auto axes = AxesOf(13);
  if (!axes) FailNode("axes are missing");
  const Shape from = ShapeOf(0);
  if (from.size() + axes->size() > U(limits_.max_rank)) FailNode("too many axes");
  std::vector<int> add = Axes(*axes, from.size() + axes->size());
  std::sort(add.begin(), add.end());
  if (std::adjacent_find(add.begin(), add.end()) != add.end()) FailNode("an axis is listed twice");
  Shape to = from;
  for (const int axis : add) to.insert(to.begin() + axis, 1);
  ResultReshaped(std::move(to));
}

void OnnxReader::ReadExpand() {
  const Shape& to = Ints(1).data;
  for (const std::int64_t size : to) {
    if (size < 1 || size > limits_.max_elements) FailNode("cannot expand to " + ShapeText(to));
  }
  Result(builder_.AddExpand(label_, Float(0), to));
}

void OnnxReader::ReadTranspose() {
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

void OnnxReader::ReadConstant() {
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

void OnnxReader::ReadConstantOfShape() {
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

void OnnxReader::ReadShape() {
  const Shape shape = ShapeOf(0);
  const auto rank = static_cast<std::int64_t>(shape.size());
  const auto bound = [&](std::int64_t p) {
    return std::clamp<std::int64_t>(p < 0 ? std::max<std::int64_t>(p, -rank) + rank : p, 0, rank);
  };
  const std::int64_t begin = bound(Int("start", 0));
  const std::int64_t end = std::max(begin, bound(Int("end", rank)));
  Result({end - begin}, std::vector<std::int64_t>(shape.begin() + begin, shape.begin() + end));
}

void OnnxReader::ReadCast() {
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

}  // namespace silc
