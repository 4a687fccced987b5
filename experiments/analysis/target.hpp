// The target of `fomoe solve`, for example `--target compute_utilization=0.95`.
#pragma once
#include <string>
#include <utility>

#include "costmodel/inputs/scenario.hpp"
#include "costmodel/report/run_report.hpp"

namespace fomoe::commands {

struct Target {
  std::string name;  // "compute_utilization"
  double value = 0;
  bool at_least = true;  // false: the metric must be at most `value`
  /// Not a number where a report does not have the metric: published runs do not cover every loss.
  double (*metric)(const costmodel::RunReport&) = nullptr;
  /// The difference between the metric and the target, as a share of the target. The sign is positive on the
  /// side that reaches the target, so the result is at least 0 if the report reaches the target.
  [[nodiscard]] double margin(const costmodel::RunReport& report) const {
    const double share = metric(report) / value;
    return at_least ? share - 1 : 1 - share;
  }
};

/// What must be set for the metric to be there, as for --set; empty if the scenario has it.
std::string asked_for(const Target& target, const costmodel::Scenario& scenario);

/// Throws UsageError for text that is not a target, and for a target whose metric the scenario does not
/// define.
Target read_target(const std::string& text, const costmodel::Scenario& scenario);
Target utilization_target(double share);

/// The value of the target's metric with its unit, for people.
std::string target_amount(const Target& target, double value, const costmodel::Scenario& scenario);
/// The same of two values that are near each other: with more digits if both would read alike.
std::pair<std::string, std::string> target_amounts(const Target& target, double one, double other,
                                                   const costmodel::Scenario& scenario);

}  // namespace fomoe::commands
