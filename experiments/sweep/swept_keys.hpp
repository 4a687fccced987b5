// The keys of a scenario whose value a sweep sets in the Scenario itself, instead of reading the file again.
#pragma once
#include <span>
#include <string_view>

#include "costmodel/formula/resolved.hpp"
#include "costmodel/inputs/scenario.hpp"

namespace fomoe::sweep {

struct SweptKey {
  std::string_view key;        // "strategy.local_steps"
  costmodel::Resolving stage;  // the first stage that reads it
  /// Sets what the reader sets for this value, in SI units. Returns false if this needs the reader: other
  /// parts of the scenario depend on the key, or the reader may refuse the value.
  bool (*set)(costmodel::Scenario& scenario, double value);
  /// The value that the scenario must be read with before the others are set, because `set` changes what
  /// other keys have given: the factor 1. Empty: any.
  std::string_view neutral = {};
};

/// In the order in which they must be set: a key comes after those whose value it overrides or scales.
std::span<const SweptKey> swept_keys();

}  // namespace fomoe::sweep
