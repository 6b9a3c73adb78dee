// SPDX-License-Identifier: Apache-2.0
#include "silc/report/png.h"

#include <zlib.h>

#include <cstdlib>

#include "silc/base/check.h"

namespace silc {
namespace {

// What stb_image_write calls in place of its own compressor, which leaves a third more; the result
// is freed by stb with free().
[[maybe_unused]] unsigned char* Compress(unsigned char* data,
                                         int size,
                                         int* packed_size,
                                         int /*quality*/) {
  uLongf packed = compressBound(static_cast<uLong>(size));
  auto* out = static_cast<unsigned char*>(std::malloc(packed));
  SILC_CHECK(out != nullptr);
  SILC_CHECK(compress2(out, &packed, data, static_cast<uLong>(size), Z_BEST_COMPRESSION) == Z_OK);
  *packed_size = static_cast<int>(packed);
  return out;
}

}  // namespace
}  // namespace silc

// The analyzer is shown declarations alone: it does not see that 3 · width is no zero, and finds
// empty rows written to inside stb.
#ifndef __clang_analyzer__
#define STB_IMAGE_WRITE_IMPLEMENTATION
#define STB_IMAGE_WRITE_STATIC
#endif
#define STBI_WRITE_NO_STDIO
#define STBIW_ZLIB_COMPRESS silc::Compress
#include <stb_image_write.h>

namespace silc {

std::string EncodePng(const Image& image) {
  SILC_CHECK(image.width > 0 && image.height > 0);
  const int row_bytes = 3 * image.width;
  SILC_CHECK(image.rgb.size() == std::size_t(row_bytes) * std::size_t(image.height));
  std::string out;
  const auto append = [](void* to, void* bytes, int size) {
    static_cast<std::string*>(to)->append(static_cast<const char*>(bytes), std::size_t(size));
  };
  SILC_CHECK(stbi_write_png_to_func(
                 append, &out, image.width, image.height, 3, image.rgb.data(), row_bytes) != 0);
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
