// The critical path of a round: the longest chain of waits, followed backwards from the end of the round.
#pragma once
#include "costmodel/plan/plan.hpp"
#include "costmodel/report/run_report.hpp"
#include "costmodel/timeline/timeline.hpp"

namespace fomoe::costmodel {

/// The critical path from the end of the previous round to the end of the round at `position`, in
/// chronological order. Only its own node waits for a computation. A transfer begins for all its nodes when
/// the last node joins it, so the chain continues with that node. Consecutive steps with the same name at the
/// same site are merged. What a training does between its rounds is a step of its own.
std::vector<CriticalStep> critical_path(const Plan& plan, const std::vector<SiteReport>& sites,
                                        const Timeline& timeline, std::size_t position);

}  // namespace fomoe::costmodel
