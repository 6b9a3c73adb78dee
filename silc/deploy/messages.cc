// SPDX-License-Identifier: Apache-2.0
#include "silc/deploy/messages.h"

#include <cstring>

namespace silc {
namespace {

constexpr std::uint32_t kPolynomial = 0x04c11db7;

// What each byte of a word adds to the remainder once the whole word is through: [k] for the byte
// that has k more after it. Four look-ups a word instead of 32 steps.
constexpr std::array<std::array<std::uint32_t, 256>, 4> MakeCrcTables() {
  std::array<std::array<std::uint32_t, 256>, 4> tables{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t crc = byte << 24;
    for (auto& table : tables) {
      for (int bit = 0; bit < 8; ++bit) {
        crc = (crc << 1) ^ ((crc & 0x80000000U) != 0 ? kPolynomial : 0);
      }
      table[byte] = crc;
    }
  }
  return tables;
}
constexpr auto kCrcTables = MakeCrcTables();

}  // namespace

std::uint32_t Crc32OfWords(const void* words, int count) {
  const auto* bytes = static_cast<const unsigned char*>(words);
  std::uint32_t crc = 0xffffffffU;
  for (int i = 0; i < count; ++i) {
    std::uint32_t word;
    std::memcpy(&word, bytes + 4 * i, 4);
    crc ^= word;
    crc = kCrcTables[3][crc >> 24] ^ kCrcTables[2][(crc >> 16) & 0xff] ^
          kCrcTables[1][(crc >> 8) & 0xff] ^ kCrcTables[0][crc & 0xff];
  }
  return crc;
}

std::uint32_t FrameCrc(const LowCommand& frame) {
  return Crc32OfWords(&frame, sizeof(LowCommand) / 4 - 1);
}

std::uint32_t FrameCrc(const LowState& frame) {
  return Crc32OfWords(&frame, sizeof(LowState) / 4 - 1);
}

}  // namespace silc
