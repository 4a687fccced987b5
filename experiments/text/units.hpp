// Parses quantities with units; only this file turns "1Gbps" into bytes per second.
#pragma once
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace fomoe::scenario {

enum class Quantity { rate, duration, size, flop_rate, power };

/// The error for an invalid quantity. It contains the text of the quantity with the reason, and a suggestion
/// if the unit is wrong.
class QuantityError : public std::runtime_error {
 public:
  QuantityError(const std::string& got, std::string suggestion)
      : std::runtime_error(got), suggestion_(std::move(suggestion)) {}
  /// A similar text that would be valid; empty if there is none.
  [[nodiscard]] const std::string& suggestion() const { return suggestion_; }

 private:
  std::string suggestion_;
};

/// Parses a quantity and returns its SI value: bytes/s, s, bytes or FLOP/s. Decimal prefixes are powers of
/// 1000; Ki, Mi, Gi and Ti are powers of 1024. A lower-case b is a bit, an upper-case B a byte. Zero is
/// valid. Throws QuantityError for negative and non-finite numbers, for values that no machine has (more than
/// 1e11 s, less than 1 bit/s), for missing and unknown units, and for units of another quantity.
double parse_quantity(std::string_view text, Quantity quantity);

struct Money {
  double amount = 0;
  std::string currency;
};
/// Parses "2.50USD" or "2.50 USD". Throws QuantityError unless the text is a number of at least zero followed
/// by three capital letters.
Money parse_money(std::string_view text);

/// Parses "95%" or "95 %" as 0.95. Throws QuantityError for any other text and for negative numbers.
double parse_percentage(std::string_view text);
inline bool is_percentage(std::string_view text) { return text.ends_with('%'); }

/// "a data rate", "a time", …
const char* to_string(Quantity quantity);
/// The list of valid units in words, for messages.
const char* known_units(Quantity quantity);
/// Every unit that parse_quantity accepts.
std::vector<std::string> unit_names(Quantity quantity);

inline constexpr double kBitsPerByte = 8.0;
constexpr double bits_to_bytes(double bits) { return bits / kBitsPerByte; }
/// Half of a round trip, in seconds. This assumes that both directions take equally long.
constexpr double round_trip_ms_to_one_way_s(double round_trip_ms) { return round_trip_ms / 2.0 / 1e3; }

}  // namespace fomoe::scenario
