// The names of enumerations in scenarios and reports. Each enumeration has one table: a function
// enum_names(E) beside it. The functions here write, read and list the names.
#pragma once
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fomoe::costmodel {

template <class E>
struct EnumName {
  E value;
  const char* name;
};

template <class E>
concept NamedEnum = requires(E value) {
  enum_names(value);
};

template <NamedEnum E>
const char* to_string(E value) {
  for (const auto& [known, name] : enum_names(value)) {
    if (known == value) return name;
  }
  std::abort();  // a value without a row in its table
}

/// Returns the value of that name, or nothing if no value has it.
template <NamedEnum E>
std::optional<E> enum_of(std::string_view name) {
  for (const auto& [value, known] : enum_names(E{})) {
    if (name == known) return value;
  }
  return std::nullopt;
}

/// The names in the table's order.
template <NamedEnum E>
std::vector<std::string> all_names() {
  std::vector<std::string> names;
  for (const auto& row : enum_names(E{})) names.emplace_back(row.name);
  return names;
}

}  // namespace fomoe::costmodel
