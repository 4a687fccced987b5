// Traffic that is easily forgotten: reading the data set from another site, uploading checkpoints, the state
// of a site that comes back. It becomes operations of the plan, so that executors need no special case.
//
// What happens every n-th round is spread over the rounds, 1/n in each: the bytes are exact, rounds stay
// equal.
// - data: each site reads its own sequences of the next round while it trains; its next round waits for them.
// - checkpoint: every site uploads what it would need to go on, while it trains; the next one waits for its
// end.
// - rejoin: the site fetches that state before it trains, and the others wait for it where they synchronise.
#pragma once
#include "costmodel/plan/plan.hpp"
#include "costmodel/plan/plan_summary.hpp"

namespace fomoe::costmodel {

/// What a site needs to go on exactly: fp32 weights and both moments, and the method's outer state.
double state_bytes_per_parameter(const Scenario& scenario);

/// Where a rejoining site fetches its state: the checkpoint's site, or the first other one.
int rejoin_source(const ExtraTraffic& traffic);

/// `plan` with the traffic that the scenario adds.
Plan with_extra_traffic(const Scenario& scenario, Plan plan);

/// The same as a formula, `held_share` = O_e/M, for equal sites. Exact where the transfers of a round fit
/// into its compute.
template <class V>
void add_extra_traffic(Summary<V>& summary, const Axes<V>& axes, const V& held_share, const Fixed& fixed,
                       const ExtraTraffic& traffic, double state_bytes_per_parameter) {
  if (!traffic.data_site && !traffic.checkpoint_site && !traffic.rejoin_site) return;
  const V steps_per_round = summary.steps / summary.rounds;
  const V others = axes.sites - 1.0;
  const V any = min_of(others, constant<V>(1));  // one site alone sends nothing
  const V state_bytes =
      state_bytes_per_parameter * (fixed.dense_elements + fixed.expert_elements * held_share);
  V read = constant<V>(0), uploaded = constant<V>(0);  // by each of the other sites, in one round
  if (traffic.data_site) {
    read = steps_per_round * axes.global_batch_sequences / axes.sites *
           (fixed.sequence_length * traffic.data_bytes_per_token);
  }
  if (traffic.checkpoint_site) uploaded = state_bytes / static_cast<double>(traffic.checkpoint_rounds);
  summary.sent.data = read * others / axes.sites;
  summary.sent.checkpoint = uploaded * others / axes.sites;

  // The data set's site sends to all others, the checkpoint's receives from all; where they are two, each is
  // also one of the other's others.
  const double apart =
      traffic.data_site && traffic.checkpoint_site && *traffic.data_site != *traffic.checkpoint_site;
  Stage<V> background;
  background.latency_hops = any;
  background.bytes = max_of(V(others * read + apart * uploaded), V(others * uploaded + apart * read));
  background.pair_bytes = any * max_of(V(read + apart * uploaded), V(uploaded + apart * read));
  background.hidden_steps = steps_per_round;
  if (traffic.data_site || traffic.checkpoint_site) summary.add(background);

  if (traffic.rejoin_site) {
    Stage<V> rejoin;
    rejoin.latency_hops = any;
    rejoin.bytes = any * state_bytes / static_cast<double>(traffic.rejoin_rounds);
    rejoin.pair_bytes = rejoin.bytes;
    summary.sent.rejoin = rejoin.bytes / axes.sites;
    summary.add(rejoin);
  }
}

}  // namespace fomoe::costmodel
