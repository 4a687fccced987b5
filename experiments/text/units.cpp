#include "experiments/text/units.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string>
#include <vector>

#include "experiments/text/suggest.hpp"

namespace fomoe::scenario {
namespace {

struct Unit {
  std::string name;
  Quantity quantity;
  double factor;       // the SI value of one unit is factor ÷ divisor
  double divisor = 1;  // dividing by 1e3 rounds once, whereas multiplying by 1e-3 rounds twice
};

struct Prefix {
  const char* name;
  double factor;
};

std::vector<Unit> make_units() {
  const Prefix decimal[] = {{"", 1},     {"k", 1e3},  {"M", 1e6}, {"G", 1e9},
                            {"T", 1e12}, {"P", 1e15}, {"E", 1e18}};
  const Prefix binary[] = {{"Ki", 1024.0}, {"Mi", 0x1p20}, {"Gi", 0x1p30}, {"Ti", 0x1p40}};
  std::vector<Unit> units;
  for (const Prefix& prefix : decimal) {
    const std::string p = prefix.name;
    for (const char* bit : {"bps", "bit/s", "b/s"}) {
      units.push_back({p + bit, Quantity::rate, bits_to_bytes(prefix.factor)});
    }
    for (const char* byte : {"Bps", "B/s"}) units.push_back({p + byte, Quantity::rate, prefix.factor});
    units.push_back({p + "B", Quantity::size, prefix.factor});
    for (const char* flops : {"FLOPS", "FLOP/s"})
      units.push_back({p + flops, Quantity::flop_rate, prefix.factor});
  }
  for (const Prefix& prefix : binary) {
    const std::string p = prefix.name;
    for (const char* byte : {"Bps", "B/s"}) units.push_back({p + byte, Quantity::rate, prefix.factor});
    units.push_back({p + "B", Quantity::size, prefix.factor});
  }
  const Prefix power[] = {{"", 1}, {"k", 1e3}, {"M", 1e6}};
  for (const Prefix& prefix : power)
    units.push_back({std::string(prefix.name) + "W", Quantity::power, prefix.factor});
  const Unit times[] = {{"ns", Quantity::duration, 1, 1e9}, {"us", Quantity::duration, 1, 1e6},
                        {"µs", Quantity::duration, 1, 1e6}, {"ms", Quantity::duration, 1, 1e3},
                        {"s", Quantity::duration, 1},       {"min", Quantity::duration, 60},
                        {"h", Quantity::duration, 3600},    {"d", Quantity::duration, 86400}};
  units.insert(units.end(), std::begin(times), std::end(times));
  return units;
}

const std::vector<Unit>& units() {
  static const std::vector<Unit> all = make_units();
  return all;
}

/// The largest value of each quantity, and the smallest one above zero. Beyond them, sums and counts of bytes
/// and seconds have no sensible number, and a rate is slower than a link that is down.
struct Limits {
  double least, most;
  const char* least_text;
  const char* most_text;
};
Limits limits_of(Quantity quantity) {
  switch (quantity) {
    case Quantity::rate:
      return {bits_to_bytes(1), 1e18, "1bps", "1EB/s"};
    case Quantity::duration:
      return {0, 1e11, "", "1e11s"};  // 3,169 years
    case Quantity::size:
      return {0, 9e18, "", "9EB"};  // 2⁶³ is 9.22e18
    case Quantity::flop_rate:
      return {1, 1e24, "1FLOPS", "1e6EFLOPS"};
    case Quantity::power:
      return {0, 1e12, "", "1e6MW"};
  }
  return {0, 0, "", ""};
}
constexpr double kMostMoney = 1e15;

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

bool equal_but_for_case(std::string_view a, std::string_view b) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; };
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [&](char x, char y) { return lower(x) == lower(y); });
}

/// Parses the number at the start of a text; it must be finite and at least zero. `rest` receives the
/// remaining text. Throws through `refuse`.
template <class Refuse>
double leading_number(std::string_view body, std::string_view& rest, const Refuse& refuse) {
  double number = 0;
  const auto [end, error] = std::from_chars(body.data(), body.data() + body.size(), number);
  if (error == std::errc::invalid_argument) throw refuse("no number", "");
  if (error != std::errc{}) throw refuse("a number that is too large or too small", "");
  if (!std::isfinite(number)) throw refuse("not a finite number", "");
  if (std::signbit(number)) throw refuse("negative", "");
  rest = trimmed(body.substr(static_cast<std::size_t>(end - body.data())));
  return number;
}

}  // namespace

Money parse_money(std::string_view text) {
  const auto refuse = [&](const std::string& reason, const std::string& suggestion) -> QuantityError {
    return {'"' + std::string(text) + "\" (" + reason + ")", suggestion};
  };
  std::string_view currency;
  const double amount = leading_number(trimmed(text), currency, refuse);
  if (amount > kMostMoney) throw refuse("above the largest amount, 1e15", "");
  if (currency.empty()) throw refuse("no currency", "");
  const auto capital = [](char c) { return c >= 'A' && c <= 'Z'; };
  if (currency.size() != 3 || !std::all_of(currency.begin(), currency.end(), capital))
    throw refuse("unknown currency " + std::string(currency), "");
  return {amount, std::string(currency)};
}

double parse_percentage(std::string_view text) {
  const auto refuse = [&](const std::string& reason, const std::string& suggestion) -> QuantityError {
    return {'"' + std::string(text) + "\" (" + reason + ")", suggestion};
  };
  std::string_view sign;
  const double number = leading_number(trimmed(text), sign, refuse);
  if (sign != "%") throw refuse(sign.empty() ? "a string, not a number" : "no percentage", "");
  return number / 100;  // the division rounds only once
}

const char* to_string(Quantity quantity) {
  switch (quantity) {
    case Quantity::rate:
      return "a data rate";
    case Quantity::duration:
      return "a time";
    case Quantity::size:
      return "a size";
    case Quantity::flop_rate:
      return "a FLOP rate";
    case Quantity::power:
      return "a power";
  }
  return "";
}

const char* known_units(Quantity quantity) {
  switch (quantity) {
    case Quantity::rate:
      return "bits as bps kbps Mbps Gbps Tbps, bytes as Bps kBps MBps GBps or KiBps MiBps GiBps";
    case Quantity::duration:
      return "ns us ms s min h d";
    case Quantity::size:
      return "B kB MB GB TB or KiB MiB GiB TiB";
    case Quantity::flop_rate:
      return "MFLOPS GFLOPS TFLOPS PFLOPS";
    case Quantity::power:
      return "W kW MW";
  }
  return "";
}

std::vector<std::string> unit_names(Quantity quantity) {
  std::vector<std::string> names;
  for (const Unit& unit : units()) {
    if (unit.quantity == quantity) names.push_back(unit.name);
  }
  return names;
}

double parse_quantity(std::string_view text, Quantity quantity) {
  const std::string quoted = '"' + std::string(text) + '"';
  const auto refuse = [&](const std::string& reason, const std::string& suggestion = "") -> QuantityError {
    return {quoted + " (" + reason + ")", suggestion};
  };
  const std::string_view body = trimmed(text);
  std::string_view unit_text;
  const double number = leading_number(body, unit_text, refuse);
  if (unit_text.empty()) throw refuse("no unit");
  std::vector<std::string> names;
  for (const Unit& unit : units()) {
    if (unit.quantity == quantity) names.push_back(unit.name);
    if (unit.name != unit_text) continue;
    if (unit.quantity != quantity) throw refuse(to_string(unit.quantity));
    const double value = number * unit.factor / unit.divisor;
    if (!std::isfinite(value)) throw refuse("a number that is too large or too small");
    const Limits limits = limits_of(quantity);
    if (value > limits.most) throw refuse(std::string("above the largest value, ") + limits.most_text);
    if (value > 0 && value < limits.least)
      throw refuse(std::string("below the smallest value, ") + limits.least_text);
    return value;
  }
  // The unit is wrong only in upper and lower case. The message offers all units that may be meant, because b
  // (bit) and B (byte) differ by a factor of 8.
  const std::string number_text(trimmed(body.substr(0, body.size() - unit_text.size())));
  std::string meant;
  for (const std::string& name : names) {
    if (!equal_but_for_case(name, unit_text)) continue;
    meant.append(meant.empty() ? "\"" : " or \"").append(number_text).append(name + '"');
  }
  const std::string near = nearest(unit_text, names);
  if (meant.empty() && !near.empty()) meant = '"' + number_text + near + '"';
  throw refuse("unknown unit " + std::string(unit_text), meant);
}

}  // namespace fomoe::scenario
