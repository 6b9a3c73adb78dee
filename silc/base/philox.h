// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "silc/base/host_device.h"

namespace silc {

/// Four random words.
struct PhiloxBlock {
  std::uint32_t word[4];
};

/// Ten rounds of Philox-4x32 (Salmon et al. 2011), on the CPU and in CUDA kernels: four random
/// words that are a pure function of counter and key. Randomness drawn this way depends on (seed,
/// robot, step, draw) and on nothing else: not on thread count, batch size or the order of calls.
SILC_HD PhiloxBlock Philox(const std::uint32_t (&counter)[4], const std::uint32_t (&key)[2]) {
  PhiloxBlock c{{counter[0], counter[1], counter[2], counter[3]}};
  std::uint32_t k0 = key[0], k1 = key[1];
  for (int round = 0; round < 10; ++round) {
    // multipliers of the published generator
    const std::uint64_t p0 = std::uint64_t{0xD2511F53} * c.word[0];
    const std::uint64_t p1 = std::uint64_t{0xCD9E8D57} * c.word[2];
    c = {{static_cast<std::uint32_t>(p1 >> 32) ^ c.word[1] ^ k0,
          static_cast<std::uint32_t>(p1),
          static_cast<std::uint32_t>(p0 >> 32) ^ c.word[3] ^ k1,
          static_cast<std::uint32_t>(p0)}};
    // its Weyl increments
    k0 += 0x9E3779B9;
    k1 += 0xBB67AE85;
  }
  return c;
}

}  // namespace silc
