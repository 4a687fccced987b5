#include "experiments/text/nesting.hpp"

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <unordered_set>
#include <vector>

namespace fomoe::scenario {

namespace {

// About a second. One object may have 28,000 keys.
constexpr std::int64_t kMostComparisons = 400'000'000;

/// The place after the string that begins with the quotes at `at`. The string ends at the line's end at the
/// latest, unless the quotes are TOML's triple ones.
std::size_t after_string(std::string_view text, std::size_t at, bool toml) {
  const char quote = text[at];
  const bool triple = toml && text.size() - at >= 3 && text[at + 1] == quote && text[at + 2] == quote;
  for (at += triple ? 3 : 1; at < text.size(); ++at) {
    if (text[at] == '\\' && quote == '"') {
      ++at;
    } else if (triple ? text.substr(at, 3) == std::string(3, quote) : text[at] == quote) {
      at += triple ? 3 : 1;
      // A long string may end with one or two quotes of its own.
      for (int more = 0; triple && more < 2 && at < text.size() && text[at] == quote; ++more) ++at;
      return at;
    } else if (text[at] == '\n' && !triple) {
      return at;
    }
  }
  return text.size();
}

/// A name as it is meant: "a" may be written "\u0061".
std::string unescaped(std::string_view quoted) {
  if (quoted.find('\\') == std::string_view::npos) return std::string(quoted);
  const auto name = nlohmann::json::parse(quoted, nullptr, /*allow_exceptions=*/false);
  return name.is_string() ? '"' + name.get<std::string>() + '"' : std::string(quoted);
}

/// `names`: whether names that an object has twice are refused, too.
std::string excess(std::string_view text, std::int64_t most_comparisons, bool names) {
  std::vector<std::int64_t> keys;  // of each open array or object
  std::vector<std::unordered_set<std::string>> known;
  std::string_view last;  // string
  std::int64_t comparisons = 0;
  for (std::size_t at = 0; at < text.size();) {
    const char c = text[at];
    if (c == '"') {
      const std::size_t begin = at;
      at = after_string(text, at, /*toml=*/false);
      last = text.substr(begin, at - begin);
      continue;
    }
    if (c == '{' || c == '[') {
      keys.push_back(0);
      known.emplace_back();
    }
    if ((c == '}' || c == ']') && !keys.empty()) {
      keys.pop_back();
      known.pop_back();
    }
    if (c == ':' && !keys.empty()) {
      comparisons += keys.back()++;
      if (names && !known.back().insert(unescaped(last)).second)
        return "the name " + std::string(last) + " twice in line " +
               std::to_string(1 +
                              std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n'));
    }
    if (keys.size() > kMostLevels) return "more than " + std::to_string(kMostLevels) + " levels";
    if (comparisons > most_comparisons) return "an object with too many keys";
    ++at;
  }
  return "";
}

bool in_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' ||
         c == ' ' || c == '\t';
}

}  // namespace

std::string excess_in_json(std::string_view text) { return excess(text, kMostComparisons, true); }

std::string excess_in_sorted_json(std::string_view text, bool names) {
  return excess(text, INT64_MAX, names);
}

std::optional<Excess> excess_in_toml(std::string_view text) {
  int dots = 0;   // of the current name
  int depth = 0;  // of arrays and inline tables
  bool line_begins = true, in_header = false;
  const auto here = [&](std::size_t at, const std::string& what) {
    return Excess{what, 1 + static_cast<unsigned>(std::count(text.begin(), text.begin() + at, '\n'))};
  };
  std::size_t at = text.starts_with("\xef\xbb\xbf") ? 3 : 0;  // a byte order mark
  while (at < text.size()) {
    const char c = text[at];
    if (c == '#') {
      at = std::min(text.find('\n', at), text.size());
      continue;
    }
    if (c == '"' || c == '\'') {
      at = after_string(text, at, /*toml=*/true);
      line_begins = false;
      continue;
    }
    if (static_cast<unsigned char>(c) >= 0x80) return here(at, "a character outside of ASCII without quotes");
    if (c == '[' && line_begins && depth == 0) {
      in_header = true;
      std::size_t name = text.find_first_not_of(" \t", at + 1);
      if (name != std::string_view::npos && text[name] == '[') name = text.find_first_not_of(" \t", name + 1);
      const char first = name == std::string_view::npos ? ']' : text[name];
      if (!in_name(first) && first != '"' && first != '\'' && first != ']')
        return here(at, "a [table] without a name");
    }
    if (!in_header && (c == '[' || c == '{')) ++depth;
    if (!in_header && (c == ']' || c == '}')) --depth;
    if (c == '.') {
      if (++dots >= kMostNameParts)
        return here(at, "a name of more than " + std::to_string(kMostNameParts) + " parts");
    } else if (!in_name(c)) {
      dots = 0;
    }
    if (c == '\n') {
      line_begins = true;
      in_header = false;
    } else if (c != ' ' && c != '\t' && c != '\r') {
      line_begins = false;
    }
    ++at;
  }
  return std::nullopt;
}

}  // namespace fomoe::scenario
