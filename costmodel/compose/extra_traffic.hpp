// Traffic beside the synchronisation: reading the data set from another site, uploading checkpoints, and
// fetching the state of a site that rejoins. This traffic becomes operations of the plan, so that executors
// need no special case.
//
// Some of this traffic occurs in every n-th round only. The plan spreads such traffic over all rounds: each
// round has 1/n of the bytes. The total bytes are exact, and rounds remain equal. The kinds of traffic are:
//
//   - data: While a site trains, it reads the sequences of its next round. That round waits for them.
//   - checkpoint: While a site trains, it uploads the state that it needs to resume. The next upload
//     waits for the end of this one.
//   - rejoin: Before a rejoining site trains, it fetches its state from another site. The other sites wait
//     for it at the next synchronisation.
#pragma once
#include "costmodel/plan/plan.hpp"
#include "costmodel/plan/plan_summary.hpp"

namespace fomoe::costmodel {

/// Bytes per parameter of the state that a site needs to resume exactly: fp32 weights and both moments, and
/// the method's outer state.
double state_bytes_per_parameter(const Scenario& scenario);

/// The extra traffic of the scenario. A method that trains at the first site alone has none, because check()
/// refuses data and checkpoints elsewhere.
ExtraTraffic extra_traffic_of(const Scenario& scenario);

/// The site from which a rejoining site fetches its state: the checkpoint's site, or the first other site.
int rejoin_source(const ExtraTraffic& traffic);

/// Returns `plan` with the operations of the scenario's extra traffic.
Plan with_extra_traffic(const Scenario& scenario, Plan plan);

/// Adds the extra traffic to a summary, for equal sites. `held_share` = O_e/M is the share of the experts
/// that a site holds, where O_e is the number of sites that hold each expert and M is the number of sites.
/// The result is exact if the transfers of a round fit into its compute time.
inline void add_extra_traffic(PlanSummary& summary, const Axes& axes, double held_share, const Fixed& fixed,
                              const ExtraTraffic& traffic, double state_bytes_per_parameter) {
  if (!traffic.data_site && !traffic.checkpoint_site && !traffic.rejoin_site) return;
  const double steps_per_round = summary.steps / summary.rounds;
  const double others = axes.sites - 1.0;
  const double any = std::min(others, 1.0);  // 0 if there is only one site, which sends nothing
  const double state_bytes =
      state_bytes_per_parameter * (fixed.dense_elements + fixed.expert_elements * held_share);
  double read = 0.0, uploaded = 0.0;  // bytes of each of the other sites in one round
  if (traffic.data_site) {
    read = steps_per_round * axes.global_batch_sequences / axes.sites *
           (fixed.sequence_length * traffic.data_bytes_per_token);
  }
  if (traffic.checkpoint_site) uploaded = state_bytes / static_cast<double>(traffic.checkpoint_rounds);
  summary.sent.data = read * others / axes.sites;
  summary.sent.checkpoint = uploaded * others / axes.sites;

  // The data set's site sends to all others, and the checkpoint's site receives from all others. If the data
  // set and the checkpoint are at different sites, the data set's site also uploads its checkpoint, and the
  // checkpoint's site also reads data.
  const double apart =
      traffic.data_site && traffic.checkpoint_site && *traffic.data_site != *traffic.checkpoint_site;
  Stage background;
  background.latency_hops = any;
  background.bytes = std::max(others * read + apart * uploaded, others * uploaded + apart * read);
  background.pair_bytes = any * std::max(read + apart * uploaded, uploaded + apart * read);
  background.hidden_steps = steps_per_round;
  if (traffic.data_site || traffic.checkpoint_site) summary.add(background);

  if (traffic.rejoin_site) {
    Stage rejoin;
    rejoin.latency_hops = any;
    rejoin.bytes = any * state_bytes / static_cast<double>(traffic.rejoin_rounds);
    rejoin.pair_bytes = rejoin.bytes;
    summary.sent.rejoin = rejoin.bytes / axes.sites;
    summary.add(rejoin);
  }
}

}  // namespace fomoe::costmodel
