// Workers that train at their own pace: how often each one exchanges with a server at the first site.
#pragma once
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "costmodel/counts/counts.hpp"
#include "costmodel/inputs/scenario.hpp"

namespace fomoe::costmodel {

/// A worker that repeats the same cycle: local steps, upload of a fragment, the server's outer step,
/// download.
struct Pace {
  std::int64_t local_steps = 0;                // steps of a cycle
  double steps_s = 0;                          // these steps
  double up_s = 0, applied_s = 0, down_s = 0;  // the rest of a cycle; transfers with their latencies
  double cycle_s = 0;                          // expected time from one cycle to the next
  double exposed_s = 0;                        // part of it in which the worker waits for a fragment
  double cycles_of_run = 0;                    // cycles in the duration of the run, also parts of one
  std::int64_t cycles = 0;                     // whole cycles of the plan
  /// Rates of the uploads and downloads, without latency: what the links leave to this worker on average.
  double up_bytes_per_s = 0, down_bytes_per_s = 0;
};

struct OwnPaces {
  std::vector<Pace> sites;              // one without local steps for a site that does not train
  double run_s = 0;                     // duration of the run
  double up_bytes = 0, down_bytes = 0;  // of a cycle
  std::int64_t fragments = 1;           // parts of the model that take turns, one in each cycle
};

/// Fragments of the method: 1 if it exchanges the whole model in each cycle.
std::int64_t fragments_of_paces(const Strategy& strategy);

/// Cycles of the run of all sites but the first one, which alone need transfers.
double remote_cycles(const OwnPaces& paces);

/// The pace of each site's worker, if it uploads to a server at the first site and downloads from there in
/// every cycle. A cycle of worker w takes
///   c_w = K_w·t_w + t_up + t_outer + t_down
/// t_w is the time of its step. The first site's own worker needs no transfer. With F fragments, cycles have
/// K/F steps and parts of the model, and follow each other without waiting as long as each part of a cycle
/// can keep up, and a fragment is back before its next turn, F cycles later:
///   c_w = max(K_w·t_w/F, t_up, t_down, (K_w·t_w/F + t_up + t_outer + t_down) ÷ F)
/// The transfers are those of a fragment, one of which begins when the one before has arrived. K_w is
/// `local_steps` or, with
/// dynamic_local_steps, ⌊K·(rate of w) ÷ (rate of the fastest)⌋ and at least 1 (DyLU, Liu et al. 2024, arXiv
/// 2401.09135, eq. 6).
///
/// Workers meet at the server's links, at links that several paths share, and at the server, at all phases of
/// their cycles. A transfer of S bytes has, on average, what the others leave:
///   t = latency + max over the links of S ÷ (R·(1 − Σ_{v≠w} ρ_v)),  ρ_v = S ÷ (R·c_v)
/// R is the rate of a link and ρ_v the share of the time for which v alone would occupy it. With fragments, a
/// worker's own transfer in the other direction is one of the others. This is the mean
/// time in a queue with processor sharing, whatever the distribution of the gaps (Kleinrock 1976, Queueing
/// Systems II, section 4.4). The durations of cycles solve these
/// equations together; no link is ever used more than fully.
///
/// The rates at which workers train add up. The run ends when the sequences of all steps are trained, after
///   T = steps·B ÷ Σ_w (K_w·B_w ÷ c_w)
/// B_w is worker w's part of the global batch B.
///
/// Without `bytes` (of an upload and of a download), a worker uploads pseudo-gradients of the whole model and
/// downloads its parameters.
OwnPaces own_paces(const Scenario& scenario, std::optional<std::pair<double, double>> bytes = {});
/// The same, if sites train at their own pace, with what counts_of() returns.
std::optional<OwnPaces> own_paces_of(const Scenario& scenario, const Counts& counts);

}  // namespace fomoe::costmodel
