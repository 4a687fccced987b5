#include <fmt/format.h>

#include <algorithm>

#include "experiments/scenario/keys/keys.hpp"
#include "experiments/text/suggest.hpp"
#include "experiments/text/units.hpp"

namespace fomoe::scenario {

std::string expected_value(const Key& key) {
  const auto positive = [](const char* what, Quantity quantity) {
    return fmt::format("{} above zero in quotes, with a unit ({})", what, known_units(quantity));
  };
  switch (key.kind) {
    case Kind::text:
      return "a string in quotes";
    case Kind::choice:
      return "one of \"" + joined(key.member.names(), "\", \"") + '"';
    case Kind::count:
      if (key.max == 0) return "0, which is the only available value";
      return key.max >= 1e12 ? fmt::format("a whole number of at least {:.0f}", key.min)
                             : fmt::format("a whole number from {:.0f} to {:.0f}", key.min, key.max);
    case Kind::boolean:
      return "true or false";
    case Kind::rate:
      return positive("a data rate", Quantity::rate);
    case Kind::latency:
      return fmt::format("a time of zero or more in quotes, with a unit ({})",
                         known_units(Quantity::duration));
    case Kind::duration:
      return positive("a time", Quantity::duration);
    case Kind::size:
      return positive("a size", Quantity::size);
    case Kind::flop_rate:
      return positive("a FLOP rate", Quantity::flop_rate);
    case Kind::share:
      return fmt::format("a number above 0 and up to {}, or a percentage", std::min(1.0, key.max));
    case Kind::power:
      return positive("a power", Quantity::power);
    case Kind::money:
      return "a price of zero or more in quotes, with a currency of three capital letters";
    case Kind::factor:
      return "a number of at least 1";
    case Kind::words:
      return "a list of strings, in brackets";
    case Kind::multiple:
      return fmt::format("a number above 0 and up to {:.0f}", key.max);
  }
  return "";
}

std::string dotted(std::string_view table, std::string_view name) {
  return table.empty() ? std::string(name) : fmt::format("{}.{}", table, name);
}

std::string example_line(const Key& key) { return fmt::format("{} = {}", key.name, key.example); }

}  // namespace fomoe::scenario
