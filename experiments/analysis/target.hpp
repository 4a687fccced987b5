// What `fomoe solve` is to reach: `--target compute_utilization=0.95`.
#pragma once
#include <string>

#include "costmodel/inputs/scenario.hpp"
#include "costmodel/report/run_report.hpp"

namespace fomoe::commands {

struct Target {
  std::string name;  // "compute_utilization"
  double value = 0;
  bool at_least = true;  // else at most
  double (*metric)(const costmodel::RunReport&) = nullptr;
  /// At least 0 where the report reaches the target.
  [[nodiscard]] double margin(const costmodel::RunReport& report) const {
    const double share = metric(report) / value;
    return at_least ? share - 1 : 1 - share;
  }
};

/// Throws UsageError for what cannot be read, and where the scenario cannot answer.
Target read_target(const std::string& text, const costmodel::Scenario& scenario);
Target utilization_target(double share);

/// A value of the target's metric, with its unit.
std::string target_amount(const Target& target, double value, const costmodel::Scenario& scenario);

}  // namespace fomoe::commands
