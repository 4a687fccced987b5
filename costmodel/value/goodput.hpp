// Simulation of runs with failing sites and links: the distribution of finish times, and the share of the
// time that is useful.
//
// Failures occur at random and independently (exponential gaps) at every site and at every site's link.
// Samples of whole runs give the distribution of finish times. Where a closed form exists, tests compare the
// samples with it.
//
// Policy wait: all sites stop until the failed site is back, then all resume from the last checkpoint.
//
//  - A checkpoint of C seconds follows every τ seconds of work; none follows the end of the work.
//  - A failure costs the work since the last checkpoint and the time of the recovery: detection, restart and
//    reading the checkpoint, which each site has in its own storage.
//  - A link failure stops all sites but loses no work.
//  - The run goes on when all sites and links are back. Others may fail before; what has failed does not fail
//    again before it is back.
//
// Policy drop: after a time-out the other sites continue without the failed one.
//
//  - The failed site's work of that round is lost.
//  - The site returns, with the state of another site, at the first round that starts after detection,
//    restart and transfer. If the time-out is longer than the site's absence, the others wait for it.
//  - While some sites are away, a round does the others' shares of its work: parts of the batch.
//  - Checkpoints are spread evenly over the rounds. They are only used if all sites have failed.
//  - A link failure removes its site in the same way.
//  - More sites may fail in the same round, or while the others wait for one at its end. Those that fail in
//    this wait have done their part of the round.
//  - An expert whose owners are all away is trained by nobody, and comes back from an owner's own checkpoint.
//
// Sites that train at their own pace (own_pace.hpp), whatever the policy: a failed site stops only itself.
//
//  - It loses what it has trained since its last exchange: half of the steps between two exchanges of a
//    parameter, on average.
//  - It returns after detection, restart and the transfer of the state, and the others train on.
//  - A link failure removes its site in the same way, and loses no steps.
//  - Assumption: the server does not fail, and keeps the model without making anybody wait.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "costmodel/inputs/failures.hpp"
#include "costmodel/inputs/scenario.hpp"
#include "costmodel/report/run_report.hpp"

namespace fomoe::costmodel {

/// Failures of one of sites that differ: see FaultyRun.
struct FaultySite {
  double failures_per_s = 0, link_failures_per_s = 0;
  double outage_s = 0;
  double share = 0;  // share of the work that it does; not used by policy wait
};

/// Parameters of one simulated run, in seconds.
struct FaultyRun {
  double work_s = 0;   // all rounds without failures and checkpoints
  double round_s = 0;  // one round
  int sites = 1;
  double site_failures_per_s = 0;  // rate of one site, preemptions included
  double link_failures_per_s = 0;  // rate of one site's link
  double outage_s = 0;             // detection and restart
  std::vector<FaultySite> each;    // if sites differ; the three values above are then means
  double transfer_s = 0;           // until a site that returns has the state: it reads it, or it is sent
  double link_outage_s = 0;        // infinite: links are never repaired
  double checkpoint_s = 0;         // C
  double interval_s = 0;           // τ, work between checkpoints
  FailurePolicy policy = FailurePolicy::wait;
  double timeout_s = 0;   // time-out of policy drop
  bool own_pace = false;  // sites train at their own pace
  double lost_s = 0;      // with own_pace: work of a site that fails and is lost
};

/// Draws the seconds to the next event of a process with that rate; infinite if the rate is 0.
using Gap = std::function<double(double events_per_s)>;

/// Rates at which any of the sites, or of their links, fails.
double all_site_failures_per_s(const FaultyRun& run);
double all_link_failures_per_s(const FaultyRun& run);

/// Finish time of one sample. Infinite if the run never ends: it waits for a dead link, or failures come
/// faster than work is done. Adds to `repeated_s` the work that is lost and done again, as seconds of all
/// sites.
double finish_s(const FaultyRun& run, const Gap& gap, double& repeated_s);
inline double finish_s(const FaultyRun& run, const Gap& gap) {
  double repeated_s = 0;
  return finish_s(run, gap, repeated_s);
}

/// Young 1974: τ = √(2·C·MTBF), a first-order approximation of the optimal interval.
double young_interval_s(double checkpoint_s, double mtbf_s);
/// Daly 2006, with checkpoints of C = checkpoint_s and M = mtbf_s, the mean time between failures:
///   τ = √(2·C·M)·[1 + ⅓·√(C/2M) + ⅑·C/2M] − C for C < 2M, else M
double daly_interval_s(double checkpoint_s, double mtbf_s);

/// Recommended time-out for a site that does not answer: the longest wait for others in a healthy round and
/// the time in which a lost site is noticed, or the whole absence if waiting for it loses less:
///   loss by dropping: healthy wait + ⌈absence/round⌉·round·share   loss by waiting: absence + round/2
/// The absence and the share of the batch are those of the sites that fail.
double recommended_timeout_s(const FaultyRun& run, double healthy_wait_s);

/// Seconds of one checkpoint of a site with that many bytes of training state.
double checkpoint_s(const Failures& failures, double state_bytes);
/// Seconds in which a site reads its checkpoint again: at the rate of its storage, or as long as writing
/// takes if that rate is not given.
double restore_s(const Failures& failures, double state_bytes);

/// The scenario's failures applied to the rounds of a report; the checkpoint interval is not set.
FaultyRun faulty_run(const Scenario& scenario, const RunReport& report);

/// What a run takes. If sites fail, the values are those of the median run, and infinite if that never ends.
struct RunAmounts {
  double wall_clock_s = 0;
  std::optional<double> cost;        // empty without prices
  std::optional<double> energy_kwh;  // empty without power
  double ports_per_month = 0;        // of all sites, in the cost
  /// The cost of the run with `factor` times the tokens; empty without prices.
  [[nodiscard]] std::optional<double> cost_of_more_tokens(double factor) const;
};
RunAmounts amounts_of(const RunReport& report);

/// Sets report.goodput and its provenance if the scenario has failures. Call it after add_cost().
void add_goodput(RunReport& report, const Scenario& scenario);

}  // namespace fomoe::costmodel
