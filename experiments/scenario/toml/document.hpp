// A TOML or JSON file to which overrides are applied. The class knows the place of every key in the file.
#pragma once
#include <toml++/toml.h>

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/scenario/keys/keys.hpp"

namespace fomoe::scenario {

class Document {
 public:
  /// Reads a file, or standard input if the path is "-". A text that begins with { is JSON, any other text is
  /// TOML. Throws FileError if the file cannot be read or is not valid, for example because of duplicate
  /// keys.
  static Document read(const std::string& path, const std::string& what, const std::string& example_path);

  /// Applies an assignment such as "strategy.local_steps=64". The value is a TOML number, boolean, quoted
  /// string or array. A word without quotes is a string. "site.NAME.KEY" and "path.FROM.TO.KEY" are keys of
  /// the
  /// [[site]] or [[path]] of that name, which is added if there is none. "!strategy.local_steps" removes the
  /// key instead; throws FileError if there is none.
  void override_key(const std::string& assignment);
  [[nodiscard]] bool overridden(const std::string& key) const { return overrides_.contains(key); }
  /// A copy in whose table `name` the keys of `other`, a table of this document, replace those of the same
  /// name. They count as chosen.
  [[nodiscard]] Document with_keys_of(const std::string& name, const toml::table& other) const;
  /// Whether an override, or with_keys_of(), set the key.
  [[nodiscard]] bool chosen(const std::string& key) const { return chosen_.contains(key); }
  /// Removes a key of the file, because an override sets an alternative to this key.
  void displace(std::string_view table, std::string_view name);
  /// The value, as TOML text, of a key that was displaced; empty: it was not.
  [[nodiscard]] std::string displaced(const std::string& key) const;

  [[nodiscard]] const toml::table& root() const { return root_; }
  [[nodiscard]] const std::string& path() const { return path_; }
  /// Resolves the path `name` relative to this file's folder. Throws FileError if a pipe, a device or a
  /// socket has this path: files that a scenario names are regular.
  [[nodiscard]] std::string beside(const std::string& name) const;

  /// The place of a node: "--set key=value" for an override, otherwise "file:line". If `node` is null, the
  /// place is the line of the table. If `table` is null too, the place is line 1.
  [[nodiscard]] std::string place(const std::string& key, const toml::node* node,
                                  const toml::node* table) const;
  /// The place of the dotted key.
  [[nodiscard]] std::string place(const std::string& key) const;

 private:
  /// The table of [[site]] or [[path]] that an override means; added if there is none.
  toml::table& element_table(const ElementKey& element);
  /// Sets a key of a table to what an override has as its value.
  void put(toml::table& table, const std::string& name, const std::string& text, const std::string& place,
           const std::string& key);
  void unset(const std::string& key);

  std::string path_;
  toml::table root_;
  std::map<std::string, std::string> overrides_;  // key: dotted key; value: the assignment as typed
  std::set<std::string> chosen_;
  std::map<std::string, std::string> displaced_;  // by dotted key
  /// Line of each dotted key, if the file is JSON; and of keys whose nodes were copied, since a copy does not
  /// know its line.
  std::map<std::string, unsigned> lines_;
};

/// The form of every error message: "place: key: got …; expected …; for example …; did you mean …?".
[[noreturn]] void fail(const std::string& place, const std::string& key, const std::string& got,
                       const std::string& expected, const std::string& example,
                       const std::string& suggestion = "");

/// Returns the table of that name, or nullptr.
const toml::table* find_table(const Document& document, std::string_view name);
/// The tables of a [[name]] array. Values that are no tables are left out, which
/// refuse_unknown_tables() refuses.
std::vector<const toml::table*> find_tables(const Document& document, std::string_view name);

/// A text for a message: its first 200 characters, with "…" if it is longer.
std::string shortened(const std::string& text);

/// A value as TOML text: "ring" with quotes, 3, true, an array, …
std::string as_written(const toml::node& node);

}  // namespace fomoe::scenario
