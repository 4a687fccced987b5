#include "experiments/scenario/suggest.hpp"

#include <algorithm>

namespace fomoe::scenario {

int edit_distance(std::string_view a, std::string_view b) {
  const std::size_t rows = a.size() + 1, columns = b.size() + 1;
  std::vector<int> cost(rows * columns);
  const auto at = [&](std::size_t i, std::size_t j) -> int& { return cost[i * columns + j]; };
  for (std::size_t i = 0; i < rows; ++i) at(i, 0) = static_cast<int>(i);
  for (std::size_t j = 0; j < columns; ++j) at(0, j) = static_cast<int>(j);
  for (std::size_t i = 1; i < rows; ++i) {
    for (std::size_t j = 1; j < columns; ++j) {
      const int substitution = at(i - 1, j - 1) + (a[i - 1] == b[j - 1] ? 0 : 1);
      at(i, j) = std::min({at(i - 1, j) + 1, at(i, j - 1) + 1, substitution});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        at(i, j) = std::min(at(i, j), at(i - 2, j - 2) + 1);
      }
    }
  }
  return cost.back();
}

std::string nearest(std::string_view typed, const std::vector<std::string>& candidates) {
  // A third of the letters may be wrong; more, and the suggestion would only distract.
  int best = std::max(1, static_cast<int>(typed.size()) / 3) + 1;
  std::string found;
  for (const std::string& candidate : candidates) {
    const int distance = edit_distance(typed, candidate);
    if (distance < best) {
      best = distance;
      found = candidate;
    }
  }
  return found;
}

std::string joined(const std::vector<std::string>& words, std::string_view separator) {
  std::string text;
  for (const std::string& word : words) {
    if (!text.empty()) text += separator;
    text += word;
  }
  return text;
}

}  // namespace fomoe::scenario
