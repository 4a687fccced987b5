// The tables of all keys of scenarios, platform files, price files and grid files. Parsing, error messages
// and `fomoe list keys` all read these tables, so none of them can become outdated.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "experiments/text/units.hpp"

namespace fomoe::costmodel {
struct Scenario;
enum class Resolving;
}  // namespace fomoe::costmodel

namespace fomoe::scenario {

struct TrainerSettings;

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
struct KeyMember {
  /// Sets what the reader sets for this value, in SI units; a flag is 0 or 1, and a choice the index of its
  /// name. Returns false if a sweep needs the reader: other parts of the scenario depend on the key, or the
  /// reader may refuse the value.
  bool (*set)(costmodel::Scenario& scenario, double value) = nullptr;
  /// For the scenario in JSON; none: not written, or written with other keys.
  MemberValue (*get)(const costmodel::Scenario& scenario) = nullptr;
  std::vector<std::string> (*names)() = nullptr;                           // the valid values of a choice
  void (*set_trainer)(TrainerSettings& settings, double value) = nullptr;  // for a key of [trainer]
  /// Whether rules join the key with others, so that a function in sections/ reads it.
  bool has_rules = false;
  /// The value with which a sweep reads the scenario before it sets others, because `set` changes what other
  /// keys have given: the factor 1. Empty: any.
  std::string_view neutral = {};
};

/// The name of a key and of its table: "" for the top level, "strategy.compression" for a nested table.
struct KeyName {
  std::string_view table, name;
  constexpr KeyName(const char* dotted_name) {  // NOLINT(google-explicit-constructor)
    const std::string_view full = dotted_name;
    const std::size_t dot = full.rfind('.');
    table = dot == full.npos ? "" : full.substr(0, dot);
    name = full.substr(dot + 1);
  }
};

/// A kind with its bounds.
struct Values {
  Kind kind;
  double max;  // for counts, factors and sizes; above the default a double cannot hold every whole number
  double min;  // for counts and sizes; for a share 0 if it may be 0
  // NOLINTNEXTLINE(google-explicit-constructor)
  constexpr Values(Kind of, double most = 9e15, double least = 1) : kind(of), max(most), min(least) {}
  [[nodiscard]] constexpr bool bounded_size() const { return kind == Kind::size && max < 9e15; }
};
/// A packet of IP (RFC 791: at most 65,535 bytes, and every host takes 576).
inline constexpr Values kPacketSize(Kind::size, 65535, 576);

/// One row for each key. What reads, sweeps, writes and explains keys follows from it.
struct Key : KeyName, Values {
  /// Default as a TOML value; empty: the key is required, or `absent` describes its absence.
  std::string_view fallback;
  std::string_view absent;  // meaning of an absent key, in words, if no single value expresses it
  std::string_view sentence;
  std::string_view example;         // a valid TOML value
  KeyMember member = {};            // none: only a function in sections/ knows the key
  costmodel::Resolving stage = {};  // for a number with a member: the first stage of resolve() that reads it
  std::string_view json = {};       // name in the scenario's JSON if it is another one, because of the unit
};

/// The keys in the order of the scenario file.
std::span<const Key> scenario_keys();
/// The keys of a [[site]]: its own ones, and those of [compute] that describe GPUs and step times.
const std::vector<Key>& own_site_keys();
std::span<const Key> platform_file_keys();
std::span<const Key> price_file_keys();
/// The keys of the file that `fomoe-train grid` reads.
std::span<const Key> grid_file_keys();

/// Returns the key of a scenario with this dotted name, or nullptr. site.NAME.KEY is a key of the [[site]] of
/// that name, and path.FROM.TO.KEY one of the [[path]] between two sites.
const Key* find_key(std::string_view dotted_name);

/// An element of [[site]] or [[path]] that a dotted name means: its table, the keys that select it with their
/// values, and the key's name. The table is empty for other names.
struct ElementKey {
  std::string table;
  std::vector<std::pair<std::string, std::string>> selects;
  std::string name;
};
ElementKey element_key(const std::string& dotted_name);

/// Returns whether any key belongs to the table.
bool is_table(std::span<const Key> keys, std::string_view name);

/// The table and the name of a dotted key of a scenario: "strategy" and "local_steps", or
/// "strategy.compression" and "kept_share". The table of a key without a dot is empty.
std::pair<std::string, std::string> table_and_name(const std::string& key);

/// The quantity of values with a unit; empty for other kinds.
std::optional<Quantity> quantity_of(Kind kind);

/// Describes the valid values in words: "a whole number of at least 1", "one of "ring", "direct"".
std::string expected_value(const Key& key);

/// "strategy.local_steps".
std::string dotted(std::string_view table, std::string_view name);
inline std::string dotted(const KeyName& key) { return dotted(key.table, key.name); }
/// "local_steps = 32".
std::string example_line(const Key& key);

}  // namespace fomoe::scenario
