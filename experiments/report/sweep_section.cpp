// The figures, charts and tables of sweeps and of the answers of `fomoe solve`.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "experiments/report/charts.hpp"
#include "experiments/report/html.hpp"
#include "experiments/report/readers/names.hpp"
#include "experiments/report/scale.hpp"
#include "experiments/report/sections.hpp"
#include "experiments/text/human.hpp"
#include "experiments/text/suggest.hpp"
#include "experiments/text/units.hpp"

namespace fomoe::report {

using commands::human_bytes;
using commands::human_money;
using commands::human_percent;
using commands::human_time;
using commands::Row;

namespace {

constexpr std::size_t kMostSweepRows = 200, kMostLines = 8;
constexpr double kSameTimes = 1e-3;  // of a time: less than the width of a line

std::string text_of(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_boolean()) return value.dump();
  // Values between two decades, such as 10^-1.75, have no last digit.
  const double number = value.get<double>();
  return std::abs(number) < 100 ? fmt::format("{:.4g}", number) : fmt::format("{:.6g}", number);
}

/// "diloco K=16", omitting the axis `left_out`.
std::string combination(const Sweep& sweep, const Sweep::Row& row, std::size_t left_out) {
  std::string text;
  for (std::size_t a = 0; a < sweep.axes.size(); ++a) {
    if (a == left_out) continue;
    const std::string setting = short_setting(sweep.axes[a], text_of(row.values[a]));
    // The method comes first, in whatever order the axes are.
    text.insert(sweep.axes[a] == "strategy.method" ? 0 : text.size(), setting + ' ');
  }
  if (!text.empty()) text.pop_back();
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

bool has_numbers(const Sweep& sweep, std::size_t axis) {
  return std::all_of(sweep.rows.begin(), sweep.rows.end(),
                     [&](const Sweep::Row& row) { return row.values[axis].is_number(); });
}

/// The axis of numbers with the most different ones, at least two; the last of several. The other axes then
/// make few lines of many points, which are easier to read than many lines of few.
std::size_t numeric_axis(const Sweep& sweep) {
  std::size_t best = kNone, most = 1;
  for (std::size_t a = 0; a < sweep.axes.size(); ++a) {
    if (!has_numbers(sweep, a)) continue;
    std::set<double> values;
    for (const Sweep::Row& row : sweep.rows) values.insert(row.values[a].get<double>());
    if (values.size() > 1 && values.size() >= most) {
      best = a;
      most = values.size();
    }
  }
  return best;
}

std::string target_text(const Solved::Answer& answer, bool named = false) {
  const bool share = answer.target == "compute_utilization";
  const std::string text =
      share ? human_percent(answer.target_value) : fmt::format("{:.6g}", answer.target_value);
  return !named ? text : share ? text + " compute utilisation" : answer.target + ' ' + text;
}

}  // namespace

/// A bar for each combination, for sweeps without an axis of numbers.
static std::optional<Chart> bars_chart(const Sweep& sweep) {
  constexpr std::size_t kMostBars = 40;
  Json labels = Json::array(), values = Json::array(), ends = Json::array();
  double most = 0;
  for (const Sweep::Row& row : sweep.rows) most = std::max(most, row.wall_clock_s);
  const Scale unit = time_scale(most);
  std::vector<Row> rows;
  std::size_t possible = 0;
  for (const Sweep::Row& row : sweep.rows) {
    if (!row.problem.empty() || ++possible > kMostBars) continue;
    rows.push_back({combination(sweep, row, kNone), human_time(row.wall_clock_s)});
    labels.push_back(rows.back()[0]);
    ends.push_back(rows.back()[1]);
    values.push_back(row.wall_clock_s / unit.size);
  }
  if (possible < 2) return std::nullopt;
  Chart chart;
  chart.label = "Wall clock of each combination.";
  if (possible > kMostBars)
    chart.label += fmt::format(" The chart shows the first {} of {}.", kMostBars, possible);
  chart.height_rem = 5 + 1.9 * static_cast<double>(labels.size());
  chart.data = {{"kind", "bars"},
                {"labels", labels},
                {"ends", ends},
                {"x_title", "wall clock, " + unit.name},
                {"series", Json::array({bars_of("wall clock", values)})}};
  chart.table = table("Executor: " + sweep.executor, {{"combination"}, {"wall clock", true}}, rows);
  return chart;
}

/// Names the lines that lie on each other, which a reader would otherwise look for in vain.
static std::string coinciding(const std::vector<std::string>& names,
                              const std::map<std::string, Json>& lines) {
  const auto same = [](const Json& a, const Json& b) {
    return a.size() == b.size() &&
           std::equal(a.begin(), a.end(), b.begin(), [](const Json& one, const Json& other) {
             const double y = one[1], z = other[1];
             return one[0] == other[0] && std::abs(y - z) <= kSameTimes * y;
           });
  };
  std::string text;
  std::vector<bool> named(names.size(), false);
  for (std::size_t i = 0; i < names.size(); ++i) {
    std::vector<std::string> others;
    for (std::size_t j = i + 1; j < names.size(); ++j) {
      if (named[i] || named[j] || !same(lines.at(names[i]), lines.at(names[j]))) continue;
      named[j] = true;
      others.push_back(names[j]);
    }
    if (!others.empty())
      text += fmt::format(" The line of {} also shows {}, with the same times.", names[i],
                          scenario::joined(others));
  }
  return text;
}

std::optional<Chart> sweep_chart(const Sweep& sweep) {
  const std::size_t axis = numeric_axis(sweep);
  if (axis == kNone) return bars_chart(sweep);
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
  chart.label += coinciding(names, lines);
  Json series = Json::array();
  std::vector<Column> columns = {{short_key(sweep.axes[axis]), true}};
  std::map<double, Row> by_value;
  for (const std::string& name : names) {
    series.push_back(points_of(name.empty() ? sweep.executor : name, true, lines[name]));
    for (const Json& point : lines[name]) {
      Row& row = by_value[point[0]];
      row.resize(columns.size() + 1);
      row[0] = text_of(point[0]);
      row[columns.size()] = human_time(point[1].get<double>() * unit.size);
    }
    columns.push_back({name.empty() ? sweep.executor : name, true});
  }
  std::vector<Row> rows;
  for (auto& [value, row] : by_value) {
    if (rows.size() < kMostSweepRows) rows.push_back(std::move(row));
  }
  chart.data = {{"kind", "points"},
                {"x_title", sweep.axes[axis]},
                {"y_title", "wall clock, " + unit.name},
                {"y_zero", true},
                {"series", series}};
  chart.table = table("Wall clock; executor: " + sweep.executor, columns, rows);
  chart.open_table = columns.size() > 2;
  return chart;
}

std::optional<Chart> solved_chart(const Solved& solved) {
  const auto shown = solved.unit == "Bps" ? std::pair(scenario::kBitsPerByte / 1e9, std::string("Gb/s"))
                                          : std::pair(1.0, solved.unit);
  if (solved.answers.empty()) return std::nullopt;
  const bool share = solved.answers.front().target == "compute_utilization";
  const double scale = share ? 100 : 1;
  Json points = Json::array();
  std::vector<Row> rows;
  for (const Solved::Answer& answer : solved.answers) {
    if (answer.target != solved.answers.front().target || !answer.value) continue;
    points.push_back(
        {*answer.value * shown.first, answer.target_value * scale, target_text(answer) + ": " + answer.text});
    rows.push_back({target_text(answer), answer.text});
  }
  if (points.size() < 2) return std::nullopt;
  const std::string unit = shown.second.empty() ? "" : ", " + shown.second;
  Chart chart;
  chart.label = fmt::format("Value of {} that reaches each target.", solved.key);
  chart.data = {{"kind", "points"},
                {"x_title", solved.key + unit},
                {"y_title", share ? "compute utilisation, %" : solved.answers.front().target},
                {"y_zero", true},
                {"series", Json::array({points_of(solved.executor, true, points)})}};
  if (share) chart.data["y_most"] = 100;
  chart.table =
      table("Executor: " + solved.executor, {{solved.answers.front().target}, {solved.key, true}}, rows);
  return chart;
}

std::string answer_of(const Sweep& sweep) {
  const Sweep::Row* best = fastest(sweep);
  if (best == nullptr) return "sweep: no combination is possible";
  return fmt::format("{} is the fastest of {} combinations: {}", combination(sweep, *best, kNone),
                     sweep.rows.size(), human_time(best->wall_clock_s));
}

std::string answer_of(const Solved& solved) {
  // "platform.bandwidth: 0.1261Gbps for 50.0 %, …, 47.73Gbps for 99.0 %"
  const auto text_of = [](const Solved::Answer& answer) {
    return fmt::format("{} for {}", answer.value ? answer.text : "no value", target_text(answer, true));
  };
  if (solved.answers.empty()) return "values of " + solved.key;
  std::string text = solved.key + ": " + text_of(solved.answers.front());
  if (solved.answers.size() > 2) text += ", …";
  if (solved.answers.size() > 1) text += ", " + text_of(solved.answers.back());
  return text;
}

/// States what does not differ between the rows, and empties its columns.
static std::string same_everywhere(const std::vector<Column>& columns, std::vector<Row>& rows) {
  std::vector<std::string> texts;
  for (std::size_t c = 0; c < columns.size() && rows.size() > 1; ++c) {
    const std::string text = rows[0][c];
    if (text.empty() || std::any_of(rows.begin(), rows.end(), [&](const Row& row) { return row[c] != text; }))
      continue;
    texts.push_back(columns[c].title + ' ' + text);
    for (Row& row : rows) row[c].clear();
  }
  return texts.empty() ? "" : paragraph("Equal in all rows of the table: " + scenario::joined(texts) + '.');
}

std::string sweep_section(const Sweep& sweep) {
  std::string html;
  if (const Sweep::Row* best = fastest(sweep)) {
    html += figures({{"fastest", combination(sweep, *best, kNone)},
                     {"wall clock", human_time(best->wall_clock_s)},
                     {"cost", best->cost ? human_money(*best->cost, sweep.currency) : "no prices given"},
                     {"compute utilisation", human_percent(best->compute_utilization)},
                     {"bytes sent per site and round", human_bytes(best->bytes_sent_per_site_per_round)}});
    html += about_scenario(sweep.inputs, sweep.axes);
    if (!sweep.inputs.scenario.is_object() || !sweep.inputs.scenario.contains("quality"))
      html += paragraph("This answer does not include model quality.");
    if (sweep.inputs.scenario.is_object() && sweep.inputs.scenario.contains("failures"))
      html += paragraph("The rows leave out failures of sites and links ([failures]).");
  }
  if (const auto drawn = sweep_chart(sweep)) html += heading(3, "Wall clock") + chart(*drawn);
  std::vector<Column> columns;
  for (std::size_t a = 0; a < sweep.axes.size(); ++a)
    columns.push_back({short_key(sweep.axes[a]), has_numbers(sweep, a)});
  const std::string cost = sweep.currency.empty() ? "cost" : "cost, " + sweep.currency;
  for (const std::string& title :
       {std::string("wall clock"), cost, std::string("utilisation"),
        std::string("bytes sent per site and round"), std::string("kWh"), std::string("perplexity")})
    columns.push_back({title, true});
  columns.push_back({"problem"});
  std::vector<Row> rows;
  for (const Sweep::Row& row : sweep.rows) {
    if (rows.size() == kMostSweepRows) break;
    Row cells;
    for (const Json& value : row.values) cells.push_back(text_of(value));
    const bool possible = row.problem.empty();
    const auto known = [](const std::optional<double>& value) {
      return value ? fmt::format("{:.4g}", *value) : "";
    };
    // What decides comes first: a phone shows the first columns.
    cells.insert(cells.end(),
                 {possible ? human_time(row.wall_clock_s) : "", row.cost ? human_money(*row.cost, "") : "",
                  possible ? human_percent(row.compute_utilization) : "",
                  possible ? human_bytes(row.bytes_sent_per_site_per_round) : "", known(row.energy_kwh),
                  known(row.perplexity), row.problem});
    rows.push_back(cells);
  }
  const std::string same = same_everywhere(columns, rows);
  const std::string shown = rows.size() < sweep.rows.size()
                                ? fmt::format("The first {} of {} rows; executor: {}", rows.size(),
                                              sweep.rows.size(), sweep.executor)
                                : "Executor: " + sweep.executor;
  constexpr std::size_t kFewRows = 16;
  return html + heading(3, "All combinations") + same +
         (rows.size() > kFewRows ? folded("The table of all combinations", table(shown, columns, rows))
                                 : table(shown, columns, rows)) +
         inputs_section(
             sweep.inputs,
             sweep.rows.size() > 1 ? "These are the inputs of the first possible combination." : "", true);
}

std::string solved_section(const Solved& solved) {
  std::string html = about_scenario(solved.inputs, {solved.key});
  std::vector<Row> rows;
  for (const Solved::Answer& answer : solved.answers)
    rows.push_back(
        {answer.target + ' ' + target_text(answer), answer.value ? answer.text : answer.answer, answer.why});
  html += table("Executor: " + solved.executor, {{"target"}, {solved.key, true}, {"explanation"}}, rows);
  if (const auto drawn = solved_chart(solved)) html += heading(3, "Targets") + chart(*drawn);
  return html + inputs_section(solved.inputs, "", true);
}

}  // namespace fomoe::report
