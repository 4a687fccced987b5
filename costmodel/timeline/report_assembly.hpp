// Assembly of a run report from the observations of any executor.
#pragma once
#include <vector>

#include "costmodel/inputs/scenario.hpp"
#include "costmodel/report/run_report.hpp"
#include "costmodel/timeline/timeline.hpp"

namespace fomoe::costmodel {

/// The parts of a report that do not depend on the execution: names, memory, token counts and provenance.
RunReport report_frame(const Scenario& scenario, std::int64_t optimizer_steps);

/// Computes means over sites and ratios. Wall clock, round count, round duration and all sites must be set.
void finish_report(RunReport& report);

/// The report of a whole run from its executed rounds. `timelines[i]` holds rounds of `plan.classes[i]`,
/// chained from its first round on. If fewer rounds were executed than the class has, the duration of the
/// others is estimated:
///
///   - Identical rounds: the last executed one (a steady state; the first ones may differ by a transient).
///   - Random rounds: the mean of the executed ones.
///   - Overlapping rounds: the third last executed one. At least 5 rounds are therefore executed, or
///     all. They are the first rounds of the class and, after them, its last one.
///
/// `senders`: how the executor modelled BBR senders (see Senders); it determines the link rates of the
/// report.
RunReport assemble_report(const Scenario& scenario, const Plan& plan, const std::vector<Timeline>& timelines,
                          Senders senders = Senders::averaged);

}  // namespace fomoe::costmodel
