// What the closed form leaves out of a scenario, or only approximates.
#pragma once
#include <string>
#include <vector>

#include "costmodel/formula/links.hpp"
#include "costmodel/inputs/scenario.hpp"
#include "costmodel/math/lanes.hpp"
#include "costmodel/plan/plan_summary.hpp"

namespace fomoe::costmodel {

/// What decides beside the summary whether the closed form represents a scenario.
struct FormulaLimits {
  bool leaves_out = false;  // not_in_closed_form() has a sentence
  bool links_differ = false, steps_differ = false;
  bool steps_follow_batch = false;  // the time of a step depends on the site's part of the batch
};
FormulaLimits limits_of(const Scenario& scenario);

/// 1 if steps take unequally long at the sites that train, whose mean part of the batch is `mean_sequences`.
template <class V>
V steps_unequal(const FormulaLimits& limits, const V& mean_sequences) {
  if (limits.steps_differ) return constant<V>(1);
  if (!limits.steps_follow_batch) return constant<V>(0);
  return ceil_of(mean_sequences) - floor_of(mean_sequences);
}

/// 1 if `rate` is below `other`, else 0. Both are above 0.
template <class V>
V slower(const V& rate, const V& other) {
  return ceil_of(V(1.0 - min_of(V(rate / other), constant<V>(1))));
}
template <class V>
V downlinks_slower(const Links<V>& links) {
  return slower(links.downlink_bytes_per_s, links.uplink_bytes_per_s);
}

/// 1 where the stages' formulas represent sites that differ, else 0. If links differ, each stage must be a
/// ring, a star, or a direct exchange that is not one of several in a row behind a backward pass. If steps
/// take unequally long (`steps_differ` is 1, else 0), each stage must be a ring or a direct exchange that no
/// steps hide, since all sites then wait for the slowest one. In a direct exchange whose `downlinks_slower`
/// than uplinks are (1, else 0), the slowest site receives for longest, but the latencies of what it receives
/// have passed while it computed. If both differ, a fast site with slow links begins to send early, which no
/// formula represents.
template <class V>
V represents_sites(const Summary<V>& summary, bool links_differ, const V& steps_differ,
                   const V& downlinks_slower) {
  const V one = constant<V>(1);
  V represented = constant<V>(summary.lower_bound ? 0 : 1);
  for (int i = 0; i < summary.stage_count; ++i) {
    const Stage<V>& stage = summary.stages[static_cast<std::size_t>(i)];
    const V runs = min_of(ceil_of(stage.times_per_round), one);
    // A fast site does not wait for the slowest one if the first site serves each site on its own, or if
    // later steps hide the transfer.
    V drifts = stage.between == Between::first_site ? one : min_of(ceil_of(stage.hidden_steps), one);
    if (stage.between == Between::pairs) drifts = max_of(drifts, downlinks_slower);
    // The layers of a transfer do not wait for each other, and overtake each other if links differ.
    const bool by_layers = stage.hidden_unequally || stage.part_of_previous;
    const V wrong = stage.between == Between::any || by_layers
                        ? max_of(steps_differ, constant<V>(links_differ ? 1 : 0))
                        : V(steps_differ * (links_differ ? one : drifts));
    represented *= one - runs * wrong;
    // Sites that have ended a direct exchange begin the next one, while others share their links with it.
    if (links_differ && stage.between == Between::pairs)
      represented *= one - min_of(ceil_of(stage.hidden_backwards), one);
  }
  return represented;
}

/// Steps of the last round if it is short and computation hides transfers, else 0. The formula lets the last
/// round hide as much as each other one, which is wrong by at most the communication of one round.
template <class V>
V steps_of_short_last_round(const Summary<V>& summary, const V& local_steps) {
  const V none = constant<V>(0), one = constant<V>(1);
  const V steps = max_of(V(summary.steps - (summary.rounds - 1.0) * local_steps), none);
  V hides = none;
  for (int i = 0; i < summary.stage_count; ++i) {
    const Stage<V>& stage = summary.stages[static_cast<std::size_t>(i)];
    hides = max_of(hides, stage.shown_at_end ? one : min_of(ceil_of(stage.hidden_steps), one));
  }
  return hides * steps * min_of(max_of(V(local_steps - steps), none), one);
}

/// Seconds of updates that follow the transfers, per round. With `every_step`, those of AdamW follow the
/// transfers of their step. They count only once in the run, since the next step's transfers wait for the
/// site whose update and gradients take longest together.
template <class V>
V updates_after_transfers_s(const Summary<V>& summary, bool every_step, const V& optimizer_s,
                            const V& outer_step_s) {
  V seconds = summary.outer_steps_per_round * outer_step_s;
  if (every_step) seconds += summary.optimizer_factor * optimizer_s / summary.rounds;
  return seconds;
}

/// 1 if steps take unequally long and `updates_s`, those after the transfers of a round, take 1 % of it or
/// more, else 0: the slowest site in one need not be the slowest in the other, and the formula takes both
/// from the site with the longest steps.
template <class V>
V updates_drift(const V& unequal_steps, const V& updates_s, const V& round_s) {
  return unequal_steps * min_of(floor_of(V(100.0 * updates_s / round_s)), constant<V>(1));
}

/// 1 if uplinks and downlinks differ and sites send or receive unequally many bytes, else 0: the formula
/// sends the bytes of the busiest port through the slower of both. `links` are those of the whole platform.
template <class V>
V uneven_ports_differ(const Summary<V>& summary, const Links<V>& links) {
  if (!summary.uneven_ports) return constant<V>(0);
  return max_of(slower(links.uplink_bytes_per_s, links.downlink_bytes_per_s), downlinks_slower(links));
}

/// 0 where the closed form represents a configuration as approximations() says, else 1. `updates_s` and
/// `round_s` are the durations of updates_after_transfers_s() and of the mean round.
template <class V>
V approximates(const FormulaLimits& limits, const Summary<V>& summary, const Links<V>& links,
               const V& local_steps, const V& mean_sequences, const V& updates_s, const V& round_s) {
  const V one = constant<V>(1);
  if (limits.leaves_out) return one;
  const V short_round = min_of(steps_of_short_last_round(summary, local_steps), one);
  const V unequal = steps_unequal(limits, mean_sequences);
  return one - represents_sites(summary, limits.links_differ, unequal, downlinks_slower(links)) *
                   (1.0 - short_round) * (1.0 - summary.approximate) *
                   (1.0 - uneven_ports_differ(summary, links)) *
                   (1.0 - updates_drift(unequal, updates_s, round_s));
}

/// Whether the closed form represents the sites of a scenario. Links must not change either, and no paths may
/// share a backbone.
bool represents_sites(const Scenario& scenario, const PlanSummary& summary, const Links<double>& links);

/// What the closed form does not model although the scenario asks for it, a sentence each, for all values of
/// the axes.
std::vector<std::string> not_in_closed_form(const Scenario& scenario);
/// The same, and what the formula of the scenario's method only approximates. None: the closed form is exact
/// for equal sites, and its wall clock was within 2 % of the simulation for drawn links that differ. If 1 <
/// O_e < M, it is within 1 % for equal sites, because all-reduces of different lengths run at the same time.
/// `links` are those of the whole platform; the durations are those of updates_after_transfers_s() and of the
/// mean round.
std::vector<std::string> approximations(const Scenario& scenario, const PlanSummary& summary,
                                        const Links<double>& links, double updates_s, double round_s);

}  // namespace fomoe::costmodel
