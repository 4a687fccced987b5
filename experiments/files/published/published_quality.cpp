#include "experiments/files/published/published_quality.hpp"

#include <fmt/format.h>

#include <map>
#include <sstream>
#include <stdexcept>

#include "experiments/files/csv.hpp"
#include "experiments/files/published/published_quality_csv.hpp"
#include "platforms/support/parse_number.hpp"

namespace fomoe::scenario {
namespace {

/// One row by the names of its columns. The table is compiled into the program, so an error in it is a bug of
/// the program. A test reads all of it.
class PublishedCells {
 public:
  PublishedCells(const std::map<std::string, std::size_t>& columns, std::vector<std::string> cells)
      : columns_(columns), cells_(std::move(cells)) {
    if (cells_.size() != columns_.size())
      throw std::logic_error(
          fmt::format("published_quality.csv: {} cells in {}", cells_.size(), cells_.front()));
  }
  [[nodiscard]] const std::string& text(const char* column) const { return cells_[columns_.at(column)]; }
  [[nodiscard]] std::optional<double> number(const char* column) const { return read<double>(column); }
  [[nodiscard]] std::int64_t count(const char* column) const {
    return read<std::int64_t>(column).value_or(0);
  }

 private:
  template <class Number>
  [[nodiscard]] std::optional<Number> read(const char* column) const {
    if (text(column).empty()) return std::nullopt;
    const auto number = parse_number<Number>(text(column));
    if (!number)
      throw std::logic_error(
          fmt::format("published_quality.csv: {}: {} \"{}\"", cells_.front(), column, text(column)));
    return number;
  }
  const std::map<std::string, std::size_t>& columns_;
  std::vector<std::string> cells_;
};

costmodel::PublishedRun published_run(const PublishedCells& cells) {
  costmodel::PublishedRun run;
  run.id = cells.text("id");
  run.paper = cells.text("paper");
  run.arxiv = cells.text("arxiv");
  run.method = cells.text("method");
  run.family = cells.text("family");
  run.parameters_active = cells.number("parameters_active");
  run.architecture = cells.text("architecture");
  run.tokens = cells.number("tokens");
  run.replicas = cells.count("replicas");
  run.local_steps = cells.count("local_steps");
  run.steps = cells.number("steps");
  run.rounds = cells.number("rounds");
  run.outer_optimizer = cells.text("outer_optimizer");
  run.outer_learning_rate = cells.number("outer_learning_rate");
  run.wire_bits = cells.number("wire_bits");
  run.density = cells.number("density");
  run.overlap_steps = cells.number("overlap_steps");
  run.batch_rule = cells.text("batch_rule");
  run.data = cells.text("data");
  run.same_data = cells.text("same_data");
  run.baseline_kind = cells.text("baseline_kind");
  run.baseline_tuned = cells.text("baseline_tuned");
  run.metric = cells.text("metric");
  run.value = cells.number("value");
  run.baseline_value = cells.number("baseline_value");
  run.outcome = cells.text("outcome");
  run.place = cells.text("place");
  run.hand = cells.text("hand");
  run.checked = cells.text("checked");
  return run;
}

costmodel::PublishedRuns read_published_runs() {
  std::istringstream lines(kPublishedQualityCsv);
  std::string line;
  std::getline(lines, line);
  std::map<std::string, std::size_t> columns;
  for (const std::string& name : csv_cells(line)) columns.emplace(name, columns.size());
  costmodel::PublishedRuns runs;
  while (std::getline(lines, line)) {
    if (!line.empty()) runs.push_back(published_run(PublishedCells(columns, csv_cells(line))));
  }
  return runs;
}

}  // namespace

const std::shared_ptr<const costmodel::PublishedLosses>& published_losses() {
  static const auto all = std::make_shared<const costmodel::PublishedLosses>(read_published_runs());
  return all;
}

}  // namespace fomoe::scenario
