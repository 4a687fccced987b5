// The tables of all keys of scenarios, platform files, price files and grid files. Parsing, error messages
// and `fomoe list keys` all read these tables, so none of them can become outdated.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace fomoe::costmodel {
struct Scenario;
enum class Resolving;
}  // namespace fomoe::costmodel

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

/// A value as the scenario's JSON has it; empty if the scenario does not give it.
using MemberValue = std::variant<std::monostate, bool, std::int64_t, double, std::string>;

/// What a key sets in a scenario. members.hpp makes it for a member of a table's struct.
struct ScenarioMember {
  /// Sets what the reader sets for this value, in SI units; a flag is 0 or 1, and a choice the index of its
  /// name. Returns false if a sweep needs the reader: other parts of the scenario depend on the key, or the
  /// reader may refuse the value.
  bool (*set)(costmodel::Scenario& scenario, double value) = nullptr;
  /// For the scenario in JSON; none: not written, or written with other keys.
  MemberValue (*get)(const costmodel::Scenario& scenario) = nullptr;
  std::vector<std::string> (*names)() = nullptr;  // the valid values of a choice
  /// Whether rules join the key with others, so that a function in sections/ reads it.
  bool has_rules = false;
  /// The value with which a sweep reads the scenario before it sets others, because `set` changes what other
  /// keys have given: the factor 1. Empty: any.
  std::string_view neutral = {};
};

/// A kind with its bounds.
struct Values {
  Kind kind;
  double max = 9e15;  // for counts and factors; above the default a double cannot hold every whole number
  double min = 1;     // for counts
  constexpr Values(Kind of, double most = 9e15, double least = 1) : kind(of), max(most), min(least) {}
};

/// One row for each key. What reads, sweeps, writes and explains keys follows from it.
struct Key : Values {
  std::string_view table = {};  // "" for the top level; "strategy.compression" for a nested table
  std::string_view name;
  /// Default as a TOML value; empty: the key is required, or `absent` describes its absence.
  std::string_view fallback;
  std::string_view absent;  // meaning of an absent key, in words, if no single value expresses it
  std::string_view sentence;
  std::string_view example;         // a valid TOML value
  costmodel::Resolving stage = {};  // the first stage of resolve() that reads the key
  ScenarioMember member;
  std::string_view json;  // name in the scenario's JSON, with the SI unit

  constexpr Key(std::string_view name_of, Values values, std::string_view fallback_of,
                std::string_view absent_of, std::string_view sentence_of, std::string_view example_of,
                costmodel::Resolving stage_of, ScenarioMember member_of, std::string_view json_of = "")
      : Values(values),
        name(name_of),
        fallback(fallback_of),
        absent(absent_of),
        sentence(sentence_of),
        example(example_of),
        stage(stage_of),
        member(member_of),
        json(json_of.empty() ? name_of : json_of) {}
  /// A key whose value no sweep sets: it has words, or changes what the closed form cannot set.
  constexpr Key(std::string_view name_of, Values values, std::string_view fallback_of,
                std::string_view absent_of, std::string_view sentence_of, std::string_view example_of,
                ScenarioMember member_of = {})
      : Key(name_of, values, fallback_of, absent_of, sentence_of, example_of, {}, member_of) {}
  /// A key of another table than that of its file.
  constexpr Key(std::string_view table_of, std::string_view name_of, Values values,
                std::string_view fallback_of, std::string_view absent_of, std::string_view sentence_of,
                std::string_view example_of, costmodel::Resolving stage_of = {},
                ScenarioMember member_of = {})
      : Key(name_of, values, fallback_of, absent_of, sentence_of, example_of, stage_of, member_of) {
    table = table_of;
  }
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

/// Describes the valid values in words: "a whole number of at least 1", "one of "ring", "direct"".
std::string expected_value(const Key& key);

/// "[strategy] local_steps", "local_steps = 32".
std::string dotted(std::string_view table, std::string_view name);
std::string example_line(const Key& key);

}  // namespace fomoe::scenario
