#include "base/suggest.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace pscloud {

size_t edit_distance(std::string_view a, std::string_view b) {
  // Row i holds the distances between the first i letters of `a` and each beginning of `b`; three rows are enough.
  std::vector<size_t> before(b.size() + 1);
  std::vector<size_t> row(b.size() + 1);
  std::vector<size_t> next(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    next[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      next[j] = std::min({row[j] + 1, next[j - 1] + 1, row[j - 1] + (a[i - 1] != b[j - 1])});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) next[j] = std::min(next[j], before[j - 2] + 1);
    }
    std::swap(before, row);
    std::swap(row, next);
  }
  return row[b.size()];
}

std::string suggest(std::string_view word, std::span<const std::string> known) {
  // A third of the letters may be wrong: more would suggest words that have nothing to do with it.
  size_t best = word.size() / 3 + 2;
  std::string found;
  for (const std::string& candidate : known) {
    const bool begun = word.size() >= 2 && candidate.starts_with(word);
    const size_t distance = begun ? 1 : edit_distance(word, candidate);
    if (distance >= best || distance >= candidate.size()) continue;
    best = distance;
    found = candidate;
  }
  return found;
}

}  // namespace pscloud
