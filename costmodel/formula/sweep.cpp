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

// The table entry of an index, which may come from a configuration that is no valid scenario.
double at(const std::vector<double>& table, double index) {
  const double last = static_cast<double>(table.size() - 1);
  return table[static_cast<std::size_t>(std::clamp(index, 0.0, last))];
}
/// Times of one optimiser step of a site.
StepSeconds step_seconds(const SweepContext& context, const SweepSite& site,
                         const Configuration& configuration, double flops_per_token, double local_experts,
                         double held_share, const SiteLoad& load) {
  const double repeated =
      site.site.gpus.activation_checkpointing ? repeated_share(flops_per_token, site.unembedding_flops) : 0.0;
  if (site.compute == SweepSite::Compute::given) {
    const double step_s = site.step_factor * (site.own ? site.own->step_time_s : configuration.step_time_s);
    return {step_s, forward_share(repeated) * step_s, 0.0};
  }
  double gradients_s = 0.0, optimizer_s = 0.0;
  double forward = forward_share(repeated);  // share of the forward pass
  if (site.compute == SweepSite::Compute::assumed) {
    gradients_s = assumed_gradients_s(
        site.counts_repeated ? (flops_per_token * (1.0 + kForwardShare * repeated)) : flops_per_token,
        load.sequences * context.fixed.sequence_length,
        site.own ? site.own->share_of_peak : configuration.share_of_peak,
        site.own ? site.own->peak_flops : configuration.peak_flops, load.gpus);
  } else {
    const double sequences = load.sequences / load.gpus,
                 micro_batch_s = at(site.micro_batch_s, local_experts);
    gradients_s = profiled_gradients_s(sequences, site.micro_batch_sequences, micro_batch_s,
                                       at(site.accumulation_s, local_experts));
    forward = at(site.forward_share, local_experts) * micro_batch_s *
              (sequences / site.micro_batch_sequences) /
              std::max(gradients_s, 1e-300);  // a profile may have steps that take no time
    optimizer_s = at(site.optimizer_s, local_experts);
  }
  if (site.site.shards_all_gpus && site.adds_communication) optimizer_s /= sharded_degree(site.site, load);
  if (site.adds_communication) {
    const IntraSiteSeconds inside = intra_site_seconds(site.site, load, gradients_s);
    gradients_s += inside.before_optimizer();
    optimizer_s += inside.updated_weights;
  }
  if (!site.includes_optimizer)
    optimizer_s += adam_seconds(site.site, load, context.fixed.dense_elements,
                                context.fixed.expert_elements * held_share);
  gradients_s *= site.step_factor;
  return {gradients_s, forward * gradients_s, site.step_factor * optimizer_s};
}

/// Sequences of site `site` in a batch that is divided as evenly as possible: the first sites have one more.
double even_part(double batch_sequences, double sites, double site) {
  return std::ceil((batch_sequences - site) / sites);
}

/// The mean step of sites of which a share of `rest` takes as long as `b`, and the others as long as `a`.
StepSeconds between(const StepSeconds& a, const StepSeconds& b, double rest) {
  const auto mean = [&](double of_a, double of_b) { return (1.0 - rest) * of_a + rest * of_b; };
  return {mean(a.gradients_s, b.gradients_s), mean(a.forward_s, b.forward_s),
          mean(a.optimizer_s, b.optimizer_s)};
}

/// Adds the cost of a site, the same as add_cost() for a report. `compute_s` is its compute time in a round.
void add_cost(const SweepSite& site, double gpus, double compute_s, double all_sites, Outcome& outcome) {
  const double duration_s = outcome.wall_clock_s;
  double joules = 0;
  if (site.power) {
    const double busy_s = std::min(compute_s * outcome.round_count, duration_s);
    joules = energy_joules(*site.power, gpus, duration_s, busy_s);
    outcome.energy_kwh += site.sites_share * all_sites * joules / kJoulesPerKwh;
  }
  const double sent_bytes = outcome.bytes_sent_per_site_per_round * outcome.round_count;
  for (const auto& [prices, share] : site.prices)
    outcome.cost_total += share * all_sites * site_price(prices, gpus, sent_bytes, duration_s, joules);
}

}  // namespace

void evaluate(const SweepContext& context, const Configuration& configuration, Outcome& outcome) {
  const Method& method = *context.method;
  const Fixed& fixed = context.fixed;
  Axes axes = configuration.axes;
  axes.gpus_per_site = configuration.gpus_per_site;
  PlanSummary summary = summarise(method, axes, fixed);
  const double overlap = method.partial_experts ? axes.expert_overlap : axes.sites;
  const double held_share = overlap / axes.sites;
  const double local_experts = fixed.experts * held_share;

  outcome.flops_per_token =
      partial_replica_flops(context.full_flops, fixed.experts, fixed.active_experts, local_experts,
                            context.skip_token, FlopsAccounting::mechanism)
          .total();
  add_extra_traffic(summary, axes, overlap / axes.sites, fixed, context.traffic,
                    context.state_bytes_per_parameter);
  // Without shares, the global batch is divided as evenly as possible: the slowest site has ⌈B/M⌉ sequences,
  // the mean is B/M, over the sites that train.
  const double training_sites = method.one_site ? 1.0 : axes.sites;
  const double mean_sequences = axes.global_batch_sequences / training_sites;
  StepSeconds slowest_step{0.0, 0.0, 0.0};
  double slowest_s = -1.0, fullest = -1.0;
  outcome.memory_bytes_per_gpu = outcome.memory_bytes_per_site = outcome.gpu_memory_bytes = 0.0;
  const std::size_t computing = method.one_site ? 1 : context.sites.size();
  std::vector<StepSeconds> mean_steps;  // by site
  std::vector<double> outer_steps_s;    // by site
  const WireBytes wire{axes.bytes_per_element, bytes_per_parameter(axes, fixed)};
  double slowest_outer_step_s = 0;
  std::vector<double> gpus;
  for (std::size_t i = 0; i < context.sites.size(); ++i) {
    const SweepSite& site = context.sites[i];
    gpus.push_back(site.own ? site.own->gpus : configuration.gpus_per_site);
    if (i >= computing) continue;
    SiteLoad load{gpus[i], 0.0, 0.0, executed_experts(site.site, local_experts), 0.0};
    keep(load, residency_of(method, fixed.sharding), fixed, axes, held_share);
    load.gradient_bytes =
        gradient_bytes(site.site, std::ceil(axes.global_batch_sequences / axes.sites) / gpus[i]);
    const double gpu_bytes = bytes_of_fullest_gpu(site.site, load);
    const double available = site.site.gpus.gpu_memory_bytes;
    const double full = gpu_bytes * fullness(1, available);
    if (full > fullest) {
      outcome.memory_bytes_per_gpu = gpu_bytes;
      outcome.memory_bytes_per_site = bytes_of_fullest_site(site.site, load);
      outcome.gpu_memory_bytes = available;
      fullest = full;
    }

    const auto step = [&](double sequences) {
      load.sequences = sequences;
      return step_seconds(context, site, configuration, outcome.flops_per_token, local_experts, held_share,
                          load);
    };
    const bool shares = !context.share_limits.empty() && !method.one_site;
    const double own_sequences =
        shares ? (sequences_before(axes.global_batch_sequences, context.share_limits[i + 1]) -
                  sequences_before(axes.global_batch_sequences, context.share_limits[i]))
        : context.sites.size() == 1 || method.one_site
            ? mean_sequences
            : even_part(axes.global_batch_sequences, axes.sites, static_cast<double>(i));
    // A site has a whole number of sequences, of which its time is no linear function: sums over
    // micro-batches are only made if there are several.
    const double rest = own_sequences - std::floor(own_sequences);
    mean_steps.push_back(between(step(std::floor(own_sequences)), step(std::ceil(own_sequences)), rest));
    const bool alike = context.sites.size() == 1 && !shares;
    const StepSeconds longest = alike ? step(std::ceil(mean_sequences)) : mean_steps.back();
    outer_steps_s.push_back(site.step_factor * outer_step_seconds(site.site, load, wire));
    if (longest.step_s() > slowest_s) {
      slowest_step = longest;
      slowest_outer_step_s = outer_steps_s.back();
      slowest_s = longest.step_s();
    }
  }
  const double share = configuration.bandwidth_efficiency * configuration.free_share;
  LinkSets links;
  links.all = {share * configuration.uplink_bytes_per_s, share * configuration.downlink_bytes_per_s,
               share * configuration.path_bytes_per_s, configuration.latency_s};
  const auto copy = [&](const std::vector<Links>& from, std::vector<Links>& to) {
    for (const Links& hop : from)
      to.push_back({share * hop.uplink_bytes_per_s, share * hop.downlink_bytes_per_s,
                    share * hop.path_bytes_per_s, hop.latency_s, hop.from, hop.to});
  };
  copy(context.links.ring, links.ring);
  links.sites = context.links.sites;
  links.share = share;
  links.payload_s_per_byte = context.links.payload_s_per_byte;
  const RoundTimes round = round_times(summary, links, slowest_step, slowest_outer_step_s);

  outcome.optimizer_steps = summary.steps;
  outcome.tokens = summary.steps * axes.global_batch_sequences * fixed.sequence_length;
  outcome.round_count = summary.rounds;
  outcome.round_duration_s = round.duration_s;
  // Mean over all sites; those that do not train count as 0.
  std::vector<double> compute_s(context.sites.size(), 0.0);
  outcome.round_compute_s = 0.0;
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
  outcome.cost_total = context.sites.front().prices.empty() ? kUnknown : 0;
  outcome.energy_kwh = context.sites.front().power ? 0 : kUnknown;
  const double paid_sites = context.sites.size() == 1 ? training_sites : axes.sites;
  for (std::size_t i = 0; i < computing; ++i)
    add_cost(context.sites[i], gpus[i], compute_s[i], paid_sites, outcome);
}

}  // namespace fomoe::costmodel
