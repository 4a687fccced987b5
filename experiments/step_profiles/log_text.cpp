#include "experiments/step_profiles/log_text.hpp"

#include <algorithm>
#include <cmath>

#include "experiments/scenario/toml/document.hpp"
#include "platforms/support/parse_number.hpp"

namespace fomoe::step_profiles {
namespace {

// ECMA-48: ESC [ parameters, and a final byte from @ to ~.
std::string without_colours(std::string_view line) {
  std::string plain;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '\x1b' && i + 1 < line.size() && line[i + 1] == '[') {
      i += 2;
      while (i < line.size() && (line[i] < '@' || line[i] > '~')) ++i;
    } else if (line[i] != '\r') {
      plain += line[i];
    }
  }
  return plain;
}

/// The label without its colon, as the key of an error message, which adds a colon of its own: "tps" for
/// "tps:".
std::string key_of(std::string label) {
  while (label.ends_with(':') || label.ends_with(' ')) label.pop_back();
  return label;
}

double scale_of(char suffix) {
  switch (suffix) {
    case 'K':
      return 1e3;
    case 'M':
      return 1e6;
    case 'G':
    case 'B':
      return 1e9;
    case 'T':
      return 1e12;
    case 'P':
      return 1e15;
    default:
      return 1;
  }
}

}  // namespace

void for_each_line(const std::string& text,
                   const std::function<void(const std::string& line, std::int64_t number)>& use) {
  std::int64_t number = 0;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    use(without_colours(std::string_view(text).substr(begin, end - begin)), ++number);
    begin = end + 1;
  }
}

std::optional<std::string> word_after(const std::string& line, std::string_view label) {
  const std::size_t found = line.find(label);
  if (found == std::string::npos) return std::nullopt;
  const std::size_t begin = std::min(line.find_first_not_of(' ', found + label.size()), line.size());
  const std::size_t end = std::min(line.find_first_of(" |/", begin), line.size());
  return line.substr(begin, end - begin);
}

double logged_number(const std::string& word, const std::string& place, const std::string& label,
                     const std::string& example) {
  std::string digits;
  for (const char c : word) {
    if (c != ',') digits += c;
  }
  double scale = 1;
  if (!digits.empty() && scale_of(digits.back()) != 1) {
    scale = scale_of(digits.back());
    digits.pop_back();
  }
  const auto value = parse_number<double>(digits);
  if (!value || !std::isfinite(*value * scale) || *value <= 0)
    scenario::fail(place, key_of(label), '"' + word + '"', "a number above zero", example);
  return *value * scale;
}

std::int64_t logged_count(const std::string& word, const std::string& place, const std::string& label,
                          const std::string& example) {
  const double value = logged_number(word, place, label, example);
  constexpr double kMost = 1e12;
  if (value != std::floor(value) || value > kMost)
    scenario::fail(place, key_of(label), '"' + word + '"', "a whole number from 1 to 1e12", example);
  return static_cast<std::int64_t>(value);
}

}  // namespace fomoe::step_profiles
