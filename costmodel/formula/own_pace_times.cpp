#include "costmodel/formula/own_pace_times.hpp"

#include <algorithm>

namespace fomoe::costmodel {

namespace {

/// Cycles of the run of all sites.
double all_cycles(const OwnPaces& paces) { return paces.sites.front().cycles_of_run + remote_cycles(paces); }

}  // namespace

OwnPaceSite own_pace_site(const Resolved& resolved, int site) {
  const OwnPaces& paces = *resolved.own_pace;
  const Pace& pace = paces.sites[static_cast<std::size_t>(site)];
  const double rounds = resolved.plan.rounds;
  // Data, checkpoints and sites that rejoin, as in the mean over the sites.
  const SentBytes& sent = resolved.plan.sent;
  const double extra = rounds * (sent.total() - sent.dense - sent.expert_sync);
  OwnPaceSite answer;
  answer.compute_s = pace.cycles_of_run * pace.steps_s / rounds;
  if (site > 0) {
    answer.exposed_s = pace.cycles_of_run * pace.exposed_s / rounds;
    answer.bytes_sent = extra + pace.cycles_of_run * paces.up_bytes;
    answer.bytes_received = extra + pace.cycles_of_run * paces.down_bytes;
    return answer;
  }
  // The server's outer steps may run beside the steps of its site's worker.
  answer.compute_s = std::min(
      paces.run_s / rounds, answer.compute_s + all_cycles(paces) * resolved.times.sites.front().outer_step_s /
                                                   static_cast<double>(paces.fragments) / rounds);
  answer.bytes_sent = extra + remote_cycles(paces) * paces.down_bytes;
  answer.bytes_received = extra + remote_cycles(paces) * paces.up_bytes;
  return answer;
}

void set_paced_times(Resolved& resolved) {
  const auto sites = static_cast<int>(resolved.own_pace->sites.size());
  const double others = std::max(1.0, static_cast<double>(sites - 1));
  const PlanSummary& plan = resolved.plan;

  RoundTimes& round = resolved.times.round;
  std::vector<SiteSeconds>& seconds = resolved.times.sites;
  for (SiteSeconds& one : seconds) one.round_compute_s = 0;
  double compute_s = 0, most_compute_s = 0, exposed_s = 0;
  for (int site = 0; site < sites; ++site) {
    const OwnPaceSite own = own_pace_site(resolved, site);
    if (!resolved.counts.alike) seconds[static_cast<std::size_t>(site)].round_compute_s = own.compute_s;
    compute_s += own.compute_s / sites;
    most_compute_s = std::max(most_compute_s, own.compute_s);
    exposed_s += own.exposed_s / sites;
  }
  if (resolved.counts.alike) seconds.front().round_compute_s = compute_s;
  round.duration_s = resolved.own_pace->run_s / plan.rounds;
  round.slowest_compute_s = most_compute_s;
  round.exposed_s = exposed_s;
  round.waiting_s = round.duration_s - most_compute_s - exposed_s;
  round.communication_s = exposed_s * sites / others;
}

}  // namespace fomoe::costmodel
