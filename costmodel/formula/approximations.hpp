// What the closed form leaves out of a scenario, or only approximates.
#pragma once
#include <string>
#include <vector>

#include "costmodel/formula/links/links.hpp"
#include "costmodel/inputs/scenario.hpp"
#include "costmodel/plan/plan_summary.hpp"

namespace fomoe::costmodel {

/// What decides beside the summary whether the closed form represents a scenario.
struct FormulaLimits {
  bool leaves_out = false;  // not_in_closed_form() has a sentence
  bool links_differ = false, steps_differ = false;
  bool steps_follow_batch = false;  // the time of a step depends on the site's part of the batch
};
FormulaLimits limits_of(const Scenario& scenario);

/// Whether steps take unequally long at the sites that train, whose mean part of the batch is
/// `mean_sequences`.
inline bool steps_unequal(const FormulaLimits& limits, double mean_sequences) {
  return limits.steps_differ || (limits.steps_follow_batch && mean_sequences != std::floor(mean_sequences));
}

inline bool downlinks_slower(const Links& links) {
  return links.downlink_bytes_per_s < links.uplink_bytes_per_s;
}

/// Whether the stages' formulas represent sites that differ. If links differ, each stage must be a
/// ring, a star, or a direct exchange that is not one of several in a row behind a backward pass. If steps
/// take unequally long (`steps_differ`), each stage must be a ring or a direct exchange that no
/// steps hide, since all sites then wait for the slowest one. In a direct exchange whose `downlinks_slower`
/// than uplinks are, the slowest site receives for longest, but the latencies of what it receives
/// have passed while it computed. If both differ, a fast site with slow links begins to send early, which no
/// formula represents.
bool represents_sites(const PlanSummary& summary, bool links_differ, bool steps_differ,
                      bool downlinks_slower);

/// Steps of the last round if it is short and computation hides transfers, else 0. The formula lets the last
/// round hide as much as each other one, which is wrong by at most the communication of one round.
double steps_of_short_last_round(const PlanSummary& summary, double local_steps);

/// Seconds of updates that follow the transfers, per round. With `every_step`, those of AdamW follow the
/// transfers of their step. They count only once in the run, since the next step's transfers wait for the
/// site whose update and gradients take longest together.
inline double updates_after_transfers_s(const PlanSummary& summary, bool every_step, double optimizer_s,
                                        double outer_step_s) {
  double seconds = summary.outer_steps_per_round * outer_step_s;
  if (every_step) seconds += summary.optimizer_factor * optimizer_s / summary.rounds;
  return seconds;
}

/// Whether steps take unequally long and `updates_s`, those after the transfers of a round, take 1 % of it or
/// more: the slowest site in one need not be the slowest in the other, and the formula takes both
/// from the site with the longest steps.
inline bool updates_drift(bool unequal_steps, double updates_s, double round_s) {
  return unequal_steps && 100 * updates_s / round_s >= 1;
}

/// Whether uplinks and downlinks differ and sites send or receive unequally many bytes: the formula
/// sends the bytes of the busiest port through the slower of both. `links` are those of the whole platform.
inline bool uneven_ports_differ(const PlanSummary& summary, const Links& links) {
  return summary.uneven_ports && links.uplink_bytes_per_s != links.downlink_bytes_per_s;
}

/// What the closed form does not model although the scenario asks for it, a sentence each.
std::vector<std::string> not_in_closed_form(const Scenario& scenario);
}  // namespace fomoe::costmodel
