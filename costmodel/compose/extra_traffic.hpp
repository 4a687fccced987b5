// Traffic beside the synchronisation: reading the data set from another site, uploading checkpoints, and
// fetching the state of a site that rejoins. This traffic becomes operations of the plan, so that executors
// need no special case.
//
// Some of this traffic occurs in every n-th round only. The plan spreads such traffic over all rounds: each
// round has 1/n of the bytes. The total bytes are exact, and rounds remain equal. The kinds of traffic are:
//
//   - data: While a site trains, it reads the sequences of its next round. That round waits for them. Of a
//     pipeline across sites, the first and the last stage read those of their pipeline.
//   - checkpoint: While a site trains, it uploads the state that it needs to resume. The next upload
//     waits for the end of this one.
//   - rejoin: Before a rejoining site trains, it fetches its state from another site. The other sites wait
//     for it at the next synchronisation.
#pragma once
#include "costmodel/plan/plan.hpp"
#include "costmodel/plan/plan_summary.hpp"

namespace fomoe::costmodel {

/// Bytes of the state that a site needs to resume exactly: fp32 weights and both moments of the parameters
/// that it keeps, and the method's outer state.
double state_bytes_per_site(const Scenario& scenario);

/// The extra traffic of the scenario. A method that trains at the first site alone has none, because check()
/// refuses data and checkpoints elsewhere.
ExtraTraffic extra_traffic_of(const Scenario& scenario);

/// The site from which a rejoining site fetches its state: the checkpoint's site, or the first other site.
int rejoin_source(const ExtraTraffic& traffic);

/// Returns `plan` with the operations of the scenario's extra traffic.
Plan with_extra_traffic(const Scenario& scenario, Plan plan);

/// Adds the extra traffic to a summary, for equal sites. The result is exact if the transfers of a round fit
/// into its compute time.
void add_extra_traffic(PlanSummary& summary, const Scenario& scenario, const Axes& axes, const Fixed& fixed);

}  // namespace fomoe::costmodel
