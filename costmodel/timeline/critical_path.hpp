// What a round's length is made of: the longest chain of waits, walked back from the round's last moment.
#pragma once
#include "costmodel/plan/plan.hpp"
#include "costmodel/report/run_report.hpp"
#include "costmodel/timeline/timeline.hpp"

namespace fomoe::costmodel {

/// From the end of the round before to the end of the round at `position`, in the order of time. A
/// computation is waited for by its own node alone. A transfer begins for all with the last node that joins
/// it: the chain goes on with that node. Steps in a row with the same name at the same site are one.
std::vector<CriticalStep> critical_path(const Plan& plan, const std::vector<SiteReport>& sites,
                                        const Timeline& timeline, std::size_t position);

}  // namespace fomoe::costmodel
