// SPDX-License-Identifier: Apache-2.0
#include "silc/base/crc32c.h"

#include <gtest/gtest.h>

#include <string>

namespace silc {
namespace {

// test vectors of RFC 3720, appendix B.4
TEST(Crc32c, GivesThePublishedValues) {
  EXPECT_EQ(Crc32c("123456789"), 0xE3069283u);
  EXPECT_EQ(Crc32c(std::string(32, '\0')), 0x8A9136AAu);
  EXPECT_EQ(Crc32c(std::string(32, '\xff')), 0x62A8AB43u);
  std::string up;
  for (int i = 0; i < 32; ++i) up.push_back(static_cast<char>(i));
  EXPECT_EQ(Crc32c(up), 0x46DD794Eu);
  EXPECT_EQ(Crc32c(""), 0u);
}

// ((crc >> 15) | (crc << 17)) + 0xa282ead8 of 0xE3069283, worked by hand:
// crc >> 15 = 0x0001C60D, crc << 17 = 0x25060000, sum of both 0x2507C60D
TEST(Crc32c, IsMaskedAsTfRecordDoes) {
  EXPECT_EQ(MaskedCrc32c("123456789"), 0x2507C60Du + 0xA282EAD8u);
}

}  // namespace
}  // namespace silc
