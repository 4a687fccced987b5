// The figures, charts and tables of sweeps and of the answers of `fomoe solve`.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "experiments/report/charts.hpp"
#include "experiments/report/html.hpp"
#include "experiments/report/scale.hpp"
#include "experiments/report/sections.hpp"
#include "experiments/text/human.hpp"
#include "experiments/text/units.hpp"

namespace fomoe::report {

using commands::human_bytes;
using commands::human_percent;
using commands::human_time;
using commands::Row;

namespace {

constexpr std::size_t kMostRows = 200, kMostLines = 8;

std::string text_of(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  return value.is_boolean() ? value.dump() : fmt::format("{:.6g}", value.get<double>());
}

/// "strategy.method = diloco, strategy.local_steps = 16", omitting the axis `left_out`.
std::string combination(const Sweep& sweep, const Sweep::Row& row, std::size_t left_out) {
  std::string text;
  for (std::size_t a = 0; a < sweep.axes.size(); ++a) {
    if (a == left_out) continue;
    if (!text.empty()) text += ", ";
    text += fmt::format("{} = {}", sweep.axes[a], text_of(row.values[a]));
  }
  return text;
}

constexpr std::size_t kNone = static_cast<std::size_t>(-1);

const Sweep::Row* fastest(const Sweep& sweep) {
  const Sweep::Row* best = nullptr;
  for (const Sweep::Row& row : sweep.rows) {
    if (row.problem.empty() && (best == nullptr || row.wall_clock_s < best->wall_clock_s)) best = &row;
  }
  return best;
}

/// The last axis that has at least two different numbers.
std::size_t numeric_axis(const Sweep& sweep) {
  for (std::size_t a = sweep.axes.size(); a-- > 0;) {
    const bool numbers = std::all_of(sweep.rows.begin(), sweep.rows.end(),
                                     [&](const Sweep::Row& row) { return row.values[a].is_number(); });
    const bool differ = std::any_of(sweep.rows.begin(), sweep.rows.end(), [&](const Sweep::Row& row) {
      return row.values[a] != sweep.rows.front().values[a];
    });
    if (numbers && differ) return a;
  }
  return kNone;
}

/// Whether the values span so many orders of magnitude that a linear axis would crowd them.
bool wide(const Json& points) {
  double least = points[0][0], most = least;
  for (const Json& point : points) {
    least = std::min(least, point[0].get<double>());
    most = std::max(most, point[0].get<double>());
  }
  return least > 0 && most > 20 * least;
}

std::string target_text(const Solved::Answer& answer) {
  return answer.target == "compute_utilization" ? human_percent(answer.target_value)
                                                : fmt::format("{:.6g}", answer.target_value);
}

}  // namespace

std::optional<Chart> sweep_chart(const Sweep& sweep) {
  const std::size_t axis = numeric_axis(sweep);
  if (axis == kNone) return std::nullopt;
  double most = 0;
  for (const Sweep::Row& row : sweep.rows) most = std::max(most, row.wall_clock_s);
  const Scale unit = time_scale(most);
  std::vector<std::string> names;  // in the order of the sweep
  std::map<std::string, Json> lines;
  for (const Sweep::Row& row : sweep.rows) {
    if (!row.problem.empty()) continue;
    const std::string name = combination(sweep, row, axis);
    if (!lines.contains(name)) {
      names.push_back(name);
      lines[name] = Json::array();
    }
    lines[name].push_back({row.values[axis], row.wall_clock_s / unit.size,
                           fmt::format("{} = {}: {}", sweep.axes[axis], text_of(row.values[axis]),
                                       human_time(row.wall_clock_s))});
  }
  if (names.empty()) return std::nullopt;
  // A chart with too many lines is unreadable, so it keeps the lines that reach the shortest times.
  const auto least = [&](const std::string& name) {
    double least_s = lines[name][0][1];
    for (const Json& point : lines[name]) least_s = std::min(least_s, point[1].get<double>());
    return least_s;
  };
  Chart chart;
  chart.label = "Wall clock as a function of " + sweep.axes[axis] + '.';
  if (names.size() > kMostLines) {
    chart.label += fmt::format(
        " The chart shows {1} of {0} combinations of the other keys: those with the shortest times.",
        names.size(), kMostLines);
    std::stable_sort(names.begin(), names.end(),
                     [&](const std::string& a, const std::string& b) { return least(a) < least(b); });
    names.resize(kMostLines);
  }
  Json series = Json::array();
  std::vector<Row> rows;
  for (const std::string& name : names) {
    series.push_back(points_of(name.empty() ? sweep.executor : name, true, lines[name]));
    for (const Json& point : lines[name]) {
      if (rows.size() < kMostRows)
        rows.push_back({name.empty() ? sweep.executor : name, text_of(point[0]),
                        human_time(point[1].get<double>() * unit.size)});
    }
  }
  chart.data = {{"kind", "points"},
                {"x_title", sweep.axes[axis]},
                {"y_title", "wall clock, " + unit.name},
                {"x_log", wide(lines[names.front()])},
                {"y_zero", true},
                {"series", series}};
  chart.table = table("Executor: " + sweep.executor,
                      {{"series"}, {sweep.axes[axis], true}, {"wall clock", true}}, rows);
  return chart;
}

std::optional<Chart> solved_chart(const Solved& solved) {
  const auto shown = solved.unit == "Bps" ? std::pair(scenario::kBitsPerByte / 1e9, std::string("Gb/s"))
                                          : std::pair(1.0, solved.unit);
  Json points = Json::array();
  std::vector<Row> rows;
  for (const Solved::Answer& answer : solved.answers) {
    if (answer.target != solved.answers.front().target || !answer.value) continue;
    points.push_back(
        {*answer.value * shown.first, answer.target_value, target_text(answer) + ": " + answer.text});
    rows.push_back({target_text(answer), answer.text});
  }
  if (points.size() < 2) return std::nullopt;
  const std::string unit = shown.second.empty() ? "" : ", " + shown.second;
  Chart chart;
  chart.label = fmt::format("Value of {} that reaches each target.", solved.key);
  chart.data = {{"kind", "points"},
                {"x_title", solved.key + unit},
                {"y_title", solved.answers.front().target},
                {"x_log", wide(points)},
                {"y_zero", true},
                {"series", Json::array({points_of(solved.executor, true, points)})}};
  chart.table =
      table("Executor: " + solved.executor, {{solved.answers.front().target}, {solved.key, true}}, rows);
  return chart;
}

std::string answer_of(const Sweep& sweep) {
  const Sweep::Row* best = fastest(sweep);
  if (best == nullptr) return "sweep: no combination is possible";
  return fmt::format("sweep of {} combinations; fastest: {}, {}", sweep.rows.size(),
                     human_time(best->wall_clock_s), combination(sweep, *best, kNone));
}

std::string answer_of(const Solved& solved) {
  return fmt::format("values of {} for {} target{}", solved.key, solved.answers.size(),
                     solved.answers.size() == 1 ? "" : "s");
}

std::string sweep_section(const Sweep& sweep) {
  std::string html;
  if (const Sweep::Row* best = fastest(sweep)) {
    html += figures({{"fastest", combination(sweep, *best, kNone)},
                     {"wall clock", human_time(best->wall_clock_s)},
                     {"compute utilisation", human_percent(best->compute_utilization)},
                     {"bytes sent per site and round", human_bytes(best->bytes_sent_per_site_per_round)}});
    html += paragraph("This answer does not include model quality.");
  }
  if (const auto drawn = sweep_chart(sweep)) html += heading(3, "Wall clock") + chart(*drawn);
  std::vector<Column> columns;
  for (const std::string& axis : sweep.axes) columns.push_back({axis, true});
  for (const char* title :
       {"wall clock", "utilisation", "bytes sent per site and round", "cost", "kWh", "perplexity"})
    columns.push_back({title, true});
  columns.push_back({"problem"});
  std::vector<Row> rows;
  for (const Sweep::Row& row : sweep.rows) {
    if (rows.size() == kMostRows) break;
    Row cells;
    for (const Json& value : row.values) cells.push_back(text_of(value));
    const bool possible = row.problem.empty();
    const auto known = [](const std::optional<double>& value) {
      return value ? fmt::format("{:.4g}", *value) : "";
    };
    cells.insert(cells.end(), {possible ? human_time(row.wall_clock_s) : "",
                               possible ? human_percent(row.compute_utilization) : "",
                               possible ? human_bytes(row.bytes_sent_per_site_per_round) : "",
                               known(row.cost), known(row.energy_kwh), known(row.perplexity), row.problem});
    rows.push_back(cells);
  }
  html += heading(3, "Rows") + table(rows.size() < sweep.rows.size()
                                         ? fmt::format("The first {} of {} rows; executor: {}", rows.size(),
                                                       sweep.rows.size(), sweep.executor)
                                         : "Executor: " + sweep.executor,
                                     columns, rows);
  return html;
}

std::string solved_section(const Solved& solved) {
  std::string html;
  std::vector<Row> rows;
  for (const Solved::Answer& answer : solved.answers)
    rows.push_back(
        {answer.target + ' ' + target_text(answer), answer.value ? answer.text : answer.answer, answer.why});
  html += table("Executor: " + solved.executor, {{"target"}, {solved.key, true}, {"explanation"}}, rows);
  if (const auto drawn = solved_chart(solved)) html += heading(3, "Targets") + chart(*drawn);
  return html;
}

}  // namespace fomoe::report
