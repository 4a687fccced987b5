// Assembly of a run report from the observations of any executor.
#pragma once
#include <vector>

#include "costmodel/counts/counts.hpp"
#include "costmodel/inputs/scenario.hpp"
#include "costmodel/report/run_report.hpp"
#include "costmodel/timeline/class_mean.hpp"
#include "costmodel/timeline/timeline.hpp"

namespace fomoe::costmodel {

/// The parts of a report that do not depend on the execution: names, memory, token counts and provenance.
RunReport report_frame(const Scenario& scenario, const Counts& counts, std::int64_t optimizer_steps);

/// Computes means over sites and ratios. Wall clock, round count, round duration and all sites must be set.
void finish_report(RunReport& report);

/// The report of a whole run from its executed rounds. `timelines[i]` has rounds of `plan.classes[i]`,
/// starting with the first round of the class, each after the previous one. If fewer rounds were executed
/// than the class has, the duration of each missing round is estimated:
///
///   - Identical rounds: the duration of the last executed round. It is in a steady state; the first rounds
///     may differ by a transient.
///   - Random rounds: the mean duration of the executed rounds, without the first one, whose network is new.
///   - Overlapping rounds: the duration of the third last executed round. The executed rounds are the first
///     rounds of the class, followed by its last round. At least 5 rounds are executed, or all.
RunReport assemble_report(const Scenario& scenario, const Plan& plan, const std::vector<Timeline>& timelines);

/// The report of a whole run from samples of its rounds that together represent all of them. `doubt_s` is an
/// error of the wall clock that is not random; it widens the interval.
RunReport assemble_report(const Scenario& scenario, const Plan& plan, const std::vector<RoundSample>& samples,
                          double doubt_s);

}  // namespace fomoe::costmodel
