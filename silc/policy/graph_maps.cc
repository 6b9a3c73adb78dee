// SPDX-License-Identifier: Apache-2.0
#include "silc/policy/graph_maps.h"

#include "silc/base/check.h"

namespace silc {

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

namespace {

/// Group of each element when `axes` are reduced: all elements that differ only along them share
/// one.
std::vector<std::int32_t> GroupMap(const Shape& shape, const std::vector<int>& axes, int* groups) {
  Shape kept = shape;
  for (const int axis : axes) kept[U(axis)] = 1;
  *groups = static_cast<int>(NumElements(kept));
  return WalkStrides(shape, BroadcastStrides(kept, shape), 0);
}

}  // namespace

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

}  // namespace silc
