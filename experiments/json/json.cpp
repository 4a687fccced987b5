#include "experiments/json/json.hpp"

#include <cmath>
#include <stdexcept>
#include <string_view>

#include "platforms/support/input_error.hpp"

template class nlohmann::basic_json<nlohmann::ordered_map>;

namespace fomoe::scenario {
namespace {

constexpr double kRounding_s = 1e-6;

/// Whether a key is a time, which cannot be below zero.
bool is_time(std::string_view key) { return key.ends_with("_s") && !key.ends_with("_per_s"); }

/// Throws if a number cannot be what it is called: JSON would write one that is not finite as null, and a
/// time in seconds (…_s) below zero is none.
void check_numbers(const Json& value, const std::string& where, bool time) {
  if (value.is_object()) {
    for (const auto& item : value.items())
      check_numbers(item.value(), where.empty() ? item.key() : where + '.' + item.key(),
                    time || is_time(item.key()));
  } else if (value.is_array()) {
    for (const Json& entry : value) check_numbers(entry, where, time);
  } else if (value.is_number_float() && !std::isfinite(value.get<double>())) {
    throw InputError(where, std::to_string(value.get<double>()) + " as the result",
                     "inputs whose results are finite numbers; one of them is too small or too large",
                     "the values of experiments/scenarios/two-sites.toml");
  } else if (time && value.is_number() && value.get<double>() < -kRounding_s) {
    throw std::logic_error(where + " is " + value.dump() + " s, which cannot be: this is a mistake in fomoe");
  }
}

}  // namespace

std::string to_text(const Json& document) {
  check_numbers(document, "", false);
  return document.dump(2, ' ', false, Json::error_handler_t::replace) + '\n';
}

}  // namespace fomoe::scenario
