// What the sites of a simulated run sent, by class of traffic.
#pragma once
#include "costmodel/plan/plan_summary.hpp"
#include "costmodel/report/run_report.hpp"

namespace fomoe::costmodel {

/// Bytes of the mean site and round by class. `planned` is what the method's formula says, whose sum is that
/// of the report unless sites miss rounds (a quorum, outages) or train at their own pace. Then sites that
/// were absent did not send their part of the synchronisation, and what was sent on top let them rejoin.
SentBytes sent_by_class(SentBytes planned, const RunReport& report, bool own_pace);

}  // namespace fomoe::costmodel
