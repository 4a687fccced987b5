// How accurate predictions of real runs like a given one were (experiments/validation).
#pragma once
#include <optional>
#include <string>

#include "costmodel/inputs/scenario.hpp"
#include "costmodel/report/run_report.hpp"
#include "experiments/json/json.hpp"

namespace fomoe::commands {

/// Errors of the predicted wall clock of real runs, |predicted ÷ measured − 1|. All these runs were predicted
/// with the same network terms, and have equal or unequal latencies as the scenario does.
struct Accuracy {
  std::string terms;      // "no network terms", "the terms of a Linux host", "…and a fitted payload rate"
  std::string latencies;  // "equal" or "unequal"
  int runs = 0;
  double median = 0, p95 = 0, worst = 0;
};

/// Nothing if no real run was predicted with these network terms.
std::optional<Accuracy> accuracy_of(const costmodel::Scenario& scenario);

/// For people, with the interval in which 95 % of such runs would end.
std::string accuracy_text(const costmodel::RunReport& report, const costmodel::Scenario& scenario);

/// The same as JSON; null if there is none.
scenario::Json accuracy_json(const costmodel::RunReport& report, const costmodel::Scenario& scenario);

}  // namespace fomoe::commands
