// SPDX-License-Identifier: Apache-2.0
#include "silc/base/rng.h"

#include <cmath>
#include <numbers>

namespace silc {

std::array<std::uint32_t, 4> Philox(std::array<std::uint32_t, 4> counter,
                                    std::array<std::uint32_t, 2> key) {
  // multipliers and Weyl increments of the published generator
  constexpr std::uint64_t kM0 = 0xD2511F53, kM1 = 0xCD9E8D57;
  constexpr std::uint32_t kW0 = 0x9E3779B9, kW1 = 0xBB67AE85;
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t p0 = kM0 * counter[0], p1 = kM1 * counter[2];
    counter = {static_cast<std::uint32_t>(p1 >> 32) ^ counter[1] ^ key[0],
               static_cast<std::uint32_t>(p1),
               static_cast<std::uint32_t>(p0 >> 32) ^ counter[3] ^ key[1],
               static_cast<std::uint32_t>(p0)};
    key[0] += kW0;
    key[1] += kW1;
  }
  return counter;
}

Rng::Rng(std::uint64_t seed, std::uint32_t stream, std::uint32_t step)
    : key_{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)},
      counter_{0, 0, step, stream} {}

std::uint32_t Rng::Bits() {
  if (used_ == 4) {
    block_ = Philox(counter_, key_);
    if (++counter_[0] == 0) ++counter_[1];
    used_ = 0;
  }
  return block_[used_++];
}

double Rng::Uniform() { return Bits() * 0x1p-32; }

double Rng::Uniform(double low, double high) { return low + (high - low) * Uniform(); }

double Rng::Normal() {
  const double radius = std::sqrt(-2.0 * std::log1p(-Uniform()));  // log of (0, 1]
  return radius * std::cos(2.0 * std::numbers::pi * Uniform());
}

}  // namespace silc
