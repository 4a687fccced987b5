#include <fmt/format.h>

#include "costmodel/flops.hpp"
#include "costmodel/memory.hpp"
#include "costmodel/methods/method.hpp"
#include "experiments/commands/command.hpp"
#include "experiments/commands/human.hpp"
#include "experiments/commands/options.hpp"
#include "experiments/scenario/json_values.hpp"

namespace fomoe::commands {

namespace po = boost::program_options;

namespace {

struct Cost {
  costmodel::ParameterCounts parameters;
  costmodel::FlopsPerToken flops;
  costmodel::MemoryBytes memory_per_gpu;
  int gpus_per_site = 1;
  costmodel::SentBytes<double> sent;
  std::int64_t rounds = 0;
  bool paper_accounting = false;
  [[nodiscard]] double memory_per_site() const { return gpus_per_site * memory_per_gpu.total(); }
};

Cost cost_of(const costmodel::Scenario& scenario, bool paper_accounting) {
  Cost cost;
  cost.paper_accounting = paper_accounting;
  cost.parameters = costmodel::count_parameters(scenario.model);
  cost.flops = costmodel::flops_per_token(
      scenario.model, costmodel::local_experts(scenario), scenario.strategy.skip_token,
      paper_accounting ? costmodel::FlopsAccounting::paper : costmodel::FlopsAccounting::mechanism);
  cost.memory_per_gpu = costmodel::memory_per_site(scenario);
  // GPUs of a site are data-parallel replicas: each holds all that the site holds.
  if (const auto* device = std::get_if<costmodel::AssumedDevice>(&scenario.compute))
    cost.gpus_per_site = device->gpus_per_site;
  const costmodel::PlanSummary summary = costmodel::summarise(scenario);
  cost.sent = summary.sent;
  cost.rounds = static_cast<std::int64_t>(summary.rounds);
  return cost;
}

std::vector<Provenance> provenance_of(const Cost& cost) {
  return {{"parameters", Origin::computed, "from the model's shape"},
          {"FLOPs", Origin::computed,
           cost.paper_accounting ? "6 per matrix parameter and token; skip-token as in the FoMoE paper"
                                 : "6 per matrix parameter and token; skip-token as the mechanism works"},
          {"memory", Origin::computed, "18 B a parameter and outer state; activations not included"},
          {"bytes sent", Origin::computed,
           "from the model's shape and the method's plan, mean over sites and rounds"}};
}

std::string to_json_text(const Cost& cost, const costmodel::Scenario& scenario) {
  const auto& parameters = cost.parameters;
  const auto& memory = cost.memory_per_gpu;
  const scenario::Json document = {{"schema", "fomoe.cost/1"},
                                   {"parameters",
                                    {{"embedding", parameters.embedding},
                                     {"attention", parameters.attention},
                                     {"dense_ffn", parameters.dense_ffn},
                                     {"router", parameters.router},
                                     {"expert", parameters.expert},
                                     {"norm", parameters.norm},
                                     {"total", parameters.total()}}},
                                   {"parameters_per_site", costmodel::parameters_per_site(scenario)},
                                   {"flops_per_token", cost.flops.total()},
                                   {"flops",
                                    {{"accounting", cost.paper_accounting ? "paper" : "mechanism"},
                                     {"dense_per_token", cost.flops.dense},
                                     {"attention_per_token", cost.flops.attention},
                                     {"expert_per_token", cost.flops.expert},
                                     {"router_per_token", cost.flops.router}}},
                                   {"memory_bytes_per_site", cost.memory_per_site()},
                                   {"memory_bytes_per_gpu", memory.total()},
                                   {"memory",
                                    {{"weights_bytes", memory.weights},
                                     {"master_weights_bytes", memory.master_weights},
                                     {"moments_bytes", memory.moments},
                                     {"gradients_bytes", memory.gradients},
                                     {"outer_state_bytes", memory.outer_state}}},
                                   {"gpus_per_site", cost.gpus_per_site},
                                   {"rounds", cost.rounds},
                                   {"sent_bytes_per_site",
                                    {{"dense", cost.sent.dense},
                                     {"expert_sync", cost.sent.expert_sync},
                                     {"migration", cost.sent.migration},
                                     {"activations", cost.sent.activations}}},
                                   {"provenance", scenario::to_json(provenance_of(cost))},
                                   {"scenario", scenario::to_json(scenario)}};
  return scenario::to_text(document);
}

std::string to_human_text(const Cost& cost, const costmodel::Scenario& scenario) {
  const auto count = [](std::int64_t value) { return human_count(static_cast<double>(value)); };
  const auto& parameters = cost.parameters;
  std::string text = fmt::format("{} on {} sites, model {}\n\n", scenario.strategy.method, scenario.sites(),
                                 scenario.model.name);
  text += aligned({{"parameters", count(parameters.total())},
                   {"  embedding", count(parameters.embedding)},
                   {"  attention", count(parameters.attention)},
                   {"  dense FFN", count(parameters.dense_ffn)},
                   {"  router", count(parameters.router)},
                   {"  expert", count(parameters.expert)},
                   {"  norm", count(parameters.norm)},
                   {"held by one site", count(costmodel::parameters_per_site(scenario))},
                   {"FLOPs per token", human_count(cost.flops.total())},
                   {"  dense", human_count(cost.flops.dense)},
                   {"  attention scores", human_count(cost.flops.attention)},
                   {"  expert", human_count(cost.flops.expert)},
                   {"  router", human_count(cost.flops.router)},
                   {"memory per site", human_bytes(cost.memory_per_site())},
                   {"memory per GPU", human_bytes(cost.memory_per_gpu.total())},
                   {"  weights", human_bytes(cost.memory_per_gpu.weights)},
                   {"  master weights", human_bytes(cost.memory_per_gpu.master_weights)},
                   {"  moments", human_bytes(cost.memory_per_gpu.moments)},
                   {"  gradients", human_bytes(cost.memory_per_gpu.gradients)},
                   {"  outer state", human_bytes(cost.memory_per_gpu.outer_state)},
                   {"sent per site per round", human_bytes(cost.sent.total())},
                   {"  dense", human_bytes(cost.sent.dense)},
                   {"  expert sync", human_bytes(cost.sent.expert_sync)},
                   {"  migration", human_bytes(cost.sent.migration)},
                   {"  activations", human_bytes(cost.sent.activations)}});
  return text + '\n' + human_provenance(provenance_of(cost));
}

}  // namespace

void run_cost(const Arguments& arguments) {
  po::options_description options("Options");
  add_scenario_options(options);
  options.add_options()(
      "accounting", po::value<std::string>()->default_value("mechanism")->value_name("NAME"),
      "FLOPs with skip-token: mechanism, a chosen expert is local with probability N_le/N_e; "
      "paper, the FoMoE paper's equation")(
      "output", po::value<std::string>()->default_value("")->value_name("-|FILE"),
      "-: JSON on stdout; a file in .json (default: a table for people on stdout)");
  const Help help = {
      "cost",
      "SCENARIO.toml [options]",
      "Parameters, FLOPs, memory and bytes on the wire, from the model's shape alone.",
      {"fomoe cost experiments/scenarios/two-sites.toml",
       "fomoe cost experiments/scenarios/two-sites.toml --set model.preset=medium --output -"}};
  const auto values = parse(arguments, help, options, "scenario");
  if (!values) return;
  const Output output("--output", (*values)["output"].as<std::string>(), {".json"});
  const bool paper =
      choice("--accounting", (*values)["accounting"].as<std::string>(), {"mechanism", "paper"}) == "paper";
  const costmodel::Scenario scenario = read_scenario(*values);
  const Cost cost = cost_of(scenario, paper);
  output.write(output.for_people() ? to_human_text(cost, scenario) : to_json_text(cost, scenario));
}

}  // namespace fomoe::commands
