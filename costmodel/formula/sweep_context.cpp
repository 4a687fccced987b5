// What the configurations of a sweep have in common, taken from a scenario, and the scenario's own
// configuration.
#include <algorithm>
#include <cstdint>
#include <variant>

#include "costmodel/compose/extra_traffic.hpp"
#include "costmodel/compute/compute_times.hpp"
#include "costmodel/compute/site_times.hpp"
#include "costmodel/compute/step_seconds.hpp"
#include "costmodel/compute/step_variation.hpp"
#include "costmodel/formula/sweep.hpp"
#include "costmodel/inputs/at_site.hpp"
#include "costmodel/model/summary_inputs.hpp"
#include "costmodel/plan/site_shares.hpp"
#include "platforms/each_path.hpp"

namespace fomoe::costmodel {

namespace {

bool same(const SitePrices& a, const SitePrices& b) {
  return a.gpu_price_per_s == b.gpu_price_per_s && a.port_price_per_month == b.port_price_per_month &&
         a.energy_price_per_joule == b.energy_price_per_joule &&
         std::equal(a.egress.begin(), a.egress.end(), b.egress.begin(), b.egress.end(),
                    [](const EgressTier& x, const EgressTier& y) {
                      return x.up_to_bytes == y.up_to_bytes && x.price_per_byte == y.price_per_byte;
                    });
}

/// `scenario` is that of a site (AtSite).
SweepSite sweep_site(const Scenario& scenario) {
  SweepSite site;
  site.site = site_model(scenario);
  site.adds_communication = adds_communication(scenario);
  site.includes_optimizer = includes_optimizer(scenario);
  site.unembedding_flops = unembedding_flops(scenario.model);
  if (const auto* device = std::get_if<AssumedDevice>(&scenario.compute)) {
    site.compute = SweepSite::Compute::assumed;
    site.counts_repeated = device->mfu == 0;
  } else if (const auto* profiled = std::get_if<ProfiledCompute>(&scenario.compute)) {
    site.compute = SweepSite::Compute::profiled;
    site.micro_batch_sequences = static_cast<double>(profiled->micro_batch_sequences);
    for (std::int64_t experts = 0; experts <= scenario.model.experts; ++experts) {
      const StepEstimate estimate = estimate_step(profiled->profile, profiled->micro_batch_sequences, experts,
                                                  scenario.strategy.skip_token);
      const StepSample& step = estimate.micro_batch;
      site.accumulation_s.push_back(estimate.accumulation_s);
      const double flops =
          flops_per_token(scenario.model, experts, scenario.strategy.skip_token, FlopsAccounting::mechanism)
              .total();
      const double repeated =
          repeats_forward(scenario) ? repeated_share(flops, unembedding_flops(scenario.model)) : 0;
      site.forward_share.push_back(forward_share(step, repeated));
      site.micro_batch_s.push_back(profiled_micro_batch_s(step.forward_s, step.backward_s, repeated));
      site.optimizer_s.push_back(step.optimizer_s / optimizer_division(scenario));
    }
  }
  site.power = scenario.power;
  return site;
}

/// The price lists of the sites and the share of all sites that pays each of them.
std::vector<std::pair<SitePrices, double>> price_shares(const Scenario& scenario) {
  std::vector<std::pair<SitePrices, double>> prices;
  if (!scenario.prices) return prices;
  // A price list for more sites than the platform has serves sweeps over the number of sites.
  const auto sites = static_cast<std::size_t>(scenario.sites());
  for (std::size_t i = 0; i < sites; ++i) {
    const SitePrices& site = scenario.prices->sites[i];
    const auto known = std::find_if(prices.begin(), prices.end(),
                                    [&](const auto& entry) { return same(entry.first, site); });
    if (known == prices.end()) {
      prices.emplace_back(site, 1.0 / static_cast<double>(sites));
    } else {
      known->second += 1.0 / static_cast<double>(sites);
    }
  }
  return prices;
}

std::vector<SweepSite> sweep_sites(const Scenario& scenario) {
  const double factor = scenario.variation.from_samples ? 1 : expected_step_factor(scenario.variation);
  if (!steps_differ(scenario)) {
    SweepSite all = sweep_site(scenario);
    all.step_factor = scenario.platform.sites.front().compute_factor * factor;
    // Nobody rents the sites that a method does not use.
    if (scenario.strategy.method->one_site && scenario.prices)
      all.prices = {{scenario.prices->sites.front(), 1.0}};
    else
      all.prices = price_shares(scenario);
    return {all};
  }
  std::vector<SweepSite> sites;
  for (int i = 0; i < scenario.sites(); ++i) {
    const AtSite at(scenario, i);
    SweepSite site = sweep_site(at);
    const Configuration configuration = configuration_of(at);
    if (!scenario.site_compute.empty())
      site.own = {configuration.step_time_s, configuration.peak_flops, configuration.share_of_peak,
                  configuration.gpus_per_site};
    site.step_factor = factor * scenario.platform.sites[static_cast<std::size_t>(i)].compute_factor;
    site.sites_share = 1.0 / scenario.sites();
    if (scenario.prices)
      site.prices = {{scenario.prices->sites[static_cast<std::size_t>(i)], site.sites_share}};
    sites.push_back(site);
  }
  return sites;
}

}  // namespace

SweepContext sweep_context(const Scenario& scenario) {
  SweepContext context;
  context.method = scenario.strategy.method;
  context.fixed = fixed_of(scenario);
  context.skip_token = scenario.strategy.skip_token;
  context.full_flops = full_replica_flops(scenario.model);
  context.sites = sweep_sites(scenario);
  if (!scenario.workload.batch_shares.empty()) context.share_limits = share_limits(scenario);
  context.traffic = extra_traffic_of(scenario);
  context.state_bytes_per_parameter = state_bytes_per_parameter(scenario);
  platforms::Platform platform = scenario.platform;
  platform.paths.change_all(
      [&](platforms::Path& path) { path.latency_s *= scenario.network.latency_factor; });
  context.links = link_sets(scenario, platform);
  context.limits = limits_of(scenario);
  return context;
}

Configuration configuration_of(const Scenario& scenario) {
  Configuration configuration{};
  configuration.axes = axes_of(scenario);
  double& uplink = configuration.uplink_bytes_per_s = platforms::kUnlimited;
  double& downlink = configuration.downlink_bytes_per_s = platforms::kUnlimited;
  configuration.path_bytes_per_s = platforms::kUnlimited;
  for (int i = 0; i < scenario.sites(); ++i) {
    const platforms::Site& site = scenario.platform.sites[static_cast<std::size_t>(i)];
    uplink = std::min(uplink, site.uplink_bytes_per_s);
    downlink = std::min(downlink, site.downlink_bytes_per_s);
  }
  platforms::each_path(scenario.platform, [&](int /*from*/, int /*to*/, const platforms::Path& path) {
    configuration.path_bytes_per_s = std::min(configuration.path_bytes_per_s, path.bandwidth_bytes_per_s);
    configuration.latency_s =
        std::max(configuration.latency_s, path.latency_s * scenario.network.latency_factor);
  });
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

}  // namespace fomoe::costmodel
