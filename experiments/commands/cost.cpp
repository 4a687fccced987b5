#include <fmt/format.h>

#include <optional>

#include "costmodel/compose/make_plan.hpp"
#include "costmodel/compose/memory_remedy.hpp"
#include "costmodel/compute/compute_times.hpp"
#include "costmodel/counts/memory.hpp"
#include "costmodel/formula/closed_form.hpp"
#include "costmodel/inputs/at_site.hpp"
#include "costmodel/model/flops.hpp"
#include "costmodel/plan/method.hpp"
#include "costmodel/plan/site_shares.hpp"
#include "experiments/cli/command.hpp"
#include "experiments/cli/options.hpp"
#include "experiments/results/json_values.hpp"
#include "experiments/results/round_json.hpp"
#include "experiments/text/human.hpp"

namespace fomoe::commands {

namespace po = boost::program_options;

namespace {

/// Peak memory that the log of the profile's steps states.
struct LoggedPeak {
  double bytes = 0;
  costmodel::MemoryCounter counter = costmodel::MemoryCounter::allocated;
  std::string log;
};

std::optional<LoggedPeak> logged_peak(const costmodel::Scenario& scenario) {
  const auto* profiled = std::get_if<costmodel::ProfiledCompute>(&scenario.compute);
  if (profiled == nullptr || !profiled->profile.origin || profiled->profile.origin->file.empty())
    return std::nullopt;
  const costmodel::ProfileOrigin& origin = *profiled->profile.origin;
  for (const costmodel::ProfilePoint* point : costmodel::points_of(
           profiled->profile, profiled->micro_batch_sequences, scenario.strategy.skip_token)) {
    if (point->peak_memory_bytes > 0)
      return LoggedPeak{static_cast<double>(point->peak_memory_bytes), point->memory_counter,
                        fmt::format("{} ({} GPUs; tensor, pipeline and context parallelism {}, {} and {})",
                                    origin.file, origin.gpus, origin.tensor_parallel,
                                    origin.pipeline_parallel, origin.context_parallel)};
  }
  return std::nullopt;
}

struct Cost {
  costmodel::ParameterCounts parameters;
  std::int64_t active_parameters = 0;
  costmodel::FlopsPerToken flops;
  double recomputed_flops = 0;
  costmodel::MemoryBytes memory_per_gpu, memory_per_site;
  costmodel::GpuNeed need;
  double activation_bytes_per_sequence = 0;  // of a micro-batch of one sequence
  double host_bytes = 0;
  std::optional<std::int64_t> largest_micro_batch;
  costmodel::IntraSiteSeconds intra_site;
  costmodel::SentBytes sent;
  std::int64_t rounds = 0;
  bool paper_accounting = false;
  std::vector<Provenance> provenance;
  std::string site;  // the fullest site, if sites differ
  std::optional<LoggedPeak> logged;
};

std::vector<Provenance> provenance_of(const costmodel::Scenario& scenario,
                                      const costmodel::SiteCounts& counts, bool paper_accounting) {
  const costmodel::ModelShape& model = scenario.model;
  std::vector<Provenance> list;
  if (model.opaque) {
    list.push_back({"parameters", Origin::assumed,
                    model.name == model.architecture
                        ? "given in the scenario; dense_ffn contains all dense parameters"
                        : "dense_ffn contains all dense parameters"});
    if (model.experts > 0 && model.active_experts == model.experts)
      list.push_back({"active parameters", Origin::assumed, "every token uses all experts"});
  } else {
    list.push_back({"parameters", Origin::computed, "from the model's shape"});
  }
  if (!model.opaque && !model.tied_embeddings) {
    list.push_back(
        {"active parameters", Origin::computed,
         model.embedding_counts_as_active
             ? "embedding table counted, as this model's publisher does"
             : "embedding table not counted, unembedding counted, as this model's publisher does"});
  }
  list.push_back(
      {"FLOPs", Origin::computed,
       std::string("6 FLOPs per matrix parameter and token, attention over the full square of a sequence") +
           (scenario.gpus.activation_checkpointing
                ? ", for recomputation a third more of all but the unembedding" +
                      (scenario.gpus.checkpoint_every > 1
                           ? fmt::format(" in every {}th layer; ", scenario.gpus.checkpoint_every)
                           : std::string("; "))
                : std::string("; ")) +
           (paper_accounting ? "skip-token counted as in the FoMoE paper"
                             : "skip-token counted as executed")});
  list.push_back(costmodel::memory_provenance(counts.model, counts.load));
  list.push_back({"bytes sent", Origin::computed,
                  "from the model's shape and the method's plan, mean over sites and rounds"});
  return list;
}

/// `scenario` is that of the site (AtSite); what is sent is a mean over `all_sites`.
Cost cost_of(const costmodel::Scenario& scenario, const costmodel::Scenario& all_sites, int site,
             bool paper_accounting) {
  Cost cost;
  cost.paper_accounting = paper_accounting;
  cost.parameters = costmodel::count_parameters(scenario.model);
  cost.active_parameters = costmodel::active_parameters(scenario.model);
  const costmodel::Counts counts = costmodel::counts_of(scenario);
  // The paper's accounting knows no routing counts.
  cost.flops =
      paper_accounting
          ? costmodel::flops_per_token(scenario.model, costmodel::expert_shares(scenario).of_layer(site),
                                       scenario.strategy.skip_token, costmodel::FlopsAccounting::paper)
          : costmodel::flops_per_token(scenario.model, counts.at(site).used_experts,
                                       scenario.strategy.skip_token, costmodel::FlopsAccounting::mechanism);
  cost.recomputed_flops =
      costmodel::kForwardShare * cost.flops.total() *
      costmodel::repeated_share(scenario.gpus, cost.flops, costmodel::unembedding_flops(scenario.model));
  const costmodel::SiteModel& model = counts.at(site).model;
  const costmodel::SiteLoad& load = counts.at(site).load;
  cost.memory_per_gpu = costmodel::memory_per_gpu(model, load);
  cost.memory_per_site = costmodel::memory_per_site(model, load);
  cost.need = counts.at(site).need_of_gpu;
  cost.activation_bytes_per_sequence = costmodel::memory_per_gpu(model, load, 1).activations;
  cost.host_bytes = costmodel::host_bytes_per_site(model, load);
  cost.logged = logged_peak(scenario);
  cost.largest_micro_batch = costmodel::largest_micro_batch_sequences(model, load);
  const costmodel::ComputeTimes times = costmodel::site_compute_times(scenario, site);
  cost.intra_site = times.intra_site;
  const costmodel::PlanSummary summary = costmodel::summarise(all_sites);
  cost.sent = summary.sent;
  cost.rounds = static_cast<std::int64_t>(summary.rounds);
  cost.provenance = provenance_of(scenario, counts.at(site), paper_accounting);
  // The origins of the times of communication inside a site. A site with one GPU has no such communication,
  // but what was guessed about the model matters in any case.
  if (cost.logged)
    cost.provenance.push_back({"memory according to the log", Origin::measured,
                               fmt::format("peak of the bytes that were {} on the fullest GPU of {}",
                                           costmodel::to_string(cost.logged->counter), cost.logged->log)});
  // So does where step times come from that were measured, which other programs may have disturbed.
  const bool measured = std::holds_alternative<costmodel::ProfiledCompute>(scenario.compute);
  const std::vector<Provenance>& origins =
      scenario.gpus.count > 1 || measured ? times.provenance : scenario.catalogue;
  cost.provenance.insert(cost.provenance.end(), origins.begin(), origins.end());
  return cost;
}

scenario::Json to_json(const costmodel::MemoryBytes& memory) {
  return {{"weights_bytes", memory.weights},         {"master_weights_bytes", memory.master_weights},
          {"moments_bytes", memory.moments},         {"gradients_bytes", memory.gradients},
          {"outer_state_bytes", memory.outer_state}, {"gathered_weights_bytes", memory.gathered_weights},
          {"activations_bytes", memory.activations}, {"at_peak_bytes", memory.at_peak},
          {"buffers_bytes", memory.buffers},         {"workspaces_bytes", memory.workspaces}};
}

scenario::Json to_json(const costmodel::IntraSiteSeconds& seconds) {
  return {{"gradients_s", seconds.gradients},
          {"updated_weights_s", seconds.updated_weights},
          {"weight_gathers_s", seconds.weight_gathers},
          {"tensor_parallel_s", seconds.tensor},
          {"context_parallel_s", seconds.context},
          {"expert_parallel_s", seconds.expert},
          {"stage_transfers_s", seconds.stages},
          {"pipeline_bubble_s", seconds.bubble},
          {"total_s", seconds.total()}};
}

std::string to_json_text(const Cost& cost, const costmodel::Scenario& scenario,
                         const costmodel::Scenario& of_all_sites) {
  const auto& parameters = cost.parameters;
  scenario::Json document = {
      {"schema", "fomoe.cost/1"},
      {"parameters",
       {{"embedding", parameters.embedding},
        {"attention", parameters.attention},
        {"dense_ffn", parameters.dense_ffn},
        {"router", parameters.router},
        {"expert", parameters.expert},
        {"norm", parameters.norm},
        {"total", parameters.total()}}},
      {"active_parameters", cost.active_parameters},
      {"active_parameters_with_embedding_table", costmodel::active_parameters(scenario.model, true)},
      {"active_parameters_without_embedding_table", costmodel::active_parameters(scenario.model, false)},
      {"parameters_per_site", costmodel::parameters_per_site(scenario)},
      {"flops_per_token", cost.flops.total()},
      {"flops",
       {{"accounting", cost.paper_accounting ? "paper" : "mechanism"},
        {"attention_mask", "full"},
        {"dense_per_token", cost.flops.dense},
        {"attention_per_token", cost.flops.attention},
        {"expert_per_token", cost.flops.expert},
        {"router_per_token", cost.flops.router},
        {"recomputed_per_token", cost.recomputed_flops}}},
      {"memory_bytes_per_site", cost.memory_per_site.total()},
      {"memory_bytes_per_gpu", cost.memory_per_gpu.total()},
      {"needed_bytes_per_gpu", cost.need.needed},
      {"reserved_bytes_per_gpu", scenario::Json::array({cost.need.reserved.low, cost.need.reserved.high})},
      {"outside_allocator_bytes_per_gpu",
       scenario::Json::array({cost.need.outside.low, cost.need.outside.high})},
      {"host_memory_bytes_per_site", cost.host_bytes},
      {"memory", to_json(cost.memory_per_gpu)},
      {"memory_per_site", to_json(cost.memory_per_site)},
      {"activation_bytes_per_sequence", cost.activation_bytes_per_sequence},
      {"gpus_per_site", scenario.gpus.count},
      {"intra_site_seconds_per_step", to_json(cost.intra_site)},
      {"rounds", cost.rounds},
      {"sent_bytes_per_site", scenario::to_json(cost.sent)},
      {"provenance", scenario::to_json(cost.provenance)},
      {"scenario", scenario::to_json(of_all_sites)}};
  if (!cost.site.empty()) document["site"] = cost.site;
  if (cost.logged)
    document["logged_memory"] = {{"bytes_per_gpu", cost.logged->bytes},
                                 {"counter", costmodel::to_string(cost.logged->counter)},
                                 {"log", cost.logged->log}};
  if (cost.largest_micro_batch) document["largest_micro_batch_sequences"] = *cost.largest_micro_batch;
  return scenario::to_text(document);
}

std::string to_human_text(const Cost& cost, const costmodel::Scenario& scenario) {
  const auto count = [](std::int64_t value) { return human_count(static_cast<double>(value)); };
  const auto& parameters = cost.parameters;
  std::string text = fmt::format("{} on {} sites, model {}\n\n", scenario.strategy.method->name,
                                 scenario.sites(), scenario.model.name);
  if (!cost.site.empty())
    text += fmt::format(
        "Sites differ; memory and times inside a site are those of {}, whose GPUs are fullest.\n\n",
        cost.site);
  if (const std::string memory = costmodel::memory_problem(scenario); !memory.empty())
    text += fmt::format("This scenario cannot run as configured: it {}.\n\n", memory);
  std::vector<Row> rows = {{"parameters", count(parameters.total())},
                           {"  embedding", count(parameters.embedding)},
                           {"  attention", count(parameters.attention)},
                           {"  dense FFN", count(parameters.dense_ffn)},
                           {"  router", count(parameters.router)},
                           {"  expert", count(parameters.expert)},
                           {"  norm", count(parameters.norm)},
                           {"  active", count(cost.active_parameters)},
                           {"parameters per site", count(costmodel::parameters_per_site(scenario))},
                           {"FLOPs per token", human_count(cost.flops.total())},
                           {"  dense", human_count(cost.flops.dense)},
                           {"  attention scores", human_count(cost.flops.attention)},
                           {"  expert", human_count(cost.flops.expert)},
                           {"  router", human_count(cost.flops.router)},
                           {"  recomputed, not included", human_count(cost.recomputed_flops)},
                           {"memory per site", human_bytes(cost.memory_per_site.total())},
                           {"memory per GPU", human_bytes(cost.memory_per_gpu.total())},
                           {"  weights", human_bytes(cost.memory_per_gpu.weights)},
                           {"  master weights", human_bytes(cost.memory_per_gpu.master_weights)},
                           {"  moments", human_bytes(cost.memory_per_gpu.moments)},
                           {"  gradients", human_bytes(cost.memory_per_gpu.gradients)},
                           {"  outer state", human_bytes(cost.memory_per_gpu.outer_state)},
                           {"  gathered weights", human_bytes(cost.memory_per_gpu.gathered_weights)},
                           {"  activations", human_bytes(cost.memory_per_gpu.activations)}};
  const auto range = [](const costmodel::ByteRange& bytes) {
    return fmt::format("{} to {}", human_bytes(bytes.low), human_bytes(bytes.high));
  };
  if (scenario.gpus.stack != costmodel::Stack::fomoe)
    rows.insert(rows.end(), {{"  at the fullest moment", human_bytes(cost.memory_per_gpu.at_peak)},
                             {"  buffers and workspaces",
                              human_bytes(cost.memory_per_gpu.buffers + cost.memory_per_gpu.workspaces)},
                             {"reserved by the allocator", range(cost.need.reserved)},
                             {"outside the allocator", range(cost.need.outside)}});
  if (cost.logged)
    rows.push_back({fmt::format("{} according to the log", costmodel::to_string(cost.logged->counter)),
                    human_bytes(cost.logged->bytes)});
  const std::vector<Row> more = {{"host memory per site", human_bytes(cost.host_bytes)},
                                 {"sent per site per round", human_bytes(cost.sent.total())},
                                 {"  dense", human_bytes(cost.sent.dense)},
                                 {"  expert sync", human_bytes(cost.sent.expert_sync)},
                                 {"  migration", human_bytes(cost.sent.migration)},
                                 {"  activations", human_bytes(cost.sent.activations)}};
  rows.push_back(more.front());
  if (cost.largest_micro_batch)
    rows.push_back({"largest micro-batch", std::to_string(*cost.largest_micro_batch) + " sequences"});
  rows.insert(rows.end(), more.begin() + 1, more.end());
  // These rows appear only if the scenario has traffic of the class.
  if (cost.sent.data > 0) rows.push_back({"  data", human_bytes(cost.sent.data)});
  if (cost.sent.checkpoint > 0) rows.push_back({"  checkpoint", human_bytes(cost.sent.checkpoint)});
  if (cost.sent.rejoin > 0) rows.push_back({"  rejoin", human_bytes(cost.sent.rejoin)});
  if (cost.intra_site.total() > 0)
    rows.push_back({"communication inside a site per step", human_time(cost.intra_site.total())});
  text += aligned(rows);
  return text + '\n' + human_provenance(cost.provenance);
}

}  // namespace

void run_cost(const Arguments& arguments) {
  po::options_description options("Options");
  add_scenario_options(options);
  options.add_options()(
      "accounting", po::value<std::string>()->default_value("mechanism")->value_name("NAME"),
      "how skip-token changes FLOPs; mechanism: each chosen expert is held locally with probability (local "
      "experts ÷ all experts); paper: the equation of the FoMoE paper")(
      "output", po::value<std::string>()->default_value("")->value_name("-|FILE"),
      "-: JSON on stdout; or a .json file (default: a table on stdout)");
  const Help help = {
      "cost",
      "SCENARIO.toml [options]",
      "Computes parameters, FLOPs, memory and bytes on the wire from the scenario, without a simulation. It "
      "computes no money: for that, see fomoe simulate.",
      {"fomoe cost experiments/scenarios/two-sites.toml",
       "fomoe cost experiments/scenarios/two-sites.toml --set model.preset=medium --output -"}};
  const auto values = parse(arguments, help, options, "scenario");
  if (!values) return;
  const Output output("--output", (*values)["output"].as<std::string>(), {".json"});
  const bool paper =
      choice("--accounting", (*values)["accounting"].as<std::string>(), {"mechanism", "paper"}) == "paper";
  const costmodel::Scenario of_all_sites = read_scenario(*values);
  const int site = static_cast<int>(costmodel::counts_of(of_all_sites).fullest);
  const costmodel::AtSite at(of_all_sites, site);
  const costmodel::Scenario& scenario = at;
  Cost cost = cost_of(scenario, of_all_sites, site, paper);
  if (!of_all_sites.site_compute.empty())
    cost.site = scenario.platform.sites[static_cast<std::size_t>(site)].name;
  output.write(output.for_people() ? to_human_text(cost, scenario)
                                   : to_json_text(cost, scenario, of_all_sites));
}

}  // namespace fomoe::commands
