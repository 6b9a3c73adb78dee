// SPDX-License-Identifier: Apache-2.0
#include "silc/base/rng.h"

#include <cmath>
#include <numbers>

namespace silc {

Rng::Rng(std::uint64_t seed, std::uint32_t stream, std::uint32_t step)
    : key_{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)},
      counter_{0, 0, step, stream} {}

std::uint32_t Rng::Bits() {
  if (used_ == 4) {
    block_ = Philox(counter_, key_);
    if (++counter_[0] == 0) ++counter_[1];
    used_ = 0;
  }
  return block_.word[used_++];
}

double Rng::Uniform() { return Bits() * 0x1p-32; }

double Rng::Uniform(double low, double high) { return low + (high - low) * Uniform(); }

double Rng::Normal() {
  const double radius = std::sqrt(-2.0 * std::log1p(-Uniform()));  // log of (0, 1]
  return radius * std::cos(2.0 * std::numbers::pi * Uniform());
}

}  // namespace silc
