#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "costmodel/compose/make_plan.hpp"
#include "costmodel/compute/state_updates.hpp"
#include "costmodel/compute/step_variation.hpp"
#include "costmodel/formula/own_pace_times.hpp"
#include "costmodel/formula/resolved.hpp"
#include "costmodel/formula/sent_to.hpp"
#include "costmodel/inputs/at_site.hpp"
#include "costmodel/model/summary_inputs.hpp"
#include "costmodel/plan/site_shares.hpp"
#include "costmodel/value/cost.hpp"

namespace fomoe::costmodel {

namespace {

/// The mean step of sites of which a share has the step `few` and the others have `many`.
StepSeconds mean_of(const StepSeconds& few, const StepSeconds& many, double share_of_few) {
  const auto mean = [&](double a, double b) { return share_of_few * a + (1.0 - share_of_few) * b; };
  StepSeconds step{mean(few.gradients_s, many.gradients_s), mean(few.forward_s, many.forward_s),
                   mean(few.optimizer_s, many.optimizer_s)};
  if (step.gradients_s > 0)
    step.equal_part =
        mean(few.equal_part * few.gradients_s, many.equal_part * many.gradients_s) / step.gradients_s;
  return step;
}

void slow_down(StepSeconds& step, double factor) {
  step.gradients_s *= factor;
  step.forward_s *= factor;
  step.optimizer_s *= factor;
}

SiteSeconds seconds_of(const Scenario& scenario, int site, const SiteCounts& site_counts) {
  const AtSite at(scenario, site);
  const SiteStep step = site_step(at, site_counts);
  SiteModel model = site_counts.model;
  set_rates(model, at.scenario().gpus);
  const auto step_of = [&](double sequences) {
    SiteLoad load = site_counts.load;
    load.sequences = sequences;
    StepSeconds seconds = step_seconds(step, model, load);
    if (scenario.strategy.method->residency == Residency::experts_sharded)
      seconds.equal_part = equal_part(
          at.scenario().compute,
          static_cast<double>(scenario.workload.global_batch_sequences) / scenario.sites(), sequences);
    return seconds;
  };
  SiteSeconds seconds;
  seconds.many = step_of(site_counts.many);
  seconds.few = site_counts.few == site_counts.many ? seconds.many : step_of(site_counts.few);
  seconds.outer_step_s = outer_step_seconds(model, site_counts.load, wire_bytes(scenario.strategy));
  const double factor = scenario.platform.sites[static_cast<std::size_t>(site)].compute_factor *
                        (scenario.variation.from_samples ? 1 : expected_step_factor(scenario.variation));
  slow_down(seconds.many, factor);
  slow_down(seconds.few, factor);
  seconds.outer_step_s *= factor;
  seconds.mean = mean_of(seconds.few, seconds.many, site_counts.share_of_few);
  return seconds;
}

ResolvedTimes times_of(const Scenario& scenario, const Counts& counts, const PlanSummary& plan,
                       const ResolvedLinks& links) {
  ResolvedTimes times;
  std::vector<SiteComputation> of_sites;
  double longest_s = 0;
  for (std::size_t i = 0; i < counts.sites.size(); ++i) {
    SiteSeconds& site = times.sites.emplace_back();
    if (counts.sites[i].share_of_training == 0) continue;
    site = seconds_of(scenario, static_cast<int>(i), counts.sites[i]);
    site.round_compute_s = round_compute_s(plan, site.mean, site.outer_step_s);
    of_sites.push_back({round_steps_s(plan, site.many), site.outer_step_s});
    const double compute_s = round_compute_s(plan, site.many, site.outer_step_s);
    if (compute_s <= longest_s) continue;
    longest_s = compute_s;
    times.slowest = i;
  }
  times.round = round_times(plan, links.sets, times.slowest_step(), between_transfers_s(plan, of_sites));
  return times;
}

/// What a site sends in the run, at its own pace if sites have paces of their own, to those to which its
/// stages send.
SiteTraffic traffic_of(const Scenario& scenario, const Resolved& resolved, int site) {
  SiteTraffic traffic{resolved.own_pace ? own_pace_site(resolved, site).bytes_sent
                                        : round_bytes(resolved, site).sent * resolved.plan.rounds};
  if (egress_by_destination(scenario.prices)) traffic.to = sent_to(resolved, site, traffic.bytes);
  return traffic;
}

ResolvedValues values_of(const Scenario& scenario, const Resolved& resolved) {
  constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();
  if (!scenario.prices && !scenario.power) return {kUnknown, kUnknown};
  const std::vector<SiteCounts>& sites = resolved.counts.sites;
  SiteCost sum;
  for (int i = 0; i < scenario.sites(); ++i) {
    if (i > 0 && resolved.counts.method->one_site) break;
    const std::size_t known = resolved.counts.alike ? 0 : static_cast<std::size_t>(i);
    const double compute_s = resolved.times.sites[known].round_compute_s;
    // A sweep has as many bytes from every site.
    sum += site_cost(scenario, i, sites[known].load.gpus, traffic_of(scenario, resolved, i),
                     resolved.wall_clock_s(), compute_s * resolved.plan.rounds);
  }
  const double of_store =
      scenario.prices ? store_price(scenario.prices->store, store_use(resolved.plan, scenario.sites())) : 0;
  return {scenario.prices ? sum.total() + of_store : kUnknown,
          scenario.power ? sum.joules / kJoulesPerKwh : kUnknown};
}

void set_plan(const Scenario& scenario, Resolved& resolved) {
  resolved.own_pace = own_paces_of(scenario, resolved.counts);
  resolved.plan = summarise(scenario, resolved.counts.axes, resolved.counts.fixed, resolved.own_pace);
}

}  // namespace

double Resolved::updates_s() const {
  return updates_after_transfers_s(plan, counts.method->every_step, times.slowest_step().optimizer_s,
                                   times.sites[times.slowest].outer_step_s);
}

void resolve(const Scenario& scenario, Resolving first, Resolved& resolved) {
  switch (first) {
    case Resolving::counts:
      resolved.counts = counts_of(scenario);
      [[fallthrough]];
    case Resolving::plan:
      resolved.counts.axes = axes_of(scenario);
      set_plan(scenario, resolved);
      [[fallthrough]];
    case Resolving::links:
      resolved.links = {link_sets(scenario), limits_of(scenario)};
      [[fallthrough]];
    case Resolving::times:
      // Sites at their own pace have as many cycles as their links and times allow.
      if (first > Resolving::plan && resolved.own_pace) set_plan(scenario, resolved);
      resolved.times = times_of(scenario, resolved.counts, resolved.plan, resolved.links);
      if (resolved.own_pace) set_paced_times(resolved);
      [[fallthrough]];
    case Resolving::values:
      resolved.values = values_of(scenario, resolved);
  }
}

Resolved resolve(const Scenario& scenario) {
  Resolved resolved;
  resolve(scenario, Resolving::counts, resolved);
  return resolved;
}

}  // namespace fomoe::costmodel
