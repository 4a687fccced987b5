// Limits of a text before it is parsed. The parsers of JSON and TOML, and what they make, call themselves for
// each level, so that a text of 100 kB can exhaust the stack. The JSON type that keeps the order of keys
// compares each key of an object with all others.
#pragma once
#include <optional>
#include <string>
#include <string_view>

namespace fomoe::scenario {

inline constexpr int kMostLevels = 200;    // arrays and objects inside each other
inline constexpr int kMostNameParts = 32;  // of a dotted name in TOML

/// What is too much in a text of JSON, such as "more than 200 levels", or a name that an object has twice, of
/// which the parser would drop one in silence; empty if nothing is.
std::string excess_in_json(std::string_view text);
/// The same for JSON types with sorted keys, whose objects may have any number of keys. Names that an object
/// has twice are refused if `names` is set: other programs' logs may have some.
std::string excess_in_sorted_json(std::string_view text, bool names = false);
/// What is too much in a text of TOML, or what toml++ 3.3 does not check although it relies on it: that names
/// and numbers are ASCII, and that a [table] begins with a name. Nothing if the text can be parsed; the
/// parser itself limits arrays and inline tables.
struct Excess {
  std::string what;
  unsigned line = 1;
};
std::optional<Excess> excess_in_toml(std::string_view text);

}  // namespace fomoe::scenario
