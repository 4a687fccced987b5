#include <fmt/format.h>

#include <algorithm>

#include "experiments/scenario/keys/keys.hpp"
#include "experiments/text/suggest.hpp"

namespace fomoe::scenario {

std::optional<Quantity> quantity_of(Kind kind) {
  switch (kind) {
    case Kind::rate:
      return Quantity::rate;
    case Kind::latency:
    case Kind::duration:
      return Quantity::duration;
    case Kind::size:
      return Quantity::size;
    case Kind::flop_rate:
      return Quantity::flop_rate;
    case Kind::power:
      return Quantity::power;
    default:
      return std::nullopt;
  }
}

std::string expected_value(const Key& key) {
  if (key.bounded_size())
    return fmt::format("{} from {:.0f} B to {:.0f} B in quotes, with a unit ({})", to_string(Quantity::size),
                       key.min, key.max, known_units(Quantity::size));
  if (const auto quantity = quantity_of(key.kind))
    return fmt::format("{} {} in quotes, with a unit ({})", to_string(*quantity),
                       key.kind == Kind::latency ? "of zero or more" : "above zero", known_units(*quantity));
  switch (key.kind) {
    case Kind::text:
      return "a string in quotes";
    case Kind::choice:
      return "one of \"" + joined(key.member.names(), "\", \"") + '"';
    case Kind::count:
      return key.max >= 1e12 ? fmt::format("a whole number of at least {:.0f}", key.min)
                             : fmt::format("a whole number from {:.0f} to {:.0f}", key.min, key.max);
    case Kind::boolean:
      return "true or false";
    case Kind::share:
      return fmt::format("a number {} {}, or a percentage", key.min == 0 ? "from 0 to" : "above 0 and up to",
                         std::min(1.0, key.max));
    case Kind::money:
      return "a price of zero or more in quotes, with a currency of three capital letters";
    case Kind::factor:
      return "a number of at least 1";
    case Kind::words:
      return "a list of strings, in brackets";
    case Kind::multiple:
      return fmt::format("a number above 0 and up to {:.0f}", key.max);
    default:
      return "";
  }
}

std::string dotted(std::string_view table, std::string_view name) {
  return table.empty() ? std::string(name) : fmt::format("{}.{}", table, name);
}

std::string example_line(const Key& key) { return fmt::format("{} = {}", key.name, key.example); }

}  // namespace fomoe::scenario
