// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace silc {

/// What DecodeUtf8() returns for bytes that are no UTF-8: overlong forms, surrogates, half a
/// character.
constexpr char32_t kInvalidUtf8 = 0xFFFFFFFF;

/// The code point at text[*position]; moves *position past it, by one byte where it is invalid.
/// @pre *position < text.size()
char32_t DecodeUtf8(std::string_view text, std::size_t* position);

/// Appends a code point. False, and nothing appended, for surrogates and beyond U+10FFFF.
bool AppendUtf8(char32_t code_point, std::string* text);

/// Valid UTF-8 without control characters: safe to print on a terminal and to compare by bytes.
bool IsPlainText(std::string_view text);

/// The text as it can be shown on any terminal: what is no UTF-8, and control characters other than
/// line breaks and tabs, become \x1b and the like. Names come from files of strangers, and an
/// escape sequence in one could rewrite what stands above it.
std::string Printable(std::string_view text);

/// Columns a terminal gives the text: 0 for combining marks, 2 for East Asian wide characters, 1
/// for the rest, bytes that are no UTF-8 included.
int DisplayWidth(std::string_view text);

}  // namespace silc
