// Reads one table strictly. The constructor refuses unknown keys, and every value is checked against the
// key's row in keys.hpp.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/scenario/keys/keys.hpp"
#include "experiments/scenario/toml/document.hpp"

namespace fomoe::scenario {

class TableReader {
 public:
  /// If `table` is null, all keys are absent. `name` is "" for the top level, whose sub-tables do not count
  /// as keys.
  /// `known`: refuse_unknown_keys() was called before.
  TableReader(const Document& document, std::span<const Key> keys, std::string_view name,
              const toml::table* table, bool known = false);

  [[nodiscard]] bool has(std::string_view name) const { return node(name) != nullptr; }

  // Each of these functions returns the value of the key. If the key is absent, the function returns the
  // default in the key's row of keys.hpp, and throws if the row has no default.
  [[nodiscard]] std::int64_t count(std::string_view name) const;
  /// A count that a Scenario stores as an int. The bounds in the key's row ensure that the count fits an int.
  [[nodiscard]] int small_count(std::string_view name) const { return static_cast<int>(count(name)); }
  [[nodiscard]] double quantity(std::string_view name) const;  // in SI units
  [[nodiscard]] Money money(std::string_view name) const;
  [[nodiscard]] bool boolean(std::string_view name) const;
  /// A number of any kind in SI units, a flag as 0 or 1, a choice as the index of its name.
  [[nodiscard]] double number(std::string_view name) const;
  [[nodiscard]] std::string text(std::string_view name) const;                // also for Kind::choice
  [[nodiscard]] std::vector<std::string> words(std::string_view name) const;  // empty if the key is absent
  /// A list of names, written "a, b" or ["a", "b"].
  [[nodiscard]] std::vector<std::string> list(std::string_view name) const;

  /// The path of the file that the key names, relative to the scenario's folder. Refuses a path at which
  /// there is no file, or no folder if `folder` is set.
  [[nodiscard]] std::string file(std::string_view name, bool folder = false) const;

  /// Sets the members of the scenario whose keys no rule joins with others: to the value in the table, or to
  /// the default. Without `defaults`, absent keys leave their members as they are. Throws if a required key
  /// is absent.
  void set_members(costmodel::Scenario& scenario, bool defaults = true) const;
  void set_members(TrainerSettings& settings) const;

  /// Refuses `key` if the table has it without `owner`.
  void only_together(std::string_view key, std::string_view owner) const;
  /// Refuses `key` if the table has both keys.
  void only_one_of(std::string_view key, std::string_view other) const;

  [[nodiscard]] std::string place(std::string_view name) const;
  /// Throws the error "got … as written; expected …" at the key.
  [[noreturn]] void refuse(std::string_view name, const std::string& expected) const;
  [[noreturn]] void refuse(std::string_view name, const std::string& got, const std::string& expected,
                           const std::string& suggestion = "") const;
  /// The same, with a value that is right in this scenario as the example; as TOML.
  [[noreturn]] void refuse_for_example(std::string_view name, const std::string& got,
                                       const std::string& expected, const std::string& example,
                                       const std::string& suggestion = "") const;

 private:
  /// Whether set_members() sets the member of a key.
  [[nodiscard]] bool sets(const Key& key, bool defaults) const;
  /// A number above 0 and at most `most`, or a percentage.
  [[nodiscard]] double number_up_to(std::string_view name, double most) const;
  [[nodiscard]] double factor(std::string_view name) const;  // at least 1
  [[nodiscard]] const Key& row(std::string_view name) const;
  [[nodiscard]] const toml::node* node(std::string_view name) const;
  [[nodiscard]] std::string example(const Key& key) const;
  /// The TOML node of the value in the file. If the key is absent, the default is parsed into `fallback`, and
  /// its node is returned.
  [[nodiscard]] const toml::node* value(std::string_view name, toml::table& fallback) const;

  const Document& document_;
  std::span<const Key> keys_;
  std::string_view name_;
  const toml::table* table_;
};

/// Refuses the keys of a table that no row names, all of them with one message each.
void refuse_unknown_keys(const Document& document, std::span<const Key> keys, std::string_view table_name,
                         const toml::table& table);

/// Refuses tables that no row names. `arrays` are the tables that are written as [[name]].
void refuse_unknown_tables(const Document& document, std::span<const Key> keys,
                           const std::vector<std::string>& arrays);

}  // namespace fomoe::scenario
