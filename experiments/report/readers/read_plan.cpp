#include <fmt/format.h>

#include "experiments/report/readers/fields.hpp"
#include "experiments/text/human.hpp"

namespace fomoe::report {

namespace {

using scenario::JsonObject;

Candidate read_candidate(const std::string& path, const JsonObject& json) {
  Candidate row;
  row.method = json.text("method");
  row.local_steps = json.count("local_steps", 0);
  if (json.has("rounds")) row.rounds = json.count("rounds", 0);
  row.expert_overlap = json.count("expert_overlap", 0);
  row.placement = json.text("placement");
  row.collective = json.text("collective");
  row.payload_dtype = json.text("payload_dtype");
  row.sites = texts(json, "sites");
  if (json.has("command")) row.command = json.text("command");  // Python's plans of dicts have none
  row.problem = json.text("problem");
  const JsonObject simulated = inner(path, json, "simulated");
  row.wall_clock_s = known_amount(simulated, "wall_clock_s");
  row.cost = known_amount(simulated, "cost_total");
  row.energy_kwh = known_amount(simulated, "energy_kwh");
  row.perplexity = known_amount(json, "perplexity");
  if (json.has("loss") && json.at("loss", "").is_object()) {
    const JsonObject loss = inner(path, json, "loss");
    if (loss.has("points")) {
      row.loss = {real(loss, "points"), real(loss, "low"), real(loss, "high")};
      row.to_equal_loss = known_amount(json, "value");
    }
  }
  row.first_needs_less = known_amount(json, "probability_that_first_needs_less");
  row.compute_utilization = amount(json, "compute_utilization");
  row.bytes_sent_per_site_per_round = amount(json, "bytes_sent_per_site_per_round");
  return row;
}

/// The limits that are set, for people. Older plans have none.
std::vector<std::string> limits_of(const JsonObject& within, const std::string& currency) {
  std::vector<std::string> limits;
  const auto add = [&](const char* key, const char* name, const auto& text) {
    if (const auto limit = known_amount(within, key))
      limits.push_back(fmt::format("{} at most {}", name, text(*limit)));
  };
  add("time_s", "wall clock", commands::human_time);
  add("cost", "cost", [&](double amount) { return commands::human_money(amount, currency); });
  add("energy_kwh", "energy", [](double amount) { return fmt::format("{:.4g} kWh", amount); });
  add("perplexity", "perplexity", [](double amount) { return fmt::format("{:.4g}", amount); });
  add("gpu_memory_bytes", "memory of a GPU", commands::human_bytes);
  return limits;
}

}  // namespace

Plan read_plan(const std::string& path, const Json& document) {
  const JsonObject json = fields(path, "", document);
  Plan plan;
  plan.path = path;
  plan.minimise = json.text("minimise");
  if (plan.minimise != "time" && plan.minimise != "cost" && plan.minimise != "energy")
    json.refuse_value("minimise", json.at("minimise", ""), "\"time\", \"cost\" or \"energy\"");
  if (json.has("currency") && !json.at("currency", "").is_null()) plan.currency = json.text("currency");
  if (json.has("within")) plan.limits = limits_of(inner(path, json, "within"), plan.currency);
  plan.basis = json.text("basis");
  plan.why_no_choice = json.text("why_no_choice");
  plan.has_choice = !json.at("choice", "an object, or null if there is none").is_null();
  each(path, json, plan.has_choice ? "ranking" : "frontier",
       [&](const JsonObject& row) { plan.chosen.push_back(read_candidate(path, row)); });
  each(path, json, "methods",
       [&](const JsonObject& row) { plan.methods.push_back(read_candidate(path, row)); });
  if (json.has("without_limits")) {
    each(path, json, "without_limits", [&](const JsonObject& row) {
      plan.least.emplace_back(row.text("least"), read_candidate(path, row));
    });
  }
  plan.as_it_is = read_candidate(path, inner(path, json, "scenario_as_it_is"));
  plan.candidates = amount(json, "candidates");
  plan.simulated = amount(json, "simulated");
  each(path, json, "dropped", [&](const JsonObject& row) {
    plan.dropped.push_back({row.text("reason"), row.text("example"), amount(row, "count")});
  });
  if (json.has("methods_tried")) plan.methods_tried = texts(json, "methods_tried");
  plan.tried = texts(json, "tried");
  plan.sensitivity = read_sensitivities(path, json);
  plan.inputs = read_inputs(path, json);
  return plan;
}

}  // namespace fomoe::report
