// SPDX-License-Identifier: Apache-2.0
#include "silc/base/utf8.h"

#include <algorithm>
#include <iterator>

#include "silc/base/check.h"

namespace silc {
namespace {

struct Range {
  char32_t first, last;
};

bool IsIn(const Range* begin, const Range* end, char32_t code_point) {
  return std::any_of(begin, end, [&](const Range& range) {
    return code_point >= range.first && code_point <= range.last;
  });
}

// Blocks, not the full Unicode property tables: enough for names and units in any script.
// clang-format off
constexpr Range kZeroWidth[] = {
    {0x0300, 0x036F}, {0x0483, 0x0489}, {0x0591, 0x05BD}, {0x064B, 0x065F}, {0x1AB0, 0x1AFF},
    {0x1DC0, 0x1DFF}, {0x200B, 0x200F}, {0x20D0, 0x20FF}, {0xFE00, 0xFE0F}, {0xFE20, 0xFE2F}};
constexpr Range kDoubleWidth[] = {
    {0x1100, 0x115F}, {0x2E80, 0x303E}, {0x3041, 0xA4CF}, {0xAC00, 0xD7A3}, {0xF900, 0xFAFF},
    {0xFE30, 0xFE6F}, {0xFF01, 0xFF60}, {0xFFE0, 0xFFE6}, {0x1F300, 0x1FAFF}, {0x20000, 0x3FFFD}};
// clang-format on

bool IsSurrogate(char32_t code_point) { return code_point >= 0xD800 && code_point <= 0xDFFF; }

}  // namespace

char32_t DecodeUtf8(std::string_view text, std::size_t* position) {
  SILC_CHECK(*position < text.size());
  const auto lead = static_cast<unsigned char>(text[(*position)++]);
  if (lead < 0x80) return lead;
  // a lead byte says how many continuation bytes follow, and with them the smallest code point that
  // needs so many: anything smaller is an overlong form
  int num_more = 0;
  char32_t code_point = 0;
  char32_t smallest = 0;
  if (lead >= 0xC2 && lead <= 0xDF) {
    num_more = 1, code_point = lead & 0x1F, smallest = 0x80;
  } else if (lead >= 0xE0 && lead <= 0xEF) {
    num_more = 2, code_point = lead & 0x0F, smallest = 0x800;
  } else if (lead >= 0xF0 && lead <= 0xF4) {
    num_more = 3, code_point = lead & 0x07, smallest = 0x10000;
  } else {
    return kInvalidUtf8;
  }
  if (text.size() - *position < static_cast<std::size_t>(num_more)) return kInvalidUtf8;
  for (int i = 0; i < num_more; ++i) {
    const auto byte = static_cast<unsigned char>(text[*position + i]);
    if ((byte & 0xC0) != 0x80) return kInvalidUtf8;
    code_point = (code_point << 6) | (byte & 0x3F);
  }
  if (code_point < smallest || code_point > 0x10FFFF || IsSurrogate(code_point)) {
    return kInvalidUtf8;
  }
  *position += num_more;
  return code_point;
}

bool AppendUtf8(char32_t code_point, std::string* text) {
  if (code_point > 0x10FFFF || IsSurrogate(code_point)) return false;
  const auto append = [&](char32_t byte) { text->push_back(static_cast<char>(byte)); };
  if (code_point < 0x80) {
    append(code_point);
  } else if (code_point < 0x800) {
    append(0xC0 | (code_point >> 6));
    append(0x80 | (code_point & 0x3F));
  } else if (code_point < 0x10000) {
    append(0xE0 | (code_point >> 12));
    append(0x80 | ((code_point >> 6) & 0x3F));
    append(0x80 | (code_point & 0x3F));
  } else {
    append(0xF0 | (code_point >> 18));
    append(0x80 | ((code_point >> 12) & 0x3F));
    append(0x80 | ((code_point >> 6) & 0x3F));
    append(0x80 | (code_point & 0x3F));
  }
  return true;
}

std::string Printable(std::string_view text) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t begin = at;
    const char32_t code_point = DecodeUtf8(text, &at);
    const bool control = code_point < 0x20 || (code_point >= 0x7F && code_point < 0xA0);
    if (code_point != kInvalidUtf8 && (!control || code_point == '\n' || code_point == '\t')) {
      out += text.substr(begin, at - begin);
      continue;
    }
    for (const char c : text.substr(begin, at - begin)) {
      constexpr char kHex[] = "0123456789abcdef";
      const auto byte = static_cast<unsigned char>(c);
      out += {'\\', 'x', kHex[byte >> 4], kHex[byte & 15]};
    }
  }
  return out;
}

bool IsPlainText(std::string_view text) {
  for (std::size_t position = 0; position < text.size();) {
    const char32_t code_point = DecodeUtf8(text, &position);
    const bool control = code_point < 0x20 || (code_point >= 0x7F && code_point < 0xA0);
    if (code_point == kInvalidUtf8 || control) return false;
  }
  return true;
}

int DisplayWidth(std::string_view text) {
  int width = 0;
  for (std::size_t position = 0; position < text.size();) {
    const char32_t code_point = DecodeUtf8(text, &position);
    if (IsIn(std::begin(kZeroWidth), std::end(kZeroWidth), code_point)) continue;
    width += IsIn(std::begin(kDoubleWidth), std::end(kDoubleWidth), code_point) ? 2 : 1;
  }
  return width;
}

}  // namespace silc
