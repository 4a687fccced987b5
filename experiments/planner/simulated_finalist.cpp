#include "experiments/planner/simulated_finalist.hpp"

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "costmodel/counts/memory.hpp"
#include "costmodel/formula/closed_form.hpp"
#include "costmodel/inputs/prices.hpp"
#include "experiments/planner/published_basis.hpp"
#include "experiments/planner/rules.hpp"
#include "experiments/results/json_values.hpp"

namespace fomoe::planner {

namespace {

using scenario::Json;

std::optional<double> number(const Json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_number()) return std::nullopt;
  return found->get<double>();
}

/// The amounts of a run. If sites fail, they are those of the median run.
Amounts amounts_of(const Json& report) {
  constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();
  constexpr double kNever = std::numeric_limits<double>::infinity();
  Amounts amounts{report["wall_clock_s"], kUnknown, kUnknown};
  if (const auto cost = report.find("cost"); cost != report.end() && cost->is_object()) {
    amounts.cost = number(*cost, "cost_total").value_or(kUnknown);
    if (const double ports = number(*cost, "port_cost").value_or(0); ports > 0)
      amounts.ports_per_month = ports / std::ceil(amounts.time_s / costmodel::kMonthSeconds);
    amounts.energy_kwh = number(*cost, "energy_kwh").value_or(kUnknown);
  }
  const auto failing = report.find("goodput");
  if (failing == report.end() || !failing->is_object()) return amounts;
  // A run that never ends has no number for its time, nor for what it takes.
  amounts.time_s = number(*failing, "finish_p50_s").value_or(kNever);
  if (!std::isnan(amounts.cost)) amounts.cost = number(*failing, "cost_p50").value_or(kNever);
  if (!std::isnan(amounts.energy_kwh))
    amounts.energy_kwh = number(*failing, "energy_p50_kwh").value_or(kNever);
  return amounts;
}

/// The factor to equal loss, if only its range is known. null stands for no number of tokens.
std::optional<costmodel::EqualLossRange> range_of(const Json& quality) {
  const auto found = quality.find("to_equal_loss");
  if (found == quality.end()) return std::nullopt;
  const Json& factor = (*found)["factor"];
  const auto end = [&](const char* key) {
    return number(factor, key).value_or(std::numeric_limits<double>::infinity());
  };
  return costmodel::EqualLossRange{end("low"), end("centre_low"), end("centre_high"), end("high")};
}

}  // namespace

FinalistSimulation::FinalistSimulation(const costmodel::Scenario& scenario, const sim::RunOptions& options)
    : child_([&](ChildOutput& output) {
        const Json both = {
            {"closed_form", scenario::to_json(costmodel::closed_form(scenario))},
            {"simulated", scenario::to_json(sim::simulate_scenario(scenario, options).report)}};
        output.put(both.dump(-1, ' ', false, Json::error_handler_t::replace));
      }) {}

void FinalistSimulation::finish(Finalist& finalist, const ScreeningOptions& options) {
  std::string text;
  try {
    child_.get(text);
    child_.finish();
  } catch (const ChildError& error) {
    finalist.problem = error.what();
    return;
  }
  const Json both = Json::parse(text);
  const Json& report = both["simulated"];
  finalist.closed_form = amounts_of(both["closed_form"]);
  finalist.simulated = amounts_of(report);
  finalist.without_failures_s = report["wall_clock_s"];
  const Json& round = report["round"];
  finalist.exposed_share = round["exposed_communication_s"].get<double>() / round["duration_s"].get<double>();
  finalist.compute_utilization = report["compute_utilization"];
  finalist.bytes_sent_per_site_per_round = report["bytes_sent_per_site_per_round"];
  finalist.busiest_link = report["bottleneck"]["link"];
  finalist.gpu_memory = costmodel::fullest_gpu(costmodel::counts_of(finalist.scenario));
  if (const auto quality = report.find("quality"); quality != report.end() && quality->is_object()) {
    finalist.perplexity = number(*quality, "perplexity");
    finalist.plus_minus = number(*quality, "plus_minus");
    finalist.equal_loss_range = range_of(*quality);
    finalist.equal_loss_factor = number(*quality, "equal_loss_factor");
    if (finalist.equal_loss_range && std::isfinite(finalist.equal_loss_range->centre()))
      finalist.equal_loss_factor = finalist.equal_loss_range->centre();
    if (!finalist.perplexity) finalist.quality_reason = quality->value("reason", "");
    if (coarser_wire(finalist.scenario.strategy.wire.bytes_per_element(), options.known_bytes_per_element)) {
      finalist.perplexity = finalist.plus_minus = finalist.equal_loss_factor = std::nullopt;
      finalist.equal_loss_range.reset();
      finalist.quality_reason = "the wire format is less precise than in the unchanged scenario";
    }
  }
  finalist.published = published_loss(finalist.scenario);
  finalist.value = finalist.at_equal_loss().of(options.minimise);
}

}  // namespace fomoe::planner
