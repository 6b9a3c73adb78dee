// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "silc/learn/penalty.h"

// What the penalties on K_s and on K(jω) share.
namespace silc {

/// (S8) of a σ and a bound: what a violation costs, and the slope of that along σ.
struct HingeTerms {
  Tensor value, slope;
};
HingeTerms HingeOf(const Tensor& sigma, const std::string& kind, const Tensor& bound);

/// b of the input; 1 where it has none.
Tensor BoundOf(const PenaltyInput& input, const Tensor& like);

/// Mean over the samples of Σ_k p · tangent, on the tape.
Tensor MeanAlongTangent(const PenaltyInput& input, const Tensor& p, const std::vector<Seed>& seeds);

/// Mean of a value per sample, those that take no part counted as 0.
Tensor MeanOf(const Tensor& value, const Tensor& ok);

/// A number per sample, (B), against matrices (B, rows, columns).
Tensor BroadcastOverMatrix(const Tensor& per_sample);

/// A complex matrix as the real one [Re −Im; Im Re]: it has the norm, and for a Hermitian one the
/// eigenvalues.
Tensor Embedded(const Tensor& re, const Tensor& im);

}  // namespace silc
