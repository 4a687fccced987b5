// How long a run takes when sites and links fail, and what share of that is useful.
//
// Failures come at random and independently of each other (exponential gaps), at every site and at every
// site's link. Samples of whole runs give the distribution of finish times; where a closed form exists the
// tests hold the samples to it.
//
// Policy wait: everybody stops until the failed site is back, and all start again from the last checkpoint.
//   A checkpoint of C seconds follows every τ seconds of work; none follows the last.
//   A failure costs the work since the last checkpoint, then detection, restart and the transfer of the
//   state; a failure meanwhile starts these again. A link that fails stops everybody and loses nothing.
// Policy drop: after a time-out the others go on without the site. Its work of that round is lost; it comes
//   back, with the state of another site, at the first round that starts after detection, restart and
//   transfer. While s of M sites work, a round does s/M of its work. A time-out that is longer than the
//   site's absence waits for it instead. Checkpoints are spread evenly over the rounds, and serve only where
//   no site is left. A link that fails takes its site away in the same manner. While a round is held up
//   nothing else fails.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>

#include "costmodel/inputs/failures.hpp"
#include "costmodel/inputs/scenario.hpp"
#include "costmodel/report/run_report.hpp"

namespace fomoe::costmodel {

/// One configuration, in seconds.
struct FaultyRun {
  double work_s = 0;   // of all rounds, where nothing fails and nothing is saved
  double round_s = 0;  // of one
  int sites = 1;
  double site_failures_per_s = 0;  // of one site, preemptions among them
  double link_failures_per_s = 0;  // of one site's link
  double outage_s = 0;             // detection and restart
  double transfer_s = 0;           // of the state to the site that comes back
  double link_outage_s = 0;        // infinite: links do not come back
  double checkpoint_s = 0;         // C
  double interval_s = 0;           // τ, of work
  FailurePolicy policy = FailurePolicy::wait;
  double timeout_s = 0;  // of drop
};

/// Seconds to the next event of a process of that many events in a second; infinite where none comes.
using Gap = std::function<double(double events_per_s)>;

/// Of one sample. Infinite where it never ends: a dead link that is waited for, or failures that come faster
/// than work is done.
double finish_s(const FaultyRun& run, const Gap& gap);

/// Young 1974: τ = √(2·C·MTBF), the first order of what is best.
double young_interval_s(double checkpoint_s, double mtbf_s);
/// Daly 2006: τ = √(2·C·M)·[1 + ⅓·√(C/2M) + ⅑·C/2M] − C for C < 2M, else M.
double daly_interval_s(double checkpoint_s, double mtbf_s);

/// The mean of finish_s under policy wait without failing links (Daly 2006), with λ of all sites and n
/// segments:
///   e^{λR}/λ · [(n−1)·(e^{λ(τ+C)} − 1) + (e^{λτ'} − 1)],  τ' the work of the last segment
double expected_finish_s(const FaultyRun& run);

/// Of a group that waits at most that long for a site: the longest that a healthy round keeps a site waiting,
/// or the whole absence where that loses less:
///   drop: healthy wait + ⌈absence/round⌉·round/M      wait: absence + round/2
double recommended_timeout_s(const FaultyRun& run, double healthy_wait_s);

/// The scenario's failures on a report's rounds; nothing is known of the checkpoint interval yet.
FaultyRun faulty_run(const Scenario& scenario, const RunReport& report);

/// Fills in report.goodput where the scenario has failures, and the provenance. After the cost.
void add_goodput(RunReport& report, const Scenario& scenario);

}  // namespace fomoe::costmodel
