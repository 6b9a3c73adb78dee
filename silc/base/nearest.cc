// SPDX-License-Identifier: Apache-2.0
#include "silc/base/nearest.h"

#include <algorithm>
#include <utility>

namespace silc {
namespace {

// A longer word is no slip of a name: the table of the distance has the square of it.
constexpr std::size_t kLongestName = 200;  // [byte]

}  // namespace

int EditDistance(std::string_view a, std::string_view b) {
  // three rows of the optimal-string-alignment table: two back for transpositions
  const int n = static_cast<int>(b.size());
  std::vector<int> two_back(n + 1), previous(n + 1), current(n + 1);
  for (int j = 0; j <= n; ++j) previous[j] = j;
  for (int i = 1; i <= static_cast<int>(a.size()); ++i) {
    current[0] = i;
    for (int j = 1; j <= n; ++j) {
      const int replace = previous[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      current[j] = std::min({replace, previous[j] + 1, current[j - 1] + 1});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        current[j] = std::min(current[j], two_back[j - 2] + 1);
      }
    }
    std::swap(two_back, previous);
    std::swap(previous, current);
  }
  return previous[n];
}

std::vector<std::string> NearestNames(std::string_view word,
                                      const std::vector<std::string>& candidates,
                                      int count) {
  if (word.size() > kLongestName) return {};
  std::vector<std::pair<int, std::string>> scored;
  for (const std::string& candidate : candidates) {
    if (candidate.size() > kLongestName) continue;
    const bool contained = word.size() >= 3 && (candidate.find(word) != std::string::npos ||
                                                word.find(candidate) != std::string_view::npos);
    const int distance = contained ? 1 : EditDistance(word, candidate);
    // a third of the word may be wrong before it is another word
    const int limit = std::max<int>(2, static_cast<int>(word.size()) / 3);
    if (distance <= limit) scored.emplace_back(distance, candidate);
  }
  std::stable_sort(
      scored.begin(), scored.end(), [](const auto& x, const auto& y) { return x.first < y.first; });
  std::vector<std::string> names;
  for (const auto& [distance, name] : scored) {
    if (static_cast<int>(names.size()) < count) names.push_back(name);
  }
  return names;
}

std::string DidYouMean(std::string_view word, const std::vector<std::string>& candidates) {
  constexpr std::size_t kShortList = 12;
  const std::vector<std::string> near = NearestNames(word, candidates);
  if (!near.empty()) {
    std::string text = "; did you mean ";
    for (std::size_t i = 0; i < near.size(); ++i) {
      if (i > 0) text += i + 1 == near.size() ? " or " : ", ";
      text += near[i];
    }
    return text + "?";
  }
  if (candidates.empty() || candidates.size() > kShortList) return "";
  for (const std::string& candidate : candidates) {
    if (candidate.size() > kLongestName) return "";
  }
  std::string text = "; known: ";
  for (std::size_t i = 0; i < candidates.size(); ++i) text += (i > 0 ? ", " : "") + candidates[i];
  return text;
}

}  // namespace silc
