// SPDX-License-Identifier: Apache-2.0
#include "silc/learn/networks.h"

#include <ATen/Parallel.h>
#include <dlfcn.h>

#include <cmath>
#include <cstring>

#include "silc/base/check.h"
#include "silc/base/rng.h"

namespace silc {
namespace {

std::vector<int> Widths(const MlpShape& shape) {
  std::vector<int> widths = {shape.inputs};
  widths.insert(widths.end(), shape.hidden.begin(), shape.hidden.end());
  widths.push_back(shape.outputs);
  return widths;
}

Tensor Unit(const Tensor& x) { return x / x.norm().clamp_min(1e-12); }

}  // namespace

void HoldToOneThread() {
  at::set_num_threads(1);
  // by name at run time: another BLAS has no such function and needs none
  if (void* set = dlsym(RTLD_DEFAULT, "openblas_set_num_threads")) {
    reinterpret_cast<void (*)(int)>(set)(1);
  }
}

Network MakeNetwork(const MlpShape& shape,
                    const std::vector<double>& std,
                    std::uint64_t seed,
                    std::uint32_t stream,
                    const at::TensorOptions& options) {
  SILC_CHECK(shape.inputs > 0 && shape.outputs > 0);
  SILC_CHECK(std.empty() || static_cast<int>(std.size()) == shape.outputs);
  const std::vector<int> widths = Widths(shape);
  std::vector<double> values;
  Rng rng(seed, stream);
  for (std::size_t l = 0; l + 1 < widths.size(); ++l) {
    const double bound = 1 / std::sqrt(double(widths[l]));
    const long count = long(widths[l] + 1) * widths[l + 1];  // weight, then bias
    for (long i = 0; i < count; ++i) values.push_back(rng.Uniform(-bound, bound));
  }
  values.insert(values.end(), std.begin(), std.end());
  return NetworkOn(shape, at::tensor(values, at::kDouble).to(options));
}

Network NetworkOn(const MlpShape& shape, const Tensor& flat) {
  const std::vector<int> widths = Widths(shape);
  Network network;
  network.shape = shape;
  network.flat = flat;
  std::int64_t at = 0;
  // a detached view is a leaf of its own and still the same memory
  const auto view = [&](at::IntArrayRef size) {
    std::int64_t count = 1;
    for (const std::int64_t s : size) count *= s;
    Tensor leaf = network.flat.narrow(0, at, count).view(size).detach().requires_grad_();
    at += count;
    network.leaves.push_back(leaf);
    return leaf;
  };
  for (std::size_t l = 0; l + 1 < widths.size(); ++l) {
    network.layers.weight.push_back(view({widths[l + 1], widths[l]}));
    network.layers.bias.push_back(view({widths[l + 1]}));
  }
  if (at < network.count()) network.std = view({shape.outputs});
  SILC_CHECK(at == network.count());
  return network;
}

Activations Forward(const Layers& layers, const Tensor& x) {
  Activations result;
  Tensor h = x;
  for (std::size_t l = 0; l < layers.weight.size(); ++l) {
    Tensor z = at::addmm(layers.bias[l], h, layers.weight[l].t());
    if (l + 1 == layers.weight.size()) {
      result.output = z;
    } else {
      h = at::elu(z);
      result.z.push_back(std::move(z));
    }
  }
  return result;
}

Tensor EluSlope(const Tensor& z) { return z.clamp_max(0).exp(); }

SpectralNormaliser SpectralNormaliser::Make(const Network& network, double gain, int warm_up) {
  SpectralNormaliser result;
  result.gain = gain;
  for (const Tensor& weight : network.layers.weight) {
    // any start that is not orthogonal to the first singular vector
    result.u.push_back(Unit(at::linspace(1, 2, weight.size(0), weight.options())).detach());
    result.v.push_back(Unit(at::linspace(1, 2, weight.size(1), weight.options())).detach());
  }
  for (int i = 0; i < warm_up; ++i) result.Step(network);
  return result;
}

void SpectralNormaliser::Step(const Network& network) {
  at::NoGradGuard no_tape;
  for (std::size_t l = 0; l < u.size(); ++l) {
    const Tensor& weight = network.layers.weight[l];
    v[l].copy_(Unit(at::mv(weight.t(), u[l])));
    u[l].copy_(Unit(at::mv(weight, v[l])));
  }
}

Layers SpectralNormaliser::Apply(const Network& network) const {
  Layers result;
  result.bias = network.layers.bias;
  for (std::size_t l = 0; l < u.size(); ++l) {
    const Tensor& weight = network.layers.weight[l];
    const Tensor sigma = at::dot(u[l], at::mv(weight, v[l]));
    result.weight.push_back(weight * (gain / sigma));
  }
  return result;
}

MlpNetwork ToMlpNetwork(const std::vector<Layers>& actors) {
  SILC_CHECK(!actors.empty());
  at::NoGradGuard no_tape;
  const auto floats = [](const Tensor& t) {
    const Tensor host = t.detach().to(at::kCPU, at::kFloat).contiguous();
    const float* data = host.data_ptr<float>();
    return std::vector<float>(data, data + host.numel());
  };
  MlpNetwork result;
  result.inputs = static_cast<int>(actors[0].weight[0].size(1));
  for (const Layers& actor : actors) {
    std::vector<MlpLayer> branch;
    for (std::size_t l = 0; l < actor.weight.size(); ++l) {
      MlpLayer layer;
      layer.inputs = static_cast<int>(actor.weight[l].size(1));
      layer.outputs = static_cast<int>(actor.weight[l].size(0));
      layer.weight = floats(actor.weight[l]);
      layer.bias = floats(actor.bias[l]);
      layer.activation = l + 1 < actor.weight.size() ? Activation::kElu : Activation::kNone;
      branch.push_back(std::move(layer));
    }
    result.branches.push_back(std::move(branch));
  }
  result.Check();
  return result;
}

void FromMlpNetwork(const MlpNetwork& source, int branch, Network* network) {
  SILC_CHECK(branch >= 0 && branch < static_cast<int>(source.branches.size()));
  const std::vector<MlpLayer>& layers = source.branches[branch];
  SILC_CHECK(layers.size() == network->layers.weight.size() && source.prefix.empty());
  at::NoGradGuard no_tape;
  for (std::size_t l = 0; l < layers.size(); ++l) {
    Tensor& weight = network->layers.weight[l];
    SILC_CHECK(weight.size(0) == layers[l].outputs && weight.size(1) == layers[l].inputs);
    weight.copy_(at::tensor(layers[l].weight).view(weight.sizes()));
    network->layers.bias[l].copy_(at::tensor(layers[l].bias));
  }
}

}  // namespace silc
