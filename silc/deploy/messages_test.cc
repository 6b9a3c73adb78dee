// SPDX-License-Identifier: Apache-2.0
#include "silc/deploy/messages.h"

#include <gtest/gtest.h>

#include <cstring>

namespace silc {
namespace {

// The definition, bit by bit: a division of polynomials, as an independent reference.
std::uint32_t SlowCrc(const void* data, int words) {
  std::uint32_t crc = 0xffffffffU;
  for (int i = 0; i < words; ++i) {
    std::uint32_t word;
    std::memcpy(&word, static_cast<const char*>(data) + 4 * i, 4);
    for (int bit = 31; bit >= 0; --bit) {
      const bool one = (((crc >> 31) ^ (word >> bit)) & 1) != 0;
      crc = (crc << 1) ^ (one ? 0x04c11db7U : 0);
    }
  }
  return crc;
}

template <typename Frame>
Frame Zero() {
  Frame frame;
  std::memset(&frame, 0, sizeof frame);
  return frame;
}

// Published for commands of the vendor's own library, or worked out from the definition by others.
TEST(Crc, EqualsPublishedValues) {
  EXPECT_EQ(FrameCrc(Zero<LowCommand>()), 0xFE172F9FU);
  EXPECT_EQ(FrameCrc(Zero<LowState>()), 0xD64BB04AU);
  LowState state = Zero<LowState>();
  state.mode_machine = 5;
  EXPECT_EQ(FrameCrc(state), 0x853F367CU);
  LowCommand command = Zero<LowCommand>();
  command.motor[3] = {.q = 0.5F, .kp = 25, .kd = 0.5F};
  command.motor[15] = {.q = 0.2F, .kp = 25, .kd = 0.5F};
  EXPECT_EQ(FrameCrc(command), 4030115248U);
}

TEST(Crc, EqualsThePolynomialDivision) {
  LowState state = Zero<LowState>();
  auto* bytes = reinterpret_cast<unsigned char*>(&state);
  std::uint32_t seed = 1;
  for (std::size_t i = 0; i < sizeof state; ++i) {
    seed = seed * 1664525U + 1013904223U;
    bytes[i] = static_cast<unsigned char>(seed >> 24);
  }
  EXPECT_EQ(FrameCrc(state), SlowCrc(&state, 522));
}

// A CRC of 32 bits notices every burst of up to 32.
TEST(Crc, NoticesEveryFlippedBit) {
  LowCommand command = Zero<LowCommand>();
  const std::uint32_t whole = FrameCrc(command);
  auto* bytes = reinterpret_cast<unsigned char*>(&command);
  for (std::size_t i = 0; i < sizeof command - 4; ++i) {
    bytes[i] ^= 0x10;
    EXPECT_NE(FrameCrc(command), whole) << "byte " << i;
    bytes[i] ^= 0x10;
  }
}

}  // namespace
}  // namespace silc
