// The answers that take a simulation, and the report as a page.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "experiments/explore/question.hpp"
#include "experiments/report/page.hpp"

namespace fomoe::explore {

/// {report, round_timeline, matrix, command}: the report is that of `fomoe simulate --output -` with the same
/// settings. `matrix` has the bytes between any two sites in a round, and the shares of the round for which
/// they keep the route between the two sites busy. The caller must not have started threads.
Json simulation_answer(const Question& question, const std::vector<std::string>& overrides);

/// Runs `fomoe simulate` with these arguments.
using Simulate = void (*)(const std::vector<std::string>& arguments);

/// The page of `fomoe report` for these settings; the first of each pair is the name of the result.
std::string report_page(const Question& question,
                        const std::vector<std::pair<std::string, std::vector<std::string>>>& results,
                        Simulate simulate, const report::ChartLibrary& library);

}  // namespace fomoe::explore
