// The key that `fomoe solve` is asked for: where its values lie, and how the user writes them.
#pragma once
#include <string>

#include "costmodel/inputs/scenario.hpp"
#include "experiments/planner/search.hpp"
#include "experiments/scenario/keys/keys.hpp"
#include "experiments/scenario/toml/document.hpp"

namespace fomoe::commands {

/// Values are in SI units, or plain numbers; money is in its own currency.
struct Unknown {
  std::string name;  // "platform.bandwidth"
  const scenario::Key* key = nullptr;
  std::string unit;     // as the scenario writes it, else a usual one: "Gbps"; "" of plain numbers
  double factor = 1;    // value of one of it
  std::string si_unit;  // "Bps"; a currency
  planner::Domain domain;

  [[nodiscard]] bool whole() const { return key->kind == scenario::Kind::count; }
  /// For people: "2.5Gbps".
  [[nodiscard]] std::string text(double value) const;
  /// For --set, without a digit lost: "platform.bandwidth=312500000Bps".
  [[nodiscard]] std::string assignment(double value) const;
  /// Four digits, up or down: to the side on which the target is reached.
  [[nodiscard]] double rounded(double value, bool up) const;
};

/// Throws UsageError where `name` is no key whose value is a number. `document` is what the scenario was read
/// from. Domains are what anybody could mean: sizes from 1 B to 10 TB, times from 1 µs to 12 days; buckets
/// that cut a round into at most 1024 calls, because each call is simulated.
Unknown read_unknown(const std::string& name, const costmodel::Scenario& scenario,
                     const scenario::Document& document);

}  // namespace fomoe::commands
