// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>
#include <vector>

#include "silc/learn/networks.h"

/// What an update without the tape is held to: the tape, in double.
namespace silc::test {

/// |a − b|/|b|
inline double Apart(const Tensor& a, const Tensor& b) {
  const Tensor x = a.to(at::kDouble), y = b.to(at::kDouble);
  return ((x - y).norm() / y.norm().clamp_min(1e-30)).item<double>();
}

/// Output of the same network in double, on the tape of `leaves`: per layer weight, bias.
inline Tensor InDouble(const Network& network, const Tensor& x, std::vector<Tensor>* leaves) {
  Layers layers;
  for (std::size_t l = 0; l < network.layers.weight.size(); ++l) {
    for (const auto& [from, to] : {std::pair{&network.layers.weight, &layers.weight},
                                   {&network.layers.bias, &layers.bias}}) {
      to->push_back((*from)[l].detach().to(at::kDouble).requires_grad_());
      leaves->push_back(to->back());
    }
  }
  return Forward(layers, x.to(at::kDouble)).output;
}

}  // namespace silc::test
