#include <fmt/format.h>

#include <cmath>

#include "costmodel/model/flops.hpp"
#include "costmodel/plan/method.hpp"
#include "costmodel/plan/site_shares.hpp"
#include "experiments/analysis/sensitivity.hpp"
#include "experiments/output/planner_text.hpp"
#include "experiments/output/simulate_line.hpp"
#include "experiments/results/cost_json.hpp"
#include "experiments/results/json_values.hpp"
#include "experiments/text/human.hpp"

namespace fomoe::commands {

namespace {

using planner::Basis;
using planner::Finalist;
using scenario::Json;

Json number(double value) { return std::isnan(value) ? Json(nullptr) : Json(value); }
Json number(const std::optional<double>& value) { return value ? Json(*value) : Json(nullptr); }

/// The range of the factor to equal loss, whose centre ranks; null if there is none, and for an end that no
/// number of tokens reaches.
Json range(const std::optional<costmodel::EqualLossRange>& range) {
  if (!range) return nullptr;
  const auto end = [](double factor) { return std::isfinite(factor) ? Json(factor) : Json(nullptr); };
  return {{"low", end(range->low)}, {"centre", end(range->centre())}, {"high", end(range->high)}};
}

/// The currency of the scenario's prices; null without prices.
Json currency(const costmodel::Scenario& scenario) {
  return scenario.prices ? Json(scenario.prices->currency) : Json(nullptr);
}

Json amounts(const planner::Amounts& amounts, const costmodel::Scenario& scenario) {
  return {{"wall_clock_s", number(amounts.time_s)},
          {"cost_total", number(amounts.cost)},
          {"currency", std::isnan(amounts.cost) ? Json(nullptr) : currency(scenario)},
          {"energy_kwh", number(amounts.energy_kwh)}};
}

Json finalist_json(const PlannerAnswer& plan, const Finalist& finalist) {
  Json sites = Json::array();
  for (const platforms::Site& site : finalist.scenario.platform.sites) sites.push_back(site.name);
  return {
      {"method", finalist.method()},
      {"local_steps", finalist.steps_per_round()},
      {"rounds", finalist.rounds()},
      {"expert_overlap", costmodel::effective_overlap(finalist.scenario)},
      {"placement", to_string(finalist.scenario.strategy.placement)},
      {"reshuffle_rounds", finalist.scenario.strategy.reshuffle_rounds},
      {"collective", to_string(finalist.scenario.strategy.collective)},
      {"payload_dtype", to_string(finalist.scenario.strategy.wire.type)},
      {"sites", sites},
      {"set", finalist.settings},
      {"command", simulate_line(plan.question, finalist)},
      {"value", number(finalist.value)},
      {"simulated", amounts(finalist.simulated, finalist.scenario)},
      {"closed_form", amounts(finalist.closed_form, finalist.scenario)},
      {"compute_utilization", finalist.compute_utilization},
      {"exposed_share", finalist.exposed_share},
      {"bytes_sent_per_site_per_round", finalist.bytes_sent_per_site_per_round},
      {"memory_bytes_per_gpu", finalist.gpu_memory.needed},
      {"perplexity", number(finalist.perplexity)},
      {"equal_loss_factor", finalist.equal_loss_range ? Json(nullptr) : number(finalist.equal_loss_factor)},
      {"equal_loss_factor_range", range(finalist.equal_loss_range)},
      {"loss", finalist.published ? scenario::loss_json(finalist.published->level) : Json(nullptr)},
      {"probability_that_first_needs_less", number(finalist.first_needs_less)},
      {"problem", finalist.problem}};
}

const char* name_of(Basis basis) {
  switch (basis) {
    case Basis::published:
      return "published-equal-loss";
    case Basis::equal_loss:
      return "equal-loss";
    case Basis::target:
      return "target-perplexity";
    case Basis::perplexity:
      return "perplexity-frontier";
    case Basis::unknown:
      return "quality-unknown";
  }
  return "";
}

const char* name_of(planner::Measure measure) {
  return measure == planner::Measure::time ? "time" : measure == planner::Measure::cost ? "cost" : "energy";
}

}  // namespace

std::string planner_json(const PlannerAnswer& plan) {
  const planner::Answer& answer = plan.answer;
  const planner::Limits& limits = plan.options.screening.limits;
  Json chosen = Json::array(), methods = Json::array(), dropped = Json::array();
  for (const std::size_t i : answer.chosen) chosen.push_back(finalist_json(plan, answer.finalists[i]));
  for (const planner::MethodBest& best : answer.methods) {
    Json entry = finalist_json(plan, answer.finalists[best.finalist]);
    entry["loses_to"] =
        best.loses_to ? Json(simulate_line(plan.question, answer.finalists[*best.loses_to])) : Json(nullptr);
    methods.push_back(entry);
  }
  for (const auto& [reason, entry] : plan.screening.dropped)
    dropped.push_back({{"reason", reason}, {"count", entry.count}, {"example", entry.example}});
  Json document = {{"schema", "fomoe.planner/1"},
                   {"minimise", name_of(plan.options.screening.minimise)},
                   {"currency", currency(answer.finalists.front().scenario)},
                   {"within",
                    {{"time_s", number(limits.time_s)},
                     {"cost", number(limits.cost)},
                     {"energy_kwh", number(limits.energy_kwh)},
                     {"perplexity", number(limits.perplexity)},
                     {"gpu_memory_bytes", number(limits.gpu_memory_bytes)}}},
                   {"basis", name_of(answer.basis)},
                   {"target_perplexity", number(answer.target_perplexity)},
                   {"why_no_choice", answer.why_unknown},
                   {"choice", answer.has_choice() ? chosen.front() : Json(nullptr)},
                   {"recommended", answer.chosen.empty() ? Json(nullptr) : chosen.front()},
                   {"slack", plan.options.slack},
                   {"riskier_rows", answer.riskier},
                   {answer.has_choice() ? "ranking" : "frontier", chosen},
                   {"methods", methods},
                   {"scenario_as_it_is", finalist_json(plan, answer.finalists.front())},
                   {"candidates", plan.screening.candidates},
                   {"simulated", answer.simulated},
                   {"dropped", dropped},
                   {"methods_tried", plan.space.methods},
                   {"tried", plan.space.tried}};
  for (const Least& least : plan.least) {
    Json entry = finalist_json(plan, least.finalist);
    entry["least"] = name_of(least.measure);
    document["without_limits"].push_back(entry);
  }
  if (!answer.chosen.empty())
    document["sensitivity"] =
        sensitivity_json(brief_sensitivity(answer.finalists[answer.chosen.front()].scenario));
  scenario::add_inputs(document, answer.finalists.front().scenario);
  return scenario::to_text(document);
}

std::string planner_csv(const PlannerAnswer& plan) {
  std::string text =
      "place,method,sites,site_names,local_steps,expert_overlap,placement,reshuffle_rounds,collective,"
      "payload_"
      "dtype,wall_clock_s,currency,cost_total,energy_kwh,closed_form_wall_clock_s,compute_utilization,"
      "perplexity,"
      "command,"
      "problem\n";
  const auto cell = [](double value) { return std::isnan(value) ? std::string() : fmt::format("{}", value); };
  const planner::Answer& answer = plan.answer;
  for (std::size_t i = 0; i < answer.finalists.size(); ++i) {
    const Finalist& finalist = answer.finalists[i];
    std::string place = i == 0 ? "baseline" : "";
    for (std::size_t p = 0; p < answer.chosen.size(); ++p) {
      if (answer.chosen[p] == i) place = std::to_string(p + 1);
    }
    std::string names;
    for (const platforms::Site& site : finalist.scenario.platform.sites)
      names += (names.empty() ? "" : " ") + site.name;
    const costmodel::Strategy& strategy = finalist.scenario.strategy;
    text += fmt::format(
        "{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}\n", place, strategy.method->name,
        finalist.scenario.sites(), csv_cell(names), finalist.steps_per_round(),
        costmodel::effective_overlap(finalist.scenario), to_string(strategy.placement),
        strategy.reshuffle_rounds, to_string(strategy.collective), to_string(strategy.wire.type),
        cell(finalist.simulated.time_s),
        std::isnan(finalist.simulated.cost) || !finalist.scenario.prices ? ""
                                                                         : finalist.scenario.prices->currency,
        cell(finalist.simulated.cost), cell(finalist.simulated.energy_kwh), cell(finalist.closed_form.time_s),
        cell(finalist.compute_utilization),
        finalist.perplexity ? fmt::format("{}", *finalist.perplexity) : "",
        csv_cell(simulate_line(plan.question, finalist)), csv_cell(finalist.problem));
  }
  return text;
}

}  // namespace fomoe::commands
