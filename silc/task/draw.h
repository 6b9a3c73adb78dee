// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstdint>

#include "silc/task/scalar.h"

namespace silc {

/// What a draw is for. Draws of one robot at one step with different purposes are independent, and
/// adding one somewhere does not shift the others.
enum class DrawPurpose : std::uint32_t {
  kStartup = 0,  // once per robot: friction, masses
  kReset,        // start of an episode
  kCommand,
  kArm,
  kForce,       // which, where, per episode
  kForceNoise,  // each step
  kPush,
  kNoise,
};

/// The generator of silc/base/rng.h (Philox-4x32-10) for host and device: the same words as
/// Rng(seed, env, step) when the purpose is kStartup. Randomness is a function of (seed, robot,
/// step, purpose) alone.
class Draw {
 public:
  SILC_HD Draw(std::uint64_t seed, std::uint32_t env, std::uint32_t step, DrawPurpose purpose)
      : key_{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)},
        counter_{0, static_cast<std::uint32_t>(purpose), step, env} {}

  SILC_HD std::uint32_t Bits() {
    if (used_ == 4) {
      NextBlock();
      used_ = 0;
    }
    return block_[used_++];
  }
  /// In [0, 1): 24 bits, so that the largest is below one in float too.
  SILC_HD float Uniform() { return static_cast<float>(Bits() >> 8) * 0x1p-24f; }
  SILC_HD float Uniform(float low, float high) { return low + (high - low) * Uniform(); }
  SILC_HD bool Chance(float probability) { return Uniform() < probability; }
  /// In [0, count).
  SILC_HD int Index(int count) {
    return static_cast<int>(
        (static_cast<std::uint64_t>(Bits()) * static_cast<std::uint32_t>(count)) >> 32);
  }
  /// Exponential with mean 1; three of them, normalised, are Dirichlet(1, 1, 1).
  SILC_HD float Exponential() { return -logf(1.0f - Uniform()); }

 private:
  SILC_HD void NextBlock() {
    std::uint32_t c[4] = {counter_[0], counter_[1], counter_[2], counter_[3]};
    std::uint32_t k0 = key_[0], k1 = key_[1];
    for (int round = 0; round < 10; ++round) {
      const std::uint64_t p0 = std::uint64_t{0xD2511F53} * c[0];
      const std::uint64_t p1 = std::uint64_t{0xCD9E8D57} * c[2];
      const std::uint32_t next[4] = {static_cast<std::uint32_t>(p1 >> 32) ^ c[1] ^ k0,
                                     static_cast<std::uint32_t>(p1),
                                     static_cast<std::uint32_t>(p0 >> 32) ^ c[3] ^ k1,
                                     static_cast<std::uint32_t>(p0)};
      for (int i = 0; i < 4; ++i) c[i] = next[i];
      k0 += 0x9E3779B9;
      k1 += 0xBB67AE85;
    }
    for (int i = 0; i < 4; ++i) block_[i] = c[i];
    ++counter_[0];
  }

  std::uint32_t key_[2];
  std::uint32_t counter_[4];
  std::uint32_t block_[4] = {};
  int used_ = 4;
};

}  // namespace silc
