// SPDX-License-Identifier: Apache-2.0
#include "silc/base/shell.h"

#include <algorithm>

namespace silc {
namespace {

// Bytes above 127 belong to UTF-8 characters, which no shell takes for its own.
bool IsPlain(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
         (byte >= '0' && byte <= '9') || byte > 127 ||
         std::string_view("_@%+=:,./-").find(c) != std::string_view::npos;
}

}  // namespace

std::string ShellQuote(std::string_view word) {
  if (!word.empty() && std::all_of(word.begin(), word.end(), IsPlain)) return std::string(word);
  std::string quoted = "'";
  for (const char c : word) {
    // a quote cannot stand inside quotes: close, one escaped quote, open again
    quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  }
  return quoted + "'";
}

std::string ShellCommand(const std::vector<std::string>& words) {
  std::string line;
  for (const std::string& word : words) line += (line.empty() ? "" : " ") + ShellQuote(word);
  return line;
}

}  // namespace silc
