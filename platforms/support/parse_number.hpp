// Numbers that users, files and environment variables state as text.
#pragma once
#include <charconv>
#include <optional>
#include <string_view>
#include <system_error>

namespace fomoe {

/// The number at the start of the text, as std::from_chars reads it: in the form of the locale "C", without
/// white space or a plus sign before it. Empty if there is none, or if the type cannot hold it.
template <typename Number>
[[nodiscard]] std::optional<Number> parse_leading_number(std::string_view text) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} ? std::optional(value) : std::nullopt;
}

/// The number that the whole text is, otherwise as parse_leading_number(). It may be infinite, or not a
/// number ("nan"), if the type can be.
template <typename Number>
[[nodiscard]] std::optional<Number> parse_number(std::string_view text) {
  Number value{};
  const char* const last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, value);
  return error == std::errc{} && end == last ? std::optional(value) : std::nullopt;
}

}  // namespace fomoe
