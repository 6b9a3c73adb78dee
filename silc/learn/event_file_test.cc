// SPDX-License-Identifier: Apache-2.0
#include "silc/learn/event_file.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>

#include "silc/base/crc32c.h"
#include "silc/base/error.h"
#include "silc/base/file.h"

namespace silc {
namespace {

// The bytes of one scalar, field by field from tensorflow's event.proto and summary.proto.
TEST(EncodeScalars, IsTheProtobufOfAnEvent) {
  const std::string event = EncodeScalars(1.0, 300, {{"a", 2.0}});
  const unsigned char expected[] = {0x09, 0,    0,    0, 0,   0, 0, 0xF0, 0x3F,  // 1: double 1.0
                                    0x10, 0xAC, 0x02,                            // 2: varint 300
                                    0x2A, 0x0A,                  // 5: summary, 10 bytes
                                    0x0A, 0x08,                  //   1: value, 8 bytes
                                    0x0A, 0x01, 'a',             //     1: tag
                                    0x15, 0,    0,    0, 0x40};  //     2: float 2.0
  EXPECT_EQ(event, std::string(reinterpret_cast<const char*>(expected), sizeof(expected)));
}

TEST(EventFile, IsAChainOfRecordsWhoseSumsAgree) {
  const auto folder = std::filesystem::temp_directory_path() / "silc_event_file_test";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  std::string path;
  {
    EventFile file(folder.string(), 1234.5);
    file.Write(1235, 1, {{"reward", 3}, {"kl", 0.01}});
    path = file.path();
  }
  const std::string bytes = ReadFile(path);
  std::size_t at = 0;
  int records = 0;
  while (at < bytes.size()) {
    std::uint64_t length = 0;
    std::uint32_t sum = 0;
    std::memcpy(&length, bytes.data() + at, 8);
    std::memcpy(&sum, bytes.data() + at + 8, 4);
    ASSERT_EQ(sum, MaskedCrc32c({bytes.data() + at, 8}));
    ASSERT_LE(at + 16 + length, bytes.size());
    std::memcpy(&sum, bytes.data() + at + 12 + length, 4);
    ASSERT_EQ(sum, MaskedCrc32c({bytes.data() + at + 12, length}));
    at += 16 + length;
    ++records;
  }
  EXPECT_EQ(records, 2);
  EXPECT_THROW(EventFile("/no/such/folder", 0), RunError);
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace silc
