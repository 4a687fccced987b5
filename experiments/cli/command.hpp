// The table of the commands of `fomoe`; each command has one row here and one source file.
#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fomoe::commands {

using Arguments = std::vector<std::string>;  // the arguments after the command's name

struct Command {
  std::string_view name;
  std::string_view sentence;  // summary in `fomoe --help`
  void (*run)(const Arguments&);
};

void run_cost(const Arguments& arguments);
void run_simulate(const Arguments& arguments);
void run_compare(const Arguments& arguments);
void run_plan(const Arguments& arguments);
void run_solve(const Arguments& arguments);
void run_explain(const Arguments& arguments);
void run_report(const Arguments& arguments);
void run_sweep(const Arguments& arguments);
void run_reproduce(const Arguments& arguments);
void run_probe(const Arguments& arguments);
void run_calibrate(const Arguments& arguments);
void run_validate(const Arguments& arguments);
void run_profile(const Arguments& arguments);
void run_list(const Arguments& arguments);

inline constexpr Command kCommands[] = {
    {"cost", "parameters, FLOPs, memory and bytes of a scenario, without simulating it", run_cost},
    {"simulate", "how long a scenario takes, and what it waits for", run_simulate},
    {"compare", "several variants of a scenario in one table", run_compare},
    {"plan", "which method, K, O_e, placement, collective and sites to choose", run_plan},
    {"solve", "the bandwidth, K, … that reaches a utilisation, a deadline or a budget", run_solve},
    {"explain", "the closed form with the scenario's numbers in it, line by line", run_explain},
    {"report", "results as one page: charts, tables, where every number comes from", run_report},
    {"sweep", "every combination of several keys' values, as CSV or JSON", run_sweep},
    {"reproduce", "the FoMoE paper's figures and tables, with every assumption", run_reproduce},
    {"probe", "the links between running sites, measured, as a platform file", run_probe},
    {"calibrate", "network terms fitted to measured runs or collectives", run_calibrate},
    {"validate", "measured runs against what is predicted for them", run_validate},
    {"profile", "step times from other programs' logs, for more layers or another device", run_profile},
    {"list", "the methods, models, platforms, accelerators and scenario keys", run_list},
};

/// Runs `fomoe` with these arguments. Throws FileError, InputError or UsageError if the input is wrong, and
/// another std::exception for any other failure.
void run(const Arguments& arguments);

}  // namespace fomoe::commands
