// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "silc/learn/tensor.h"
#include "silc/policy/mlp.h"

namespace silc {

/// LibTorch's and OpenBLAS's own threads set to one, for the whole process: their splits change
/// sums with the number of threads. The learner's threads are its own.
void HoldToOneThread();

/// inputs → hidden… → outputs, ELU between, linear at the end.
struct MlpShape {
  int inputs = 0;
  std::vector<int> hidden;
  int outputs = 0;
};

/// Weights as the forward pass uses them: a network's own, or normalised ones.
struct Layers {
  std::vector<Tensor> weight;  // (outputs, inputs)
  std::vector<Tensor> bias;    // (outputs)
};

/// Parameters of one MLP and, for an actor, its spread. All of them lie in one vector, of which the
/// layers are views: the optimiser, the gradient norm and the checkpoint then handle one tensor.
struct Network {
  MlpShape shape;
  Tensor flat;                 // (count): per layer weight, bias; then std
  std::vector<Tensor> leaves;  // views of flat that the tape ends at, in the order of flat
  Layers layers;               // the same tensors, by layer
  Tensor std;                  // (outputs) state-independent spread [1]; undefined for a critic

  std::int64_t count() const { return flat.size(0); }
};

/// Weights and biases uniform in ±1/√inputs of their layer. Drawn from (seed, stream) with our own
/// generator, so that a seed means the same weights in every LibTorch and on every device.
///
/// @param std  one per output, or empty for a critic
Network MakeNetwork(const MlpShape& shape,
                    const std::vector<double>& std,
                    std::uint64_t seed,
                    std::uint32_t stream,
                    const at::TensorOptions& options);

/// A network whose parameters are `flat`, in the order that Network::flat has, with or without std.
Network NetworkOn(const MlpShape& shape, const Tensor& flat);

/// A forward pass with what its derivatives need.
struct Activations {
  std::vector<Tensor> z;  // hidden pre-activations (batch, width)
  Tensor output;          // (batch, outputs)
};
Activations Forward(const Layers& layers, const Tensor& x);

/// act'(z) of ELU: exp(min(z, 0)). On the tape when z is, so that act'' follows.
Tensor EluSlope(const Tensor& z);

/// Spectral normalisation (`sn-lcp`): every weight is divided by its largest singular value, which
/// one step of power iteration per call of Step() follows.
///
///     W ← gain · W / (uᵀ W v)                                                       (P10)
struct SpectralNormaliser {
  std::vector<Tensor> u, v;  // per layer (outputs), (inputs), unit vectors
  double gain = 1;           // [1]

  static SpectralNormaliser Make(const Network& network, double gain, int warm_up = 30);
  void Step(const Network& network);
  /// Differentiable in W, u and v frozen: the gradient torch's own spectral_norm has.
  Layers Apply(const Network& network) const;
};

/// Actors side by side as the deployed network. Weights are copied to the host in float32.
MlpNetwork ToMlpNetwork(const std::vector<Layers>& actors);
/// The inverse: branch `branch` written into the layers of `network`. Shapes must agree.
void FromMlpNetwork(const MlpNetwork& source, int branch, Network* network);

}  // namespace silc
