// Runs a scenario on the engine that the command line chooses, and formats single values of its report.
#pragma once
#include <boost/program_options.hpp>
#include <string>
#include <vector>

#include "costmodel/formula/bandwidth_curve.hpp"
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

/// Runs the scenario, and finds what its sites wait for. The closed form leaves the plan and the timeline of
/// the result empty.
sim::SimulatedRun execute(const costmodel::Scenario& scenario, const Engine& engine);
/// Simulates scenarios at the same time, each in its own process, and shows how many are done. The result of
/// a scenario that the simulator refuses is NaN.
std::vector<costmodel::Speed> simulate_all(const std::vector<costmodel::Scenario>& scenarios,
                                           sim::RunOptions options);

/// Names, in words, what the scenario has and an answer leaves out: link rates that change over time if the
/// closed form computes it, and failures if `failures` is false. Empty if it leaves nothing out.
std::string left_out(const costmodel::Scenario& scenario, bool simulated, bool failures);

/// "waits for the network 12 % of the time, mostly for latency (…)". The parentheses name the busiest link.
std::string waiting_text(const costmodel::RunReport& report);

/// "130.58 ± 17.58", "12.3", or "unknown". Empty if the scenario has no quality model, or if published runs
/// answer, which say nothing of perplexity.
std::string perplexity_text(const costmodel::RunReport& report);
/// "123.45 USD". Empty if the scenario has no prices.
std::string money_text(const costmodel::RunReport& report);

}  // namespace fomoe::commands
