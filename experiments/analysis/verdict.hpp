// Summarises a table of compared variants in a few sentences.
#pragma once
#include <algorithm>
#include <string>
#include <vector>

#include "costmodel/report/run_report.hpp"

namespace fomoe::commands {

struct Case {
  std::string name;  // the method and the settings that distinguish the case
  int expert_overlap = 0;
  bool direct_is_faster = false;  // strategy.collective = "direct", in place of the ring of this case
  std::int64_t local_steps = 1;   // K of the scenario
  std::string question = {};      // the model and the workload as text
  costmodel::RunReport report = {};
  /// Optimiser steps between two synchronisations in the executed plan. The last round may have fewer.
  [[nodiscard]] std::int64_t steps_per_round() const {
    const auto rounds_of = [&](std::int64_t steps) { return (report.optimizer_steps + steps - 1) / steps; };
    return rounds_of(local_steps) == report.round.count ? std::min(local_steps, report.optimizer_steps)
                                                        : rounds_of(report.round.count);
  }
};

/// Names the fastest case, how much faster it is than the fastest case that synchronises more often, and what
/// limits each of the two cases. Times within 1 % of each other count as equal, but the quality of the
/// trained models may differ. Among cases within 1 % of the fastest, the text therefore names the case that
/// synchronises most often. If several cases synchronise equally often, it names the case that sends the
/// fewest bytes. If the cases train different models or workloads, the text says so first.
std::string verdict(const std::vector<Case>& cases);

}  // namespace fomoe::commands
