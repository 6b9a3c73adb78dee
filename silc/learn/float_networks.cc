// SPDX-License-Identifier: Apache-2.0
#include "silc/learn/float_networks.h"

#include <algorithm>

#include "silc/base/check.h"

namespace silc {
namespace {

// panels of a matrix with `inner` rows and `columns` columns, all zero
std::vector<float> Panels(std::int64_t inner, std::int64_t columns, std::int64_t panel) {
  const std::int64_t panels = (columns + panel - 1) / panel;
  return std::vector<float>(static_cast<std::size_t>(panels * panel * inner), 0.0f);
}

// panels of Wᵀ, W (columns, inner) row-major
void PackTransposed(
    const float* W, std::int64_t inner, std::int64_t columns, std::int64_t panel, float* out) {
  for (std::int64_t first = 0; first < columns; first += panel, out += inner * panel) {
    const std::int64_t count = std::min(panel, columns - first);
    for (std::int64_t i = 0; i < inner; ++i) {
      for (std::int64_t c = 0; c < count; ++c) out[i * panel + c] = W[(first + c) * inner + i];
    }
  }
}

// panels of W (inner, columns) row-major
void Pack(
    const float* W, std::int64_t inner, std::int64_t columns, std::int64_t panel, float* out) {
  for (std::int64_t first = 0; first < columns; first += panel, out += inner * panel) {
    const std::int64_t count = std::min(panel, columns - first);
    for (std::int64_t i = 0; i < inner; ++i) {
      std::copy_n(W + i * columns + first, count, out + i * panel);
    }
  }
}

}  // namespace

float* Room(std::vector<float>* buffer, std::int64_t count) {
  if (static_cast<std::int64_t>(buffer->size()) < count) {
    buffer->resize(static_cast<std::size_t>(count));
  }
  return buffer->data();
}

FloatNetwork::FloatNetwork(const Network& network, const FloatKernel& kernel)
    : network_(&network), kernel_(&kernel) {
  SILC_CHECK(network.flat.scalar_type() == at::kFloat && network.flat.is_contiguous());
  std::vector<int> widths = network.shape.hidden;
  widths.insert(widths.begin(), network.shape.inputs);
  widths.push_back(network.shape.outputs);
  std::int64_t at = 0;
  for (std::size_t l = 0; l + 1 < widths.size(); ++l) {
    Layer layer;
    layer.inputs = widths[l];
    layer.outputs = widths[l + 1];
    layer.weight_at = at;
    layer.bias_at = at + std::int64_t(layer.inputs) * layer.outputs;
    at = layer.bias_at + layer.outputs;
    layer.forward = Panels(layer.inputs, InRegisters(layer.outputs), kernel.panel);
    if (l > 0) layer.backward = Panels(layer.outputs, InRegisters(layer.inputs), kernel.panel);
    layer.bias.assign(static_cast<std::size_t>(InRegisters(layer.outputs)), 0.0f);
    layers_.push_back(std::move(layer));
  }
}

void FloatNetwork::Refresh() {
  const float* flat = network_->flat.data_ptr<float>();
  for (Layer& layer : layers_) {
    const float* weight = flat + layer.weight_at;
    const int panel = kernel_->panel;
    PackTransposed(weight, layer.inputs, layer.outputs, panel, layer.forward.data());
    if (!layer.backward.empty()) {
      Pack(weight, layer.outputs, layer.inputs, panel, layer.backward.data());
    }
    std::copy_n(flat + layer.bias_at, layer.outputs, layer.bias.data());
  }
}

void FloatNetwork::Multiply(FloatProduct* product, FloatWorkspace* workspace) const {
  product->scratch = Room(&workspace->product, kernel_->product_scratch(*product));
  kernel_->product(*product);
}

void FloatNetwork::Forward(const float* x,
                           std::int64_t stride,
                           int rows,
                           FloatWorkspace* workspace) const {
  const std::size_t hidden = layers_.size() - 1;
  if (workspace->h.size() < hidden) workspace->h.resize(hidden);
  FloatProduct p;
  p.rows = rows;
  p.a = x;
  p.a_row = stride;
  p.a_inner = 1;
  for (std::size_t l = 0; l <= hidden; ++l) {
    const Layer& layer = layers_[l];
    const std::int64_t width = InRegisters(layer.outputs);
    p.inner = layer.inputs;
    p.columns = static_cast<int>(width);
    p.b = layer.forward.data();
    p.b_inner = kernel_->panel;
    p.b_panel = std::int64_t(kernel_->panel) * layer.inputs;
    p.bias = layer.bias.data();
    p.finish = l < hidden ? FloatProduct::Finish::kBiasElu : FloatProduct::Finish::kBias;
    p.c = Room(l < hidden ? &workspace->h[l] : &workspace->output, rows * width);
    p.c_row = width;
    Multiply(&p, workspace);
    p.a = p.c;
    p.a_row = width;
  }
}

void FloatNetwork::Backward(const float* x,
                            std::int64_t stride,
                            int rows,
                            FloatWorkspace* workspace,
                            float* gradient) const {
  const std::size_t hidden = layers_.size() - 1;
  if (workspace->d.size() < hidden) workspace->d.resize(hidden);
  const float* d = workspace->d_output.data();
  std::int64_t d_stride = output_stride();
  for (std::size_t l = hidden + 1; l-- > 0;) {
    const Layer& layer = layers_[l];
    const float* below = l == 0 ? x : workspace->h[l - 1].data();
    const std::int64_t below_stride = l == 0 ? stride : InRegisters(layer.inputs);
    kernel_->column_sums(d, d_stride, rows, layer.outputs, gradient + layer.bias_at);
    // ∂/∂W = dᵀ h
    FloatProduct weight;
    weight.rows = layer.outputs;
    weight.inner = rows;
    weight.columns = layer.inputs;
    weight.a = d;
    weight.a_row = 1;
    weight.a_inner = d_stride;
    weight.b = below;
    weight.b_inner = below_stride;
    weight.b_panel = kernel_->panel;
    weight.c = gradient + layer.weight_at;
    weight.c_row = layer.inputs;
    weight.add = true;
    Multiply(&weight, workspace);
    if (l == 0) break;
    // d ← (d W) ∘ elu′
    FloatProduct back;
    back.rows = rows;
    back.inner = layer.outputs;
    back.columns = static_cast<int>(below_stride);
    back.a = d;
    back.a_row = d_stride;
    back.a_inner = 1;
    back.b = layer.backward.data();
    back.b_inner = kernel_->panel;
    back.b_panel = std::int64_t(kernel_->panel) * layer.outputs;
    back.finish = FloatProduct::Finish::kSlope;
    back.h = below;
    back.c = Room(&workspace->d[l - 1], rows * below_stride);
    back.c_row = below_stride;
    Multiply(&back, workspace);
    d = back.c;
    d_stride = below_stride;
  }
}

}  // namespace silc
