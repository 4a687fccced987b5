// Lists that a user writes in one argument.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace fomoe::scenario {

/// Splits at characters for which `separates` is true, but not inside quotes or brackets. Parts may be empty.
template <class Separates>
std::vector<std::string> split_outside_quotes(std::string_view text, const Separates& separates) {
  std::vector<std::string> parts(1);
  char quote = 0;
  int depth = 0;
  for (const char c : text) {
    if (quote == 0 && depth == 0 && separates(c)) {
      parts.emplace_back();
      continue;
    }
    if (quote != 0) {
      if (c == quote) quote = 0;
    } else if (c == '"' || c == '\'') {
      quote = c;
    } else if (c == '[' || c == '{') {
      ++depth;
    } else if (c == ']' || c == '}') {
      --depth;
    }
    parts.back() += c;
  }
  return parts;
}

}  // namespace fomoe::scenario
