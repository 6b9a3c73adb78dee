// SPDX-License-Identifier: Apache-2.0
#include "silc/robot/xml_tags.h"

#include <algorithm>
#include <charconv>
#include <utility>

namespace silc {
namespace {

bool IsSpace(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

std::string LowerCase(std::string text) {
  for (char& c : text) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return text;
}

// A character in UTF-8.
std::string Utf8(unsigned code) {
  const auto tail = [&](unsigned shift) {
    return static_cast<char>(0x80 | (code >> shift & 0x3F));
  };
  if (code < 0x80) return {static_cast<char>(code)};
  if (code < 0x800) return {static_cast<char>(0xC0 | code >> 6), tail(0)};
  if (code < 0x10000) return {static_cast<char>(0xE0 | code >> 12), tail(6), tail(0)};
  return {static_cast<char>(0xF0 | (code >> 18 & 7)), tail(12), tail(6), tail(0)};
}

// "&#50;0" → "20". What is no reference stays as it is.
std::string Decoded(std::string_view text) {
  constexpr std::pair<std::string_view, char> kNamed[] = {
      {"lt", '<'}, {"gt", '>'}, {"amp", '&'}, {"quot", '"'}, {"apos", '\''}};
  std::string out;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const std::size_t end = text[at] == '&' ? text.find(';', at) : std::string_view::npos;
    if (end == std::string_view::npos) {
      out += text[at];
      continue;
    }
    std::string_view name = text.substr(at + 1, end - at - 1);
    const auto* const named = std::find_if(
        std::begin(kNamed), std::end(kNamed), [&](const auto& one) { return one.first == name; });
    if (named != std::end(kNamed)) {
      out += named->second;
      at = end;
    } else if (name.starts_with('#')) {
      const bool hexadecimal = name.starts_with("#x");
      name.remove_prefix(hexadecimal ? 2 : 1);
      unsigned code = 0;
      std::from_chars(name.data(), name.data() + name.size(), code, hexadecimal ? 16 : 10);
      out += Utf8(code);
      at = end;
    } else {
      out += text[at];
    }
  }
  return out;
}

}  // namespace

bool XmlTagReader::Next(XmlTag* tag) {
  while (true) {
    if (!SkipTo("<")) return false;
    if (text_.substr(at_).starts_with("<!--")) {
      if (!SkipTo("-->")) return false;
      continue;
    }
    if (text_.substr(at_).starts_with("<![CDATA[")) {
      if (!SkipTo("]]>")) return false;
      continue;
    }
    if (text_.substr(at_).starts_with("<?") || text_.substr(at_).starts_with("<!")) {
      if (!SkipTo(">")) return false;
      continue;
    }
    break;
  }
  *tag = XmlTag();
  tag->line = line_;
  ++at_;
  tag->closes = Take('/');
  tag->name = LowerCase(Word());
  while (at_ < text_.size() && text_[at_] != '>') {
    SkipSpace();
    if (Take('/')) {
      tag->empty = true;
      continue;
    }
    const std::string key = Word();
    SkipSpace();
    if (key.empty() || !Take('=')) {
      if (at_ < text_.size() && text_[at_] != '>' && text_[at_] != '/') Step();
      continue;
    }
    SkipSpace();
    if (at_ >= text_.size() || (text_[at_] != '"' && text_[at_] != '\'')) continue;
    const char quote = text_[at_];
    const std::size_t begin = ++at_;
    while (at_ < text_.size() && text_[at_] != quote) Step();
    tag->attributes.emplace(key, Decoded(text_.substr(begin, at_ - begin)));
    if (at_ < text_.size()) ++at_;
  }
  return true;
}

bool XmlTagReader::Take(char c) {
  if (at_ >= text_.size() || text_[at_] != c) return false;
  ++at_;
  return true;
}

void XmlTagReader::SkipSpace() {
  while (at_ < text_.size() && IsSpace(text_[at_])) Step();
}

bool XmlTagReader::SkipTo(std::string_view what) {
  const std::size_t found = text_.find(what, at_);
  if (found == std::string_view::npos) return false;
  while (at_ < found) Step();
  return true;
}

std::string XmlTagReader::Word() {
  const std::size_t begin = at_;
  while (at_ < text_.size() && !IsSpace(text_[at_]) &&
         std::string_view("=/><\"'").find(text_[at_]) == std::string_view::npos) {
    ++at_;
  }
  return std::string(text_.substr(begin, at_ - begin));
}

}  // namespace silc
