// Builds each chart of the page: its data for charts.js in units for people, and the same data as a table.
#pragma once
#include <string>
#include <vector>

#include "experiments/report/html.hpp"
#include "experiments/report/readers/result.hpp"

namespace fomoe::report {

// The series of each kind of chart that charts.js draws.
inline Json bars_of(const std::string& name, const Json& values) {
  return {{"name", name}, {"values", values}};
}
/// A series of points [x, y, text] or [x, y, text, name]; the chart shows the name beside its point. `line`
/// states whether a line joins the points.
inline Json points_of(const std::string& name, bool line, const Json& points) {
  return {{"name", name}, {"line", line}, {"points", points}};
}

Chart round_chart(const DrawnRound& round);
/// Compute, communication and idle time of each site in the mean round, for results without a timeline.
Chart sites_chart(const costmodel::RunReport& report);
Chart bytes_chart(const Run& run);
Chart sensitivity_chart(const Sensitivities& sensitivity);
Chart bandwidth_chart(const Run& run);

/// The wall clock of each run as a bar of compute, exposed communication and idle.
Chart times_chart(const std::vector<Run>& runs);

/// States for each point whether the point is on the Pareto frontier. A point is a pair of amounts; smaller
/// is better for both amounts. A point is on the frontier unless another point is smaller in one amount and
/// no larger in the other.
std::vector<bool> on_frontier(const std::vector<std::pair<double, double>>& points);
/// A point for each run, with its wall clock on one axis. The other axis shows cost if all runs have a cost
/// in the same currency. Otherwise it shows perplexity if all runs have one, and bytes sent if not.
Chart runs_frontier_chart(const std::vector<Run>& runs);
/// A point for each candidate: the minimised amount, and the measure of quality that the plan's basis uses.
Chart plan_frontier_chart(const Plan& plan);
Chart methods_chart(const Plan& plan);

/// Wall clock over the axis with the most numbers, with one line for each combination of the other axes. If
/// no axis has two numbers, a bar for each combination; empty if there is only one.
std::optional<Chart> sweep_chart(const Sweep& sweep);
/// The value of the key that each target needs.
std::optional<Chart> solved_chart(const Solved& solved);

/// A short name: "fomoe K=32 O_e=2".
std::string name_of(const Candidate& row);
/// The amount that the plan minimises; empty if it is unknown.
std::optional<double> minimised(const Plan& plan, const Candidate& row);
/// The same as text, with its unit or currency.
std::string amount_text(const Plan& plan, const Candidate& row);

}  // namespace fomoe::report
