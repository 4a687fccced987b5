// Which sites took part in the rounds of a run.
#pragma once
#include <vector>

#include "costmodel/report/run_report.hpp"
#include "costmodel/timeline/class_mean.hpp"
#include "costmodel/timeline/timeline.hpp"

namespace fomoe::costmodel {

/// Sets report.attendance if the timelines have rounds that nodes missed, and then leaves sequences that were
/// not trained on out of report.tokens. There is one timeline for each class of the plan's rounds.
void add_attendance(RunReport& report, const Plan& plan, const std::vector<Timeline>& timelines);
/// The same for samples of the rounds.
void add_attendance(RunReport& report, const Plan& plan, const std::vector<RoundSample>& samples);

}  // namespace fomoe::costmodel
