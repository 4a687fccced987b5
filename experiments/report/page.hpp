// The whole page: one file that needs no other and no network.
#pragma once
#include <string>

#include "experiments/report/result.hpp"

namespace fomoe::report {

/// Chart.js as one file; of Debian's package libjs-chart.js.
inline constexpr const char* kChartLibrary = "/usr/share/javascript/chart.js/chart.min.js";

struct ChartLibrary {
  std::string version;  // "3.9.1"
  std::string text;
};

/// Throws std::runtime_error where the file cannot be read or is not Chart.js 3 or 4.
ChartLibrary read_chart_library(const std::string& path);

/// `command`: what the page was made with, shown at its end.
std::string page(const Results& results, const ChartLibrary& library, const std::string& command);

}  // namespace fomoe::report
