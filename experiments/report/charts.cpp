#include "experiments/report/charts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "experiments/report/scale.hpp"
#include "experiments/text/human.hpp"

namespace fomoe::report {

using commands::human_bytes;
using commands::human_percent;
using commands::human_time;
using commands::Row;

namespace {

/// The bars of the parts of a time, row by row. Upkeep has bars only if some row has upkeep.
class TimeBars {
 public:
  explicit TimeBars(bool upkeep) : parts_(upkeep ? kNames.size() : kNames.size() - 1, Json::array()) {}

  /// Adds a row with these seconds to the bars, and their texts to the cells of its row in the table.
  void add(const std::array<double, 4>& seconds, const Scale& unit, Row& cells) {
    for (std::size_t part = 0; part < parts_.size(); ++part) {
      parts_[part].push_back(seconds[part] / unit.size);
      cells.push_back(human_time(seconds[part]));
    }
  }
  [[nodiscard]] Json series() const {
    Json all = Json::array();
    for (std::size_t part = 0; part < parts_.size(); ++part)
      all.push_back(bars_of(kNames[part].second, parts_[part]));
    return all;
  }
  [[nodiscard]] std::vector<Column> columns(std::vector<Column> before) const {
    for (std::size_t part = 0; part < parts_.size(); ++part) before.push_back({kNames[part].first, true});
    return before;
  }

 private:
  /// In the table and in the legend.
  static constexpr std::array<std::pair<const char*, const char*>, 4> kNames = {
      {{"compute", "compute"},
       {"exposed", "exposed communication"},
       {"idle", "idle"},
       {"upkeep", costmodel::kUpkeepName}}};
  std::vector<Json> parts_;
};

}  // namespace

Chart round_chart(const DrawnRound& round) {
  using costmodel::SpanKind;
  const costmodel::RoundTimeline& timeline = round.timeline;
  const Scale unit = time_scale(timeline.duration_s);
  Chart chart;
  chart.data = {{"kind", "timeline"},
                {"rows", round.nodes},
                {"x_title", "time since the start of the round, " + unit.name},
                {"x_most", timeline.duration_s / unit.size}};
  for (const SpanKind kind : {SpanKind::compute, SpanKind::transfer, SpanKind::under_way, SpanKind::upkeep}) {
    Json spans = Json::array();
    for (const costmodel::RoundSpan& span : timeline.spans) {
      if (span.kind == kind)
        spans.push_back({span.node, span.start_s / unit.size, span.end_s / unit.size, span.what});
    }
    if (kind == SpanKind::upkeep && spans.empty()) continue;  // only trainings have upkeep
    const std::string name = kind == SpanKind::transfer ? "transfer, including waiting"
                             : kind == SpanKind::upkeep ? costmodel::kUpkeepName
                                                        : to_string(kind);
    chart.data["series"].push_back({{"name", name}, {"spans", spans}});
  }
  chart.label = fmt::format("Timeline of round {}, which takes {}.", timeline.round + 1,
                            human_time(timeline.duration_s));
  if (timeline.left_out_nodes > 0)
    chart.label += fmt::format(" {} more nodes are not shown.", timeline.left_out_nodes);
  chart.height_rem = 5 + 2.6 * static_cast<double>(round.nodes.size());
  std::vector<Row> rows;
  constexpr std::size_t kMostRows = 200;
  for (const costmodel::RoundSpan& span : timeline.spans) {
    if (rows.size() == kMostRows) break;
    rows.push_back({round.nodes[static_cast<std::size_t>(span.node)], to_string(span.kind), span.what,
                    human_time(span.start_s), human_time(span.end_s), human_time(span.end_s - span.start_s)});
  }
  chart.table = table(
      rows.size() < timeline.spans.size()
          ? fmt::format("The first {} of {} spans", rows.size(), timeline.spans.size())
          : fmt::format("Gaps shorter than {} are not listed", human_time(timeline.resolution_s)),
      {{"site"}, {"activity"}, {"operation"}, {"start", true}, {"end", true}, {"duration", true}}, rows);
  return chart;
}

Chart sites_chart(const costmodel::RunReport& report) {
  constexpr std::size_t kMostSites = 32;
  const Scale unit = time_scale(report.round.duration_s);
  Json labels = Json::array();
  TimeBars bars(report.round.upkeep_s > 0);
  std::vector<Row> rows;
  for (const costmodel::SiteReport& site : report.sites) {
    if (rows.size() == kMostSites) break;
    labels.push_back(site.name);
    rows.push_back({site.name});
    bars.add({site.compute_s, site.exposed_communication_s, site.idle_s, site.upkeep_s}, unit, rows.back());
  }
  Chart chart;
  chart.label = fmt::format(
      "Time for which each site computes, communicates and idles in the mean of {} rounds. The mean round "
      "takes {}. The result has no timeline of a round.",
      report.round.count, human_time(report.round.duration_s));
  if (rows.size() < report.sites.size())
    chart.label +=
        fmt::format(" The chart shows the first {} of {} sites.", rows.size(), report.sites.size());
  chart.height_rem = 6 + 2.2 * static_cast<double>(rows.size());
  chart.data = {{"kind", "bars"},
                {"stacked", true},
                {"labels", labels},
                {"x_title", "time in the mean round, " + unit.name},
                {"series", bars.series()}};
  chart.table = table("The mean round, site by site", bars.columns({{"site"}}), rows);
  return chart;
}

Chart bytes_chart(const Run& run) {
  double most = 0, total = 0;
  for (const auto& [name, bytes] : run.sent_bytes) {
    most = std::max(most, bytes);
    total += bytes;
  }
  const Scale unit = bytes_scale(most);
  Json labels = Json::array(), values = Json::array(), ends = Json::array();
  std::vector<Row> rows;
  for (const auto& [name, bytes] : run.sent_bytes) {
    if (bytes == 0) continue;
    labels.push_back(class_name(name));
    values.push_back(bytes / unit.size);
    ends.push_back(human_bytes(bytes));
    rows.push_back({class_name(name), human_bytes(bytes), human_percent(bytes / total)});
  }
  rows.push_back({"total", human_bytes(total), ""});
  Chart chart;
  chart.label = "Bytes that a site sends in the mean round, by class.";
  chart.height_rem = 5 + 2.2 * static_cast<double>(labels.size());
  chart.data = {{"kind", "bars"},
                {"labels", labels},
                {"ends", ends},
                {"x_title", "bytes sent by a site in the mean round, " + unit.name},
                {"series", Json::array({bars_of("sent", values)})}};
  chart.table =
      table("Bytes sent by a site in the mean round", {{"class"}, {"bytes", true}, {"share", true}}, rows);
  return chart;
}

static std::string by_engine(const std::string& executor) {
  return executor == "simulated" ? "by simulation" : "by the closed form";
}

Chart sensitivity_chart(const Sensitivities& sensitivity) {
  constexpr std::size_t kMostBars = 8;
  Json labels = Json::array(), less = Json::array(), more = Json::array();
  std::vector<Row> rows;
  const auto change = [&](double after_s) { return (after_s / sensitivity.wall_clock_s - 1) * 100; };
  for (const costmodel::Sensitivity& input : sensitivity.inputs) {
    if (labels.size() < kMostBars) {
      labels.push_back(input.input);
      less.push_back(change(input.less_s));
      more.push_back(change(input.more_s));
    }
    rows.push_back({input.input, fmt::format("x {:.3g}", input.less_share), human_time(input.less_s),
                    fmt::format("{:+.2f} %", change(input.less_s)), fmt::format("x {:.3g}", input.more_share),
                    human_time(input.more_s), fmt::format("{:+.2f} %", change(input.more_s))});
  }
  Chart chart;
  chart.label = fmt::format(
      "Change of the wall clock if an input is about 10 % smaller or larger, computed {}. Without a change, "
      "the wall clock is {}.",
      by_engine(sensitivity.executor), human_time(sensitivity.wall_clock_s));
  chart.height_rem = 6 + 2.8 * static_cast<double>(labels.size());
  chart.data = {{"kind", "bars"},
                {"labels", labels},
                {"x_title", "change of the wall clock, %"},
                {"series", Json::array({bars_of("smaller input", less), bars_of("larger input", more)})}};
  chart.table = table(fmt::format("Wall clock without a change ({}): {}", sensitivity.executor,
                                  human_time(sensitivity.wall_clock_s)),
                      {{"input"},
                       {"smaller", true},
                       {"wall clock", true},
                       {"change", true},
                       {"larger", true},
                       {"wall clock", true},
                       {"change", true}},
                      rows);
  return chart;
}

Chart bandwidth_chart(const Run& run) {
  double most = 0;
  for (const auto& point : run.bandwidth_curve) most = std::max(most, point.wall_clock_s);
  const Scale unit = time_scale(most);
  Json points = Json::array();
  std::vector<Row> rows;
  for (const auto& point : run.bandwidth_curve) {
    const std::string factor = fmt::format("x {:.3g}", point.rate_factor);
    points.push_back(
        {point.rate_factor, point.wall_clock_s / unit.size, factor + ": " + human_time(point.wall_clock_s)});
    rows.push_back({factor, human_time(point.wall_clock_s), human_percent(point.compute_utilization)});
  }
  const std::string by = by_engine(run.bandwidth_executor);
  Chart chart;
  chart.label = "Wall clock if all links are slower or faster, computed " + by + ".";
  for (const auto& point : run.bandwidth_curve) {
    if (point.rate_factor != 1) continue;
    chart.label += fmt::format(" With the scenario's own rates (factor 1) it is {}; the answer above is {}.",
                               human_time(point.wall_clock_s), human_time(run.figures.wall_clock_s));
  }
  chart.data = {
      {"kind", "points"},
      {"x_title", "factor on the rate of every link"},
      {"y_title", "wall clock, " + unit.name},
      {"y_zero", true},
      {"series", Json::array({points_of(run.bandwidth_executor == "simulated" ? "simulated" : "closed form",
                                        true, points)})}};
  chart.table = table("Computed " + by,
                      {{"factor on link rates"}, {"wall clock", true}, {"compute utilisation", true}}, rows);
  return chart;
}

Chart times_chart(const std::vector<Run>& runs) {
  // A long bar may be cut off, so that the shortest one chooses the unit.
  double least = HUGE_VAL;
  for (const Run& run : runs) least = std::min(least, run.figures.wall_clock_s);
  const Scale unit = time_scale(least);
  Json labels = Json::array(), ends = Json::array(), more = Json::array();
  TimeBars bars(
      std::any_of(runs.begin(), runs.end(), [](const Run& run) { return run.figures.round.upkeep_s > 0; }));
  std::vector<Row> rows;
  for (const Run& run : runs) {
    const costmodel::MeanRound& round = run.figures.round;
    const auto in_run = [&](double per_round_s) { return per_round_s * static_cast<double>(round.count); };
    labels.push_back(run.name);
    ends.push_back(human_time(run.figures.wall_clock_s));
    more.push_back(", " + human_percent(run.figures.compute_utilization) + " compute");
    rows.push_back({run.name, human_time(run.figures.wall_clock_s)});
    bars.add({in_run(round.compute_s), in_run(round.exposed_communication_s), in_run(round.idle_s),
              in_run(round.upkeep_s)},
             unit, rows.back());
  }
  Chart chart;
  chart.label = "Components of the wall clock, as means over the sites.";
  chart.height_rem = 6 + 2.2 * static_cast<double>(runs.size());
  chart.data = {{"kind", "bars"},         {"stacked", true},      {"labels", labels},
                {"ends", ends},           {"more_of_ends", more}, {"x_title", "wall clock, " + unit.name},
                {"series", bars.series()}};
  chart.table = table("Means over sites", bars.columns({{"result"}, {"wall clock", true}}), rows);
  return chart;
}

}  // namespace fomoe::report
