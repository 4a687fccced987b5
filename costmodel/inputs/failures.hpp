// The failure model of a scenario (rates, recovery times, checkpoints) and the goodput computed from it. All
// values are in SI units.
#pragma once
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "costmodel/inputs/enum_names.hpp"

namespace fomoe::costmodel {

enum class FailurePolicy { wait, drop };
constexpr auto enum_names(FailurePolicy) {
  return std::to_array<EnumName<FailurePolicy>>(
      {{FailurePolicy::wait, "wait"}, {FailurePolicy::drop, "drop"}});
}

/// A site that stops `start_s` after the start of the run. It is back `duration_s` later, without its
/// training state.
struct Outage {
  int site = 0;
  double start_s = 0, duration_s = 0;
};

/// How often a site and its link fail, and how long the site is away.
struct SiteFailures {
  double site_mtbf_s = std::numeric_limits<double>::infinity();
  double link_mtbf_s = std::numeric_limits<double>::infinity();
  double preemptions_per_s = 0;
  double detection_s = 0;
  double restart_s = 0;
  friend bool operator==(const SiteFailures&, const SiteFailures&) = default;
  [[nodiscard]] bool at_random() const {
    return std::isfinite(site_mtbf_s) || std::isfinite(link_mtbf_s) || preemptions_per_s > 0;
  }
};

struct Failures {
  double site_mtbf_s = std::numeric_limits<double>::infinity();
  double link_mtbf_s = std::numeric_limits<double>::infinity();
  double preemptions_per_s = 0;  // rate at which one spot site is preempted
  double detection_s = 0;
  double restart_s = 0;
  std::optional<double> link_repair_s;  // empty: a failed link is never repaired
  std::optional<std::int64_t> checkpoint_rounds;
  /// Used if checkpoint_rounds is empty. If this value is empty too, the recommended interval is used.
  std::optional<double> checkpoint_interval_s;
  std::optional<double> checkpoint_s;         // all stop so long for one; empty: from storage_bytes_per_s
  std::optional<double> storage_bytes_per_s;  // storage bandwidth of each site; empty: from checkpoint_s
  FailurePolicy policy = FailurePolicy::wait;
  std::optional<double> timeout_s;  // empty: the recommended time-out
  std::int64_t samples = 1000;
  std::vector<Outage> outages;         // failures at given times, which the simulation executes
  std::vector<SiteFailures> sites;     // of each site, if they differ; otherwise empty
  std::vector<std::string> not_given;  // keys whose defaults are used, with these: "restart_time = 10 min"
  std::vector<std::string> notes;      // sentences on sites that are not preempted, or are although on demand

  [[nodiscard]] SiteFailures at(int site) const {
    if (!sites.empty()) return sites[static_cast<std::size_t>(site)];
    return {site_mtbf_s, link_mtbf_s, preemptions_per_s, detection_s, restart_s};
  }
  /// Whether failures happen at random.
  [[nodiscard]] bool at_random() const {
    for (const SiteFailures& site : sites)
      if (site.at_random()) return true;
    return sites.empty() && at(0).at_random();
  }
};

/// Results of the failure simulation: statistics over its samples, and recommended settings.
struct Goodput {
  /// Sites train at their own pace, so that a failed one stops nobody else: no policy applies, nobody waits
  /// for checkpoints, and the values of checkpoints and time-outs are 0.
  bool own_pace = false;
  FailurePolicy policy = FailurePolicy::wait;
  std::int64_t samples = 0;  // simulated runs; fewer than requested if each has very many failures
  double system_mtbf_s = 0;  // mean time between failures of any component; infinite without failures
  double checkpoint_s = 0;   // duration of one checkpoint
  std::int64_t checkpoint_rounds = 0;
  /// Until a site that returns after a failure has the training state: the time to send it, or to read the
  /// checkpoint if all go back to it (policy wait), or if nobody else has it.
  double transfer_s = 0;
  double timeout_s = 0;  // time-out of the drop policy
  /// Useful time ÷ wall-clock time, mean over samples; a sample that never ends counts as 0.
  double goodput = 0;
  double unfinished_share = 0;                // share of the samples that never end
  double repeated_share = 0;                  // of the time that failures cost, in which sites do work again
  double finish_p50_s = 0, finish_p95_s = 0;  // infinite if the sample at this percentile never ends
  std::optional<double> cost_p50, cost_p95;   // empty without prices or without a finite end
  std::optional<double> energy_p50_kwh;       // empty without power or without a finite end
  double young_interval_s = 0, daly_interval_s = 0;
  std::int64_t recommended_rounds = 0;  // rounds between checkpoints with the best simulated goodput
  double recommended_goodput = 0;
  double recommended_timeout_s = 0;
};

}  // namespace fomoe::costmodel
