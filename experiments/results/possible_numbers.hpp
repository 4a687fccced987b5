// The check of a report's numbers before they leave the program. to_text() in experiments/json checks JSON.
#pragma once
#include "costmodel/report/run_report.hpp"

namespace fomoe::scenario {

/// Returns the report. Throws InputError if one of its numbers is not finite, which JSON would write as null:
/// inputs that are possible alone can have a product that no number holds. Throws std::logic_error if a time,
/// a number of bytes or a rate is negative, which is a mistake of this program. All writers of reports, as
/// text, CSV and JSON, call it.
const costmodel::RunReport& possible(const costmodel::RunReport& report);

}  // namespace fomoe::scenario
