// The page of `fomoe explore`: one file that loads nothing.
#pragma once
#include <string>

#include "experiments/explore/question.hpp"
#include "experiments/report/page.hpp"

namespace fomoe::explore {

/// `start` is what the page knows at its start: controls_of(), or grid_of() for a page without a server.
/// `simulated` is the simulation_answer() of the unchanged scenario for such a page, or null.
std::string explore_page(const Json& start, const Json& simulated, const report::ChartLibrary& library);

}  // namespace fomoe::explore
