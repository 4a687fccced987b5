// Quantities with units: the one place where "1Gbps" becomes bytes per second.
#pragma once
#include <stdexcept>
#include <string>
#include <string_view>

namespace fomoe::scenario {

enum class Quantity { rate, duration, size, flop_rate, power };

/// What was wrong with a quantity: the text as written with the reason, and the unit nearest to a wrong one.
class QuantityError : public std::runtime_error {
 public:
  QuantityError(const std::string& got, std::string suggestion)
      : std::runtime_error(got), suggestion_(std::move(suggestion)) {}
  /// A text that would have been read, or empty.
  [[nodiscard]] const std::string& suggestion() const { return suggestion_; }

 private:
  std::string suggestion_;
};

/// SI value of a quantity: bytes/s, s, bytes or FLOP/s. Decimal prefixes are powers of 1000, Ki Mi Gi Ti of
/// 1024; a small b is a bit, a capital B a byte. Zero is read; negative and non-finite numbers, missing and
/// unknown units and units of another quantity throw QuantityError.
double parse_quantity(std::string_view text, Quantity quantity);

struct Money {
  double amount = 0;
  std::string currency;
};
/// "2.50USD" or "2.50 USD". Throws QuantityError for anything but a number of at least zero and three capital
/// letters.
Money parse_money(std::string_view text);

/// "95%" or "95 %": 0.95. Throws QuantityError for anything else, and below zero.
double parse_percentage(std::string_view text);
inline bool is_percentage(std::string_view text) { return text.ends_with('%'); }

/// "a data rate", "a time", …
const char* to_string(Quantity quantity);
/// The units that are read, in words for messages.
const char* known_units(Quantity quantity);

inline constexpr double kBitsPerByte = 8.0;
constexpr double bits_to_bytes(double bits) { return bits / kBitsPerByte; }
/// Half of a round trip, in seconds: we assume that both directions take equally long.
constexpr double round_trip_ms_to_one_way_s(double round_trip_ms) { return round_trip_ms / 2.0 / 1e3; }

}  // namespace fomoe::scenario
