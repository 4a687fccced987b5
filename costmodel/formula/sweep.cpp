#include "costmodel/formula/sweep.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <variant>

#include "costmodel/compose/extra_traffic.hpp"
#include "costmodel/compose/make_plan.hpp"
#include "costmodel/compute/compute_times.hpp"
#include "costmodel/compute/step_seconds.hpp"
#include "costmodel/compute/step_variation.hpp"
#include "costmodel/formula/round_times.hpp"
#include "costmodel/model/memory.hpp"
#include "costmodel/model/residency.hpp"
#include "costmodel/model/summary_inputs.hpp"
#include "costmodel/value/cost.hpp"

namespace fomoe::costmodel {

namespace {

// Looks up table entries by integer lanes. Lanes that are not valid scenarios read an arbitrary entry.
double at(const std::vector<double>& table, double index) {
  const double last = static_cast<double>(table.size() - 1);
  return table[static_cast<std::size_t>(std::clamp(index, 0.0, last))];
}
Block at(const std::vector<double>& table, const Block& index) {
  Block values;
  for (std::size_t lane = 0; lane < Block::kLanes; ++lane) values[lane] = at(table, index[lane]);
  return values;
}

/// Times of one optimiser step of a site.
template <class V>
StepSeconds<V> step_seconds(const SweepContext& context, const Configuration<V>& configuration,
                            const V& flops_per_token, const V& local_experts, const SiteLoad<V>& load) {
  if (context.compute == SweepContext::Compute::given) {
    const V step_s = context.step_factor * configuration.step_time_s;
    return {step_s, V(forward_share(context.site.gpus.activation_checkpointing) * step_s), constant<V>(0)};
  }
  V gradients_s = constant<V>(0), optimizer_s = constant<V>(0);
  V forward = constant<V>(forward_share(context.site.gpus.activation_checkpointing));  // forward share
  if (context.compute == SweepContext::Compute::assumed) {
    gradients_s = assumed_gradients_s(V(context.recomputation * flops_per_token),
                                      V(load.sequences * context.fixed.sequence_length),
                                      configuration.share_of_peak, configuration.peak_flops, load.gpus);
  } else {
    gradients_s = profiled_gradients_s(V(load.sequences / load.gpus), context.micro_batch_sequences,
                                       at(context.micro_batch_s, local_experts));
    forward = at(context.forward_share, local_experts);
    optimizer_s = at(context.optimizer_s, local_experts);
  }
  if (context.adds_communication) {
    const IntraSiteSeconds<V> inside = intra_site_seconds(context.site, load, gradients_s);
    gradients_s += inside.before_optimizer();
    optimizer_s += inside.updated_weights;
  }
  gradients_s *= context.step_factor;
  return {gradients_s, V(forward * gradients_s), V(context.step_factor * optimizer_s)};
}

Summary<double> summarise(const Method& method, const Axes<double>& axes, const Fixed& fixed) {
  return method.summarise(axes, fixed);
}
Summary<Block> summarise(const Method& method, const Axes<Block>& axes, const Fixed& fixed) {
  return method.summarise_block(axes, fixed);
}

bool same(const SitePrices& a, const SitePrices& b) {
  return a.gpu_price_per_s == b.gpu_price_per_s && a.port_price_per_month == b.port_price_per_month &&
         a.energy_price_per_joule == b.energy_price_per_joule &&
         std::equal(a.egress.begin(), a.egress.end(), b.egress.begin(), b.egress.end(),
                    [](const EgressTier& x, const EgressTier& y) {
                      return x.up_to_bytes == y.up_to_bytes && x.price_per_byte == y.price_per_byte;
                    });
}

/// The same cost as add_cost() for a report, for equal sites.
template <class V>
void add_cost(const SweepContext& context, const Configuration<V>& configuration, Outcome<V>& outcome) {
  const V& duration_s = outcome.wall_clock_s;
  const V& gpus = configuration.gpus_per_site;
  outcome.cost_total = outcome.energy_kwh = constant<V>(std::numeric_limits<double>::quiet_NaN());
  V joules = constant<V>(0);
  if (context.power) {
    const V busy_s = outcome.round_compute_s * outcome.round_count;
    joules = energy_joules(*context.power, gpus, duration_s, min_of(busy_s, duration_s));
    outcome.energy_kwh = configuration.axes.sites * joules / kJoulesPerKwh;
  }
  if (context.prices.empty()) return;
  const V sent_bytes = outcome.bytes_sent_per_site_per_round * outcome.round_count;
  outcome.cost_total = constant<V>(0);
  for (const auto& [prices, share] : context.prices)
    outcome.cost_total +=
        share * configuration.axes.sites * site_price(prices, gpus, sent_bytes, duration_s, joules);
}

}  // namespace

template <class V>
void evaluate(const SweepContext& context, const Configuration<V>& configuration, Outcome<V>& outcome) {
  const Method& method = *context.method;
  const Fixed& fixed = context.fixed;
  const Axes<V>& axes = configuration.axes;
  Summary<V> summary = summarise(method, axes, fixed);
  const V overlap = method.partial_experts ? axes.expert_overlap : axes.sites;
  const V held_share = overlap / axes.sites;
  const V local_experts = fixed.experts * held_share;

  outcome.flops_per_token =
      partial_replica_flops(context.full_flops, fixed.experts, fixed.active_experts, local_experts,
                            context.skip_token, FlopsAccounting::mechanism)
          .total();
  add_extra_traffic(summary, axes, V(overlap / axes.sites), fixed, context.traffic,
                    context.state_bytes_per_parameter);
  SiteLoad<V> load{configuration.gpus_per_site, constant<V>(0), constant<V>(0),
                   executed_experts(context.site, local_experts), constant<V>(0)};
  keep(load, method.residency, fixed, axes.sites, held_share);
  outcome.memory_bytes_per_site = memory_of_site(context.site, load).total();
  outcome.memory_bytes_per_gpu = bytes_of_fullest_gpu(context.site, load);

  // The global batch is divided as evenly as possible: the slowest site has ⌈B/M⌉ sequences, the mean is B/M,
  // over the sites that train.
  const V training_sites = method.one_site ? constant<V>(1) : axes.sites;
  const V mean_sequences = axes.global_batch_sequences / training_sites;
  load.sequences = ceil_of(mean_sequences);
  const StepSeconds<V> slowest_step =
      step_seconds(context, configuration, outcome.flops_per_token, local_experts, load);
  load.sequences = mean_sequences;
  const StepSeconds<V> mean_step =
      step_seconds(context, configuration, outcome.flops_per_token, local_experts, load);
  const V outer_step_s = constant<V>(0);

  const V share = configuration.bandwidth_efficiency * configuration.free_share;
  LinkSets<V> links;
  links.all = {share * min_of(configuration.uplink_bytes_per_s, configuration.downlink_bytes_per_s),
               share * configuration.path_bytes_per_s, configuration.latency_s};
  const auto copy = [&](const std::vector<Links<double>>& from, std::vector<Links<V>>& to) {
    for (const Links<double>& hop : from)
      to.push_back({V(share * hop.port_bytes_per_s), V(share * hop.path_bytes_per_s),
                    constant<V>(hop.latency_s), hop.from, hop.to});
  };
  copy(context.links.ring, links.ring);
  links.sites = context.links.sites;
  links.share = share;
  const RoundTimes<V> round = round_times(summary, links, slowest_step, outer_step_s);

  outcome.optimizer_steps = summary.steps;
  outcome.tokens = summary.steps * axes.global_batch_sequences * fixed.sequence_length;
  outcome.round_count = summary.rounds;
  outcome.round_duration_s = round.duration_s;
  outcome.round_compute_s = round_compute_s(summary, mean_step, outer_step_s) * (training_sites / axes.sites);
  outcome.round_communication_s = round.communication_s;
  outcome.round_exposed_communication_s = round.exposed_s;
  outcome.round_idle_s = round.slowest_compute_s + round.waiting_s - outcome.round_compute_s;
  outcome.sent = summary.sent;
  outcome.bytes_sent_per_site_per_round = summary.sent.total();
  outcome.wall_clock_s = summary.rounds * round.duration_s;
  outcome.compute_utilization = outcome.round_compute_s / round.duration_s;
  outcome.tokens_per_s = outcome.tokens / outcome.wall_clock_s;
  outcome.bytes_per_token =
      axes.sites * summary.rounds * outcome.bytes_sent_per_site_per_round / outcome.tokens;
  outcome.link_busy_share =
      outcome.bytes_sent_per_site_per_round / links.all.port_bytes_per_s / round.duration_s;
  add_cost(context, configuration, outcome);
}

template void evaluate(const SweepContext&, const Configuration<double>&, Outcome<double>&);
template void evaluate(const SweepContext&, const Configuration<Block>&, Outcome<Block>&);

SweepContext sweep_context(const Scenario& scenario) {
  SweepContext context;
  context.method = scenario.strategy.method;
  context.fixed = fixed_of(scenario);
  context.skip_token = scenario.strategy.skip_token;
  context.site = site_model(scenario);
  context.full_flops = full_replica_flops(scenario.model);
  context.adds_communication = adds_communication(scenario);
  double slowest = 0;
  for (const platforms::Site& site : scenario.platform.sites)
    slowest = std::max(slowest, site.compute_factor);
  context.step_factor =
      slowest * (scenario.variation.from_samples ? 1 : expected_step_factor(scenario.variation));
  if (std::holds_alternative<AssumedDevice>(scenario.compute)) {
    context.compute = SweepContext::Compute::assumed;
    context.recomputation = executed_per_model_flops(scenario);
  } else if (const auto* profiled = std::get_if<ProfiledCompute>(&scenario.compute)) {
    context.compute = SweepContext::Compute::profiled;
    context.micro_batch_sequences = static_cast<double>(profiled->micro_batch_sequences);
    for (std::int64_t experts = 0; experts <= scenario.model.experts; ++experts) {
      const StepSample step = estimate_step(profiled->profile, profiled->micro_batch_sequences, experts,
                                            scenario.strategy.skip_token)
                                  .micro_batch;
      const bool repeats = repeats_forward(scenario);
      context.forward_share.push_back(forward_share(step, repeats));
      context.micro_batch_s.push_back(profiled_micro_batch_s(step.forward_s, step.backward_s, repeats));
      context.optimizer_s.push_back(step.optimizer_s / optimizer_division(scenario));
    }
  }
  context.traffic = scenario.traffic;
  context.state_bytes_per_parameter = state_bytes_per_parameter(scenario);
  if (scenario.prices) {
    // A price list for more sites than the platform has serves sweeps over the number of sites.
    const auto sites = static_cast<std::size_t>(scenario.sites());
    for (std::size_t i = 0; i < sites; ++i) {
      const SitePrices& site = scenario.prices->sites[i];
      const auto known = std::find_if(context.prices.begin(), context.prices.end(),
                                      [&](const auto& entry) { return same(entry.first, site); });
      if (known == context.prices.end()) {
        context.prices.emplace_back(site, 1.0 / static_cast<double>(sites));
      } else {
        known->second += 1.0 / static_cast<double>(sites);
      }
    }
  }
  context.power = scenario.power;
  platforms::Platform platform = scenario.platform;
  for (platforms::Path& path : platform.paths) path.latency_s *= scenario.network.latency_factor;
  context.links = link_sets(scenario, platform);
  return context;
}

Configuration<double> configuration_of(const Scenario& scenario) {
  Configuration<double> configuration{};
  configuration.axes = axes_of(scenario);
  double& uplink = configuration.uplink_bytes_per_s = platforms::kUnlimited;
  double& downlink = configuration.downlink_bytes_per_s = platforms::kUnlimited;
  configuration.path_bytes_per_s = platforms::kUnlimited;
  for (int i = 0; i < scenario.sites(); ++i) {
    const platforms::Site& site = scenario.platform.sites[static_cast<std::size_t>(i)];
    uplink = std::min(uplink, site.uplink_bytes_per_s);
    downlink = std::min(downlink, site.downlink_bytes_per_s);
    for (int j = 0; j < scenario.sites(); ++j) {
      if (i == j) continue;
      const platforms::Path& path = scenario.platform.path(i, j);
      configuration.path_bytes_per_s = std::min(configuration.path_bytes_per_s, path.bandwidth_bytes_per_s);
      configuration.latency_s =
          std::max(configuration.latency_s, path.latency_s * scenario.network.latency_factor);
    }
  }
  configuration.bandwidth_efficiency = scenario.network.bandwidth_efficiency;
  configuration.free_share = free_share(scenario.network);
  if (const auto* given = std::get_if<GivenStepTime>(&scenario.compute)) {
    configuration.step_time_s = given->seconds;
  } else if (const auto* device = std::get_if<AssumedDevice>(&scenario.compute)) {
    configuration.peak_flops = device->peak_flops;
    configuration.share_of_peak = device->share_of_peak();
  }
  configuration.gpus_per_site = scenario.gpus.count;
  return configuration;
}

Configuration<Block> replicated(const Configuration<double>& one) {
  const auto all = [](double value) { return constant<Block>(value); };
  Configuration<Block> block;
  block.axes = {all(one.axes.sites),
                all(one.axes.local_steps),
                all(one.axes.expert_overlap),
                all(one.axes.reshuffle_rounds),
                all(one.axes.overlap_steps),
                all(one.axes.fragments),
                all(one.axes.tokens),
                all(one.axes.global_batch_sequences),
                all(one.axes.bytes_per_element)};
  block.uplink_bytes_per_s = all(one.uplink_bytes_per_s);
  block.downlink_bytes_per_s = all(one.downlink_bytes_per_s);
  block.path_bytes_per_s = all(one.path_bytes_per_s);
  block.latency_s = all(one.latency_s);
  block.bandwidth_efficiency = all(one.bandwidth_efficiency);
  block.free_share = all(one.free_share);
  block.step_time_s = all(one.step_time_s);
  block.peak_flops = all(one.peak_flops);
  block.share_of_peak = all(one.share_of_peak);
  block.gpus_per_site = all(one.gpus_per_site);
  return block;
}

}  // namespace fomoe::costmodel
