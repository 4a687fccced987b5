// What a table of variants says, in words.
#pragma once
#include <string>
#include <vector>

#include "costmodel/report/run_report.hpp"

namespace fomoe::commands {

struct Case {
  std::string name;  // the method and what else tells it apart
  int expert_overlap = 0;
  bool ring = true;
  costmodel::RunReport report;
  /// Optimiser steps between two synchronisations, as they were run.
  [[nodiscard]] std::int64_t steps_per_round() const {
    return (report.optimizer_steps + report.round.count - 1) / report.round.count;
  }
};

/// The fastest case, by how much against the best one that synchronises more often, and what limits both.
/// Among cases within 1 % it names the one that synchronises most often, then sends least: the time does not
/// separate them, and quality may.
std::string verdict(const std::vector<Case>& cases);

}  // namespace fomoe::commands
