// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstdint>

#include "silc/base/philox.h"

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
  kBias,      // of sensors, per episode
  kStrength,  // of motors, per episode
  kKick,      // each step
  kPayload,   // once per robot: what it carries
  kBudget,    // budget commands, per episode
};

/// A stream of Philox draws on host and device: the words of Rng(seed, env, step) when the purpose
/// is kStartup. Randomness is a function of (seed, robot, step, purpose) alone.
class Draw {
 public:
  /// @param block  where the stream begins, in blocks of four words: the draw of one of many things
  ///     without those of the others
  SILC_HD Draw(std::uint64_t seed,
               std::uint32_t env,
               std::uint32_t step,
               DrawPurpose purpose,
               std::uint32_t block = 0)
      : key_{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)},
        counter_{block, static_cast<std::uint32_t>(purpose), step, env} {}

  SILC_HD std::uint32_t Bits() {
    if (used_ == 4) {
      block_ = Philox(counter_, key_);
      ++counter_[0];
      used_ = 0;
    }
    return block_.word[used_++];
  }
  /// Goes to draw n of the stream, counted from 0: threads of a group take theirs out of its
  /// middle.
  SILC_HD void Seek(int n) {
    const auto wanted = static_cast<std::uint32_t>(n);
    if (4 * counter_[0] - 4 + static_cast<std::uint32_t>(used_) == wanted) return;
    counter_[0] = wanted / 4;
    block_ = Philox(counter_, key_);
    ++counter_[0];
    used_ = static_cast<int>(wanted % 4);
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
  std::uint32_t key_[2];
  std::uint32_t counter_[4];
  PhiloxBlock block_{};
  int used_ = 4;
};

}  // namespace silc
