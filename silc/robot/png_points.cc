// SPDX-License-Identifier: Apache-2.0
#include "silc/robot/png_points.h"

#include <zlib.h>

#include <array>
#include <cstddef>
#include <cstdint>

namespace silc {
namespace {

constexpr std::string_view kSignature = "\x89PNG\r\n\x1a\n";
constexpr std::size_t kChunkFrame = 12;  // [byte] length, name and checksum around a chunk's data

// Big-endian, as everything in a PNG.
std::uint32_t Load32(std::string_view bytes, std::size_t at) {
  std::uint32_t value = 0;
  for (std::size_t k = 0; k < 4; ++k) {
    value = value << 8 | static_cast<unsigned char>(bytes[at + k]);
  }
  return value;
}

// Whether the IDAT chunks, which are one zlib stream, unpack to at most so many bytes.
bool UnpacksTo(std::string_view bytes, double most) {
  z_stream stream{};
  if (inflateInit(&stream) != Z_OK) return false;
  std::array<Bytef, 1 << 15> piece;
  double unpacked = 0;
  int status = Z_OK;
  for (std::size_t at = kSignature.size(); at + kChunkFrame <= bytes.size() && status == Z_OK;) {
    const std::size_t length = Load32(bytes, at);
    if (length > bytes.size() - at - kChunkFrame) break;
    const bool pixels = bytes.substr(at + 4, 4) == "IDAT";
    // zlib's input is not const by tradition only; it does not write there
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data() + at + 8));
    stream.avail_in = static_cast<uInt>(length);
    while (pixels && status == Z_OK && unpacked <= most) {
      stream.next_out = piece.data();
      stream.avail_out = static_cast<uInt>(piece.size());
      status = inflate(&stream, Z_NO_FLUSH);
      unpacked += static_cast<double>(piece.size() - stream.avail_out);
    }
    if (unpacked > most) break;
    if (status == Z_BUF_ERROR) status = Z_OK;  // the chunk is used up; the next one goes on
    at += length + kChunkFrame;
  }
  inflateEnd(&stream);
  return unpacked <= most && (status == Z_OK || status == Z_STREAM_END);
}

}  // namespace

PngPoints PointsOfPng(std::string_view bytes, double most) {
  constexpr std::size_t kHeader = 33;  // [byte] signature and IHDR
  PngPoints points;
  points.is_png = bytes.size() >= kHeader && bytes.starts_with(kSignature) &&
                  bytes.substr(kSignature.size() + 4, 4) == "IHDR";
  if (!points.is_png) return points;
  points.width = Load32(bytes, 16);
  points.height = Load32(bytes, 20);
  const double pixels = points.width * points.height;
  // 8 bytes a pixel at most, and one a row; an interlaced image has its rows in seven passes
  if (pixels <= most) points.sound = UnpacksTo(bytes, 8 * pixels + 8 * (points.height + 8));
  return points;
}

}  // namespace silc
