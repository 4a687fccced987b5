// The figures, charts and tables of measured runs and their predictions.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "experiments/report/charts.hpp"
#include "experiments/report/html.hpp"
#include "experiments/report/scale.hpp"
#include "experiments/report/sections.hpp"
#include "experiments/text/human.hpp"

namespace fomoe::report {

using commands::human_time;
using commands::Row;

namespace {

constexpr std::size_t kMostValidatedRuns = 25;

/// "10.4 %"; for utilisation, which is a share, "4.1 pt".
std::string size_text(const std::optional<double>& error, const std::string& quantity) {
  if (!error) return "none measured";
  return fmt::format("{:.1f} {}", 100 * *error, quantity == "utilization" ? "pt" : "%");
}

std::string signed_text(const std::optional<double>& error, const std::string& quantity) {
  return (error && *error > 0 ? "+" : "") + size_text(error, quantity);
}

std::string quantity_name(const std::string& key) {
  if (key == "utilization") return "utilisation, points";
  if (key == "synchronization") return "synchronisation";
  std::string name = key;
  std::replace(name.begin(), name.end(), '_', ' ');
  return name;
}

const Validation::Error* wall_clock_of(const Validation::Group& group) {
  const auto found = std::find_if(group.errors.begin(), group.errors.end(),
                                  [](const Validation::Error& e) { return e.quantity == "wall_clock"; });
  return found == group.errors.end() ? nullptr : &*found;
}

/// The runs with the largest errors first; a run without a finite error comes before all others.
std::vector<const Validation::Compared*> by_error(const Validation& validation) {
  std::vector<const Validation::Compared*> runs;
  for (const Validation::Compared& run : validation.runs) runs.push_back(&run);
  const auto size = [](const Validation::Compared* run) {
    return run->error ? std::abs(*run->error) : HUGE_VAL;
  };
  std::stable_sort(runs.begin(), runs.end(), [&](auto* a, auto* b) { return size(a) > size(b); });
  return runs;
}

/// Predicted over measured wall clock, with the line on which the two are equal.
Chart predicted_chart(const Validation& validation) {
  double least = HUGE_VAL, most = 0;
  std::vector<std::string> bounds;
  for (const Validation::Compared& run : validation.runs) {
    least = std::min({least, run.measured_s, run.predicted_s});
    most = std::max({most, run.measured_s, run.predicted_s});
    if (std::find(bounds.begin(), bounds.end(), run.bound) == bounds.end()) bounds.push_back(run.bound);
  }
  const Scale unit = time_scale(most);
  Json series = Json::array();
  std::vector<Row> rows;
  for (const std::string& bound : bounds) {
    Json points = Json::array();
    for (const Validation::Compared& run : validation.runs) {
      if (run.bound != bound) continue;
      const std::string error = signed_text(run.error, "wall_clock");
      points.push_back({run.measured_s / unit.size, run.predicted_s / unit.size,
                        fmt::format("{}: measured {}, predicted {} ({})", run.name,
                                    human_time(run.measured_s), human_time(run.predicted_s), error)});
      rows.push_back({run.name, bound, human_time(run.measured_s), human_time(run.predicted_s), error});
    }
    series.push_back(points_of(bound, false, points));
  }
  const double from = least / unit.size, to = most / unit.size;
  Json equal =
      points_of("predicted = measured", true,
                Json::array({{from, from, "predicted = measured"}, {to, to, "predicted = measured"}}));
  equal["plain"] = true;
  series.push_back(equal);
  Chart chart;
  chart.label =
      "Predicted over measured wall clock. Points below the line are predictions that are too short.";
  chart.height_rem = 26;
  chart.data = {{"kind", "points"},
                {"x_title", "measured wall clock, " + unit.name},
                {"y_title", "predicted wall clock, " + unit.name},
                {"log_from", 3},  // relative errors are distances on logarithmic axes
                {"series", series}};
  chart.table = table(
      "All runs", {{"run"}, {"limited by"}, {"measured", true}, {"predicted", true}, {"error", true}}, rows);
  return chart;
}

/// The share of the runs whose error is at most the value on the x axis.
std::optional<Chart> errors_chart(const Validation& validation) {
  std::vector<double> sizes;
  for (const Validation::Compared& run : validation.runs)
    if (run.error) sizes.push_back(std::abs(*run.error));
  if (sizes.size() < 4) return std::nullopt;
  std::sort(sizes.begin(), sizes.end());
  Json points = Json::array();
  std::vector<Row> rows;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const double share = static_cast<double>(i + 1) / static_cast<double>(validation.runs.size());
    points.push_back({100 * sizes[i], 100 * share,
                      fmt::format("{:.0f} % of the runs: at most {:.1f} %", 100 * share, 100 * sizes[i])});
  }
  for (const double share : {0.25, 0.5, 0.75, 0.9, 0.95, 1.0}) {
    const auto needed =
        static_cast<std::size_t>(std::ceil(share * static_cast<double>(validation.runs.size())));
    rows.push_back({fmt::format("{:.0f} %", 100 * share),
                    needed <= sizes.size() ? size_text(sizes[needed - 1], "wall_clock") : "none measured"});
  }
  Chart chart;
  chart.label =
      "Share of the runs whose wall clock was predicted with at most the given error, of either sign.";
  chart.data = {{"kind", "points"},
                {"x_title", "error of the wall clock, %"},
                {"y_title", "share of the runs, %"},
                {"y_most", 100},
                {"linear", true},
                {"series", Json::array({points_of("wall clock", true, points)})}};
  chart.table =
      table("Errors of the wall clock", {{"share of the runs", true}, {"error at most", true}}, rows);
  return chart;
}

}  // namespace

std::string answer_of(const Validation& validation) {
  const Validation::Error* of = wall_clock_of(validation.groups.front());
  if (of == nullptr) return fmt::format("{} measured runs and their predictions", validation.runs.size());
  return fmt::format("Half of {} wall clocks were predicted within {}", validation.runs.size(),
                     size_text(of->median, "wall_clock"));
}

std::string validation_section(const Validation& validation) {
  const Validation::Group& all = validation.groups.front();
  std::string html;
  if (const Validation::Error* of = wall_clock_of(all)) {
    const auto text = [](const std::optional<double>& error) { return size_text(error, "wall_clock"); };
    html += paragraph(fmt::format(
        "Half of the predicted wall clocks are within {} of the measured ones, and 95 % within {}. The worst "
        "prediction is {} off ({}).{}",
        text(of->median), text(of->p95), text(of->worst), of->worst_run,
        of->bias ? fmt::format(" The median error is {}: most predictions are {}.",
                               signed_text(of->bias, "wall_clock"), *of->bias < 0 ? "too short" : "too long")
                 : ""));
    html += figures({{"measured runs", std::to_string(validation.runs.size())},
                     {"median error", text(of->median)},
                     {"95 % of the errors are at most", text(of->p95)},
                     {"worst error", text(of->worst)},
                     {"median with sign", signed_text(of->bias, "wall_clock")}});
  }
  if (!validation.runs.empty()) {
    const auto [shortest, longest] =
        std::minmax_element(validation.runs.begin(), validation.runs.end(),
                            [](const auto& a, const auto& b) { return a.measured_s < b.measured_s; });
    html += paragraph(
        fmt::format("These runs took {} to {}. Predictions for conditions unlike theirs can be further off.",
                    human_time(shortest->measured_s), human_time(longest->measured_s)));
  }
  const auto paced = std::count_if(validation.runs.begin(), validation.runs.end(),
                                   [](const Validation::Compared& run) { return run.paced; });
  if (paced > 0)
    html += paragraph(fmt::format(
        "{} of {} runs slept for the step times that the prediction uses, so they test only the network.",
        paced, validation.runs.size()));
  html += heading(3, "Predicted and measured") + chart(predicted_chart(validation));
  if (const auto drawn = errors_chart(validation))
    html += heading(3, "How large the errors are") + chart(*drawn);
  std::vector<Row> rows;
  for (const Validation::Group& group : validation.groups) {
    if (const Validation::Error* of = wall_clock_of(group))
      rows.push_back({group.name, size_text(of->median, of->quantity), size_text(of->p95, of->quantity),
                      size_text(of->worst, of->quantity), signed_text(of->bias, of->quantity),
                      std::to_string(group.runs), of->worst_run});
  }
  const std::vector<Column> statistics = {
      {"median", true}, {"95 %", true}, {"worst", true}, {"median with sign", true}};
  std::vector<Column> columns = {{"group"}};
  columns.insert(columns.end(), statistics.begin(), statistics.end());
  columns.insert(columns.end(), {{"runs", true}, {"worst run"}});
  html += heading(3, "Groups of runs") + table("Errors of the wall clock", columns, rows);
  rows.clear();
  for (const Validation::Error& of : all.errors)
    rows.push_back({quantity_name(of.quantity), size_text(of.median, of.quantity),
                    size_text(of.p95, of.quantity), size_text(of.worst, of.quantity),
                    signed_text(of.bias, of.quantity), of.worst_run});
  columns = {{"quantity"}};
  columns.insert(columns.end(), statistics.begin(), statistics.end());
  columns.push_back({"worst run"});
  html += heading(3, "Other quantities") + table("Errors of all runs", columns, rows);
  rows.clear();
  for (const Validation::Compared* run : by_error(validation)) {
    if (rows.size() == kMostValidatedRuns) break;
    rows.push_back({run->name, signed_text(run->error, "wall_clock"), human_time(run->measured_s),
                    human_time(run->predicted_s), run->bound});
  }
  html += heading(3, "Largest errors") +
          table(fmt::format("{} of {} runs", rows.size(), validation.runs.size()),
                {{"run"}, {"error", true}, {"measured", true}, {"predicted", true}, {"limited by"}}, rows);
  return html;
}

}  // namespace fomoe::report
