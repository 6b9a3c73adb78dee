// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "silc/learn/networks.h"

namespace silc {

/// Inputs of a network brought to one size. Observations differ in spread by a hundred: a tilt of
/// 0.05 rad counts as much for a robot's balance as a joint velocity of 10 rad/s, and an optimiser
/// whose steps have one length finds the gain of the small one last.
///
///     x ← (x − m)/√(v + 0.05²),   m, v mean and variance of all inputs so far           (P12)
///
/// It is folded into the first layer's weights and bias, so a Jacobian or an exported network knows
/// nothing of it.
struct InputScaling {
  Tensor count;         // scalar, double
  Tensor mean, square;  // (inputs) double: mean, and sum of squared distances from it
  Tensor shift, scale;  // (inputs) as the forward pass uses them

  static InputScaling Make(std::int64_t inputs, const at::TensorOptions& options);
  /// @param x (samples, inputs). Writes in place: a recorded graph sees the new numbers.
  void Add(const Tensor& x);
  /// What Add() takes of x: its mean, and the sum of squared distances from it.
  /// @return (2, inputs) double
  static Tensor Moments(const Tensor& x);
  /// Add() of as many samples with these moments.
  void AddMoments(std::int64_t samples, const Tensor& moments);
  /// Differentiable in the weights.
  Layers Apply(const Layers& layers) const;
};

}  // namespace silc
