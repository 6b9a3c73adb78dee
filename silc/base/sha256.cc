// SPDX-License-Identifier: Apache-2.0
#include "silc/base/sha256.h"

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>

namespace silc {
namespace {

using Word = std::uint32_t;

// The standard's constants are the first 32 bits of the fractional parts of square and cube roots
// of primes. Cube roots need 35 bits, which a long double (or a double, with one Newton step in
// integers) could give; integers alone give them exactly.
Word RootFraction(std::uint64_t prime, int degree) {
  using Wide = unsigned __int128;
  // largest x with x^degree ≤ prime · 2^(32·degree)
  const auto fits = [&](std::uint64_t x) {
    if (degree == 2) return Wide(x) * x <= Wide(prime) << 64;
    // x³ ≤ p·2⁹⁶: x < 2³⁵, so x³ < 2¹⁰⁵
    return Wide(x) * x * x <= Wide(prime) << 96;
  };
  std::uint64_t low = 0, high = std::uint64_t{1} << 37;
  while (high - low > 1) {
    const std::uint64_t middle = (low + high) / 2;
    (fits(middle) ? low : high) = middle;
  }
  return static_cast<Word>(low);
}

struct Constants {
  std::array<Word, 8> start;
  std::array<Word, 64> round;
  Constants() {
    int count = 0;
    for (std::uint64_t p = 2; count < 64; ++p) {
      bool prime = true;
      for (std::uint64_t d = 2; d * d <= p; ++d) prime = prime && p % d != 0;
      if (!prime) continue;
      if (count < 8) start[count] = RootFraction(p, 2);
      round[count++] = RootFraction(p, 3);
    }
  }
};

void Block(const Constants& c, const unsigned char* bytes, std::array<Word, 8>* state) {
  std::array<Word, 64> w;
  for (int t = 0; t < 16; ++t) {
    w[t] = Word(bytes[4 * t]) << 24 | Word(bytes[4 * t + 1]) << 16 | Word(bytes[4 * t + 2]) << 8 |
           Word(bytes[4 * t + 3]);
  }
  for (int t = 16; t < 64; ++t) {
    const Word a = w[t - 15], b = w[t - 2];
    w[t] = w[t - 16] + w[t - 7] + (std::rotr(a, 7) ^ std::rotr(a, 18) ^ (a >> 3)) +
           (std::rotr(b, 17) ^ std::rotr(b, 19) ^ (b >> 10));
  }
  std::array<Word, 8> s = *state;
  for (int t = 0; t < 64; ++t) {
    const Word a = s[0], e = s[4];
    const Word t1 = s[7] + (std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25)) +
                    ((e & s[5]) ^ (~e & s[6])) + c.round[t] + w[t];
    const Word t2 = (std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22)) +
                    ((a & s[1]) ^ (a & s[2]) ^ (s[1] & s[2]));
    s = {t1 + t2, s[0], s[1], s[2], s[3] + t1, s[4], s[5], s[6]};
  }
  for (int i = 0; i < 8; ++i) (*state)[i] += s[i];
}

}  // namespace

std::string Sha256(std::string_view bytes) {
  static const Constants constants;
  std::array<Word, 8> state = constants.start;
  // the end is padded with 1, zeros, and the length in bits
  std::string tail(bytes.substr(bytes.size() / 64 * 64));
  tail.push_back('\x80');
  while (tail.size() % 64 != 56) tail.push_back('\0');
  const std::uint64_t bits = 8 * static_cast<std::uint64_t>(bytes.size());
  for (int shift = 56; shift >= 0; shift -= 8) tail.push_back(static_cast<char>(bits >> shift));

  const auto run = [&](std::string_view part) {
    for (std::size_t k = 0; k + 64 <= part.size(); k += 64) {
      Block(constants, reinterpret_cast<const unsigned char*>(part.data() + k), &state);
    }
  };
  run(bytes.substr(0, bytes.size() / 64 * 64));
  run(tail);
  std::string hex;
  for (const Word word : state) {
    for (int shift = 28; shift >= 0; shift -= 4)
      hex.push_back("0123456789abcdef"[word >> shift & 15]);
  }
  return hex;
}

}  // namespace silc
