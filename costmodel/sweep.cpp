#include "costmodel/sweep.hpp"

#include <algorithm>
#include <cstdint>
#include <variant>

#include "costmodel/memory.hpp"
#include "costmodel/round_times.hpp"
#include "costmodel/step_seconds.hpp"

namespace fomoe::costmodel {

namespace {

// Entries of a table at whole numbers; lanes that no scenario allows read some entry.
double at(const std::vector<double>& table, double index) {
  const double last = static_cast<double>(table.size() - 1);
  return table[static_cast<std::size_t>(std::clamp(index, 0.0, last))];
}
Block at(const std::vector<double>& table, const Block& index) {
  Block values;
  for (Eigen::Index lane = 0; lane < index.size(); ++lane) values[lane] = at(table, double(index[lane]));
  return values;
}

/// Seconds of one optimiser step of a site with this many sequences.
template <class V>
V step_s(const SweepContext& context, const Configuration<V>& configuration, const V& flops_per_token,
         const V& local_experts, const V& sequences) {
  switch (context.compute) {
    case SweepContext::Compute::given:
      return configuration.step_time_s;
    case SweepContext::Compute::assumed:
      return assumed_gradients_s(flops_per_token, V(sequences * context.fixed.sequence_length),
                                 configuration.mfu, configuration.peak_flops, configuration.gpus_per_site);
    case SweepContext::Compute::profiled:
      break;
  }
  return profiled_gradients_s(sequences, context.micro_batch_sequences,
                              at(context.micro_batch_s, local_experts)) +
         at(context.optimizer_s, local_experts);
}

Summary<double> summarise(const Method& method, const Axes<double>& axes, const Fixed& fixed) {
  return method.summarise(axes, fixed);
}
Summary<Block> summarise(const Method& method, const Axes<Block>& axes, const Fixed& fixed) {
  return method.summarise_block(axes, fixed);
}

}  // namespace

template <class V>
void evaluate(const SweepContext& context, const Configuration<V>& configuration, Outcome<V>& outcome) {
  const Method& method = *context.method;
  const Fixed& fixed = context.fixed;
  const Axes<V>& axes = configuration.axes;
  const Summary<V> summary = summarise(method, axes, fixed);
  const V overlap = method.partial_experts ? axes.expert_overlap : axes.sites;
  const V held_share = overlap / axes.sites;
  const V local_experts = fixed.experts * held_share;

  outcome.flops_per_token =
      partial_replica_flops(context.full_flops, fixed.experts, fixed.active_experts, local_experts,
                            context.skip_token, FlopsAccounting::mechanism)
          .total();
  const V parameters = fixed.dense_elements + fixed.expert_elements * held_share;
  outcome.memory_bytes_per_site = resident_memory(parameters, method.outer_bytes_per_parameter).total();

  // The global batch is dealt out as evenly as it goes: the slowest site has ⌈B/M⌉ sequences, the mean is
  // B/M.
  const V mean_sequences = axes.global_batch_sequences / axes.sites;
  const V slowest_step_s =
      step_s(context, configuration, outcome.flops_per_token, local_experts, ceil_of(mean_sequences));
  const V mean_step_s =
      step_s(context, configuration, outcome.flops_per_token, local_experts, mean_sequences);
  const V outer_step_s = constant<V>(0);

  const Links<V> links{configuration.bandwidth_efficiency *
                           min_of(configuration.uplink_bytes_per_s, configuration.downlink_bytes_per_s),
                       configuration.bandwidth_efficiency * configuration.path_bytes_per_s,
                       configuration.latency_s};
  const RoundTimes<V> round = round_times(summary, links, slowest_step_s, outer_step_s);

  outcome.optimizer_steps = summary.steps;
  outcome.tokens = summary.steps * axes.global_batch_sequences * fixed.sequence_length;
  outcome.round_count = summary.rounds;
  outcome.round_duration_s = round.duration_s;
  outcome.round_compute_s = round_compute_s(summary, mean_step_s, outer_step_s);
  outcome.round_communication_s = round.communication_s;
  outcome.round_exposed_communication_s = round.exposed_s;
  outcome.round_idle_s = round.slowest_compute_s - outcome.round_compute_s;
  outcome.sent = summary.sent;
  outcome.bytes_sent_per_site_per_round = summary.sent.total();
  outcome.wall_clock_s = summary.rounds * round.duration_s;
  outcome.compute_utilization = outcome.round_compute_s / round.duration_s;
  outcome.tokens_per_s = outcome.tokens / outcome.wall_clock_s;
  outcome.bytes_per_token =
      axes.sites * summary.rounds * outcome.bytes_sent_per_site_per_round / outcome.tokens;
  outcome.link_busy_share = outcome.bytes_sent_per_site_per_round / links.port_bytes_per_s / round.duration_s;
}

template void evaluate(const SweepContext&, const Configuration<double>&, Outcome<double>&);
template void evaluate(const SweepContext&, const Configuration<Block>&, Outcome<Block>&);

SweepContext sweep_context(const Scenario& scenario) {
  SweepContext context;
  context.method = find_method(scenario.strategy.method);
  context.fixed = fixed_of(scenario);
  context.skip_token = scenario.strategy.skip_token;
  context.full_flops = full_replica_flops(scenario.model);
  if (std::holds_alternative<AssumedDevice>(scenario.compute)) {
    context.compute = SweepContext::Compute::assumed;
  } else if (const auto* profiled = std::get_if<ProfiledCompute>(&scenario.compute)) {
    context.compute = SweepContext::Compute::profiled;
    context.micro_batch_sequences = static_cast<double>(profiled->micro_batch_sequences);
    for (std::int64_t experts = 0; experts <= scenario.model.experts; ++experts) {
      const StepSample step = estimate_step(profiled->profile, profiled->micro_batch_sequences, experts,
                                            scenario.strategy.skip_token)
                                  .micro_batch;
      context.micro_batch_s.push_back(step.forward_s + step.backward_s);
      context.optimizer_s.push_back(step.optimizer_s);
    }
  }
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
  configuration.bandwidth_efficiency =
      scenario.network.bandwidth_efficiency * (1 - scenario.network.background_share);
  if (const auto* given = std::get_if<GivenStepTime>(&scenario.compute)) {
    configuration.step_time_s = given->seconds;
  } else if (const auto* device = std::get_if<AssumedDevice>(&scenario.compute)) {
    configuration.peak_flops = device->peak_flops;
    configuration.mfu = device->mfu;
    configuration.gpus_per_site = device->gpus_per_site;
  }
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
  block.step_time_s = all(one.step_time_s);
  block.peak_flops = all(one.peak_flops);
  block.mfu = all(one.mfu);
  block.gpus_per_site = all(one.gpus_per_site);
  return block;
}

}  // namespace fomoe::costmodel
