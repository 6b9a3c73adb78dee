// SPDX-License-Identifier: Apache-2.0
#include "silc/report/png.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <cstdlib>

#include "silc/base/rng.h"

namespace silc {
namespace {

std::uint32_t BigEndian(const std::string& bytes, std::size_t at) {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < 4; ++i) value = value << 8 | std::uint8_t(bytes.at(at + i));
  return value;
}

// A reader written from the format's side: chunks with their sums, zlib, the inverse filters.
Image DecodePng(const std::string& png) {
  EXPECT_EQ(png.substr(0, 8), "\x89PNG\r\n\x1a\n");
  Image image;
  std::string packed;
  for (std::size_t at = 8; at < png.size();) {
    const std::uint32_t size = BigEndian(png, at);
    const std::string type = png.substr(at + 4, 4), data = png.substr(at + 8, size);
    const auto* begin = reinterpret_cast<const Bytef*>(png.data() + at + 4);
    EXPECT_EQ(BigEndian(png, at + 8 + size), crc32(0, begin, size + 4)) << type;
    if (type == "IHDR") {
      image.width = int(BigEndian(data, 0));
      image.height = int(BigEndian(data, 4));
      EXPECT_EQ(data.substr(8), std::string("\x08\x02\x00\x00\x00", 5));
    }
    if (type == "IDAT") packed += data;
    at += 12 + size;
  }
  const int stride = 3 * image.width;
  std::vector<std::uint8_t> raw(std::size_t(stride + 1) * std::size_t(image.height));
  uLongf size = uLongf(raw.size());
  EXPECT_EQ(
      uncompress(
          raw.data(), &size, reinterpret_cast<const Bytef*>(packed.data()), uLong(packed.size())),
      Z_OK);
  EXPECT_EQ(size, raw.size());
  image.rgb.resize(std::size_t(stride) * std::size_t(image.height));
  const auto pixel = [&](int y, int i) -> int {
    return y < 0 || i < 0 ? 0 : image.rgb[std::size_t(y) * stride + i];
  };
  for (int y = 0; y < image.height; ++y) {
    const int filter = raw[std::size_t(y) * (stride + 1)];
    for (int i = 0; i < stride; ++i) {
      const int a = pixel(y, i - 3), b = pixel(y - 1, i), c = i < 3 ? 0 : pixel(y - 1, i - 3);
      const int pa = std::abs(b - c), pb = std::abs(a - c), pc = std::abs(a + b - 2 * c);
      const int paeth = pa <= pb && pa <= pc ? a : pb <= pc ? b : c;
      const int guess[] = {0, a, b, (a + b) / 2, paeth};
      image.rgb[std::size_t(y) * stride + i] =
          std::uint8_t(raw[std::size_t(y) * (stride + 1) + 1 + i] + guess[filter]);
    }
  }
  return image;
}

TEST(Png, ComesBackAsItWas) {
  Rng rng(3, 0);
  for (const auto& [width, height] : {std::pair{1, 1}, {7, 5}, {64, 33}}) {
    Image image{width, height, {}};
    for (int y = 0; y < height; ++y)
      for (int x = 0; x < width; ++x)
        for (int c = 0; c < 3; ++c)  // half smooth, half noise, so that every filter gets its turn
          image.rgb.push_back(std::uint8_t(y % 2 ? 255 * rng.Uniform() : 3 * x + 5 * y + c));
    const Image back = DecodePng(EncodePng(image));
    EXPECT_EQ(back.width, width);
    EXPECT_EQ(back.height, height);
    EXPECT_EQ(back.rgb, image.rgb);
  }
}

// the vectors of RFC 4648, section 10
TEST(Base64, IsTheStandards) {
  EXPECT_EQ(Base64(""), "");
  EXPECT_EQ(Base64("f"), "Zg==");
  EXPECT_EQ(Base64("fo"), "Zm8=");
  EXPECT_EQ(Base64("foo"), "Zm9v");
  EXPECT_EQ(Base64("foobar"), "Zm9vYmFy");
  EXPECT_EQ(Base64("\xff\xfe\xfd"), "//79");
}

}  // namespace
}  // namespace silc
