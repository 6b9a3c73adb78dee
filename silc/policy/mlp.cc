// SPDX-License-Identifier: Apache-2.0
#include "silc/policy/mlp.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "silc/base/check.h"
#include "silc/policy/index.h"

namespace silc {
namespace {

// ---------------------------------------------------------------------------------- recognising a
// graph

constexpr int kMaxBranches = 64;
constexpr int kMaxDepth = 256;
// weights of all branches, a trunk that they share counted for each: it is copied as often
constexpr std::int64_t kMaxMlpWeights = std::int64_t{1} << 25;

class Recogniser {
 public:
  Recogniser(const Graph& graph, int input) : graph_(graph), input_(graph.inputs()[U(input)]) {
    producer_.assign(graph.values().size(), nullptr);
    for (const GraphNode& node : graph.nodes()) producer_[U(node.output)] = &node;
  }

  std::optional<MlpNetwork> Run(int output) {
    MlpNetwork network;
    network.inputs = static_cast<int>(NumElements(graph_.value(input_).shape));
    if (!Branches(graph_.outputs()[U(output)], 0, &network)) return std::nullopt;
    if (!Prefix(&network)) return std::nullopt;
    return network;
  }

 private:
  // The node that made the value, looking through reshapes; null for inputs and constants.
  const GraphNode* Producer(ValueId* id) const {
    const GraphNode* node = producer_[U(*id)];
    while (node != nullptr && node->op == Op::kSelect && node->index.empty()) {
      *id = node->inputs[0];
      node = producer_[U(*id)];
    }
    return node;
  }

  std::int64_t Count(ValueId id) const { return NumElements(graph_.value(id).shape); }
  bool IsConstant(ValueId id) const { return graph_.value(id).is_constant; }

  // The value is one branch, or several side by side.
  bool Branches(ValueId id, int depth, MlpNetwork* network) {
    const GraphNode* node = Producer(&id);
    if (node == nullptr || depth > kMaxDepth) return false;
    if (node->op == Op::kConcat) {
      const Shape& shape = graph_.value(id).shape;
      std::int64_t outer = 1;
      for (int i = 0; i < node->axis; ++i) outer *= shape[U(i)];
      if (outer != 1) return false;
      for (const ValueId part : node->inputs) {
        if (!Branches(part, depth + 1, network)) return false;
      }
      return true;
    }
    std::vector<MlpLayer> layers;  // last first
    while (Layer(&id, &layers)) {
      if (layers.size() > U(kMaxDepth)) return false;
    }
    if (layers.empty()) return false;

    // what is left is the root all branches share, or a selection of it
    ValueId root = id;
    const GraphNode* select = Producer(&root);
    if (select != nullptr && select->op == Op::kSelect) {
      root = select->inputs[0];
      Producer(&root);
    } else {
      select = nullptr;
    }
    if (root_ < 0) root_ = root;
    if (root != root_ || Count(root) != network->inputs) return false;
    if (select != nullptr) {
      // columns the branch does not see are zero
      MlpLayer& first = layers.back();
      weights_ += static_cast<std::int64_t>(first.outputs) * (network->inputs - first.inputs);
      if (weights_ > kMaxMlpWeights) return false;
      std::vector<float> wide(U(first.outputs) * U(network->inputs), 0.0f);
      for (int o = 0; o < first.outputs; ++o) {
        for (int i = 0; i < first.inputs; ++i) {
          wide[U(o) * U(network->inputs) + U(select->index[U(i)])] +=
              first.weight[U(o) * U(first.inputs) + U(i)];
        }
      }
      first.inputs = network->inputs;
      first.weight = std::move(wide);
    }
    if (layers.back().inputs != network->inputs) return false;
    std::reverse(layers.begin(), layers.end());
    network->branches.push_back(std::move(layers));
    return network->branches.size() <= U(kMaxBranches);
  }

  bool Fits(const MlpLayer& layer) {
    weights_ += static_cast<std::int64_t>(layer.inputs) * layer.outputs;
    return weights_ <= kMaxMlpWeights;
  }

  // Takes one activation and affine map off the end; false when there is none, `id` unchanged.
  bool Layer(ValueId* id, std::vector<MlpLayer>* layers) {
    MlpLayer layer;
    ValueId at = *id;
    const GraphNode* node = Producer(&at);
    if (node == nullptr) return false;
    const auto take = [&](Activation activation) {
      layer.activation = activation;
      layer.alpha = node->alpha;
      at = node->inputs[0];
      node = Producer(&at);
    };
    switch (node->op) {
      case Op::kElu:
        take(Activation::kElu);
        break;
      case Op::kRelu:
        take(Activation::kRelu);
        break;
      case Op::kLeakyRelu:
        take(Activation::kLeakyRelu);
        break;
      case Op::kTanh:
        take(Activation::kTanh);
        break;
      case Op::kSigmoid:
        take(Activation::kSigmoid);
        break;
      case Op::kSoftplus:
        take(Activation::kSoftplus);
        break;
      default:
        break;
    }
    if (node == nullptr) return false;

    std::vector<float> bias;
    if (node->op == Op::kAdd) {
      const int side = IsConstant(node->inputs[0]) ? 0 : 1;
      if (!IsConstant(node->inputs[U(side)])) return false;
      const ValueId added = node->inputs[U(side)];
      const std::int64_t size = Count(at);
      at = node->inputs[U(1 - side)];
      const GraphNode* product = Producer(&at);
      if (product == nullptr || product->op != Op::kMatMul || Count(at) != size) return false;
      bias = graph_.value(added).data;
      if (bias.size() != 1 && static_cast<std::int64_t>(bias.size()) != size) return false;
      node = product;
    }
    if (node->op == Op::kMatMul) {
      // x W with x a row, or W x with x a column
      const bool weight_first = IsConstant(node->inputs[0]);
      const GraphValue& w = graph_.value(node->inputs[weight_first ? 0 : 1]);
      if (!w.is_constant || w.shape.size() != 2) return false;
      const std::int64_t rows = w.shape[0], cols = w.shape[1];
      layer.inputs = static_cast<int>(weight_first ? cols : rows);
      layer.outputs = static_cast<int>(weight_first ? rows : cols);
      at = node->inputs[weight_first ? 1 : 0];
      if (Count(at) != layer.inputs || Count(node->output) != layer.outputs) return false;
      if (!Fits(layer)) return false;
      layer.weight = weight_first ? w.data : Transposed(w.data, rows, cols, 1.0f);
      if (bias.size() == 1) bias.assign(U(layer.outputs), bias[0]);
      layer.bias = bias.empty() ? std::vector<float>(U(layer.outputs), 0.0f) : std::move(bias);
    } else if (node->op == Op::kGemm && bias.empty()) {
      const GraphValue& w = graph_.value(node->inputs[1]);
      if (!w.is_constant) return false;
      layer.inputs = static_cast<int>(w.shape[node->trans_b ? 1 : 0]);
      layer.outputs = static_cast<int>(w.shape[node->trans_b ? 0 : 1]);
      at = node->inputs[0];
      if (Count(at) != layer.inputs || Count(node->output) != layer.outputs) return false;
      if (!Fits(layer)) return false;
      if (node->trans_b) {
        layer.weight = w.data;
        for (float& x : layer.weight) x *= node->alpha;
      } else {
        layer.weight = Transposed(w.data, w.shape[0], w.shape[1], node->alpha);
      }
      layer.bias.assign(U(layer.outputs), 0.0f);
      if (node->inputs.size() == 3) {
        const GraphValue& c = graph_.value(node->inputs[2]);
        if (!c.is_constant) return false;
        for (std::size_t i = 0; i < layer.bias.size(); ++i) {
          layer.bias[i] = node->beta * c.data[c.data.size() == 1 ? 0 : i];
        }
      }
    } else {
      return false;
    }
    *id = at;
    layers->push_back(std::move(layer));
    return true;
  }

  // The steps from the graph's input to the root.
  bool Prefix(MlpNetwork* network) const {
    ValueId at = root_;
    const GraphNode* node = Producer(&at);
    while (node != nullptr) {
      InputStep step;
      if (node->op == Op::kClip) {
        step.kind = InputStep::Kind::kClip;
        step.low = node->alpha;
        step.high = node->beta;
        at = node->inputs[0];
      } else {
        switch (node->op) {
          case Op::kAdd:
            step.kind = InputStep::Kind::kAdd;
            break;
          case Op::kSub:
            step.kind = InputStep::Kind::kSub;
            break;
          case Op::kMul:
            step.kind = InputStep::Kind::kMul;
            break;
          case Op::kDiv:
            step.kind = InputStep::Kind::kDiv;
            break;
          default:
            return false;
        }
        const bool swaps = node->op == Op::kAdd || node->op == Op::kMul;
        const int side = swaps && IsConstant(node->inputs[0]) ? 0 : 1;
        const std::vector<float>& operand = graph_.value(node->inputs[U(side)]).data;
        if (!IsConstant(node->inputs[U(side)])) return false;
        if (operand.size() == 1) {
          step.operand.assign(U(network->inputs), operand[0]);
        } else {
          step.operand = operand;
        }
        at = node->inputs[U(1 - side)];
        if (step.operand.size() != U(network->inputs)) return false;
      }
      if (Count(at) != network->inputs || network->prefix.size() > U(kMaxDepth)) return false;
      network->prefix.push_back(std::move(step));
      node = Producer(&at);
    }
    std::reverse(network->prefix.begin(), network->prefix.end());
    return at == input_;
  }

  static std::vector<float> Transposed(const std::vector<float>& w,
                                       std::int64_t rows,
                                       std::int64_t cols,
                                       float factor) {
    std::vector<float> t(w.size());
    for (std::int64_t r = 0; r < rows; ++r) {
      for (std::int64_t c = 0; c < cols; ++c) t[U(c * rows + r)] = factor * w[U(r * cols + c)];
    }
    return t;
  }

  const Graph& graph_;
  ValueId input_;
  ValueId root_ = -1;
  std::int64_t weights_ = 0;
  std::vector<const GraphNode*> producer_;
};

// y and dy/dz at z
void Activate(const MlpLayer& layer, float* y, float* slope, int count) {
  const float alpha = layer.alpha;
  switch (layer.activation) {
    case Activation::kNone:
      std::fill_n(slope, count, 1.0f);
      return;
    case Activation::kElu:
      for (int i = 0; i < count; ++i) {
        if (y[i] > 0) {
          slope[i] = 1.0f;
        } else {
          y[i] = alpha * std::expm1(y[i]);
          slope[i] = y[i] + alpha;  // α eᶻ
        }
      }
      return;
    case Activation::kRelu:
      for (int i = 0; i < count; ++i) {
        slope[i] = y[i] > 0 ? 1.0f : 0.0f;
        y[i] = y[i] < 0 ? 0.0f : y[i];
      }
      return;
    case Activation::kLeakyRelu:
      for (int i = 0; i < count; ++i) {
        slope[i] = y[i] < 0 ? alpha : 1.0f;
        y[i] *= slope[i];
      }
      return;
    case Activation::kTanh:
      for (int i = 0; i < count; ++i) {
        y[i] = std::tanh(y[i]);
        slope[i] = 1.0f - y[i] * y[i];
      }
      return;
    case Activation::kSigmoid:
      for (int i = 0; i < count; ++i) {
        const float e = std::exp(-std::abs(y[i]));
        y[i] = (y[i] >= 0 ? 1.0f : e) / (1.0f + e);
        slope[i] = y[i] * (1.0f - y[i]);
      }
      return;
    case Activation::kSoftplus:
      for (int i = 0; i < count; ++i) {
        const float e = std::exp(-std::abs(y[i]));
        slope[i] = (y[i] >= 0 ? 1.0f : e) / (1.0f + e);
        y[i] = std::max(y[i], 0.0f) + std::log1p(e);
      }
      return;
  }
}

}  // namespace

int MlpNetwork::outputs() const {
  int count = 0;
  for (const auto& layers : branches) count += layers.back().outputs;
  return count;
}

void MlpNetwork::Check() const {
  SILC_CHECK(inputs > 0 && !branches.empty());
  for (const InputStep& step : prefix) {
    SILC_CHECK(step.kind == InputStep::Kind::kClip || step.operand.size() == U(inputs));
  }
  for (const auto& layers : branches) {
    SILC_CHECK(!layers.empty());
    int width = inputs;
    for (const MlpLayer& layer : layers) {
      SILC_CHECK(layer.inputs == width && layer.outputs > 0);
      SILC_CHECK(layer.weight.size() == U(layer.inputs) * U(layer.outputs));
      SILC_CHECK(layer.bias.size() == U(layer.outputs));
      width = layer.outputs;
    }
  }
}

std::optional<MlpNetwork> RecogniseMlp(const Graph& graph, int input, int output) {
  return Recogniser(graph, input).Run(output);
}

Graph MlpGraph(const MlpNetwork& network,
               const std::string& input,
               const std::string& output,
               const GraphLimits& limits) {
  network.Check();
  GraphBuilder builder(limits);
  ValueId x = builder.AddInput(input, {1, network.inputs});
  int count = 0;
  for (const InputStep& step : network.prefix) {
    const std::string name = "normalizer/" + std::to_string(count++);
    if (step.kind == InputStep::Kind::kClip) {
      x = builder.AddUnary(Op::kClip, name, x, step.low, step.high);
      continue;
    }
    const Op op = step.kind == InputStep::Kind::kAdd   ? Op::kAdd
                  : step.kind == InputStep::Kind::kSub ? Op::kSub
                  : step.kind == InputStep::Kind::kMul ? Op::kMul
                                                       : Op::kDiv;
    x = builder.AddBinary(
        op, name, x, builder.AddConstant(name + ".operand", {1, network.inputs}, step.operand));
  }
  std::vector<ValueId> parts;
  for (std::size_t b = 0; b < network.branches.size(); ++b) {
    ValueId h = x;
    for (std::size_t l = 0; l < network.branches[b].size(); ++l) {
      const MlpLayer& layer = network.branches[b][l];
      const std::string name = "actor." + std::to_string(b) + "/" + std::to_string(l);
      const ValueId weight =
          builder.AddConstant(name + ".weight", {layer.outputs, layer.inputs}, layer.weight);
      const ValueId bias = builder.AddConstant(name + ".bias", {layer.outputs}, layer.bias);
      h = builder.AddGemm(name, h, weight, bias, 1, 1, false, true);
      switch (layer.activation) {
        case Activation::kNone:
          break;
        case Activation::kElu:
          h = builder.AddUnary(Op::kElu, name + ".elu", h, layer.alpha);
          break;
        case Activation::kRelu:
          h = builder.AddUnary(Op::kRelu, name + ".relu", h);
          break;
        case Activation::kLeakyRelu:
          h = builder.AddUnary(Op::kLeakyRelu, name + ".leaky_relu", h, layer.alpha);
          break;
        case Activation::kTanh:
          h = builder.AddUnary(Op::kTanh, name + ".tanh", h);
          break;
        case Activation::kSigmoid:
          h = builder.AddUnary(Op::kSigmoid, name + ".sigmoid", h);
          break;
        case Activation::kSoftplus:
          h = builder.AddUnary(Op::kSoftplus, name + ".softplus", h);
          break;
      }
    }
    parts.push_back(h);
  }
  const ValueId y = parts.size() == 1 ? parts[0] : builder.AddConcat("actors", parts, 1);
  builder.AddOutput(output, y);
  return builder.Finish();
}

// ------------------------------------------------------------------------------------------
// MlpEngine

MlpEngine::MlpEngine(const MlpNetwork& network, const DenseKernel& kernel) {
  network.Check();
  auto shared = std::make_shared<Shared>();
  shared->network = network;
  shared->kernel = kernel;
  const std::size_t branches = network.branches.size();
  shared->forward.resize(branches);
  shared->bias.resize(branches);
  shared->reverse.resize(branches);
  y_.resize(branches);
  slope_.resize(branches);

  std::size_t widest = 0;
  for (std::size_t b = 0; b < branches; ++b) {
    const auto& layers = network.branches[b];
    for (std::size_t l = 0; l < layers.size(); ++l) {
      const MlpLayer& layer = layers[l];
      const std::size_t padded = U(RoundUp(layer.outputs, kForwardLanes));
      std::vector<float> transposed(layer.weight.size());
      for (int o = 0; o < layer.outputs; ++o) {
        for (int i = 0; i < layer.inputs; ++i) {
          transposed[U(i) * U(layer.outputs) + U(o)] = layer.weight[U(o) * U(layer.inputs) + U(i)];
        }
      }
      shared->forward[b].push_back(
          PackPanels(transposed.data(), layer.inputs, layer.outputs, kForwardLanes));
      shared->bias[b].push_back(layer.bias);
      shared->bias[b].back().resize(padded, 0.0f);
      // the first layer is in the Columns, the last one is read as it is
      shared->reverse[b].push_back(
          l == 0 || l + 1 == layers.size()
              ? std::vector<float>()
              : PackPanels(layer.weight.data(), layer.outputs, layer.inputs, kernel.panel));
      y_[b].emplace_back(padded, 0.0f);
      slope_[b].emplace_back(padded, 0.0f);
      widest = std::max(
          widest, U(RoundUp(std::max(layer.outputs, l == 0 ? 0 : layer.inputs), kernel.panel)));
    }

    // 29 rows are 15 + 14 rather than 16 + 13: the blocks are filled evenly
    const int rows = layers.back().outputs;
    const int blocks = (rows + kRowLanes - 1) / kRowLanes;
    for (int c = 0; c < blocks; ++c) {
      const int begin = rows * c / blocks;
      chunks_.push_back(
          {static_cast<int>(b), begin, rows * (c + 1) / blocks - begin, outputs_ + begin});
      adjoint_.emplace_back(U(RoundUp(layers[0].outputs, kernel.panel)) * kRowLanes, 0.0f);
    }
    outputs_ += rows;
  }
  for (auto& work : work_) work.assign(widest * kRowLanes, 0.0f);
  x_.assign(U(network.inputs), 0.0f);

  shared->input_slope.assign(U(network.inputs), 1.0f);
  for (const InputStep& step : network.prefix) {
    for (int i = 0; i < network.inputs; ++i) {
      if (step.kind == InputStep::Kind::kMul) shared->input_slope[U(i)] *= step.operand[U(i)];
      if (step.kind == InputStep::Kind::kDiv) shared->input_slope[U(i)] /= step.operand[U(i)];
    }
  }
  shared_ = std::move(shared);
}

MlpEngine::Columns MlpEngine::MakeColumns(int count, std::span<const ColumnEntry> entries) const {
  Columns columns;
  columns.count_ = count;
  for (const auto& layers : shared_->network.branches) {
    const MlpLayer& first = layers[0];
    // summed in double: frames of a history nearly cancel in some policies
    std::vector<double> product(U(first.outputs) * U(count), 0.0);
    for (const ColumnEntry& entry : entries) {
      SILC_CHECK(entry.input >= 0 && entry.input < first.inputs && entry.column >= 0 &&
                 entry.column < count);
      const double value = static_cast<double>(entry.value) * shared_->input_slope[U(entry.input)];
      for (int o = 0; o < first.outputs; ++o) {
        product[U(o) * U(count) + U(entry.column)] +=
            first.weight[U(o) * U(first.inputs) + U(entry.input)] * value;
      }
    }
    const std::vector<float> rounded(product.begin(), product.end());
    columns.panels_.push_back(
        PackPanels(rounded.data(), first.outputs, count, shared_->kernel.panel));
  }
  return columns;
}

void MlpEngine::Forward(std::span<const float> x, std::span<float> y) {
  SILC_CHECK(x.size() == x_.size() && y.size() == U(outputs_));
  std::copy(x.begin(), x.end(), x_.begin());
  clipped_ = false;
  for (const InputStep& step : shared_->network.prefix) {
    const float* operand = step.operand.data();
    const std::size_t n = x_.size();
    switch (step.kind) {
      case InputStep::Kind::kAdd:
        for (std::size_t i = 0; i < n; ++i) x_[i] += operand[i];
        break;
      case InputStep::Kind::kSub:
        for (std::size_t i = 0; i < n; ++i) x_[i] -= operand[i];
        break;
      case InputStep::Kind::kMul:
        for (std::size_t i = 0; i < n; ++i) x_[i] *= operand[i];
        break;
      case InputStep::Kind::kDiv:
        for (std::size_t i = 0; i < n; ++i) x_[i] /= operand[i];
        break;
      case InputStep::Kind::kClip:
        for (float& value : x_) {
          clipped_ = clipped_ || value < step.low || value > step.high;
          value = value < step.low ? step.low : (value > step.high ? step.high : value);
        }
        break;
    }
  }

  std::size_t at = 0;
  for (std::size_t b = 0; b < y_.size(); ++b) {
    const auto& layers = shared_->network.branches[b];
    const float* in = x_.data();
    for (std::size_t l = 0; l < layers.size(); ++l) {
      shared_->kernel.forward(in,
                              shared_->forward[b][l].data(),
                              layers[l].inputs,
                              layers[l].outputs,
                              shared_->bias[b][l].data(),
                              y_[b][l].data());
      Activate(layers[l], y_[b][l].data(), slope_[b][l].data(), layers[l].outputs);
      in = y_[b][l].data();
    }
    std::copy_n(in, layers.back().outputs, y.begin() + static_cast<std::ptrdiff_t>(at));
    at += U(layers.back().outputs);
  }
}

void MlpEngine::PullBack() {
  for (std::size_t c = 0; c < chunks_.size(); ++c) {
    const Chunk& chunk = chunks_[c];
    const std::size_t b = U(chunk.branch);
    const auto& layers = shared_->network.branches[b];
    const std::size_t last = layers.size() - 1;
    float* target = last == 0 ? adjoint_[c].data() : work_[0].data();

    // R = D_L: one lane per output. Its product with W_L needs no arithmetic beyond one scaling.
    const MlpLayer& top = layers[last];
    if (last == 0) {
      std::fill_n(target, top.outputs * kRowLanes, 0.0f);
      for (int r = 0; r < chunk.rows; ++r) {
        target[(chunk.first_row + r) * kRowLanes + r] = slope_[b][0][U(chunk.first_row + r)];
      }
      continue;
    }
    if (last == 1) target = adjoint_[c].data();
    for (int i = 0; i < top.inputs; ++i) {
      for (int r = 0; r < kRowLanes; ++r) {
        const std::size_t o = U(chunk.first_row + r);
        target[i * kRowLanes + r] = r < chunk.rows
                                        ? slope_[b][last][o] * slope_[b][last - 1][U(i)] *
                                              top.weight[o * U(top.inputs) + U(i)]
                                        : 0.0f;
      }
    }

    // R ← R W_l D_{l−1}: 2 · 16 · outputs · inputs flop a layer
    for (std::size_t l = last - 1; l >= 1; --l) {
      const float* source = target;
      target = l == 1 ? adjoint_[c].data()
                      : (source == work_[0].data() ? work_[1].data() : work_[0].data());
      shared_->kernel.pull_back(source,
                                shared_->reverse[b][l].data(),
                                layers[l].outputs,
                                layers[l].inputs,
                                slope_[b][l - 1].data(),
                                target);
    }
  }
}

MlpEngine::Block MlpEngine::Times(const Columns& columns,
                                  int block,
                                  std::span<float> result) const {
  SILC_CHECK(result.size() >= ResultSize(columns));
  const Chunk& chunk = chunks_[U(block)];
  const std::size_t b = U(chunk.branch);
  // 2 · 16 · (width of layer 1) · columns flop
  shared_->kernel.pull_back(adjoint_[U(block)].data(),
                            columns.panels_[b].data(),
                            shared_->network.branches[b][0].outputs,
                            columns.count_,
                            nullptr,
                            result.data());
  return {chunk.first_output, chunk.rows};
}

std::size_t MlpEngine::ResultSize(const Columns& columns) const {
  return U(RoundUp(columns.count_, shared_->kernel.panel)) * kRowLanes;
}

}  // namespace silc
