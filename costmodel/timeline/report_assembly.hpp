// From observations to the report: the same for every executor.
#pragma once
#include <vector>

#include "costmodel/inputs/scenario.hpp"
#include "costmodel/report/run_report.hpp"
#include "costmodel/timeline/timeline.hpp"

namespace fomoe::costmodel {

/// Names, memory, token counts and provenance: what does not depend on how the plan was executed.
RunReport report_frame(const Scenario& scenario, std::int64_t optimizer_steps);

/// Means over sites and the ratios, once wall clock, round count and duration and every site are filled in.
void finish_report(RunReport& report);

/// The whole run from executed rounds. `timelines[i]` holds rounds of `plan.classes[i]`, chained from its
/// first on. Where fewer were executed than the class has, the others are taken to last as long as
///   identical rounds: the last executed one (a steady state; the first ones may differ by a transient)
///   random rounds: the mean of the executed ones
///   overlapping rounds: the third last executed one (so at least 5 are, or all). Executed are the first
///   rounds and, after them, the class's last one.
/// `senders`: how the executor treated those of bbr; of links' rates their mean share is taken, or nothing.
RunReport assemble_report(const Scenario& scenario, const Plan& plan, const std::vector<Timeline>& timelines,
                          Senders senders = Senders::averaged);

}  // namespace fomoe::costmodel
