// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace silc {

/// The word as a POSIX shell reads it back unchanged: as it is where it has only letters, digits
/// and characters without a meaning of their own, else in single quotes.
std::string ShellQuote(std::string_view word);

/// The words as one command line: ShellQuote() of each, a space between them.
std::string ShellCommand(const std::vector<std::string>& words);

}  // namespace silc
