#include "experiments/sweep/axis.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "experiments/scenario/scenario_reader.hpp"
#include "experiments/scenario/single_key.hpp"
#include "experiments/text/split.hpp"
#include "experiments/text/units.hpp"
#include "platforms/support/input_error.hpp"
#include "platforms/support/parse_number.hpp"

namespace fomoe::sweep {

namespace {

using scenario::Kind;

constexpr double kMostValues = 1e7;
constexpr double kMostCombinations = 1e12;  // of all shards

[[noreturn]] void refuse(const std::string& text, const std::string& got, const std::string& expected) {
  throw UsageError(
      fmt::format("--vary {}: got {}; expected {}; for example --vary strategy.local_steps=16,32,64 "
                  "or --vary platform.bandwidth=100Mbps..100Gbps*4/decade",
                  text, got, expected));
}

scenario::SingleKey read(const std::string& key, const std::string& value) {
  try {
    return scenario::read_single_key(key + '=' + value);
  } catch (const FileError& error) {
    std::string message = error.what();
    for (std::size_t at = message.find("--set "); at != std::string::npos;
         at = message.find("--set ", at + 1))
      message.replace(at, 6, "--vary ");
    throw FileError(message);
  }
}

double plain_number(const std::string& text, const std::string& part, const char* what) {
  const bool percent = scenario::is_percentage(part);
  const auto number = parse_number<double>(std::string_view(part).substr(0, part.size() - (percent ? 1 : 0)));
  const double value = percent ? number.value_or(0) / 100 : number.value_or(0);
  if (!std::isfinite(value) || value <= 0)
    refuse(text, fmt::format("\"{}\" as the {}", part, what), "a number above zero");
  return value;
}

std::vector<double> geometric(double low, double high, double factor, bool whole) {
  std::vector<double> values;
  // The tolerance of 1e-9 includes hi if hi is on the grid despite rounding.
  const auto count =
      static_cast<std::int64_t>(std::floor(std::log(high / low) / std::log(factor) + 1e-9)) + 1;
  for (std::int64_t i = 0; i < count; ++i) {
    double value = low * std::pow(factor, static_cast<double>(i));
    if (std::abs(value - high) <= 1e-9 * high) value = high;
    if (whole) value = std::round(value);
    if (values.empty() || value > values.back()) values.push_back(value);
  }
  return values;
}

/// Parses the range after "key=": "lo..hi…".
std::vector<double> range(const std::string& text, const scenario::Key& key, const std::string& dotted,
                          const std::string& body) {
  const std::size_t dots = body.find("..");
  std::size_t sign = body.find('*', dots);
  if (sign == std::string::npos) {
    sign = body.rfind('+');
    if (sign != std::string::npos && (sign < dots || body[sign - 1] == 'e' || body[sign - 1] == 'E'))
      sign = std::string::npos;
  }
  const std::string form = "lo..hi+step, lo..hi*factor or lo..hi*n/decade";
  if (sign == std::string::npos) refuse(text, "a range without a step", form);
  const double low = *read(dotted, body.substr(0, dots)).number;
  const double high = *read(dotted, body.substr(dots + 2, sign - dots - 2)).number;
  if (low > high) refuse(text, "a range that ends before it begins", "lo of at most hi");
  const std::string step_text = body.substr(sign + 1);
  const bool whole = key.kind == Kind::count;
  if (body[sign] == '*') {
    const std::size_t slash = step_text.find('/');
    double factor = plain_number(text, step_text.substr(0, slash), "factor");
    if (slash != std::string::npos) {
      if (step_text.substr(slash) != "/decade") refuse(text, step_text.substr(slash), form);
      factor = std::pow(10.0, 1 / factor);
    }
    if (factor <= 1 || low <= 0) refuse(text, "a range that never ends", "a factor above 1, and lo above 0");
    if (std::log(high / low) / std::log(factor) > kMostValues)
      refuse(text, "too many values", fmt::format("at most {:.0f}", kMostValues));
    return geometric(low, high, factor, whole);
  }
  // The step of a range is a value of the same kind as the key. If the kind has no unit, the step may be
  // smaller than the least value of the key.
  const bool plain = scenario::is_plain_number(key.kind);
  const double step = plain ? plain_number(text, step_text, "step") : *read(dotted, step_text).number;
  if (step <= 0 || (whole && step != std::floor(step)))
    refuse(text, fmt::format("\"{}\" as the step", step_text), whole ? "a whole number" : "more than zero");
  if ((high - low) / step > kMostValues)
    refuse(text, "too many values", fmt::format("at most {:.0f}", kMostValues));
  std::vector<double> values;
  const auto count = static_cast<std::int64_t>(std::floor((high - low) / step + 1e-9)) + 1;
  for (std::int64_t i = 0; i < count; ++i) values.push_back(low + step * static_cast<double>(i));
  return values;
}

std::string column_of(const std::string& key, Kind kind) {
  switch (kind) {
    case Kind::rate:
      return key + "_bytes_per_s";
    case Kind::latency:
    case Kind::duration:
      return key + "_s";
    case Kind::flop_rate:  // the key peak_flops already contains the unit
      return key.ends_with("_flops") ? key.substr(0, key.size() - 1) + "_per_s" : key + "_flop_per_s";
    case Kind::size:  // the key bucket_bytes already contains the unit
      return key.ends_with("_bytes") ? key : key + "_bytes";
    case Kind::power:
      return key + "_w";
    default:
      return key;
  }
}

/// Keeps the first of equal values: ranges may have an end in common.
template <class Value>
void without_repetitions(std::vector<Value>& values) {
  std::set<Value> seen;
  std::erase_if(values, [&](const Value& value) { return !seen.insert(value).second; });
}

}  // namespace

std::string Axis::assignment(std::size_t index) const {
  // Without the quotes, TOML would read a word such as "1" as a number.
  if (kind == Kind::text || kind == Kind::choice) return fmt::format("{}='{}'", key, words[index]);
  if (!numeric()) return key + '=' + words[index];
  const double value = numbers[index];
  if (kind == Kind::count) return fmt::format("{}={:.0f}", key, value);
  return fmt::format("{}={}{}", key, value, scenario::si_unit(kind));
}

Axis parse_axis(const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0 || equals + 1 == text.size())
    refuse(text, "no key=values", "a key of the scenario, = and its values");
  Axis axis;
  axis.key = text.substr(0, equals);
  const std::string body = text.substr(equals + 1);
  for (const std::string& part : scenario::split_outside_quotes(body, [](char c) { return c == ','; })) {
    if (part.empty()) refuse(text, "an empty value", "values separated by single commas");
    const std::size_t dots = part.find("..");
    // The kind of the key decides whether ".." means a range, because a path may begin with dots.
    const scenario::SingleKey first =
        read(axis.key, dots == std::string::npos || dots == 0 ? part : part.substr(0, dots));
    axis.kind = first.key->kind;
    if (axis.kind == Kind::money && dots != std::string::npos)
      refuse(text, "a range of prices", "single prices, such as 1USD,2USD");
    if (!scenario::is_number(axis.kind)) {
      axis.words.push_back(dots == std::string::npos ? first.word : read(axis.key, part).word);
    } else if (dots == std::string::npos) {
      axis.numbers.push_back(*first.number);
    } else {
      const std::vector<double> values = range(text, *first.key, axis.key, part);
      axis.numbers.insert(axis.numbers.end(), values.begin(), values.end());
    }
  }
  const auto one_site = [](const std::string& word) { return word.find(',') == std::string::npos; };
  if (axis.key == "platform.use_sites" && axis.words.size() > 1 &&
      std::all_of(axis.words.begin(), axis.words.end(), one_site))
    refuse(
        text, fmt::format("{} sets of one site each", axis.words.size()),
        fmt::format("each set of sites in quotes of its own: --vary 'platform.use_sites=\"{}\"' is one set",
                    body));
  without_repetitions(axis.numbers);
  without_repetitions(axis.words);
  axis.column = column_of(axis.key, axis.kind);
  return axis;
}

Grid::Grid(std::vector<Axis> axes) : axes_(std::move(axes)), strides_(axes_.size()) {
  double rows = 1;
  for (std::size_t a = axes_.size(); a-- > 0;) {
    strides_[a] = rows_;
    rows *= static_cast<double>(axes_[a].size());
    if (rows > kMostCombinations)
      throw UsageError(
          fmt::format("--vary: got more than {:.0e} combinations; expected fewer", kMostCombinations));
    rows_ *= axes_[a].size();
    for (std::size_t b = 0; b < a; ++b) {
      if (axes_[a].key == axes_[b].key)
        refuse(axes_[a].key + "=…", "the same key twice", "each key in only one --vary");
    }
  }
}

std::vector<std::string> Grid::assignments(std::uint64_t row) const {
  std::vector<std::string> list;
  for (std::size_t a = 0; a < axes_.size(); ++a) list.push_back(axes_[a].assignment(digit(row, a)));
  return list;
}

}  // namespace fomoe::sweep
