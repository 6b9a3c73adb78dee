// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace silc {

/// A picture, rows from top to bottom.
struct Image {
  int width = 0, height = 0;
  std::vector<std::uint8_t> rgb;  // (height, width, 3)
};

/// The bytes of a PNG file, 8 bits a channel, written by stb_image_write with zlib. The same
/// picture gives the same bytes.
std::string EncodePng(const Image& image);

/// RFC 4648 base 64 with padding, for data URIs.
std::string Base64(std::string_view bytes);

}  // namespace silc
