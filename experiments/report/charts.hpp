// What each chart of the page shows: numbers in units for people, for charts.js, and the same as a table.
#pragma once
#include <string>
#include <vector>

#include "experiments/report/html.hpp"
#include "experiments/report/result.hpp"

namespace fomoe::report {

// Series of the kinds of chart that charts.js draws.
inline Json bars_of(const std::string& name, const Json& values) {
  return {{"name", name}, {"values", values}};
}
/// Points: [x, y, text]; joined by a line, or not.
inline Json points_of(const std::string& name, bool line, const Json& points) {
  return {{"name", name}, {"line", line}, {"points", points}};
}

Chart round_chart(const DrawnRound& round);
/// What each site did in the mean round, for results without a timeline.
Chart sites_chart(const costmodel::RunReport& report);
Chart bytes_chart(const Run& run);
Chart sensitivity_chart(const Sensitivities& sensitivity);
Chart bandwidth_chart(const Run& run);

/// Bars of wall clock, made of compute, exposed communication and idle.
Chart times_chart(const std::vector<Run>& runs);

/// Of two amounts, both the less the better: those that no other one is better in, at least as good in both.
std::vector<bool> on_frontier(const std::vector<std::pair<double, double>>& points);
/// Wall clock against cost where all have one in the same currency, else perplexity, else bytes sent.
Chart runs_frontier_chart(const std::vector<Run>& runs);
/// What is minimised against what the plan's basis trades it for.
Chart plan_frontier_chart(const Plan& plan);
Chart methods_chart(const Plan& plan);

/// Wall clock over the last axis that has numbers, a line for each combination of the others; no figures
/// where no axis has two numbers.
std::optional<Chart> sweep_chart(const Sweep& sweep);
/// What each target asks of the key.
std::optional<Chart> solved_chart(const Solved& solved);

/// "fomoe, K = 32, O_e = 2".
std::string name_of(const Candidate& row);
/// The amount that the plan minimises, or nothing.
std::optional<double> minimised(const Plan& plan, const Candidate& row);

}  // namespace fomoe::report
