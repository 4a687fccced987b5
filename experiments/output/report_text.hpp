// Formats the report of a run as text and as CSV.
#pragma once
#include <string>

#include "costmodel/inputs/scenario.hpp"
#include "costmodel/report/run_report.hpp"

namespace fomoe::commands {

/// The report for people: times with the text `interval`, bytes, the bottleneck, sites, the text `more`,
/// every input with its origin, and all network factors.
std::string report_text(const costmodel::RunReport& report, const costmodel::Scenario& scenario,
                        const std::string& interval, const std::string& more);

/// CSV lines; the column names include the units.
std::string csv_header();
std::string csv_row(const costmodel::RunReport& report, const costmodel::Scenario& scenario);

}  // namespace fomoe::commands
