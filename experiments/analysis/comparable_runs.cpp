#include "experiments/analysis/comparable_runs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "experiments/text/human.hpp"

namespace fomoe::commands {

namespace {

constexpr std::size_t kShown = 5;
constexpr double kComparable = 1.5;  // largest distance of a run that counts as comparable

double distance_of(const scenario::PublishedSteps& row, const costmodel::Scenario& scenario,
                   const std::string& accelerator) {
  if (!row.active_parameters) return std::numeric_limits<double>::infinity();
  const auto active = static_cast<double>(costmodel::active_parameters(scenario.model));
  const auto total = static_cast<double>(costmodel::count_parameters(scenario.model).total());
  double distance = std::abs(std::log(*row.active_parameters / active));
  if (row.total_parameters)
    distance += 0.5 * std::abs(std::log(*row.total_parameters / *row.active_parameters * active / total));
  if (row.sequence_length)
    distance +=
        0.5 * std::abs(std::log(*row.sequence_length / static_cast<double>(scenario.model.sequence_length)));
  return distance + (accelerator.empty() || row.accelerator == accelerator ? 0 : 0.5);
}

struct Device {
  std::string name, dtype;
};

/// The catalogue's device and number format with the scenario's peak; empty if there is none.
Device device_of(const costmodel::Scenario& scenario) {
  for (const scenario::Accelerator& row : scenario::accelerators()) {
    for (const auto& [dtype, peak] : row.peak_flops)
      if (std::abs(peak / scenario.peak_flops - 1) < 0.001) return {row.name, dtype};
  }
  return {};
}

/// Shares of the peak differ between number formats; 16-bit formats have one peak.
bool other_format(const scenario::PublishedSteps& row, const std::string& dtype) {
  const auto family = [](const std::string& name) { return name == "fp16" ? "bf16" : name; };
  return !dtype.empty() && family(scenario::number_format(row)) != family(dtype);
}

}  // namespace

std::vector<const scenario::PublishedSteps*> by_distance(const costmodel::Scenario& scenario,
                                                         const std::string& accelerator) {
  std::vector<std::pair<double, const scenario::PublishedSteps*>> rows;
  for (const scenario::PublishedSteps& row : scenario::published_steps())
    rows.emplace_back(distance_of(row, scenario, accelerator), &row);
  std::stable_sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<const scenario::PublishedSteps*> sorted;
  for (const auto& entry : rows) sorted.push_back(entry.second);
  return sorted;
}

std::optional<ComparableMfu> comparable_mfu(const costmodel::Scenario& scenario) {
  ComparableMfu found;
  const auto [device, dtype] = device_of(scenario);
  found.device = device;
  for (const scenario::PublishedSteps* row : by_distance(scenario, found.device)) {
    if (distance_of(*row, scenario, found.device) > kComparable || found.runs == kShown) break;
    const std::optional<double> reached = scenario::mfu_of(*row);
    if (!reached || other_format(*row, dtype)) continue;
    found.low = found.runs == 0 ? *reached : std::min(found.low, *reached);
    found.high = std::max(found.high, *reached);
    found.ids += (found.ids.empty() ? "" : ", ") + row->id;
    ++found.runs;
  }
  return found.runs == 0 ? std::nullopt : std::optional(found);
}

std::string comparable_text(const costmodel::Scenario& scenario) {
  if (std::holds_alternative<costmodel::ProfiledCompute>(scenario.compute)) return "";
  const std::optional<ComparableMfu> found = comparable_mfu(scenario);
  if (!found)
    return "The step time was not measured, and no published run is comparable (fomoe list profiles).\n\n";
  return fmt::format(
      "The step time was not measured. The {} published run{} closest to this model{} reached an MFU of {} "
      "to {}:\n  {} (fomoe list profiles)\n\n",
      found->runs, found->runs == 1 ? "" : "s", found->device.empty() ? "" : " and device",
      human_percent(found->low), human_percent(found->high), found->ids);
}

std::string published_table(const costmodel::Scenario* scenario) {
  std::vector<const scenario::PublishedSteps*> rows;
  if (scenario != nullptr) {
    rows = by_distance(*scenario, device_of(*scenario).name);
  } else {
    for (const scenario::PublishedSteps& row : scenario::published_steps()) rows.push_back(&row);
  }
  std::vector<Row> table = {
      {"id", "active", "total", "accelerator", "GPUs", "sequence", "dtype", "tokens/s per GPU", "MFU"}};
  std::vector<std::string> sources = {"source"};
  const auto count = [](const std::optional<double>& value) {
    return value ? human_count(*value) : std::string("-");
  };
  for (const scenario::PublishedSteps* row : rows) {
    const auto rate = scenario::tokens_per_s_per_gpu(*row);
    const auto mfu = scenario::mfu_of(*row);
    table.push_back(
        {row->id, count(row->active_parameters), count(row->total_parameters), row->accelerator,
         row->gpus ? fmt::format("{:g}", *row->gpus) : "-",
         row->sequence_length ? fmt::format("{:g}", *row->sequence_length) : "-",
         row->dtype.empty() ? "-" : row->dtype, rate ? fmt::format("{:.4g}", *rate) : "-",
         mfu ? fmt::format("{}{}", row->stated_mfu || row->quantity == "mfu" ? "" : "~", human_percent(*mfu))
             : "-"});
    sources.push_back(row->source);
  }
  return aligned_before(table, sources) +
         "\nTraining speeds that others measured and published; experiments/data/published_steps.csv has "
         "notes on each.\nA scenario uses one with compute.profile = \"published:ID\". \"~\": the MFU "
         "follows from 6 FLOPs per active\nparameter and token, or from the stated FLOP/s, and the peak of "
         "the number format. \"-\": not stated.\n";
}

}  // namespace fomoe::commands
