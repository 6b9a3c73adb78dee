// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "silc/base/philox.h"

namespace silc {

/// A stream of Philox draws at a fixed (seed, stream, step). Cheap to make; copying it repeats the
/// draws.
class Rng {
 public:
  explicit Rng(std::uint64_t seed, std::uint32_t stream = 0, std::uint32_t step = 0);

  std::uint32_t Bits();
  double Uniform();  ///< in [0, 1), 32 bits of resolution
  double Uniform(double low, double high);
  double Normal();  ///< mean 0, variance 1 (Box and Muller 1958)

 private:
  std::uint32_t key_[2];
  std::uint32_t counter_[4];  // (block lo, block hi, step, stream)
  PhiloxBlock block_{};
  int used_ = 4;
};

}  // namespace silc
