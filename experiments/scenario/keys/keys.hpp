// One row for every key of a scenario and of a platform file. Parsing, error messages and
// `fomoe list keys` all read this table, so none of them can go stale.
#pragma once
#include <span>
#include <string>
#include <string_view>
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
  std::string_view table;  // "" for the top level; "strategy.compression" for a table in a table
  std::string_view name;
  Kind kind;
  std::string_view fallback;  // TOML value taken when the key is absent; empty: required, or `absent` says
  std::string_view absent;    // what an absent key means, in words, where no single value says it
  std::string_view sentence;
  std::string_view example;  // TOML value that works
  double max = 9e15;         // of counts and factors: beyond it a double no longer holds every whole number
  double min = 1;            // of counts
};

/// In the order of the scenario file.
std::span<const Key> scenario_keys();
std::span<const Key> platform_file_keys();
std::span<const Key> price_file_keys();

/// Whether some row is in that table.
bool is_table(std::span<const Key> keys, std::string_view name);

/// The values that a key of Kind::choice takes.
std::vector<std::string> choices(const Key& key);

/// What a legal value looks like, in words: "a whole number of at least 1", "one of "ring", "direct"".
std::string expected_value(const Key& key);

/// "[strategy] local_steps", "local_steps = 32".
std::string dotted(std::string_view table, std::string_view name);
std::string example_line(const Key& key);

}  // namespace fomoe::scenario
