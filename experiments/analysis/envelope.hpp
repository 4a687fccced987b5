// What the comparison of predictions with real runs (experiments/validation) says about a scenario: how far
// it lies outside of the ranges of these runs, and how accurate the predictions were.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "costmodel/inputs/scenario.hpp"
#include "costmodel/report/run_report.hpp"
#include "experiments/json/json.hpp"

namespace fomoe::commands {

/// One text for each quantity that lies outside of its range, such as "latency 126 ms: 1.3 times the
/// maximum of the validated range (5 ms to 100 ms)". Empty if the scenario lies inside all ranges. For a
/// quantity that differs between sites, its smallest and largest value are checked.
std::vector<std::string> outside_of_validation(const costmodel::RunReport& report,
                                               const costmodel::Scenario& scenario);

/// Lines for people. They list the quantities that lie outside of their ranges, or state that the scenario
/// lies inside all ranges.
std::string validation_range_text(const costmodel::RunReport& report, const costmodel::Scenario& scenario);

/// Errors of the predicted wall clock of real runs, |predicted ÷ measured − 1|. All these runs were predicted
/// with the same network terms, and have equal or unequal latencies as the scenario does. Their computation
/// took the time that was given, so that the errors are those of all the rest: communication and waiting.
struct Accuracy {
  std::string terms;      // "no network terms", "the terms of a Linux host", "…and a fitted payload rate"
  std::string latencies;  // "equal" or "unequal"
  int runs = 0;
  double median = 0, p95 = 0, worst = 0;
  double waiting_p95 = 0;  // of what a run takes beside computation
};

/// Nothing if no real run was predicted with these network terms.
std::optional<Accuracy> accuracy_of(const costmodel::Scenario& scenario);

/// Why no interval follows from the errors of those runs: the scenario is outside of their conditions, or
/// there are warnings about its inputs. Empty if one does.
std::string why_no_interval(const costmodel::RunReport& report, const costmodel::Scenario& scenario);

/// The errors of those runs, for people.
std::string accuracy_text(const costmodel::Scenario& scenario);

/// The same as JSON; null if no real run was predicted with these network terms.
scenario::Json accuracy_json(const costmodel::Scenario& scenario);

}  // namespace fomoe::commands
