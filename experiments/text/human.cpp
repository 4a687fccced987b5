#include "experiments/text/human.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <sstream>
#include <string_view>

#include "platforms/support/parse_number.hpp"

namespace fomoe::commands {
namespace {

std::string scaled(double value, const std::vector<const char*>& prefixes, const std::string& unit) {
  std::size_t prefix = 0;
  // From 999.95 on, a number would be rounded to 1000, so the next prefix is used from there on.
  while (prefix + 1 < prefixes.size() && std::abs(value) >= 999.95) {
    value /= 1000;
    ++prefix;
  }
  const std::string space = std::string(prefixes[prefix]).empty() && unit.empty() ? "" : " ";
  return fmt::format("{:.4g}{}{}{}", value, space, prefixes[prefix], unit);
}

}  // namespace

std::size_t text_width(const std::string& text) {
  // Continuation bytes of UTF-8 are not counted.
  return static_cast<std::size_t>(std::count_if(
      text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }));
}

std::string human_time(double seconds) {
  if (seconds < 1e-9) return "0 s";  // a rounding error
  if (seconds < 0.9995e-3) return fmt::format("{:.3g} us", seconds * 1e6);
  if (seconds < 0.9995) return fmt::format("{:.3g} ms", seconds * 1e3);
  if (seconds < 119.95) return fmt::format("{:.4g} s", seconds);
  const auto split = [](double value, double big, double small, const char* big_name,
                        const char* small_name) {
    const auto parts = std::llround(value / small);
    const auto per_big = std::llround(big / small);
    return fmt::format("{} {} {} {}", parts / per_big, big_name, parts % per_big, small_name);
  };
  if (seconds < 3599.5) return split(seconds, 60, 1, "min", "s");
  if (std::isinf(seconds)) return "inf d";
  if (seconds > 86400e6) return human_count(seconds / 86400) + " d";  // hours do not matter
  if (seconds < 2 * 86400 - 30) return split(seconds, 3600, 60, "h", "min");
  return split(seconds, 86400, 3600, "d", "h");
}

std::string human_bytes(double bytes) { return scaled(bytes, {"", "k", "M", "G", "T", "P", "E"}, "B"); }

std::string human_count(double count) { return scaled(count, {"", "k", "M", "G", "T", "P", "E"}, ""); }

std::string human_percent(double share) {
  const double percent = std::abs(share) < 1e-9 ? 0 : share * 100;  // a smaller share is a rounding error
  return percent >= 10 ? fmt::format("{:.1f} %", percent) : fmt::format("{:.3g} %", percent);
}

std::string human_whole(double number) {
  std::string text = fmt::format("{:.0f}", number);
  const std::size_t first = number < 0 ? 1 : 0;
  for (std::size_t at = text.size(); at > first + 3;) text.insert(at -= 3, 1, ',');
  return text;
}

std::string human_money(double amount, const std::string& currency) {
  if (std::isinf(amount)) return "unlimited";
  const bool large = std::abs(amount) >= 999.995;
  const std::string text = large ? human_whole(amount) : fmt::format("{:.2f}", amount);
  return currency.empty() ? text : text + ' ' + currency;
}

std::string aligned(const std::vector<Row>& rows, const std::string& indent) {
  std::vector<std::size_t> widths;
  for (const Row& row : rows) {
    widths.resize(std::max(widths.size(), row.size()), 0);
    for (std::size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], text_width(row[c]));
  }
  std::string text;
  for (const Row& row : rows) {
    std::string line = indent;
    for (std::size_t c = 0; c < row.size(); ++c) {
      const std::string padding(widths[c] - text_width(row[c]), ' ');
      if (c > 0) line += "  ";
      line += c == 0 ? row[c] + padding : padding + row[c];
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + '\n';
  }
  return text;
}

std::string aligned_before(const std::vector<Row>& rows, const std::vector<std::string>& last_column) {
  std::istringstream lines(aligned(rows));
  std::string text, line;
  for (std::size_t i = 0; std::getline(lines, line); ++i) text += line + "  " + last_column[i] + '\n';
  return text;
}

std::string human_provenance(const std::vector<Provenance>& provenance) {
  std::size_t what_width = 0;
  for (const Provenance& entry : provenance) what_width = std::max(what_width, text_width(entry.what));
  std::string text = "Inputs and where they come from\n";
  for (const Provenance& entry : provenance) {
    text += fmt::format("  {:<10}  {}{}  {}\n", to_string(entry.origin), entry.what,
                        std::string(what_width - text_width(entry.what), ' '), entry.detail);
  }
  return text;
}

std::string csv_cell(const std::string& name) {
  const bool formula = !name.empty() &&
                       std::string_view("=+-@\t\r").find(name.front()) != std::string_view::npos &&
                       !parse_number<double>(name);
  const std::string text = formula ? '\'' + name : name;
  if (text.find_first_of(",\"\n\r") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  return quoted + '"';
}

}  // namespace fomoe::commands
