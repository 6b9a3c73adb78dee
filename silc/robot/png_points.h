// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace silc {

/// What a PNG unpacks to, found without unpacking it into memory.
struct PngPoints {
  bool is_png = false;  // signature and header are there; the rest may be damaged
  double width = 0, height = 0;
  bool sound = false;  // its pixels unpack to no more than width and height allow
};

/// The pixels are looked at where width × height is at most `most`; beyond, `sound` stays false.
PngPoints PointsOfPng(std::string_view bytes, double most);

}  // namespace silc
