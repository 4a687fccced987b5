// The unknown of `fomoe solve`: a key with a numeric value, the domain of its values, and their text form.
#pragma once
#include <string>

#include "costmodel/inputs/scenario.hpp"
#include "experiments/planner/search.hpp"
#include "experiments/scenario/keys/keys.hpp"
#include "experiments/scenario/toml/document.hpp"

namespace fomoe::commands {

/// Values are in SI units, plain numbers, or amounts of money in the key's own currency.
struct Unknown {
  std::string name;  // "platform.bandwidth"
  const scenario::Key* key = nullptr;
  std::string unit;     // the unit that the scenario uses, or else a usual one: "Gbps"; "" for plain numbers
  double factor = 1;    // value of one `unit` in SI units
  std::string si_unit;  // "Bps", or a currency
  planner::Domain domain;

  [[nodiscard]] bool whole() const { return key->kind == scenario::Kind::count; }
  /// The value for people: "2.5Gbps".
  [[nodiscard]] std::string text(double value) const;
  /// The value for --set, with all digits: "platform.bandwidth=312500000Bps".
  [[nodiscard]] std::string assignment(double value) const;
  /// Rounds to four digits, up or down. The caller chooses the direction in which the rounded value still
  /// reaches the target.
  [[nodiscard]] double rounded(double value, bool up) const;
};

/// Throws UsageError if `name` is not a key with a numeric value. `document` is the document that the
/// scenario was read from. Domains are wide: sizes from 1 B to 10 TB, times from 1 µs to 12 days. The domain
/// of bucket_bytes starts where a round is divided into 1024 calls. Smaller buckets would give more calls,
/// and each call is simulated.
Unknown read_unknown(const std::string& name, const costmodel::Scenario& scenario,
                     const scenario::Document& document);

}  // namespace fomoe::commands
