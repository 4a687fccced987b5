// Builds each chart of the page: its data for charts.js in units for people, and the same data as a table.
#pragma once
#include <string>
#include <vector>

#include "experiments/report/html.hpp"
#include "experiments/report/result.hpp"

namespace fomoe::report {

// The series of each kind of chart that charts.js draws.
inline Json bars_of(const std::string& name, const Json& values) {
  return {{"name", name}, {"values", values}};
}
/// Points [x, y, text]; `line`: whether a line joins them.
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

/// The Pareto frontier of pairs of amounts that are both minimised. A point is on it unless another point is
/// better in one amount and at least as good in the other.
std::vector<bool> on_frontier(const std::vector<std::pair<double, double>>& points);
/// Wall clock against cost if all runs have a cost in the same currency, otherwise against perplexity,
/// otherwise against bytes sent.
Chart runs_frontier_chart(const std::vector<Run>& runs);
/// The minimised amount against the quality measure of the plan's basis.
Chart plan_frontier_chart(const Plan& plan);
Chart methods_chart(const Plan& plan);

/// Wall clock over the last axis that has numbers, with one line for each combination of the other axes.
/// Empty if no axis has two numbers.
std::optional<Chart> sweep_chart(const Sweep& sweep);
/// The value of the key that each target needs.
std::optional<Chart> solved_chart(const Solved& solved);

/// A short name: "fomoe, K = 32, O_e = 2".
std::string name_of(const Candidate& row);
/// The amount that the plan minimises; empty if it is unknown.
std::optional<double> minimised(const Plan& plan, const Candidate& row);

}  // namespace fomoe::report
