// SPDX-License-Identifier: Apache-2.0
#include "silc/report/png.h"

#include <zlib.h>

#include <cstdlib>
#include <limits>

#include "silc/base/check.h"

namespace silc {
namespace {

constexpr int kBytesPerPixel = 3;
constexpr int kNumFilters = 5;  // none, sub, up, average, Paeth

void AppendBigEndian(std::uint32_t value, std::string* out) {
  for (int shift = 24; shift >= 0; shift -= 8)
    out->push_back(static_cast<char>((value >> shift) & 0xff));
}

void AppendChunk(const char* type, std::string_view data, std::string* out) {
  AppendBigEndian(static_cast<std::uint32_t>(data.size()), out);
  const std::size_t begin = out->size();
  out->append(type, 4);
  out->append(data);
  const uLong crc = crc32(0,
                          reinterpret_cast<const Bytef*>(out->data() + begin),
                          static_cast<uInt>(out->size() - begin));
  AppendBigEndian(static_cast<std::uint32_t>(crc), out);
}

// the neighbour nearest to left + up − corner
int Paeth(int left, int up, int corner) {
  const int p = left + up - corner;
  const int by_left = std::abs(p - left), by_up = std::abs(p - up),
            by_corner = std::abs(p - corner);
  if (by_left <= by_up && by_left <= by_corner) return left;
  return by_up <= by_corner ? up : corner;
}

int Predict(int filter, int left, int up, int corner) {
  switch (filter) {
    case 1:
      return left;
    case 2:
      return up;
    case 3:
      return (left + up) / 2;
    case 4:
      return Paeth(left, up, corner);
    default:
      return 0;
  }
}

// One row behind its filter's number. Small differences compress best, so the filter with the
// least sum of magnitudes wins: the heuristic of the PNG specification.
std::string FilterRow(const std::uint8_t* row, const std::uint8_t* above, int bytes) {
  std::string best;
  long best_cost = std::numeric_limits<long>::max();
  for (int filter = 0; filter < kNumFilters; ++filter) {
    std::string line(1, static_cast<char>(filter));
    long cost = 0;
    for (int i = 0; i < bytes; ++i) {
      const int left = i >= kBytesPerPixel ? row[i - kBytesPerPixel] : 0;
      const int up = above ? above[i] : 0;
      const int corner = above && i >= kBytesPerPixel ? above[i - kBytesPerPixel] : 0;
      const auto rest = static_cast<std::int8_t>(row[i] - Predict(filter, left, up, corner));
      cost += std::abs(static_cast<int>(rest));
      line.push_back(static_cast<char>(rest));
    }
    if (cost < best_cost) {
      best_cost = cost;
      best = std::move(line);
    }
  }
  return best;
}

}  // namespace

std::string EncodePng(const Image& image) {
  SILC_CHECK(image.width > 0 && image.height > 0);
  const int row_bytes = kBytesPerPixel * image.width;
  SILC_CHECK(image.rgb.size() == std::size_t(row_bytes) * std::size_t(image.height));

  std::string raw;
  for (int y = 0; y < image.height; ++y) {
    const std::uint8_t* row = image.rgb.data() + std::size_t(y) * std::size_t(row_bytes);
    raw += FilterRow(row, y > 0 ? row - row_bytes : nullptr, row_bytes);
  }
  uLongf size = compressBound(static_cast<uLong>(raw.size()));
  std::string packed(size, '\0');
  SILC_CHECK(compress2(reinterpret_cast<Bytef*>(packed.data()),
                       &size,
                       reinterpret_cast<const Bytef*>(raw.data()),
                       static_cast<uLong>(raw.size()),
                       Z_BEST_COMPRESSION) == Z_OK);
  packed.resize(size);

  std::string out = "\x89PNG\r\n\x1a\n";
  std::string header;
  AppendBigEndian(static_cast<std::uint32_t>(image.width), &header);
  AppendBigEndian(static_cast<std::uint32_t>(image.height), &header);
  // 8 bits, RGB, deflate, adaptive filters, not interlaced
  header += std::string("\x08\x02\x00\x00\x00", 5);
  AppendChunk("IHDR", header, &out);
  AppendChunk("IDAT", packed, &out);
  AppendChunk("IEND", "", &out);
  return out;
}

std::string Base64(std::string_view bytes) {
  constexpr char kLetters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    std::uint32_t group = 0;  // three bytes, 24 bits, four letters
    for (std::size_t k = 0; k < 3; ++k)
      group = (group << 8) | (i + k < bytes.size() ? static_cast<std::uint8_t>(bytes[i + k]) : 0u);
    for (std::size_t k = 0; k < 4; ++k)
      out.push_back(i + k <= bytes.size() ? kLetters[(group >> (18 - 6 * k)) & 63] : '=');
  }
  return out;
}

}  // namespace silc
