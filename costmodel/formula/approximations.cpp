#include "costmodel/formula/approximations.hpp"

#include <algorithm>
#include <cmath>
#include <variant>

#include "costmodel/compose/extra_traffic.hpp"
#include "costmodel/compute/site_times.hpp"
#include "costmodel/formula/resolved.hpp"
#include "costmodel/inputs/at_site.hpp"
#include "costmodel/model/local_tokens.hpp"
#include "costmodel/plan/method.hpp"
#include "platforms/each_path.hpp"

namespace fomoe::costmodel {

FormulaLimits limits_of(const Scenario& scenario) {
  const bool given = std::holds_alternative<GivenStepTime>(scenario.compute);
  // A given step time is that of every site, whatever experts it holds.
  return {
      !not_in_closed_form(scenario).empty(), platforms::links_differ(scenario.platform),
      steps_differ(scenario) || (!given && expert_work_differs(scenario.strategy, expert_shares(scenario))),
      !given};
}

std::vector<std::string> not_in_closed_form(const Scenario& scenario) {
  std::vector<std::string> notes;
  const NetworkModel& network = scenario.network;
  if (network.initial_window_bytes)
    notes.emplace_back(
        "the closed form counts the windows of connections by round trips, each connection by itself; "
        "queues, "
        "losses, and connections that compete are only simulated; simulate the scenario to include them");
  if (network.jitter_s > 0 || network.call_overhead_s > 0 || network.ring_model != RingModel::stepwise ||
      scenario.strategy.bucket_bytes > 0 || !scenario.platform.changes.empty() ||
      scenario.variation.varies() || scenario.strategy.granularity != Granularity::flat)
    notes.emplace_back(
        "the closed form does not model jitter, overheads per call, buckets, one collective per tensor, "
        "fluid rings, link rates that change, or waiting for steps of varying duration; simulate the "
        "scenario to include them");
  if (!scenario.platform.shared_links.empty())
    notes.emplace_back(
        "the closed form lets a link that several paths share pass on the bytes of each transfer by itself, "
        "without flows that compete on several links; simulate the scenario to include them");
  if (network.payload_bytes_per_s)
    notes.emplace_back(
        "the closed form lets a site prepare its payloads one after another, also those of transfers that "
        "run "
        "at the same time; simulate the scenario for their overlap");
  const ExtraTraffic traffic = extra_traffic_of(scenario);
  if (traffic.data_site || traffic.checkpoint_site || traffic.rejoin_site)
    notes.emplace_back(
        "the closed form only approximates the traffic of data, checkpoints and sites that rejoin, which "
        "shares the links with other transfers; simulate the scenario instead");
  if (scenario.strategy.quorum || (scenario.failures && !scenario.failures->outages.empty()))
    notes.emplace_back(
        "the closed form lets all sites take part in every round, without quorum and outages; simulate the "
        "scenario to include them");
  return notes;
}

namespace {

bool unequal(const Resolved& resolved) {
  return steps_unequal(resolved.links.limits, resolved.counts.mean_sequences);
}

bool drifts(const Resolved& resolved) {
  if (resolved.own_pace) return false;
  return updates_drift(unequal(resolved), resolved.updates_s(), resolved.times.round.duration_s);
}

bool waits_for_fragments(const Resolved& resolved) {
  if (!resolved.own_pace || resolved.own_pace->fragments == 1) return false;
  const std::vector<Pace>& sites = resolved.own_pace->sites;
  return std::any_of(sites.begin(), sites.end(),
                     [](const Pace& pace) { return pace.exposed_s > 1e-9 * pace.cycle_s; });
}

bool regions_wait(const Resolved& resolved) {
  const std::vector<Stage>& stages = resolved.plan.stages;
  return resolved.links.limits.links_differ &&
         std::any_of(stages.begin(), stages.end(),
                     [](const Stage& stage) { return stage.among == Among::region_then_regions; });
}

/// Whether some site sends to a server before the server has sent to all others. The formula lets the server
/// receive meanwhile.
bool server_still_sends(const Resolved& resolved) {
  const LinkSets& sets = resolved.links.sets;
  if (resolved.own_pace || sets.sites == nullptr) return false;
  const platforms::Platform& platform = *sets.sites;
  for (const Stage& stage : resolved.plan.stages) {
    if (stage.between != Between::first_site) continue;
    double soonest_s = platforms::kUnlimited, longest_s = 0;
    for (int i = 1; i < platform.size(); ++i) {
      const double seconds = stage.out_share * stage.pair_bytes / platform.route_bytes_per_s(0, i);
      longest_s = std::max(longest_s, seconds);
      soonest_s =
          std::min(soonest_s, seconds + platform.path(0, i).latency_s + platform.path(i, 0).latency_s);
    }
    if (longest_s > soonest_s + resolved.times.round.slowest_compute_s) return true;
  }
  return false;
}

/// Whether the flows between owners of experts matter that are taken as those of a mean site and step, or of
/// the slowest hop of each ring. Where
/// ports limit consecutive owners without latencies, all of them end together.
bool owners_differ(const Resolved& resolved) {
  const Links& links = resolved.links.sets.all;
  return std::any_of(resolved.plan.stages.begin(), resolved.plan.stages.end(), [&](const Stage& stage) {
    const bool paths_limit =
        stage.pair_bytes / links.path_bytes_per_s > stage.bytes / links.port_bytes_per_s();
    const bool side_by_side = stage.beside.bytes > 0 && links.latency_s > 0;
    const bool sites_differ =
        stage.between == Between::owners && (resolved.links.limits.links_differ || unequal(resolved));
    return sites_differ || stage.drawn || (stage.uneven && (links.latency_s > 0 || paths_limit)) ||
           (side_by_side && paths_limit);
  });
}

/// Whether sites that compute less use the store while others still compute, although its links limit them.
bool store_is_shared_in_turn(const Resolved& resolved) {
  const StoreLinks* store = resolved.links.sets.store.get();
  if (store == nullptr || !unequal(resolved)) return false;
  const std::vector<Stage>& stages = resolved.plan.stages;
  double up = 0, down = 0;
  for (const StoreLinks::Site& site : store->sites) {
    up += site.up_bytes_per_s;
    down += site.down_bytes_per_s;
  }
  const double alike = store->count / static_cast<double>(store->sites.size());
  const bool limits = store->downlink_bytes_per_s < up * alike || store->uplink_bytes_per_s < down * alike;
  return limits && std::any_of(stages.begin(), stages.end(),
                               [](const Stage& stage) { return stage.between == Between::store; });
}

bool represented(const Resolved& resolved) {
  if (resolved.own_pace) return true;
  return represents_sites(resolved.plan, resolved.links.limits.links_differ, unequal(resolved),
                          downlinks_slower(resolved.links.sets.all));
}

}  // namespace

bool represents_sites(const Scenario& scenario, const Resolved& resolved) {
  return scenario.platform.changes.empty() && scenario.platform.shared_links.empty() && represented(resolved);
}

bool approximates(const Resolved& resolved) {
  return resolved.links.limits.leaves_out || resolved.plan.approximate ||
         steps_of_short_last_round(resolved.plan, resolved.counts.axes.local_steps) > 0 ||
         uneven_ports_differ(resolved.plan, resolved.links.sets.all) || drifts(resolved) ||
         regions_wait(resolved) || waits_for_fragments(resolved) || server_still_sends(resolved) ||
         owners_differ(resolved) || store_is_shared_in_turn(resolved) || !represented(resolved);
}

std::vector<std::string> approximations(const Scenario& scenario, const Resolved& resolved) {
  const PlanSummary& summary = resolved.plan;
  std::vector<std::string> notes = not_in_closed_form(scenario);
  const auto local_steps = scenario.strategy.local_steps;
  const double last = steps_of_short_last_round(summary, static_cast<double>(local_steps));
  if (last > 0)
    notes.push_back("the last round has " + std::to_string(static_cast<std::int64_t>(last)) + " of " +
                    std::to_string(local_steps) +
                    " steps; the closed form lets it hide transfers as a full round does, and is wrong by at "
                    "most the communication of one round; simulate the scenario instead");
  if (summary.approximate)
    notes.emplace_back(
        "the closed form takes fragments, rounds of steps or micro-batches as equal and consecutive, but "
        "here "
        "they differ or overlap; simulate the scenario instead");
  if (drifts(resolved))
    notes.emplace_back(
        "the closed form takes steps and the updates after transfers from the site with the longest steps, "
        "but "
        "both differ between sites; simulate the scenario instead");
  if (waits_for_fragments(resolved))
    notes.emplace_back(
        "the closed form lets sites wait for fragments from the beginning, where none has been sent yet, and "
        "is "
        "too long by at most what they wait in one round; simulate the scenario instead");
  if (server_still_sends(resolved))
    notes.emplace_back(
        "the closed form lets the server receive from fast sites while it still sends to slow ones, which it "
        "does not, and is too short; simulate the scenario instead");
  if (owners_differ(resolved))
    notes.emplace_back(
        "the closed form takes the flows between owners of experts as those of a mean site, and the slowest "
        "hop "
        "of a ring for all of it, and is wrong by several per cent (with windows that limit a path, layer by "
        "layer, and with recursive or "
        "hierarchical "
        "reductions by more); simulate the scenario instead");
  if (store_is_shared_in_turn(resolved))
    notes.emplace_back(
        "the closed form lets all sites use the store at the same time, but those with short steps have done "
        "so "
        "when the others begin, and it is too long; simulate the scenario instead");
  if (regions_wait(resolved))
    notes.emplace_back(
        "the closed form lets all regions wait for the slowest one before and after the exchange between "
        "regions, and is a few per cent too long; simulate the scenario instead");
  if (uneven_ports_differ(summary, resolved.links.sets.all))
    notes.emplace_back(
        "the closed form takes the slower of uplinks and downlinks for all transfers, but "
        "experts with unequal loads use one of them more than the other; simulate the scenario instead");
  if (summary.lower_bound)
    notes.emplace_back(
        "the closed form is a lower bound of this schedule, in which one wait delays others; simulate the "
        "scenario instead");
  else if (!represents_sites(scenario, resolved))
    notes.emplace_back(
        "the closed form takes the slowest links of the platform for all transfers and lets all sites wait "
        "for the slowest one, since the method's transfers have no formula for sites that differ; simulate "
        "the scenario instead");
  return notes;
}

bool represents_sites(const PlanSummary& summary, bool links_differ, bool steps_differ,
                      bool downlinks_slower) {
  if (summary.lower_bound) return false;
  for (const Stage& stage : summary.stages) {
    const bool pairs = stage.between == Between::pairs;
    // Sites that have ended a direct exchange begin the next one, while others share their links with it.
    if (links_differ && pairs && stage.hidden_backwards > 0) return false;
    if (stage.times_per_round == 0) continue;
    // A region whose sites have short steps is ahead of the others until all regions exchange.
    if (steps_differ && stage.among != Among::all_sites) return false;
    // The layers of a transfer do not wait for each other, and overtake each other if links differ.
    const bool by_layers = stage.hidden_unequally || stage.part_of_previous;
    if (stage.between == Between::owners && !by_layers) continue;  // owners_differ()
    if (stage.between == Between::any || by_layers) {
      if (steps_differ || links_differ) return false;
      continue;
    }
    // A fast site does not wait for the slowest one if the first site serves each site on its own, or if
    // later steps hide the transfer.
    // Where each site downloads the objects of the others, it has most of them before the slowest site has
    // uploaded its own.
    const bool by_object = stage.between == Between::store && stage.objects[0].result_bytes == 0;
    // The formula does not know which sites contribute to an object of a few.
    if (links_differ && stage.between == Between::store && stage.objects[1].count > 0) return false;
    const bool drifts = by_object || stage.between == Between::first_site || stage.hidden_steps > 0 ||
                        (pairs && downlinks_slower);
    if (steps_differ && (links_differ || drifts)) return false;
  }
  return true;
}

double steps_of_short_last_round(const PlanSummary& summary, double local_steps) {
  const double steps = std::max(summary.steps - (summary.rounds - 1) * local_steps, 0.0);
  const bool hides = std::any_of(summary.stages.begin(), summary.stages.end(), [](const Stage& stage) {
    return stage.shown_at_end || stage.hidden_steps > 0;
  });
  return hides && steps < local_steps ? steps : 0;
}

}  // namespace fomoe::costmodel
