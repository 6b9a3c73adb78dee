// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace silc {

/// Edit distance with adjacent swaps (insert, delete, replace, transpose cost 1 each).
int EditDistance(std::string_view a, std::string_view b);

/// The candidates a user most likely meant by `word`, nearest first, at most `count`; those too far
/// off to be a slip are left out, and so is what is longer than 200 bytes. A word contained in a
/// candidate counts as near.
std::vector<std::string> NearestNames(std::string_view word,
                                      const std::vector<std::string>& candidates,
                                      int count = 3);

/// The end of an error message: "; did you mean a, b or c?" or, with nothing near and a short list,
/// "; known: a, b, c". Empty when neither helps.
std::string DidYouMean(std::string_view word, const std::vector<std::string>& candidates);

}  // namespace silc
