// The tables of all keys of scenarios, platform files, price files and grid files. Parsing, error messages
// and `fomoe list keys` all read these tables, so none of them can become outdated.
#pragma once
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace fomoe::scenario {

enum class Kind {
  text,
  choice,
  count,
  boolean,
  rate,
  latency,
  duration,
  flop_rate,
  share,
  size,
  power,
  money,
  factor,
  multiple,
  words
};

struct Key {
  std::string_view table;  // "" for the top level; "strategy.compression" for a nested table
  std::string_view name;
  Kind kind;
  /// Default as a TOML value; empty: the key is required, or `absent` describes its absence.
  std::string_view fallback;
  std::string_view absent;  // meaning of an absent key, in words, if no single value expresses it
  std::string_view sentence;
  std::string_view example;  // a valid TOML value
  double max = 9e15;  // for counts and factors; above the default a double cannot hold every whole number
  double min = 1;     // for counts
};

/// The keys in the order of the scenario file.
std::span<const Key> scenario_keys();
std::span<const Key> platform_file_keys();
std::span<const Key> price_file_keys();
/// The keys of the file that `fomoe-train grid` reads.
std::span<const Key> grid_file_keys();

/// Returns whether any key belongs to the table.
bool is_table(std::span<const Key> keys, std::string_view name);

/// The table and the name of a dotted key of a scenario: "strategy" and "local_steps", or
/// "strategy.compression" and "kept_share". The table of a key without a dot is empty.
std::pair<std::string, std::string> table_and_name(const std::string& key);

/// The valid values of a key of Kind::choice.
std::vector<std::string> choices(const Key& key);

/// Describes the valid values in words: "a whole number of at least 1", "one of "ring", "direct"".
std::string expected_value(const Key& key);

/// "[strategy] local_steps", "local_steps = 32".
std::string dotted(std::string_view table, std::string_view name);
std::string example_line(const Key& key);

}  // namespace fomoe::scenario
