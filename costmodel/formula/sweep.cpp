#include "costmodel/formula/sweep.hpp"

#include <algorithm>
#include <limits>

#include "costmodel/compose/extra_traffic.hpp"
#include "costmodel/compute/state_updates.hpp"
#include "costmodel/compute/step_seconds.hpp"
#include "costmodel/formula/round_times.hpp"
#include "costmodel/model/memory.hpp"
#include "costmodel/model/residency.hpp"
#include "costmodel/plan/site_shares.hpp"
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
StepSeconds<V> step_seconds(const SweepContext& context, const SweepSite& site,
                            const Configuration<V>& configuration, const V& flops_per_token,
                            const V& local_experts, const V& held_share, const SiteLoad<V>& load) {
  const V repeated = site.site.gpus.activation_checkpointing
                         ? repeated_share(flops_per_token, site.unembedding_flops)
                         : constant<V>(0);
  if (site.compute == SweepSite::Compute::given) {
    const V step_s =
        site.step_factor * (site.own ? constant<V>(site.own->step_time_s) : configuration.step_time_s);
    return {step_s, V(forward_share(repeated) * step_s), constant<V>(0)};
  }
  V gradients_s = constant<V>(0), optimizer_s = constant<V>(0);
  V forward = forward_share(repeated);  // share of the forward pass
  if (site.compute == SweepSite::Compute::assumed) {
    gradients_s = assumed_gradients_s(
        site.counts_repeated ? V(flops_per_token * (1.0 + kForwardShare * repeated)) : flops_per_token,
        V(load.sequences * context.fixed.sequence_length),
        site.own ? constant<V>(site.own->share_of_peak) : configuration.share_of_peak,
        site.own ? constant<V>(site.own->peak_flops) : configuration.peak_flops, load.gpus);
  } else {
    const V sequences = load.sequences / load.gpus, micro_batch_s = at(site.micro_batch_s, local_experts);
    gradients_s = profiled_gradients_s(sequences, site.micro_batch_sequences, micro_batch_s,
                                       V(at(site.accumulation_s, local_experts)));
    forward = at(site.forward_share, local_experts) * micro_batch_s *
              (sequences / site.micro_batch_sequences) /
              max_of(gradients_s, constant<V>(1e-300));  // a profile may have steps that take no time
    optimizer_s = at(site.optimizer_s, local_experts);
  }
  if (site.site.shards_all_gpus && site.adds_communication) optimizer_s /= sharded_degree(site.site, load);
  if (site.adds_communication) {
    const IntraSiteSeconds<V> inside = intra_site_seconds(site.site, load, gradients_s);
    gradients_s += inside.before_optimizer();
    optimizer_s += inside.updated_weights;
  }
  if (!site.includes_optimizer)
    optimizer_s += adam_seconds(site.site, load, constant<V>(context.fixed.dense_elements),
                                V(context.fixed.expert_elements * held_share));
  gradients_s *= site.step_factor;
  return {gradients_s, V(forward * gradients_s), V(site.step_factor * optimizer_s)};
}

/// Sequences of site `site` in a batch that is divided as evenly as possible: the first sites have one more.
template <class V>
V even_part(const V& batch_sequences, const V& sites, double site) {
  return ceil_of(V((batch_sequences - site) / sites));
}

/// The mean step of sites of which a share of `rest` takes as long as `b`, and the others as long as `a`.
template <class V>
StepSeconds<V> between(const StepSeconds<V>& a, const StepSeconds<V>& b, const V& rest) {
  const auto mean = [&](const V& of_a, const V& of_b) { return V((1.0 - rest) * of_a + rest * of_b); };
  return {mean(a.gradients_s, b.gradients_s), mean(a.forward_s, b.forward_s),
          mean(a.optimizer_s, b.optimizer_s)};
}

/// Replaces each lane of `kept` by that of `other` where `mark` is larger than `kept_mark`.
void keep_larger(double& kept, double other, double kept_mark, double mark) {
  if (mark > kept_mark) kept = other;
}
void keep_larger(Block& kept, const Block& other, const Block& kept_mark, const Block& mark) {
  for (std::size_t lane = 0; lane < Block::kLanes; ++lane)
    keep_larger(kept[lane], other[lane], kept_mark[lane], mark[lane]);
}

Summary<double> summarise(const Method& method, const Axes<double>& axes, const Fixed& fixed) {
  return method.summarise(axes, fixed);
}
Summary<Block> summarise(const Method& method, const Axes<Block>& axes, const Fixed& fixed) {
  return method.summarise_block(axes, fixed);
}

/// Adds the cost of a site, the same as add_cost() for a report. `compute_s` is its compute time in a round.
template <class V>
void add_cost(const SweepSite& site, const V& gpus, const V& compute_s, const V& all_sites,
              Outcome<V>& outcome) {
  const V& duration_s = outcome.wall_clock_s;
  V joules = constant<V>(0);
  if (site.power) {
    const V busy_s = min_of(V(compute_s * outcome.round_count), duration_s);
    joules = energy_joules(*site.power, gpus, duration_s, busy_s);
    outcome.energy_kwh += site.sites_share * all_sites * joules / kJoulesPerKwh;
  }
  const V sent_bytes = outcome.bytes_sent_per_site_per_round * outcome.round_count;
  for (const auto& [prices, share] : site.prices)
    outcome.cost_total += share * all_sites * site_price(prices, gpus, sent_bytes, duration_s, joules);
}

}  // namespace

template <class V>
void evaluate(const SweepContext& context, const Configuration<V>& configuration, Outcome<V>& outcome) {
  const Method& method = *context.method;
  const Fixed& fixed = context.fixed;
  Axes<V> axes = configuration.axes;
  axes.gpus_per_site = configuration.gpus_per_site;
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
  // Without shares, the global batch is divided as evenly as possible: the slowest site has ⌈B/M⌉ sequences,
  // the mean is B/M, over the sites that train.
  const V training_sites = method.one_site ? constant<V>(1) : axes.sites;
  const V mean_sequences = axes.global_batch_sequences / training_sites;
  StepSeconds<V> slowest_step{constant<V>(0), constant<V>(0), constant<V>(0)};
  V slowest_s = constant<V>(-1), fullest = constant<V>(-1);
  outcome.memory_bytes_per_gpu = outcome.memory_bytes_per_site = outcome.gpu_memory_bytes = constant<V>(0);
  const std::size_t computing = method.one_site ? 1 : context.sites.size();
  std::vector<StepSeconds<V>> mean_steps;  // by site
  std::vector<V> outer_steps_s;            // by site
  const WireBytes<V> wire{axes.bytes_per_element, bytes_per_parameter(axes, fixed)};
  V slowest_outer_step_s = constant<V>(0);
  std::vector<V> gpus;
  for (std::size_t i = 0; i < context.sites.size(); ++i) {
    const SweepSite& site = context.sites[i];
    gpus.push_back(site.own ? constant<V>(site.own->gpus) : configuration.gpus_per_site);
    if (i >= computing) continue;
    SiteLoad<V> load{gpus[i], constant<V>(0), constant<V>(0), executed_experts(site.site, local_experts),
                     constant<V>(0)};
    keep(load, residency_of(method, fixed.sharding), fixed, axes, held_share);
    load.gradient_bytes =
        gradient_bytes(site.site, V(ceil_of(V(axes.global_batch_sequences / axes.sites)) / gpus[i]));
    const V gpu_bytes = bytes_of_fullest_gpu(site.site, load);
    const double available = site.site.gpus.gpu_memory_bytes;
    const V full = gpu_bytes * fullness(1, available);
    keep_larger(outcome.memory_bytes_per_gpu, gpu_bytes, fullest, full);
    keep_larger(outcome.memory_bytes_per_site, bytes_of_fullest_site(site.site, load), fullest, full);
    keep_larger(outcome.gpu_memory_bytes, constant<V>(available), fullest, full);
    fullest = max_of(fullest, full);

    const auto step = [&](const V& sequences) {
      load.sequences = sequences;
      return step_seconds(context, site, configuration, outcome.flops_per_token, local_experts, held_share,
                          load);
    };
    const bool shares = !context.share_limits.empty() && !method.one_site;
    const V own_sequences =
        shares ? V(sequences_before(axes.global_batch_sequences, context.share_limits[i + 1]) -
                   sequences_before(axes.global_batch_sequences, context.share_limits[i]))
        : context.sites.size() == 1 || method.one_site
            ? mean_sequences
            : even_part(axes.global_batch_sequences, axes.sites, static_cast<double>(i));
    // A site has a whole number of sequences, of which its time is no linear function: sums over
    // micro-batches are only made if there are several.
    const V rest = own_sequences - floor_of(own_sequences);
    mean_steps.push_back(between(step(floor_of(own_sequences)), step(ceil_of(own_sequences)), rest));
    const bool alike = context.sites.size() == 1 && !shares;
    const StepSeconds<V> longest = alike ? step(ceil_of(mean_sequences)) : mean_steps.back();
    const V longest_s = longest.step_s();
    outer_steps_s.push_back(site.step_factor * outer_step_seconds(site.site, load, wire));
    keep_larger(slowest_outer_step_s, outer_steps_s.back(), slowest_s, longest_s);
    keep_larger(slowest_step.gradients_s, longest.gradients_s, slowest_s, longest_s);
    keep_larger(slowest_step.forward_s, longest.forward_s, slowest_s, longest_s);
    keep_larger(slowest_step.optimizer_s, longest.optimizer_s, slowest_s, longest_s);
    slowest_s = max_of(slowest_s, longest_s);
  }
  const V share = configuration.bandwidth_efficiency * configuration.free_share;
  LinkSets<V> links;
  links.all = {share * configuration.uplink_bytes_per_s, share * configuration.downlink_bytes_per_s,
               share * configuration.path_bytes_per_s, configuration.latency_s};
  const auto copy = [&](const std::vector<Links<double>>& from, std::vector<Links<V>>& to) {
    for (const Links<double>& hop : from)
      to.push_back({V(share * hop.uplink_bytes_per_s), V(share * hop.downlink_bytes_per_s),
                    V(share * hop.path_bytes_per_s), constant<V>(hop.latency_s), hop.from, hop.to});
  };
  copy(context.links.ring, links.ring);
  links.sites = context.links.sites;
  links.share = share;
  links.payload_s_per_byte = context.links.payload_s_per_byte;
  const RoundTimes<V> round = round_times(summary, links, slowest_step, slowest_outer_step_s);

  outcome.optimizer_steps = summary.steps;
  outcome.tokens = summary.steps * axes.global_batch_sequences * fixed.sequence_length;
  outcome.round_count = summary.rounds;
  outcome.round_duration_s = round.duration_s;
  // Mean over all sites; those that do not train count as 0.
  std::vector<V> compute_s(context.sites.size(), constant<V>(0));
  outcome.round_compute_s = constant<V>(0);
  for (std::size_t i = 0; i < mean_steps.size(); ++i) {
    compute_s[i] = round_compute_s(summary, mean_steps[i], outer_steps_s[i]);
    outcome.round_compute_s += context.sites[i].sites_share * compute_s[i];
  }
  if (context.sites.size() == 1) outcome.round_compute_s *= training_sites / axes.sites;
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
      outcome.bytes_sent_per_site_per_round / links.all.port_bytes_per_s() / round.duration_s;
  outcome.approximate =
      approximates(context.limits, summary, links.all, axes.local_steps, mean_sequences,
                   updates_after_transfers_s(summary, context.method->every_step, slowest_step.optimizer_s,
                                             slowest_outer_step_s),
                   round.duration_s);
  constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();
  outcome.cost_total = constant<V>(context.sites.front().prices.empty() ? kUnknown : 0);
  outcome.energy_kwh = constant<V>(context.sites.front().power ? 0 : kUnknown);
  const V paid_sites = context.sites.size() == 1 ? training_sites : axes.sites;
  for (std::size_t i = 0; i < computing; ++i)
    add_cost(context.sites[i], gpus[i], compute_s[i], paid_sites, outcome);
}

template void evaluate(const SweepContext&, const Configuration<double>&, Outcome<double>&);
template void evaluate(const SweepContext&, const Configuration<Block>&, Outcome<Block>&);

}  // namespace fomoe::costmodel
