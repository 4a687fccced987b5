// Runs that others published, beside their predictions (experiments/validation/published). The predictions
// were computed by runs.py in that folder, which takes up to half an hour; nothing is simulated here.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <sstream>
#include <stdexcept>

#include "experiments/figures/figure.hpp"
#include "experiments/figures/runs/published_runs_csv.hpp"
#include "experiments/files/csv.hpp"
#include "platforms/support/parse_number.hpp"

namespace fomoe::figures {
namespace {

constexpr const char* kColumns[] = {"id",        "system",    "run",           "status",         "quantity",
                                    "published", "predicted", "predicted_low", "predicted_high", "ratio",
                                    "known",     "inferred",  "why",           "source"};

using Row = std::map<std::string, std::string>;

// The table is compiled into the program, so an error in it is a bug of the program.
std::vector<Row> read_rows() {
  std::istringstream lines(kPublishedRunsCsv);
  std::string line;
  std::getline(lines, line);
  const std::vector<std::string> header = scenario::csv_cells(line);
  std::vector<Row> rows;
  while (std::getline(lines, line)) {
    const std::vector<std::string> cells = scenario::csv_cells(line);
    if (cells.size() != header.size())
      throw std::logic_error(fmt::format("runs.csv: {} cells in {}", cells.size(), cells.front()));
    Row& row = rows.emplace_back();
    for (std::size_t i = 0; i < header.size(); ++i) row[header[i]] = cells[i];
  }
  return rows;
}

/// The median of values that are not empty.
double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

constexpr double kNear = 0.15;    // of communication times and others, relative
constexpr double kPoints = 0.03;  // of utilisations, absolute

bool is_near(const Row& row, double ratio) {
  if (row.at("quantity") == "compute_utilization")
    return std::abs(*parse_number<double>(row.at("predicted")) -
                    *parse_number<double>(row.at("published"))) <= kPoints;
  return std::abs(ratio - 1) <= kNear;
}

struct Group {
  std::vector<double> ratios;
  int rows = 0, near = 0, unknown = 0;
};

std::string predicted_text(const Row& row) {
  if (!row.at("predicted").empty()) return row.at("predicted");
  if (!row.at("predicted_low").empty()) return row.at("predicted_low") + " to " + row.at("predicted_high");
  return row.at("status");
}

}  // namespace

Figure published_runs(Assumptions& assume) {
  Figure figure;
  figure.columns.assign(std::begin(kColumns), std::end(kColumns));
  std::vector<std::string> systems;
  std::map<std::string, Group> groups;
  std::string list;
  for (const Row& row : read_rows()) {
    std::vector<Cell>& cells = figure.rows.emplace_back();
    for (const std::string& column : figure.columns) {
      const auto number = parse_number<double>(row.at(column));
      cells.push_back(number ? Cell(*number) : Cell(row.at(column)));
    }
    const std::string& system = row.at("system");
    if (!groups.contains(system)) systems.push_back(system);
    Group& group = groups[system];
    ++group.rows;
    list += fmt::format("{:<44} {:<22} {:>12} {:>18} {:>8} {}\n", row.at("id"), row.at("quantity"),
                        row.at("published").empty() ? "-" : row.at("published"), predicted_text(row),
                        row.at("ratio"), row.at("known"));
    if (row.at("ratio").empty()) continue;
    const double ratio = *parse_number<double>(row.at("ratio"));
    group.ratios.push_back(ratio);
    group.near += is_near(row, ratio) ? 1 : 0;
    group.unknown += row.at("known") == "no" ? 1 : 0;
  }
  figure.text = fmt::format("{:<44} {:<22} {:>12} {:>18} {:>8} {}\n", "run", "quantity", "published",
                            "predicted", "ratio", "known before") +
                list + '\n' +
                fmt::format("{:<32} {:>5} {:>8} {:>9} {:>8} {:>6} {:>13}\n", "system", "rows", "median",
                            "smallest", "largest", "near", "not known");
  Json by_system = Json::array();
  for (const std::string& system : systems) {
    const Group& group = groups.at(system);
    if (group.ratios.empty()) {
      figure.text +=
          fmt::format("{:<32} {:>5} cannot be predicted, see the column why\n", system, group.rows);
      by_system.push_back({{"system", system}, {"rows", group.rows}, {"compared", 0}});
      continue;
    }
    const auto [low, high] = std::minmax_element(group.ratios.begin(), group.ratios.end());
    figure.text += fmt::format("{:<32} {:>5} {:>8.2f} {:>9.2f} {:>8.2f} {:>6} {:>13}\n", system, group.rows,
                               median(group.ratios), *low, *high, group.near, group.unknown);
    by_system.push_back({{"system", system},
                         {"rows", group.rows},
                         {"compared", group.ratios.size()},
                         {"median_ratio", median(group.ratios)},
                         {"smallest_ratio", *low},
                         {"largest_ratio", *high},
                         {"near", group.near},
                         {"not_known_before", group.unknown}});
  }
  figure.findings = {{"systems", by_system}};
  assume.state("source", "experiments/validation/published/runs.csv");
  figure.notes = {"A ratio is predicted ÷ published. Near: within 15 %, and utilisations within 3 points.",
                  "Known before: whether the author of the scenario knew the result.",
                  "experiments/validation/published/runs.py simulates all rows again, and README.md beside "
                  "it says why rows "
                  "are off; the column why has the reason of each row."};
  return figure;
}

}  // namespace fomoe::figures
