#include "experiments/results/json_values.hpp"

#include <cmath>

#include "costmodel/formula/closed_form.hpp"
#include "costmodel/plan/method.hpp"
#include "costmodel/plan/site_shares.hpp"
#include "costmodel/report/report_fields.hpp"
#include "experiments/files/model_shape_json.hpp"
#include "experiments/results/cost_json.hpp"
#include "experiments/results/goodput_json.hpp"
#include "experiments/results/possible_numbers.hpp"

namespace fomoe::scenario {
namespace {

Json compute_kind_json(const costmodel::ComputeSpec& compute) {
  if (const auto* profiled = std::get_if<costmodel::ProfiledCompute>(&compute)) {
    Json json = {{"profile", profiled->profile.source},
                 {"device_name", profiled->profile.device_name},
                 {"measured_at", profiled->profile.measured_at}};
    // A log may not state it.
    if (profiled->micro_batch_sequences > 0) json["micro_batch_sequences"] = profiled->micro_batch_sequences;
    return json;
  }
  if (const auto* given = std::get_if<costmodel::GivenStepTime>(&compute))
    return {{"step_time_s", given->seconds}};
  const auto& device = std::get<costmodel::AssumedDevice>(compute);
  return {{"peak_flop_per_s", device.peak_flops},
          {device.mfu > 0 ? "mfu" : "kernel_efficiency", device.share_of_peak()}};
}

/// A value that the scenario does not give has no key.
Json compute_json(const costmodel::ComputeSpec& compute, const costmodel::SiteGpus& gpus) {
  costmodel::Scenario scenario;
  scenario.gpus = gpus;
  Json json = compute_kind_json(compute);
  json.update(members_json("compute", scenario));
  if (gpus.sharded * gpus.context_parallel == 1 || gpus.zero_stage == 0) json.erase("zero_stage");
  if (gpus.outer_state_on == costmodel::OuterStateOn::device) json.erase("host_bytes_per_s");
  return json;
}

/// What differs between the sites: their compute, and their part of the batch; empty if they are alike.
Json sites_json(const costmodel::Scenario& scenario) {
  Json list = Json::array();
  if (scenario.site_compute.empty() && scenario.workload.batch_shares.empty()) return list;
  for (int i = 0; i < scenario.sites(); ++i) {
    const auto site = static_cast<std::size_t>(i);
    Json json = Json::object();
    if (!scenario.site_compute.empty())
      json = compute_json(scenario.site_compute[site].compute, scenario.site_compute[site].gpus);
    json["name"] = scenario.platform.sites[site].name;
    if (!scenario.site_compute.empty() && scenario.site_compute[site].power)
      json["gpu_power_w"] = scenario.site_compute[site].power->board_w;
    json["batch_sequences"] = costmodel::local_batch_sequences(scenario, i);
    list.push_back(json);
  }
  return list;
}

Json compression_json(const costmodel::WireFormat& wire) {
  if (!wire.sparse()) return {{"kind", "none"}};
  return {{"kind", "top_k"},
          {"kept_share", wire.kept_share},
          {"index_bits", wire.index_bits},
          {"entropy_coded", wire.entropy_coded}};
}

Json strategy_json(const costmodel::Scenario& scenario) {
  const costmodel::Strategy& strategy = scenario.strategy;
  Json json = {{"method", strategy.method->name}};
  json.update(members_json("strategy", scenario,
                           {"local_steps",
                            "expert_overlap",
                            "placement",
                            "reshuffle_rounds",
                            "skip_token",
                            "collective",
                            "ring_order",
                            "bucket_bytes",
                            "granularity",
                            "overlap_steps",
                            "fragments",
                            "fragment_pattern",
                            "layerwise",
                            "sharding",
                            "outer_optimizer",
                            "outer_state_on_migration",
                            "moment1_period",
                            "moment2_period",
                            "global_period",
                            "gossip_peers",
                            "staleness",
                            "dynamic_local_steps",
                            "regions",
                            "secure_aggregation",
                            "quorum",
                            "straggler_timeout",
                            "router",
                            "capacity_factor",
                            "max_sites_per_token",
                            "micro_batches",
                            "schedule",
                            "stage_sites",
                            "overlap_dispatch",
                            "module_levels",
                            "module_choices"}));  // straggler_timeout in seconds
  json["payload_dtype"] = to_string(strategy.wire.type);
  if (strategy.dispatch_dtype) json["dispatch_dtype"] = to_string(*strategy.dispatch_dtype);
  json["parameter_dtype"] =
      to_string(strategy.parameter_dtype.value_or(costmodel::parameter_format(strategy.wire).type));
  json["compression"] = compression_json(strategy.wire);
  json["routing_counts"] = strategy.routing_counts.source;
  return json;
}

Json network_json(const costmodel::Scenario& scenario) {
  return members_json("network_model", scenario,
                      {"bandwidth_efficiency", "background_share", "latency_factor", "jitter_s",
                       "call_overhead_s", "streams", "segment_bytes", "idle_restart", "receives_ahead",
                       "congestion_control", "uplink_queue", "queue_bdp", "ring_model"});
}

// With more sites, paths that are all alike are one entry from "*" to "*": 10,000 sites have 10⁸ pairs.
constexpr int kMostListedSites = 1024;

Json path_json(const platforms::Path& path, const std::string& from, const std::string& to) {
  Json entry = {{"from", from}, {"to", to}, {"latency_s", path.latency_s}};
  // JSON has no infinity: an unlimited path has no bandwidth key.
  if (std::isfinite(path.bandwidth_bytes_per_s)) entry["bandwidth_bytes_per_s"] = path.bandwidth_bytes_per_s;
  if (std::isfinite(path.connection_bytes_per_s))
    entry["connection_bytes_per_s"] = path.connection_bytes_per_s;
  return entry;
}

Json platform_json(const platforms::Platform& platform) {
  Json sites = Json::array(), paths = Json::array();
  for (const platforms::Site& site : platform.sites) {
    Json entry = {{"name", site.name},
                  {"uplink_bytes_per_s", site.uplink_bytes_per_s},
                  {"downlink_bytes_per_s", site.downlink_bytes_per_s}};
    if (site.compute_factor != 1) entry["compute_factor"] = site.compute_factor;
    if (!site.region.empty()) entry["region"] = site.region;
    if (site.machines != 1) entry["gateways"] = site.machines;
    sites.push_back(entry);
  }
  const bool listed = platform.size() <= kMostListedSites || !platform.paths.alike();
  if (!listed) paths.push_back(path_json(platform.path(0, 1), "*", "*"));
  for (int from = 0; from < platform.size() && listed; ++from) {
    for (int to = 0; to < platform.size(); ++to) {
      if (from == to) continue;
      Json entry = path_json(platform.path(from, to), platform.sites[from].name, platform.sites[to].name);
      for (const int link : platform.shared_by(from, to))
        entry["links"].push_back(platform.shared_links[static_cast<std::size_t>(link)].name);
      paths.push_back(entry);
    }
  }
  Json json = {{"name", platform.name}, {"sites", sites}, {"paths", paths}};
  for (const platforms::SharedLink& link : platform.shared_links)
    json["shared_links"].push_back({{"name", link.name},
                                    {"bandwidth_bytes_per_s", link.bandwidth_bytes_per_s},
                                    {"per_flow", link.per_flow}});
  if (platform.store) {
    Json store = {{"latency_s", platform.store->latency_s}, {"aggregates", platform.store->aggregates}};
    if (std::isfinite(platform.store->uplink_bytes_per_s))
      store["uplink_bytes_per_s"] = platform.store->uplink_bytes_per_s;
    if (std::isfinite(platform.store->downlink_bytes_per_s))
      store["downlink_bytes_per_s"] = platform.store->downlink_bytes_per_s;
    if (platform.store->result_share) store["result_share"] = *platform.store->result_share;
    json["store"] = std::move(store);
  }
  if (!platform.changes.empty()) json["changes"] = platform.changes.size();
  return json;
}

/// The members of the shape in which the models of the paper's family differ; all others have that family's
/// values.
costmodel::ModelShape paper_part(const costmodel::ModelShape& shape) {
  return {shape.name,           shape.d_model,  shape.layers,     shape.heads,          shape.experts,
          shape.active_experts, shape.d_expert, shape.vocabulary, shape.sequence_length};
}

}  // namespace

Json to_json(const costmodel::ModelShape& shape) {
  if (shape.opaque) {
    return {{"name", shape.name},
            {"architecture", shape.architecture},
            {"dense_parameters", shape.opaque->dense_parameters},
            {"expert_parameters", shape.opaque->expert_parameters},
            {"layers", shape.layers},
            {"experts", shape.experts},
            {"active_experts", shape.active_experts},
            {"sequence_length", shape.sequence_length}};
  }
  Json json = paper_shape_json(shape);
  json["architecture"] = shape.architecture;
  if (shape == paper_part(shape)) return json;
  json["kv_heads"] = costmodel::kv_heads(shape);
  json["query_key_dim"] = costmodel::query_key_dim(shape);
  json["value_dim"] = costmodel::value_dim(shape);
  json["gated"] = shape.gated;
  json["dense_layers"] = shape.layers - costmodel::moe_layers(shape);
  json["d_ffn"] = shape.d_ffn;
  json["shared_experts"] = shape.shared_experts;
  if (shape.linear) json["linear_attention_layers"] = shape.linear->layers;
  if (shape.prediction_modules > 0) json["prediction_modules"] = shape.prediction_modules;
  json["window_tokens"] = shape.window_tokens;
  json["window_layers"] = shape.window_layers;
  if (shape.chunked) json["chunked"] = true;
  json["tied_embeddings"] = shape.tied_embeddings;
  return json;
}

Json to_json(const std::vector<Provenance>& provenance) {
  Json list = Json::array();
  for (const Provenance& entry : provenance) {
    list.push_back({{"what", entry.what}, {"origin", to_string(entry.origin)}, {"detail", entry.detail}});
  }
  return list;
}

static Json without_cost(const costmodel::Scenario& scenario) {
  return {{"seed", scenario.seed},
          {"model", to_json(scenario.model)},
          {"workload", members_json("workload", scenario)},
          {"strategy", strategy_json(scenario)},
          {"compute", compute_json(scenario.compute, scenario.gpus)},
          {"platform", platform_json(scenario.platform)},
          {"network_model", network_json(scenario)}};
}

Json to_json(const costmodel::Scenario& scenario) {
  Json json = Json::object();
  if (!scenario.name.empty()) json["name"] = scenario.name;
  json.update(without_cost(scenario));
  if (Json sites = sites_json(scenario); !sites.empty()) json["site"] = std::move(sites);
  add_cost_and_quality(json, scenario);
  add_failures(json, scenario);
  return json;
}

template <class Record, std::size_t N>
static void add_fields(Json& json, const Record& record, const costmodel::ReportField<Record> (&fields)[N]) {
  for (const auto& field : fields)
    std::visit([&](auto member) { json[std::string(field.name)] = record.*member; }, field.member);
}

static Json without_cost(const costmodel::RunReport& report) {
  Json json = {{"schema", "fomoe.run/1"}, {"executor", report.executor}};
  add_fields(json, report, costmodel::kReportFields);
  add_fields(json["round"], report.round, costmodel::kRoundFields);
  if (report.round.upkeep_delay_s) json["round"]["upkeep_delay_s"] = *report.round.upkeep_delay_s;
  json["sites"] = Json::array();
  for (const costmodel::SiteReport& site : report.sites)
    add_fields(json["sites"].emplace_back(Json::object()), site, costmodel::kSiteFields);
  json["critical_path"] = Json::array();
  for (const costmodel::CriticalStep& step : report.critical_path)
    json["critical_path"].push_back({{"what", step.what},
                                     {"site", step.site},
                                     {"kind", to_string(step.activity)},
                                     {"seconds", step.seconds}});
  add_fields(json["bottleneck"], report.bottleneck, costmodel::kBottleneckFields);
  json["provenance"] = to_json(report.provenance);
  if (report.efficiency) {
    json["efficiency"] = {{"peak_flop_per_s", report.efficiency->peak_flops},
                          {"mfu", report.efficiency->mfu},
                          {"run_mfu", report.efficiency->run_mfu}};
    if (report.efficiency->kernel_efficiency)
      json["efficiency"]["kernel_efficiency"] = *report.efficiency->kernel_efficiency;
  }
  if (!report.memory_problem.empty()) json["memory_problem"] = report.memory_problem;
  if (!report.warnings.empty()) json["warnings"] = report.warnings;
  json["notes"] = report.notes;
  return json;
}

Json to_json(const costmodel::RunReport& report) {
  Json json = without_cost(possible(report));
  if (!report.round_durations_s.empty()) json["round_durations_s"] = report.round_durations_s;
  if (report.wall_clock_interval_s)
    json["wall_clock_interval_s"] = {report.wall_clock_interval_s->low, report.wall_clock_interval_s->high};
  if (report.wall_clock_range_s)
    json["wall_clock_range_s"] = {report.wall_clock_range_s->low, report.wall_clock_range_s->high};
  add_cost_and_quality(json, report);
  add_attendance(json, report);
  add_goodput(json, report);
  add_replicas(json, report);
  return json;
}

void add_inputs(Json& document, const costmodel::Scenario& scenario) {
  document["provenance"] = to_json(costmodel::closed_form(scenario).provenance);
  document["scenario"] = to_json(scenario);
}

std::string run_report_json(const costmodel::RunReport& report) { return to_text(to_json(report)); }

std::string run_report_json(const costmodel::RunReport& report, const costmodel::Scenario& scenario) {
  Json document = to_json(report);
  document["scenario"] = to_json(scenario);
  return to_text(document);
}

}  // namespace fomoe::scenario
