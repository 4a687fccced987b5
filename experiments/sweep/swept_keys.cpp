#include "experiments/sweep/swept_keys.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <variant>

namespace fomoe::sweep {

namespace {

using costmodel::Failures;
using costmodel::GpuPower;
using costmodel::ModelShape;
using costmodel::NetworkModel;
using costmodel::Resolving;
using costmodel::Scenario;
using costmodel::SiteGpus;
using costmodel::StepVariation;
using costmodel::Strategy;

template <class T>
void assign(T& member, double value) {
  member = static_cast<T>(value);
}
template <class T>
void assign(std::optional<T>& member, double value) {
  member = static_cast<T>(value);
}

/// Sets a member of a table.
template <auto Table, auto Member>
bool set(Scenario& scenario, double value) {
  assign((scenario.*Table).*Member, value);
  return true;
}

/// Sets a member of a table that the scenario may not have.
template <auto Table, auto Member>
bool set_in(Scenario& scenario, double value) {
  if (!(scenario.*Table)) return false;
  assign((*(scenario.*Table)).*Member, value);
  return true;
}

template <auto Member>
constexpr auto strategy = set<&Scenario::strategy, Member>;
template <auto Member>
constexpr auto network = set<&Scenario::network, Member>;
template <auto Member>
constexpr auto variation = set<&Scenario::variation, Member>;
template <auto Member>
constexpr auto traffic = set<&Scenario::traffic, Member>;
template <auto Member>
constexpr auto failures = set_in<&Scenario::failures, Member>;

/// Whether [compute] describes all sites.
bool one_compute(const Scenario& scenario) {
  return scenario.site_compute.empty() && scenario.workload.batch_shares.empty();
}

template <auto Member>
bool gpus(Scenario& scenario, double value) {
  return one_compute(scenario) && set<&Scenario::gpus, Member>(scenario, value);
}

template <auto Member>
bool power(Scenario& scenario, double value) {
  return scenario.site_compute.empty() && set_in<&Scenario::power, Member>(scenario, value);
}

template <class Compute, auto Member>
bool compute(Scenario& scenario, double value) {
  auto* found = std::get_if<Compute>(&scenario.compute);
  if (found == nullptr || !one_compute(scenario)) return false;
  assign((*found).*Member, value);
  return true;
}

bool micro_batch(Scenario& scenario, double value) {
  if (auto* profiled = std::get_if<costmodel::ProfiledCompute>(&scenario.compute))
    assign(profiled->micro_batch_sequences, value);
  return gpus<&SiteGpus::micro_batch_sequences>(scenario, value);
}

bool peak(Scenario& scenario, double value) {
  scenario.peak_flops = value;
  return compute<costmodel::AssumedDevice, &costmodel::AssumedDevice::peak_flops>(scenario, value);
}

/// Sets a part of a model's shape, unless the reader may refuse the shape.
template <auto Member>
bool shape(Scenario& scenario, double value) {
  ModelShape& model = scenario.model;
  if (model.opaque || model.experts == 0) return false;
  assign(model.*Member, value);
  constexpr std::int64_t kSmall = 1 << 15;  // far below the reader's bounds on the number of parameters
  return model.heads > 0 && model.d_model % model.heads == 0 && model.d_model / model.heads % 2 == 0 &&
         model.active_experts <= model.experts && model.experts > 0 &&
         std::max({model.d_model, model.layers, model.experts, model.d_expert, model.d_ffn}) <= kSmall;
}

bool sequence_length(Scenario& scenario, double value) {
  constexpr double kMostTokens = 9e15;  // the reader refuses steps of more
  assign(scenario.model.sequence_length, value);
  return !scenario.model.opaque && !scenario.workload.batch_in_tokens &&
         value * static_cast<double>(scenario.workload.global_batch_sequences) <= kMostTokens;
}

bool batch(Scenario& scenario, double value) {
  assign(scenario.workload.global_batch_sequences, value);
  return scenario.workload.batch_shares.empty() &&
         value * static_cast<double>(scenario.model.sequence_length) <= 9e15;
}

bool batch_tokens(Scenario& scenario, double value) {
  const double sequences = value / static_cast<double>(scenario.model.sequence_length);
  return sequences == std::floor(sequences) && batch(scenario, sequences);
}

bool kept_share(Scenario& scenario, double value) {
  costmodel::WireFormat& wire = scenario.strategy.wire;
  if (!wire.sparse() || value >= 1) return false;
  wire.kept_share = value;
  return true;
}

bool index_bits(Scenario& scenario, double value) {
  assign(scenario.strategy.wire.index_bits, value);
  return scenario.strategy.wire.sparse();
}

bool loss_rate(Scenario& scenario, double value) {
  assign(scenario.network.loss_rate, value);
  return scenario.network.congestion_control != costmodel::CongestionControl::bbr;
}

/// Whether the platform has equal sites and links, which no file or trace describes.
bool equal_sites(const platforms::Platform& platform) {
  return platform.name == "uniform" && platform.changes.empty();
}

bool sites(Scenario& scenario, double value) {
  platforms::Platform& platform = scenario.platform;
  const platforms::Site first = platform.sites.front();
  if (!equal_sites(platform) || !scenario.site_compute.empty() || !scenario.workload.batch_shares.empty())
    return false;
  if (!scenario.strategy.routing_counts.empty()) return false;
  if (scenario.failures && !scenario.failures->outages.empty()) return false;
  const costmodel::ExtraTraffic& extra = scenario.traffic;
  if (extra.data_site || extra.checkpoint_site || extra.rejoin_site) return false;
  if (scenario.prices && !scenario.prices->of_all_sites) return false;
  const auto count = static_cast<int>(value);
  const double latency_s = platform.paths.at(0, 0).latency_s;
  platform = platforms::uniform(count, first.uplink_bytes_per_s, first.downlink_bytes_per_s, latency_s);
  for (platforms::Site& site : platform.sites) site.queue_s = first.queue_s;
  if (scenario.prices) {
    const costmodel::SitePrices price = scenario.prices->sites.front();
    scenario.prices->sites.assign(static_cast<std::size_t>(count), price);
  }
  return true;
}

/// Sets the rates of all ports in one or both directions.
template <bool Up, bool Down>
bool ports(Scenario& scenario, double value) {
  if (!equal_sites(scenario.platform)) return false;
  for (platforms::Site& site : scenario.platform.sites) {
    if (Up) site.uplink_bytes_per_s = value;
    if (Down) site.downlink_bytes_per_s = value;
  }
  return true;
}

bool latency(Scenario& scenario, double value) {
  if (!equal_sites(scenario.platform)) return false;
  scenario.platform.paths.change_all([&](platforms::Path& path) { path.latency_s = value; });
  return true;
}

bool queue(Scenario& scenario, double value) {
  for (platforms::Site& site : scenario.platform.sites) site.queue_s = value;
  return true;
}

bool gateways(Scenario& scenario, double value) {
  if (value > 1)
    scenario.platform = platforms::with_gateways(std::move(scenario.platform), static_cast<int>(value));
  return true;
}

bool rate_factor(Scenario& scenario, double value) {
  if (value != 1) scenario.platform = platforms::scaled_bandwidth(std::move(scenario.platform), value);
  return true;
}

bool seed(Scenario& scenario, double value) {
  assign(scenario.seed, value);
  return !scenario.platform.name.ends_with(", generated");
}

bool equal_loss_factor(Scenario& scenario, double value) {
  scenario.quality = costmodel::AssumedPenalty{value};
  return true;
}

bool preemptions(Scenario& scenario, double value) {
  return failures<&Failures::preemptions_per_s>(scenario, value / 86400);
}

using enum Resolving;

constexpr SweptKey kKeys[] = {
    {"seed", values, seed},
    {"model.d_model", counts, shape<&ModelShape::d_model>},
    {"model.layers", counts, shape<&ModelShape::layers>},
    {"model.heads", counts, shape<&ModelShape::heads>},
    {"model.experts", counts, shape<&ModelShape::experts>},
    {"model.active_experts", counts, shape<&ModelShape::active_experts>},
    {"model.d_expert", counts, shape<&ModelShape::d_expert>},
    {"model.vocabulary", counts, shape<&ModelShape::vocabulary>},
    {"model.sequence_length", counts, sequence_length},
    {"workload.tokens", plan, set<&Scenario::workload, &costmodel::Workload::tokens>},
    {"workload.global_batch_sequences", counts, batch},
    {"workload.global_batch_tokens", counts, batch_tokens},
    // Comes before keys that refer to sites.
    {"platform.sites", counts, sites},
    {"platform.bandwidth", links, ports<true, true>},
    {"platform.uplink", links, ports<true, false>},
    {"platform.downlink", links, ports<false, true>},
    {"platform.latency", links, latency},
    {"platform.queue", links, queue},
    {"platform.gateways", links, gateways, "1"},
    {"platform.rate_factor", links, rate_factor, "1"},
    {"strategy.local_steps", plan, strategy<&Strategy::local_steps>},
    {"strategy.expert_overlap", counts, strategy<&Strategy::expert_overlap>},
    {"strategy.reshuffle_rounds", plan, strategy<&Strategy::reshuffle_rounds>},
    {"strategy.overlap_steps", plan, strategy<&Strategy::overlap_steps>},
    {"strategy.fragments", counts, strategy<&Strategy::fragments>},
    {"strategy.moment1_period", counts, strategy<&Strategy::moment1_period>},
    {"strategy.moment2_period", counts, strategy<&Strategy::moment2_period>},
    {"strategy.global_period", counts, strategy<&Strategy::global_period>},
    {"strategy.staleness", counts, strategy<&Strategy::staleness>},
    {"strategy.quorum", counts, strategy<&Strategy::quorum>},
    {"strategy.straggler_timeout", counts, strategy<&Strategy::straggler_timeout_s>},
    {"strategy.gossip_peers", counts, strategy<&Strategy::gossip_peers>},
    {"strategy.bucket_bytes", links, strategy<&Strategy::bucket_bytes>},
    {"strategy.compression.kept_share", counts, kept_share},
    {"strategy.compression.index_bits", counts, index_bits},
    {"strategy.regions", counts, strategy<&Strategy::regions>},
    {"strategy.capacity_factor", counts, strategy<&Strategy::capacity_factor>},
    {"strategy.max_sites_per_token", counts, strategy<&Strategy::max_sites_per_token>},
    {"strategy.micro_batches", counts, strategy<&Strategy::micro_batches>},
    {"strategy.stage_sites", counts, strategy<&Strategy::stage_sites>},
    {"strategy.module_levels", counts, strategy<&Strategy::module_levels>},
    {"strategy.module_choices", counts, strategy<&Strategy::module_choices>},
    {"compute.micro_batch_sequences", counts, micro_batch},
    {"compute.step_time", times, compute<costmodel::GivenStepTime, &costmodel::GivenStepTime::seconds>},
    {"compute.peak_flops", times, peak},
    {"compute.mfu", times, compute<costmodel::AssumedDevice, &costmodel::AssumedDevice::mfu>},
    {"compute.kernel_efficiency", times,
     compute<costmodel::AssumedDevice, &costmodel::AssumedDevice::kernel_efficiency>},
    {"compute.gpus_per_site", counts, gpus<&SiteGpus::count>},
    {"compute.sharded", counts, gpus<&SiteGpus::sharded>},
    {"compute.zero_stage", counts, gpus<&SiteGpus::zero_stage>},
    {"compute.tensor_parallel", counts, gpus<&SiteGpus::tensor_parallel>},
    {"compute.expert_parallel", counts, gpus<&SiteGpus::expert_parallel>},
    {"compute.pipeline_parallel", counts, gpus<&SiteGpus::pipeline_parallel>},
    {"compute.gpu_memory", counts, gpus<&SiteGpus::gpu_memory_bytes>},
    {"compute.intra_site_bandwidth", times, gpus<&SiteGpus::intra_site_bytes_per_s>},
    {"compute.memory_bandwidth", times, gpus<&SiteGpus::memory_bytes_per_s>},
    {"compute.host_bandwidth", times, gpus<&SiteGpus::host_bytes_per_s>},
    {"compute.step_variation", links, variation<&StepVariation::coefficient>},
    {"compute.straggler_share", links, variation<&StepVariation::straggler_share>},
    {"compute.straggler_factor", links, variation<&StepVariation::straggler_factor>},
    {"compute.stragglers_together", links, variation<&StepVariation::stragglers_together>},
    {"network_model.bandwidth_efficiency", links, network<&NetworkModel::bandwidth_efficiency>},
    {"network_model.background_share", links, network<&NetworkModel::background_share>},
    {"network_model.latency_factor", links, network<&NetworkModel::latency_factor>},
    {"network_model.jitter", links, network<&NetworkModel::jitter_s>},
    {"network_model.call_overhead", links, network<&NetworkModel::call_overhead_s>},
    {"network_model.payload_rate", links, network<&NetworkModel::payload_bytes_per_s>},
    {"network_model.streams", links, network<&NetworkModel::streams>},
    {"network_model.tcp_window", links, network<&NetworkModel::tcp_window_bytes>},
    {"network_model.send_buffer", links, network<&NetworkModel::send_buffer_bytes>},
    {"network_model.loss_rate", links, loss_rate},
    {"network_model.segment_size", links, network<&NetworkModel::segment_bytes>},
    {"network_model.initial_window", links, network<&NetworkModel::initial_window_bytes>},
    {"traffic.data_bytes_per_token", plan, traffic<&costmodel::ExtraTraffic::data_bytes_per_token>},
    {"traffic.checkpoint_rounds", plan, traffic<&costmodel::ExtraTraffic::checkpoint_rounds>},
    {"traffic.rejoin_rounds", plan, traffic<&costmodel::ExtraTraffic::rejoin_rounds>},
    {"energy.gpu_power", values, power<&GpuPower::board_w>},
    {"energy.idle_share", values, power<&GpuPower::idle_share>},
    {"energy.pue", values, power<&GpuPower::pue>},
    {"quality.equal_loss_factor", values, equal_loss_factor},
    {"failures.site_mtbf", values, failures<&Failures::site_mtbf_s>},
    {"failures.link_mtbf", values, failures<&Failures::link_mtbf_s>},
    {"failures.preemptions_per_day", values, preemptions},
    {"failures.detection_time", values, failures<&Failures::detection_s>},
    {"failures.restart_time", values, failures<&Failures::restart_s>},
    {"failures.link_repair", values, failures<&Failures::link_repair_s>},
    {"failures.checkpoint_rounds", values, failures<&Failures::checkpoint_rounds>},
    {"failures.checkpoint_time", values, failures<&Failures::checkpoint_interval_s>},
    {"failures.checkpoint_cost", values, failures<&Failures::checkpoint_s>},
    {"failures.storage_bandwidth", values, failures<&Failures::storage_bytes_per_s>},
    {"failures.timeout", values, failures<&Failures::timeout_s>},
    {"failures.samples", values, failures<&Failures::samples>},
};

}  // namespace

std::span<const SweptKey> swept_keys() { return kKeys; }

}  // namespace fomoe::sweep
