// What fails, how often, and what is done about it. In SI units; of every site alike.
#pragma once
#include <cstdint>
#include <limits>
#include <optional>

namespace fomoe::costmodel {

enum class FailurePolicy { wait, drop };
inline const char* to_string(FailurePolicy policy) { return policy == FailurePolicy::wait ? "wait" : "drop"; }

struct Failures {
  double site_mtbf_s = std::numeric_limits<double>::infinity();
  double link_mtbf_s = std::numeric_limits<double>::infinity();
  double preemptions_per_s = 0;  // of one site that is rented as spot
  double detection_s = 0;
  double restart_s = 0;
  std::optional<double> link_repair_s;  // none: a link that fails stays dead
  std::optional<std::int64_t> checkpoint_rounds;
  std::optional<double> checkpoint_interval_s;  // where no rounds are given; neither: Daly's
  std::optional<double> checkpoint_s;           // what one takes
  std::optional<double> storage_bytes_per_s;    // of each site, where that is not given
  FailurePolicy policy = FailurePolicy::wait;
  std::optional<double> timeout_s;  // none: the recommended one
  std::int64_t samples = 1000;
};

/// Of a run with failures: times of samples, and what to choose.
struct Goodput {
  FailurePolicy policy = FailurePolicy::wait;
  std::int64_t samples = 0;  // fewer than wanted where each has very many failures
  double system_mtbf_s = 0;  // between failures of anything; infinite where nothing fails
  double checkpoint_s = 0;   // what one takes
  std::int64_t checkpoint_rounds = 0;
  double transfer_s = 0;        // of the state to a site that comes back
  double timeout_s = 0;         // of drop
  double goodput = 0;           // mean over samples of useful time ÷ wall clock; 0 where one never ends
  double unfinished_share = 0;  // of samples
  double finish_p50_s = 0, finish_p95_s = 0;  // infinite where that sample never ends
  std::optional<double> cost_p50, cost_p95;   // where there are prices and an end
  double young_interval_s = 0, daly_interval_s = 0;
  std::int64_t recommended_rounds = 0;  // between checkpoints: the best of the sampled ones
  double recommended_goodput = 0;
  double recommended_timeout_s = 0;
};

}  // namespace fomoe::costmodel
