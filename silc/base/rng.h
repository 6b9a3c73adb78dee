// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

namespace silc {

/// Ten rounds of Philox-4x32 (Salmon et al. 2011): four random words that are a pure function of
/// key and counter. Randomness drawn this way depends on (seed, robot, step, draw) and on nothing
/// else: not on thread count, batch size or the order of calls.
std::array<std::uint32_t, 4> Philox(std::array<std::uint32_t, 4> counter,
                                    std::array<std::uint32_t, 2> key);

/// A stream of draws at a fixed (seed, stream, step). Cheap to make; copying it repeats the draws.
class Rng {
 public:
  explicit Rng(std::uint64_t seed, std::uint32_t stream = 0, std::uint32_t step = 0);

  std::uint32_t Bits();
  double Uniform();  ///< in [0, 1), 32 bits of resolution
  double Uniform(double low, double high);
  double Normal();  ///< mean 0, variance 1 (Box and Muller 1958)

 private:
  std::array<std::uint32_t, 2> key_;
  std::array<std::uint32_t, 4> counter_;  // (block lo, block hi, step, stream)
  std::array<std::uint32_t, 4> block_{};
  int used_ = 4;
};

}  // namespace silc
