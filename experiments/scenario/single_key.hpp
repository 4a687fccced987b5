// Reads a single key, checked as in a scenario file, for commands that build scenarios from lists of values.
#pragma once
#include <optional>
#include <string>

#include "experiments/scenario/keys/keys.hpp"

namespace fomoe::scenario {

struct SingleKey {
  const Key* key = nullptr;
  std::optional<double> number;  // in SI units; empty if the value is a word
  std::string word;              // the word as TOML would contain it, if the value is not a number
};

/// Parses an assignment such as "strategy.local_steps=64". Throws FileError; its message begins with "--set "
/// and the assignment.
SingleKey read_single_key(const std::string& assignment);

/// Whether values of this kind are numbers. An amount of money is not, because it has a currency.
bool is_number(Kind kind);
/// Whether values of this kind are numbers without a unit.
bool is_plain_number(Kind kind);
/// The SI unit in the text form of values of this kind: "Bps", "s", "B", …, or "" if they have no unit.
const char* si_unit(Kind kind);

}  // namespace fomoe::scenario
