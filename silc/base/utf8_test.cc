// SPDX-License-Identifier: Apache-2.0
#include "silc/base/utf8.h"

#include <gtest/gtest.h>

namespace silc {
namespace {

// U"" literals are the compiler's own idea of the code points: an independent encoder.
TEST(Utf8, DecodesWhatTheCompilerEncoded) {
  const std::string text = "aσ·Kₛ\u7AD9\U0001F916";
  const std::u32string expected = U"aσ·Kₛ\u7AD9\U0001F916";
  std::u32string decoded;
  for (std::size_t position = 0; position < text.size();) {
    decoded.push_back(DecodeUtf8(text, &position));
  }
  EXPECT_EQ(decoded, expected);
}

TEST(Utf8, EveryCodePointSurvivesEncodingAndDecoding) {
  for (char32_t code_point = 0; code_point <= 0x110005; ++code_point) {
    const bool surrogate = code_point >= 0xD800 && code_point <= 0xDFFF;
    std::string text;
    ASSERT_EQ(AppendUtf8(code_point, &text), !surrogate && code_point <= 0x10FFFF)
        << static_cast<int>(code_point);
    if (text.empty()) continue;
    std::size_t position = 0;
    ASSERT_EQ(DecodeUtf8(text, &position), code_point);
    ASSERT_EQ(position, text.size());
  }
}

TEST(Utf8, RefusesWhatTheStandardForbids) {
  for (const char* bytes : {
           "\x80",              // continuation without a lead
           "\xC0\xAF",          // overlong '/'
           "\xE0\x80\xAF",      // overlong '/', three bytes
           "\xED\xA0\x80",      // surrogate U+D800
           "\xF4\x90\x80\x80",  // U+110000
           "\xE2\x82",          // cut short
           "\xC3(",             // lead without continuation
       }) {
    std::size_t position = 0;
    EXPECT_EQ(DecodeUtf8(bytes, &position), kInvalidUtf8) << bytes;
    EXPECT_EQ(position, 1u);
    EXPECT_FALSE(IsPlainText(bytes));
  }
}

TEST(Utf8, PlainTextHoldsNoControlCharacters) {
  EXPECT_TRUE(IsPlainText("N·m/rad, Kₛ"));
  EXPECT_TRUE(IsPlainText(""));
  EXPECT_FALSE(IsPlainText("a\nb"));
  EXPECT_FALSE(IsPlainText("\x1b[31m"));
  EXPECT_FALSE(IsPlainText("\u0085"));
  EXPECT_FALSE(IsPlainText(std::string_view("\0", 1)));
}

TEST(Utf8, WidthCountsGlyphsNotBytes) {
  EXPECT_EQ(DisplayWidth(""), 0);
  EXPECT_EQ(DisplayWidth("Kₛ"), 2);
  EXPECT_EQ(DisplayWidth("σ"), 1);
  EXPECT_EQ(DisplayWidth("N·m/rad"), 7);
  EXPECT_EQ(DisplayWidth("q\u0307"), 1);     // q with a combining dot
  EXPECT_EQ(DisplayWidth("\u819D"), 2);      // an ideograph
  EXPECT_EQ(DisplayWidth("a\xff\x80z"), 4);  // bytes that are no UTF-8 take a column each
}

TEST(Printable, ShowsWhatATerminalWouldObey) {
  EXPECT_EQ(Printable("σ ≤ 1\n\tδ"), "σ ≤ 1\n\tδ");
  EXPECT_EQ(Printable("a\x1b[2Jb\r\x07"), "a\\x1b[2Jb\\x0d\\x07");
  EXPECT_EQ(Printable("\xc2\x9b"), "\\xc2\\x9b");  // the one-character form of ESC [
  EXPECT_EQ(Printable("\xff\xfe"), "\\xff\\xfe");
}

}  // namespace
}  // namespace silc
