// Finds all mistakes in a scenario that concern a single key, so that a user sees them at once.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "experiments/scenario/toml/document.hpp"

namespace fomoe::scenario {

/// Collects the messages of mistakes. The program prints them together, one in each line, in the order of the
/// lines of the file; overrides come first.
class Mistakes {
 public:
  /// Calls `read`. Returns whether it threw no FileError; a FileError's message is kept.
  bool collect(const std::function<void()>& read);
  /// Throws a FileError with all messages if there is any.
  void throw_if_any() const;

 private:
  std::vector<std::string> messages_;
};

/// Checks the name and the value of every key that the scenario has, as if it were the only one.
/// Checks the keys of one table.
void check_keys_of(const Document& document, std::string_view table, Mistakes& mistakes);
void check_every_key(const Document& document, Mistakes& mistakes);

}  // namespace fomoe::scenario
