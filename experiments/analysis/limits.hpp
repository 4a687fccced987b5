// Parses `--within cost=5000,time=3d,…`, the limits that a plan must keep, and `--minimise`.
#pragma once
#include <boost/program_options.hpp>
#include <optional>
#include <string>

#include "costmodel/inputs/scenario.hpp"
#include "costmodel/report/run_report.hpp"
#include "experiments/planner/candidate.hpp"

namespace fomoe::commands {

/// Throws UsageError for text that is not a limit, and for a limit that cannot be checked because the
/// scenario lacks an input. A limit on cost needs prices, a limit on energy needs the power of a device, and
/// a limit on perplexity needs a quality model.
planner::Limits read_limits(const std::string& text, const costmodel::Scenario& scenario);

/// Adds --within to a command that checks limits of what it simulates.
void add_limits_option(boost::program_options::options_description& options);
/// The limits of --within; empty if the option was not given.
std::optional<planner::Limits> given_limits(const boost::program_options::variables_map& values,
                                            const costmodel::Scenario& scenario);

/// Names the first limit that the run breaks; empty if it breaks none. Time and cost of a run with failures
/// are those of its median.
std::string broken_limit(const costmodel::RunReport& report, const costmodel::Scenario& scenario,
                         const planner::Limits& limits);

planner::Measure read_measure(const std::string& word, const costmodel::Scenario& scenario);

/// The amount with its unit: "120.5 USD", "3 d 4 h", "12 kWh".
std::string amount_text(planner::Measure measure, double amount, const costmodel::Scenario& scenario);

}  // namespace fomoe::commands
