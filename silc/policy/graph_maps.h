// SPDX-License-Identifier: Apache-2.0
#pragma once

// Where the operands of a node lie. Shared by graph*.cc; nobody else includes it.
#include <cstdint>
#include <vector>

#include "silc/policy/graph.h"
#include "silc/policy/index.h"

namespace silc {

inline bool IsBinary(Op op) { return op <= Op::kMax; }
inline bool IsUnary(Op op) { return op >= Op::kElu && op <= Op::kClip; }

/// Row-major strides, 0 along axes where `from` is stretched to fill `to`. Ranks are aligned at the
/// end.
Shape BroadcastStrides(const Shape& from, const Shape& to);

/// For every element of `shape` in row-major order, Σ index·strides + start.
std::vector<std::int32_t> WalkStrides(const Shape& shape, const Shape& strides, std::int64_t start);

/// A matrix product's operands as stacks of matrices, after numpy's rules for vectors.
struct MatMulShapes {
  Shape a, b;              // at least two axes each
  Shape batch_a, batch_b;  // the axes before
  Shape batch;             // broadcast
  std::int64_t m, k, n;
};

/// False when the shapes cannot be multiplied.
bool SplitMatMul(const Shape& a_in, const Shape& b_in, MatMulShapes* s);

NodeMaps MakeMaps(const GraphNode& node, const std::vector<GraphValue>& values);

}  // namespace silc
