#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "experiments/cli/execute.hpp"
#include "experiments/report/charts.hpp"
#include "experiments/report/scale.hpp"
#include "experiments/text/human.hpp"

namespace fomoe::report {

using commands::human_bytes;
using commands::human_money;
using commands::human_time;
using commands::Row;

std::vector<bool> on_frontier(const std::vector<std::pair<double, double>>& points) {
  std::vector<bool> best;
  for (const auto& one : points) {
    best.push_back(std::none_of(points.begin(), points.end(), [&](const auto& other) {
      return other.first <= one.first && other.second <= one.second && other != one;
    }));
  }
  return best;
}

namespace {

/// The quantity on the second axis of a frontier; the first axis is the wall clock.
struct Against {
  std::string title;
  Scale unit;
  double (*of)(const Run&);
  std::string (*text)(const Run&);
};

Against choose(const std::vector<Run>& runs) {
  const auto all = [&](auto&& has) { return std::all_of(runs.begin(), runs.end(), has); };
  const auto currency = [](const Run& run) {
    return run.figures.cost ? run.figures.cost->currency : std::string();
  };
  const std::string first = currency(runs.front());
  if (!first.empty() && all([&](const Run& run) { return currency(run) == first; }))
    return {"cost, " + first,
            {1, first},
            [](const Run& run) { return run.figures.cost->cost_total; },
            [](const Run& run) { return commands::money_text(run.figures); }};
  if (all([](const Run& run) { return run.figures.quality && run.figures.quality->known; }))
    return {"perplexity",
            {1, ""},
            [](const Run& run) { return run.figures.quality->perplexity; },
            [](const Run& run) { return commands::perplexity_text(run.figures); }};
  const auto bytes = [](const Run& run) {
    return run.figures.bytes_sent_per_site_per_round * static_cast<double>(run.figures.round.count);
  };
  double most = 0;
  for (const Run& run : runs) most = std::max(most, bytes(run));
  const Scale unit = bytes_scale(most);
  return {"bytes sent per site in the run, " + unit.name, unit, bytes, [](const Run& run) {
            return human_bytes(run.figures.bytes_sent_per_site_per_round *
                               static_cast<double>(run.figures.round.count));
          }};
}

/// The scale and the axis of the amount that a plan minimises.
std::pair<Scale, std::string> minimised_axis(const Plan& plan) {
  if (plan.minimise == "cost")
    return {{1, plan.currency}, plan.currency.empty() ? "cost" : "cost, " + plan.currency};
  if (plan.minimise == "energy") return {{1, "kWh"}, "energy, kWh"};
  // A long bar may be cut off, so that the shortest time chooses the unit.
  double least = minimised(plan, plan.as_it_is).value_or(HUGE_VAL);
  for (const auto* rows : {&plan.chosen, &plan.methods}) {
    for (const Candidate& row : *rows) least = std::min(least, minimised(plan, row).value_or(HUGE_VAL));
  }
  const Scale unit = time_scale(least);
  return {unit, "wall clock, " + unit.name};
}

}  // namespace

std::string name_of(const Candidate& row) {
  return fmt::format("{} K={} O_e={}", row.method, row.local_steps, row.expert_overlap);
}

std::optional<double> minimised(const Plan& plan, const Candidate& row) {
  return plan.minimise == "time" ? row.wall_clock_s : plan.minimise == "cost" ? row.cost : row.energy_kwh;
}

std::string amount_text(const Plan& plan, const Candidate& row) {
  const std::optional<double> value = minimised(plan, row);
  if (!value) return "unknown";
  if (plan.minimise == "time") return human_time(*value);
  if (plan.minimise == "energy") return fmt::format("{:.4g} kWh", *value);
  return human_money(*value, plan.currency);
}

Chart runs_frontier_chart(const std::vector<Run>& runs) {
  const Against against = choose(runs);
  double least = std::numeric_limits<double>::infinity();
  std::vector<std::pair<double, double>> points;
  for (const Run& run : runs) {
    points.emplace_back(against.of(run), run.figures.wall_clock_s);
    least = std::min(least, run.figures.wall_clock_s);
  }
  const Scale time = time_scale(least);  // as the bars have it
  const std::vector<bool> best = on_frontier(points);
  Json frontier = Json::array(), others = Json::array();
  std::vector<Row> rows;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    (best[i] ? frontier : others)
        .push_back(
            {points[i].first / against.unit.size, points[i].second / time.size,
             fmt::format("{}: {}, {}", runs[i].name, human_time(points[i].second), against.text(runs[i])),
             runs[i].name});
    rows.push_back(
        {runs[i].name, human_time(points[i].second), against.text(runs[i]), best[i] ? "yes" : "no"});
  }
  std::sort(frontier.begin(), frontier.end(), [](const Json& a, const Json& b) { return a[0] < b[0]; });
  Chart chart;
  chart.label = "Wall clock against " + against.title +
                ". A result is on the frontier if no other result is at least as good in both quantities.";
  chart.data = {{"kind", "points"},
                {"x_title", against.title},
                {"y_title", "wall clock, " + time.name},
                {"series", Json::array({points_of("on the frontier", true, frontier),
                                        points_of("not on the frontier", false, others)})}};
  chart.table = table("Lower values are better in both columns",
                      {{"result"}, {"wall clock", true}, {against.title, true}, {"on the frontier"}}, rows);
  return chart;
}

Chart plan_frontier_chart(const Plan& plan) {
  const auto [unit, y_title] = minimised_axis(plan);
  const bool by_perplexity = plan.basis == "perplexity-frontier";
  // One series for each O_e, the number of sites that hold each expert, because fewer copies can reduce
  // quality.
  std::map<std::int64_t, Json> by_overlap;
  std::vector<Row> rows;
  const bool by_loss = plan.basis == "published-equal-loss";
  const auto quality = [&](const Candidate& row) -> std::string {
    if (by_loss) return row.loss ? fmt::format("{:+.2f}", row.loss->points) : "not covered";
    return row.perplexity ? fmt::format("{:.4g}", *row.perplexity) : "unknown";
  };
  const auto point = [&, &unit = unit](const Candidate& row) {
    const double x = by_perplexity ? row.perplexity.value_or(0) : static_cast<double>(row.local_steps);
    return Json::array({x, minimised(plan, row).value_or(0) / unit.size,
                        name_of(row) + ": " + amount_text(plan, row), row.method});
  };
  for (const Candidate& row : plan.chosen) {
    if (!minimised(plan, row) || (by_perplexity && !row.perplexity)) continue;
    by_overlap[by_perplexity ? 0 : row.expert_overlap].push_back(point(row));
    rows.push_back({name_of(row), amount_text(plan, row), quality(row)});
  }
  Json series = Json::array();
  for (auto& [overlap, points] : by_overlap) {
    std::sort(points.begin(), points.end(), [](const Json& a, const Json& b) { return a[0] < b[0]; });
    series.push_back(points_of(by_perplexity ? "chosen" : fmt::format("O_e={}", overlap),
                               by_perplexity && !plan.has_choice, points));
  }
  if (minimised(plan, plan.as_it_is) && (!by_perplexity || plan.as_it_is.perplexity))
    series.push_back(points_of("baseline", false, Json::array({point(plan.as_it_is)})));
  rows.push_back(
      {"baseline: " + name_of(plan.as_it_is), amount_text(plan, plan.as_it_is), quality(plan.as_it_is)});
  Chart chart;
  const std::string what = plan.minimise == "time" ? "wall clock" : plan.minimise;
  chart.label =
      by_perplexity
          ? fmt::format("Lowest {} at each perplexity.", what)
          : fmt::format(
                "{} against the steps between synchronisations, K, and the copies of each expert, O_e.",
                plan.has_choice ? "Best rows: " + what : "Rows of the frontier: " + what);
  chart.data = {{"kind", "points"},
                {"x_title", by_perplexity ? "perplexity" : "K, steps between synchronisations"},
                {"y_title", y_title},
                {"series", series}};
  chart.table = table("Simulated candidates; baseline: the unchanged scenario",
                      {{"candidate"}, {what, true}, {by_loss ? "loss, %" : "perplexity", true}}, rows);
  return chart;
}

Chart methods_chart(const Plan& plan) {
  const auto [unit, title] = minimised_axis(plan);
  Json labels = Json::array(), values = Json::array(), ends = Json::array();
  std::vector<Row> rows;
  for (const Candidate& row : plan.methods) {
    rows.push_back({row.method, amount_text(plan, row), std::to_string(row.local_steps),
                    std::to_string(row.expert_overlap), row.collective, row.payload_dtype});
    if (!minimised(plan, row)) continue;
    labels.push_back(row.method);
    ends.push_back(amount_text(plan, row));
    values.push_back(*minimised(plan, row) / unit.size);
  }
  Chart chart;
  chart.label = "Best configuration of each method.";
  chart.height_rem = 5 + 1.9 * static_cast<double>(labels.size());
  chart.data = {{"kind", "bars"},
                {"labels", labels},
                {"ends", ends},
                {"x_title", title},
                {"series", Json::array({bars_of(title, values)})}};
  chart.table =
      table("Best simulated configuration of each method",
            {{"method"}, {title, true}, {"K", true}, {"O_e", true}, {"collective"}, {"wire format"}}, rows);
  return chart;
}

}  // namespace fomoe::report
