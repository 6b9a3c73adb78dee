// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "silc/learn/networks.h"

/// Networks on a GPU with their products in half precision and their sums in float: as exact as
/// TF32, whose numbers have the same ten bits, and twice as fast.
namespace silc {

/// n rounded up to a multiple of eight, which is what widths must be for these networks.
constexpr std::int64_t InEights(std::int64_t n) { return (n + 7) / 8 * 8; }

/// Hidden layers of a batch and their gradients; one serves networks that take turns.
struct HalfWorkspace {
  std::vector<Tensor> h, d;     // per hidden layer, float16, flat
  std::vector<Tensor> partial;  // sums for bias gradients, float, flat
  std::vector<Tensor> slices;   // weight gradients of slices of the batch, float, flat
};

/// Networks of the same hidden widths and inputs, side by side: each layer of all of them is one
/// batched product. Their float32 weights stay where the optimiser has them.
class HalfNetworks {
 public:
  /// Whether a shape is one that these kernels take: widths in eights.
  static bool Takes(const MlpShape& shape);

  HalfNetworks() = default;
  explicit HalfNetworks(const std::vector<const Network*>& networks);

  /// Float16 copies of the weights as they are now; an optimiser step makes its own.
  void Refresh();

  /// @param x (rows, inputs) float16   @return (networks, rows, padded()) float, without the last
  /// bias; columns beyond a network's outputs are of no meaning. Valid until the next call.
  Tensor Forward(const Tensor& x, HalfWorkspace* workspace);
  /// After Forward(x): gradient() of the weights and hidden biases, divided by the rows.
  /// @param d_output (networks, rows, padded()) float16, zero beyond the outputs
  void Backward(const Tensor& x, const Tensor& d_output, HalfWorkspace* workspace);

  int count() const { return static_cast<int>(networks_.size()); }
  int padded() const { return padded_; }
  /// Where the last layer's bias and, in an actor, the spread begin in a network's vector.
  std::int64_t bias_at(int network) const;
  std::int64_t spread_at(int network) const;
  const Network& network(int k) const { return *networks_[k]; }
  Tensor half(int k) const { return half_[k]; }          // float16, like the network's flat
  Tensor gradient(int k) const { return gradient_[k]; }  // float, likewise
  Tensor gradients() const { return gradient_; }         // of all networks, one memory

 private:
  std::vector<const Network*> networks_;
  std::vector<std::int64_t> widths_;     // inputs, hidden…
  std::vector<std::int64_t> weight_at_;  // per layer, in a network's vector
  std::vector<std::int64_t> bias_at_;    // per hidden layer
  std::int64_t stride_ = 0;              // from one network's vector to the next
  int padded_ = 0;                       // outputs, in eights
  Tensor half_, gradient_;               // (networks, stride)
  Tensor output_;                        // flat
};

}  // namespace silc
