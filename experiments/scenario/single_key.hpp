// One key by itself, checked as in a scenario file: for commands that make scenarios from lists of values.
#pragma once
#include <optional>
#include <string>

#include "experiments/scenario/keys/keys.hpp"

namespace fomoe::scenario {

struct SingleKey {
  const Key* key = nullptr;
  std::optional<double> number;  // SI; none for words
  std::string word;              // otherwise, as TOML would say it
};

/// "strategy.local_steps=64". Throws FileError, which begins with "--set " and the assignment.
SingleKey read_single_key(const std::string& assignment);

/// Whether values of this kind are numbers (money is not: it has a currency), numbers that have no unit, and
/// the SI unit in which a text says them: "Bps", "s", "B", …, or "".
bool is_number(Kind kind);
bool is_plain_number(Kind kind);
const char* si_unit(Kind kind);

}  // namespace fomoe::scenario
