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
void run_explore(const Arguments& arguments);
void run_report(const Arguments& arguments);
void run_sweep(const Arguments& arguments);
void run_reproduce(const Arguments& arguments);
void run_probe(const Arguments& arguments);
void run_calibrate(const Arguments& arguments);
void run_validate(const Arguments& arguments);
void run_profile(const Arguments& arguments);
void run_list(const Arguments& arguments);
void run_model(const Arguments& arguments);

inline constexpr Command kCommands[] = {
    {"cost", "compute parameters, FLOPs, memory and bytes (no money), without a simulation", run_cost},
    {"simulate", "predict how long a scenario takes and what it waits for", run_simulate},
    {"compare", "compare several variants of a scenario in one table", run_compare},
    {"plan", "recommend a method, K, O_e, placement, collective and sites", run_plan},
    {"solve", "find the bandwidth, K, … that reaches a utilisation, a deadline or a budget", run_solve},
    {"explain", "print the closed form with the scenario's numbers, line by line", run_explain},
    {"explore", "plan in a browser: sliders, the closed form at once and the simulation after it",
     run_explore},
    {"report", "show results on one page: charts, tables and the origin of every number", run_report},
    {"sweep", "compute every combination of several keys' values, as CSV or JSON", run_sweep},
    {"reproduce", "compute the FoMoE paper's figures and tables, with every assumption", run_reproduce},
    {"probe", "measure the links between running sites and write a platform file", run_probe},
    {"calibrate", "fit network terms to measured runs or collectives", run_calibrate},
    {"validate", "compare measured runs with their predictions", run_validate},
    {"profile", "make step profiles from logs, for deeper models or for other devices", run_profile},
    {"model", "count a model's parameters; write the shape of any model to a file", run_model},
    {"list", "list the methods, models, platforms, accelerators and scenario keys", run_list},
};

/// Runs `fomoe` with these arguments. Throws FileError, InputError or UsageError if the input is wrong, and
/// another std::exception for any other failure.
void run(const Arguments& arguments);

}  // namespace fomoe::commands
