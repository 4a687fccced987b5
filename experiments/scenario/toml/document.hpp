// A TOML file with its overrides applied, and the place of every key in it.
#pragma once
#include <toml++/toml.h>

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace fomoe::scenario {

class Document {
 public:
  /// Throws FileError where the file cannot be read or is not TOML. Duplicate keys are not TOML.
  static Document read(const std::string& path, const std::string& what, const std::string& example_path);

  /// "strategy.local_steps=64". The value is a TOML number, boolean, quoted string or array; a bare word is a
  /// string.
  void override_key(const std::string& assignment);
  [[nodiscard]] bool overridden(const std::string& key) const { return overrides_.contains(key); }
  /// Removes a key of the file that an override replaces by an alternative.
  void displace(std::string_view table, std::string_view name);

  [[nodiscard]] const toml::table& root() const { return root_; }
  [[nodiscard]] const std::string& path() const { return path_; }
  /// `name` seen from this file's folder.
  [[nodiscard]] std::string beside(const std::string& name) const;

  /// "--set key=value", or "file:line" of the node, of its table where there is no node, of line 1 without
  /// either.
  [[nodiscard]] std::string place(const std::string& key, const toml::node* node,
                                  const toml::node* table) const;
  /// The same, found by the dotted key.
  [[nodiscard]] std::string place(const std::string& key) const;

 private:
  std::string path_;
  toml::table root_;
  std::map<std::string, std::string> overrides_;  // dotted key → the assignment as typed
};

/// The message of every mistake: "place: key: got …; expected …; for example …; did you mean …?".
[[noreturn]] void fail(const std::string& place, const std::string& key, const std::string& got,
                       const std::string& expected, const std::string& example,
                       const std::string& suggestion = "");

/// A value as it would be written in TOML: "ring" with quotes, 3, true, an array, …
std::string as_written(const toml::node& node);

}  // namespace fomoe::scenario
