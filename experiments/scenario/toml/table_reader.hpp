// Strict reading of one table: unknown keys are refused when it is made, and every value is checked against
// the key's row.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/scenario/keys/keys.hpp"
#include "experiments/scenario/toml/document.hpp"
#include "experiments/text/units.hpp"

namespace fomoe::scenario {

class TableReader {
 public:
  /// `table` may be absent: then every key is. `name` is "" for the top level, whose sub-tables are not keys.
  TableReader(const Document& document, std::span<const Key> keys, std::string_view name,
              const toml::table* table);

  [[nodiscard]] bool has(std::string_view name) const { return node(name) != nullptr; }

  // The value, or the row's fallback; fails where the key is absent and the row has none.
  [[nodiscard]] std::int64_t count(std::string_view name) const;
  /// Counts that are plain int in a Scenario; their rows bound them.
  [[nodiscard]] int small_count(std::string_view name) const { return static_cast<int>(count(name)); }
  [[nodiscard]] double quantity(std::string_view name) const;  // SI units
  [[nodiscard]] double share(std::string_view name) const;   // (0, 1], or to the row's max where that is less
  [[nodiscard]] double factor(std::string_view name) const;  // at least 1
  [[nodiscard]] Money money(std::string_view name) const;
  [[nodiscard]] double multiple(std::string_view name) const;  // (0, the row's max]
  [[nodiscard]] bool boolean(std::string_view name) const;
  [[nodiscard]] std::string text(std::string_view name) const;                // also of Kind::choice
  [[nodiscard]] std::vector<std::string> words(std::string_view name) const;  // empty where it is absent
  /// "a, b" or ["a", "b"].
  [[nodiscard]] std::vector<std::string> list(std::string_view name) const;

  [[nodiscard]] std::string place(std::string_view name) const;
  /// Fails at the key: "got … as written; expected …".
  [[noreturn]] void refuse(std::string_view name, const std::string& expected) const;
  [[noreturn]] void refuse(std::string_view name, const std::string& got, const std::string& expected,
                           const std::string& suggestion = "") const;

 private:
  [[nodiscard]] double number_up_to(std::string_view name, double most) const;
  [[nodiscard]] const Key& row(std::string_view name) const;
  [[nodiscard]] const toml::node* node(std::string_view name) const;
  [[nodiscard]] std::string example(const Key& key) const;
  void refuse_unknown_keys() const;
  /// The value where it is written, else the fallback parsed; both as TOML.
  [[nodiscard]] const toml::node* value(std::string_view name, toml::table& fallback) const;

  const Document& document_;
  std::span<const Key> keys_;
  std::string_view name_;
  const toml::table* table_;
};

/// Refuses tables that no row names; `arrays` are those written as [[name]].
void refuse_unknown_tables(const Document& document, std::span<const Key> keys,
                           const std::vector<std::string>& arrays);

/// The table of that name, or nullptr.
const toml::table* find_table(const Document& document, std::string_view name);
/// The tables of a [[name]] array; refuse_unknown_tables has checked that it is one.
std::vector<const toml::table*> find_tables(const Document& document, std::string_view name);

}  // namespace fomoe::scenario
