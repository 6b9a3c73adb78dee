// SPDX-License-Identifier: Apache-2.0
#include "silc/base/philox.h"

#include <gtest/gtest.h>

#include <array>

namespace silc {
namespace {

using Words = std::array<std::uint32_t, 4>;

Words Draw(const std::uint32_t (&counter)[4], const std::uint32_t (&key)[2]) {
  return std::to_array(Philox(counter, key).word);
}

// Known answers published with the generator (Random123, kat_vectors: philox4x32-10).
TEST(Philox, MatchesThePublishedAnswers) {
  EXPECT_EQ(Draw({0, 0, 0, 0}, {0, 0}), (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(Draw({~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}),
            (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(Draw({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

}  // namespace
}  // namespace silc
