// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "silc/learn/float_kernel.h"
#include "silc/learn/networks.h"

namespace silc {

/// Hidden layers of a piece of a batch and their gradients, rows padded to kRowPadding. Each thread
/// has one; networks take turns. Made larger where it is too small, else nothing is allocated.
struct FloatWorkspace {
  std::vector<std::vector<float>> h, d;  // per hidden layer (rows, width)
  std::vector<float> input;              // (rows, inputs) for whoever scales them
  std::vector<float> output, d_output;   // (rows, FloatNetwork::output_stride())
  std::vector<float> scratch, product;   // for losses and products
};

/// The first `count` floats of a buffer that is made larger when it is too small.
float* Room(std::vector<float>* buffer, std::int64_t count);

/// One network's forward and backward pass on the CPU without the tape, in float32. The twin of
/// HalfNetworks. A row's result does not depend on the rows it is worked out with.
class FloatNetwork {
 public:
  FloatNetwork() = default;
  FloatNetwork(const Network& network, const FloatKernel& kernel);

  /// Copies of the weights as they are now, in the order in which products read them.
  void Refresh();

  /// @param x (rows, inputs), rows `stride` apart. Leaves workspace->h and workspace->output.
  void Forward(const float* x, std::int64_t stride, int rows, FloatWorkspace* workspace) const;
  /// After Forward(x), from workspace->d_output: gradients of the sum over the rows, of weights and
  /// biases, added to `gradient` where Network::flat has them. The spread's are left alone.
  /// @param x rows that go on, with zeros, to the next multiple of kRowPadding
  void Backward(const float* x,
                std::int64_t stride,
                int rows,
                FloatWorkspace* workspace,
                float* gradient) const;

  const Network& network() const { return *network_; }
  std::int64_t output_stride() const { return InRegisters(network_->shape.outputs); }
  /// Where, in an actor, the spread begins in the network's vector.
  std::int64_t spread_at() const { return network_->count() - network_->shape.outputs; }

 private:
  struct Layer {
    int inputs = 0, outputs = 0;
    std::int64_t weight_at = 0, bias_at = 0;  // in the network's vector
    std::vector<float> forward;               // Wᵀ in panels of the outputs
    std::vector<float> backward;              // W in panels of the inputs; not of the first layer
    std::vector<float> bias;                  // padded
  };
  void Multiply(FloatProduct* product, FloatWorkspace* workspace) const;

  const Network* network_ = nullptr;
  const FloatKernel* kernel_ = nullptr;
  std::vector<Layer> layers_;
};

}  // namespace silc
