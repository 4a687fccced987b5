#include "experiments/step_profiles/logs/log_text.hpp"

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
    } else {
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
    ++number;
    std::string_view line = std::string_view(text).substr(begin, end - begin);
    while (line.ends_with('\r')) line.remove_suffix(1);
    for (std::size_t at = 0; at <= line.size();) {
      const std::size_t part = std::min(line.find('\r', at), line.size());
      use(without_colours(line.substr(at, part - at)), number);
      at = part + 1;
    }
    begin = end + 1;
  }
}

std::optional<std::string> word_after(const std::string& line, std::string_view label) {
  const std::size_t found = line.find(label);
  if (found == std::string::npos) return std::nullopt;
  const std::size_t begin = std::min(line.find_first_not_of(' ', found + label.size()), line.size());
  const std::size_t end = std::min(line.find_first_of(" |/]", begin), line.size());
  return line.substr(begin, end - begin);
}

std::optional<std::string_view> text_after(std::string_view line, std::string_view label) {
  const std::size_t at = line.find(label);
  if (at == std::string_view::npos) return std::nullopt;
  return line.substr(at + label.size());
}

std::optional<std::int64_t> leading_count(std::string_view text) {
  std::string digits;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool digit = text[i] >= '0' && text[i] <= '9';
    const bool comma = text[i] == ',' && i + 1 < text.size() && text[i + 1] >= '0' && text[i + 1] <= '9';
    if (!digit && !comma) break;
    if (digit) digits += text[i];
  }
  const auto value = parse_number<std::int64_t>(digits);
  return value && *value >= 1 ? value : std::nullopt;
}

std::optional<std::int64_t> count_after(std::string_view line, std::string_view label) {
  auto text = text_after(line, label);
  if (!text) return std::nullopt;
  while (text->starts_with(' ')) text->remove_prefix(1);
  return leading_count(*text);
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

Rounded logged_rounded(const std::string& word, const std::string& place, const std::string& label,
                       const std::string& example) {
  const double value = logged_number(word, place, label, example);
  if (scale_of(word.back()) == 1) return Rounded::exactly(value);
  const double half = 0.5 * std::pow(10.0, std::floor(std::log10(value)) - 2);
  return {value, value - half, value + half};
}

std::string shell_word(const std::string& word) {
  if (!word.empty() && word.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                              "_-+=.,:/@%") == std::string::npos)
    return word;
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + '\'';
}

std::optional<double> logged_bytes(std::string_view text, double unit) {
  while (text.starts_with(' ') || text.starts_with(':')) text.remove_prefix(1);
  const auto value = parse_leading_number<double>(text);
  if (!value || !std::isfinite(*value) || *value <= 0) return std::nullopt;
  const std::string_view rest = text.substr(std::min(text.find_first_not_of("0123456789.e+"), text.size()));
  if (rest.starts_with("GiB")) return *value * 0x1p30;
  if (rest.starts_with("MiB")) return *value * 0x1p20;
  return *value * unit;
}

}  // namespace fomoe::step_profiles
