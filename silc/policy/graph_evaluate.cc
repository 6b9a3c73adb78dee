// SPDX-License-Identifier: Apache-2.0
// Values of a graph.
#include <algorithm>
#include <utility>

#include "silc/policy/graph.h"
#include "silc/policy/graph_compute.h"
#include "silc/policy/graph_maps.h"

namespace silc {

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

// what is defined here; graph_tangents.cc instantiates the rest
template class GraphEvaluator<float>;
template class GraphEvaluator<double>;

}  // namespace silc
