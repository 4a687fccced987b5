// Running a scenario on the engine that the command line chose, and showing the report.
#pragma once
#include <boost/program_options.hpp>
#include <string>
#include <vector>

#include "costmodel/inputs/scenario.hpp"
#include "costmodel/report/run_report.hpp"
#include "sim/executor/simulated_run.hpp"

namespace fomoe::commands {

struct Engine {
  bool simulated = true;
  sim::RunOptions options;
};

/// Adds --engine, --rounds and --no-bundle.
void add_engine_options(boost::program_options::options_description& options);
Engine read_engine(const boost::program_options::variables_map& values);

/// The closed form leaves plan and timeline empty.
sim::SimulatedRun execute(const costmodel::Scenario& scenario, const Engine& engine);

/// A site waits for bytes that are on their way rather than for links that are busy, and longer than 0.5 %.
bool waits_for_latency(const costmodel::RunReport& report);
/// "waits for the network 12 % of the time (…)", with the busiest link or, where links are hardly busy,
/// latency.
std::string waiting_text(const costmodel::RunReport& report);

/// "130.58 ± 17.58", "12.3", or "unknown"; empty where the scenario has no quality model.
std::string perplexity_text(const costmodel::RunReport& report);
/// "123.45 USD", empty without prices.
std::string money_text(const costmodel::RunReport& report);

/// For people: times, bytes, the bottleneck, sites, `more`, then every input with its origin and all network
/// factors.
std::string report_text(const costmodel::RunReport& report, const costmodel::Scenario& scenario,
                        const std::string& more = "");

/// One line each; units are in the column names.
std::string csv_header();
std::string csv_row(const costmodel::RunReport& report, const costmodel::Scenario& scenario);

}  // namespace fomoe::commands
