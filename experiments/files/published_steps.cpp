#include "experiments/files/published_steps.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <sstream>
#include <stdexcept>

#include "costmodel/model/flops.hpp"
#include "experiments/files/csv.hpp"
#include "experiments/files/published_steps_csv.hpp"
#include "platforms/support/parse_number.hpp"

namespace fomoe::scenario {
namespace {

// The catalogue is compiled into the program, so an error in it is a bug of the program. A test reads all of
// it.
double number_of(const std::string& cell) {
  const auto number = parse_number<double>(cell);
  if (!number) throw std::logic_error(fmt::format("published_steps.csv: \"{}\" is not a number", cell));
  return *number;
}

std::vector<PublishedSteps> read_published_steps() {
  std::istringstream lines(kPublishedStepsCsv);
  std::string line;
  std::getline(lines, line);
  std::map<std::string, std::size_t> columns;
  for (const std::string& name : csv_cells(line)) columns.emplace(name, columns.size());
  std::vector<PublishedSteps> rows;
  while (std::getline(lines, line)) {
    if (line.empty()) continue;
    const std::vector<std::string> cells = csv_cells(line);
    if (cells.size() != columns.size())
      throw std::logic_error(fmt::format("published_steps.csv: {} cells in {}", cells.size(), cells.front()));
    const auto text = [&](const char* name) { return cells[columns.at(name)]; };
    const auto number = [&](const char* name) -> std::optional<double> {
      return text(name).empty() ? std::nullopt : std::optional(number_of(text(name)));
    };
    PublishedSteps row;
    row.id = text("id");
    row.model = text("model");
    row.accelerator = text("accelerator");
    row.total_parameters = number("total_parameters");
    row.active_parameters = number("active_parameters");
    row.gpus = number("gpus");
    row.global_batch_sequences = number("global_batch_sequences");
    row.sequence_length = number("sequence_length");
    row.dtype = text("dtype");
    row.quantity = text("quantity");
    row.value = number_of(text("value"));
    row.stated_mfu = number("mfu");
    row.source = text("source");
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace

const std::vector<PublishedSteps>& published_steps() {
  static const std::vector<PublishedSteps> all = read_published_steps();
  return all;
}

const PublishedSteps* find_published_steps(const std::string& id) {
  const auto& all = published_steps();
  const auto found = std::find_if(all.begin(), all.end(), [&](const auto& row) { return row.id == id; });
  return found == all.end() ? nullptr : &*found;
}

std::optional<double> tokens_per_s_per_gpu(const PublishedSteps& row) {
  if (row.quantity == "tokens_per_s_per_gpu") return row.value;
  if (row.quantity != "step_time_s" || !row.gpus || !row.global_batch_sequences || !row.sequence_length)
    return std::nullopt;
  return *row.global_batch_sequences * *row.sequence_length / (*row.gpus * row.value);
}

std::string number_format(const PublishedSteps& row) {
  if (row.dtype.empty()) return "bf16";
  return row.dtype == "mxfp8" ? "fp8" : row.dtype;
}

double peak_flops(const PublishedSteps& row) {
  const Accelerator* accelerator = find_accelerator(row.accelerator);
  if (accelerator == nullptr) return 0;
  const auto found = accelerator->peak_flops.find(number_format(row));
  return found != accelerator->peak_flops.end() ? found->second : 0;
}

std::optional<double> mfu_of(const PublishedSteps& row) {
  if (row.stated_mfu) return row.stated_mfu;
  if (row.quantity == "mfu") return row.value;
  const double peak = peak_flops(row);
  if (peak == 0) return std::nullopt;
  if (row.quantity == "model_tflops_per_gpu") return row.value * 1e12 / peak;
  const std::optional<double> rate = tokens_per_s_per_gpu(row);
  if (!rate || !row.active_parameters) return std::nullopt;
  return costmodel::model_flops_utilisation(costmodel::kTrainingFlopsPerParameter * *row.active_parameters,
                                            *rate, peak);
}

}  // namespace fomoe::scenario
