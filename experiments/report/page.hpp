// Builds the whole page as one file that needs neither other files nor a network.
#pragma once
#include <string>

#include "experiments/report/readers/result.hpp"

namespace fomoe::report {

struct ChartLibrary {
  std::string version;  // "3.9.1"
  std::string text;
};

/// `given` is the file of Chart.js; empty: chart.min.js in the folder of the running program, which a wheel
/// has, or else that of Debian's package libjs-chart.js. Throws std::runtime_error if the file cannot be read
/// or is not Chart.js 3 or 4.
ChartLibrary read_chart_library(const std::string& given);

/// The licence of Chart.js, to be shown at the end of a page that contains it.
std::string chart_licence(const ChartLibrary& library);

/// `command` is the command line that makes the page; it is shown at the end of the page.
std::string page(const Results& results, const ChartLibrary& library, const std::string& command);

}  // namespace fomoe::report
