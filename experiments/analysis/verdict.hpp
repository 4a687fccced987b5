// Summarises a table of compared variants in a few sentences.
#pragma once
#include <string>
#include <vector>

#include "costmodel/report/run_report.hpp"

namespace fomoe::commands {

struct Case {
  std::string name;  // the method and the settings that distinguish the case
  int expert_overlap = 0;
  bool ring = true;
  costmodel::RunReport report;
  /// Optimiser steps between two synchronisations, as executed.
  [[nodiscard]] std::int64_t steps_per_round() const {
    return (report.optimizer_steps + report.round.count - 1) / report.round.count;
  }
};

/// Names the fastest case, its lead over the fastest case that synchronises more often, and what limits both.
/// Among cases within 1 % of the fastest it names the one that synchronises most often, and among those the
/// one that sends least: such times are equal in practice, but quality may differ.
std::string verdict(const std::vector<Case>& cases);

}  // namespace fomoe::commands
