// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include "silc/learn/penalty.h"

/// (S12) and (S13) at several frequencies as batched tensors: `penalty.frequencies`,
/// docs/penalty.md.
namespace silc {

/// What the policy sees of a motion: entries of its observation against joints, joint velocities,
/// previous actions, torques and gravity, as StiffnessSpec has them; empty: not seen, or held.
struct FrequencyEntries {
  std::span<const ColumnEntry> q, v, a, tau, g;
  std::span<const int> age;  // of each number of the observation; empty: 0
};

/// The columns of the observation at each frequency [Hz]; 0 is (S7c) itself and is left out.
/// @param period, latency  [s] of the loop, as in (S4)
std::vector<FrequencyPoint> MakeFrequencyPoints(std::span<const double> hz,
                                                double period,
                                                double latency,
                                                const FrequencyEntries& entries,
                                                int obs_dim,
                                                int joints,
                                                const at::TensorOptions& options);

/// Adds what σ(ω) and ν(ω) of input.channels.frequencies cost to `result`: value and surrogate, the
/// mean over the frequencies; result->frequency_sigma and frequency_driving are the largest of each
/// sample. The largest σ and ν alone, whatever config.sigmas says. Nothing is done without
/// frequencies. The reference is ReadAtFrequency() in silc/stiffness/frequency_condition.h.
/// @param ok  samples that take part
void AddFrequencyPenalty(const PenaltyInput& input,
                         const PenaltyConfig& config,
                         const Tensor& ok,
                         PenaltyResult* result);

}  // namespace silc
