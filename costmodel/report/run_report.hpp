// The report of a run. The closed form, the simulation and real training all fill this structure. Definitions
// are beside the fields; the JSON keys have the same names.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "costmodel/inputs/enum_names.hpp"
#include "costmodel/inputs/failures.hpp"
#include "costmodel/math/replicas.hpp"
#include "costmodel/published/estimate.hpp"
#include "platforms/provenance.hpp"

namespace fomoe::costmodel {

struct SiteReport {
  std::string name;
  double bytes_sent = 0;  // whole run
  double bytes_received = 0;
  std::vector<double> bytes_sent_to;  // of bytes_sent, by receiving site; empty: unknown
  double memory_bytes = 0;
  double compute_s = 0;  // mean over rounds
  double exposed_communication_s = 0;
  double idle_s = 0;
  double upkeep_s = 0;  // see MeanRound
};

struct Bottleneck {
  std::string limited_by;      // "compute" or "communication": the larger share of the mean round
  std::string link;            // the busiest uplink, downlink or path
  double link_busy_share = 0;  // its bytes ÷ capacity, over the mean round's duration
  std::string waits_for;  // the cause of most of the waiting (waiting_cause.hpp); empty: unknown, or none
};

/// Means over rounds, and over sites if sites differ. duration_s = compute_s + exposed_communication_s +
/// idle_s + upkeep_s.
struct MeanRound {
  std::int64_t count = 0;
  double duration_s = 0;
  double compute_s = 0;
  /// From readiness for the first byte to the last byte received, hidden or not.
  double communication_s = 0;
  double exposed_communication_s = 0;  // bytes of the site are in flight and it does not compute
  double idle_s = 0;                   // neither computes nor has bytes in flight: it waits for others
  /// Validation, checkpoints and logs between rounds, which only a training has. Predictions have none.
  double upkeep_s = 0;
  /// By how much the round would be shorter without any upkeep: sites wait for each other's, and some of it
  /// passes while a site would wait anyway (costmodel/timeline/upkeep_delay.hpp). Empty: not known, as in
  /// reports of earlier versions.
  std::optional<double> upkeep_delay_s = std::nullopt;
  double transferring_s = 0;  // bytes of the site are in flight, whether or not it computes
  /// Duration of the first round of the run, in which connections are new. 0 if it is unknown or rounds
  /// overlap.
  double first_duration_s = 0;
  /// Achieved overlap, the paper's α: 1 − exposed ÷ transferring. At most min(1, compute ÷ transferring).
  double overlap_achieved = 0;
};

/// What a node does. upkeep: validation, checkpoints and logs between rounds, which only a training has.
enum class Activity : std::int32_t { compute, transfer, upkeep };
constexpr auto enum_names(Activity) {
  return std::to_array<EnumName<Activity>>(
      {{Activity::compute, "compute"}, {Activity::transfer, "transfer"}, {Activity::upkeep, "upkeep"}});
}

/// A step of the critical path, the longest chain of waits in one round.
struct CriticalStep {
  std::string what;  // name of the operation
  std::string site;  // site that computes, or for which all others wait
  Activity activity = Activity::compute;
  double seconds = 0;
};

/// 95 % confidence interval, if rounds differ and only some were executed.
struct Interval95 {
  double low = 0, high = 0;
};

/// Cost of the whole run. Money is in `currency`, which is empty without prices; then only energy is known.
struct Cost {
  std::string currency;
  std::string as_of;      // date of the prices
  double cost_total = 0;  // sum of the costs below
  double gpu_cost = 0;
  double egress_cost = 0;
  double port_cost = 0;
  double energy_cost = 0;
  double store_cost = 0;             // requests and egress of the platform's store
  std::optional<double> energy_kwh;  // empty if the scenario does not state power
};

/// What passes through the platform's store in the whole run.
struct StoreUse {
  double bytes_received = 0, bytes_sent = 0;  // by the store
  double requests = 0;                        // objects that are put and got
};

/// What published runs say of the loss, in points of 1 % above tuned data-parallel training of the same model
/// on the same tokens.
struct PublishedLoss {
  LossSetting setting;
  LossEstimate level;
  std::vector<std::string> nearest;  // ids of the closest published runs
};

/// Quality of the trained model, or the reason why it is unknown.
struct Quality {
  bool known = false;         // the perplexity is known
  bool interpolated = false;  // between measured runs
  double perplexity = 0;
  std::optional<double> plus_minus;  // uncertainty as given in the source
  std::string source;
  std::string reason;  // if unknown: the value that is outside the model's range
  /// Tokens, wall clock and cost up to the loss of data-parallel training of the same model ÷ those of this
  /// run, if it is assumed, or 1 for data-parallel training itself.
  std::optional<double> equal_loss_factor;
  std::optional<EqualLossRange> equal_loss_range;  // the same factor, where only a range is known
  std::optional<PublishedLoss> published;
  /// The factor, or the centre of its range, by which configurations are ranked.
  [[nodiscard]] std::optional<double> equal_loss_centre() const {
    return equal_loss_range ? equal_loss_range->centre() : equal_loss_factor;
  }
};

/// Shares of the GPUs' peak rate that the run reaches, if the peak is known.
struct RunEfficiency {
  double peak_flops = 0;  // FLOP/s of all GPUs of all sites together
  double mfu = 0;         // model FLOPs ÷ (step time · peak), while sites compute steps
  double run_mfu = 0;     // model FLOPs ÷ (wall clock · peak)
  /// Executed FLOPs ÷ (time of forward and backward pass without communication · peak). Empty if the step
  /// time includes communication of unknown duration.
  std::optional<double> kernel_efficiency;
};

/// Which sites took part in the rounds, if a round may go on without some of them
/// (costmodel/plan/attendance.hpp).
struct Attendance {
  std::vector<double> missed_rounds;  // by site: rounds of the run in which it took no part
  double trained_share = 1;           // share of the sequences of all rounds that were trained on
  /// Rounds beyond those without absences, in which what absent sites lost is trained.
  std::int64_t added_rounds = 0;
  double repeated_rounds = 0;  // rounds that were executed again after a failure
};

inline constexpr std::size_t kListedRounds = 1000;

struct RunReport {
  std::string executor;  // "closed-form", "simulated" or "measured"
  double wall_clock_s = 0;
  double compute_utilization = 0;  // busy compute seconds ÷ wall clock, mean over sites
  double tokens_per_s = 0;         // all sites together
  /// Model FLOPs of a token on a site: 6 per parameter that it uses, plus attention over the whole sequence,
  /// without recomputation.
  double flops_per_token = 0;
  double bytes_per_token = 0;  // sum of bytes sent ÷ sum of tokens processed
  double bytes_sent_per_site_per_round = 0;
  std::int64_t optimizer_steps = 0;
  std::int64_t tokens = 0;
  MeanRound round;
  /// Duration of each round in the plan's order. Empty unless every round was executed, rounds do not
  /// overlap, and there are at most kListedRounds. The first round takes longer: it opens connections and
  /// allocates memory.
  std::vector<double> round_durations_s;
  std::vector<SiteReport> sites;
  std::optional<Interval95> wall_clock_interval_s;  // if rounds are a sample
  /// Lowest and highest wall clock of several simulations that differ by small delays, if the windows of
  /// connections were simulated.
  std::optional<Interval95> wall_clock_range_s;
  std::optional<RunEfficiency> efficiency;
  Bottleneck bottleneck;
  std::vector<CriticalStep> critical_path;  // of one round; empty if no rounds were executed
  std::optional<StoreUse> store;            // if sites exchange through a store
  std::optional<Cost> cost;                 // if the scenario has prices or power
  std::optional<Quality> quality;           // if the scenario has a quality model
  std::optional<Goodput> goodput;           // if the scenario has failures
  std::optional<Attendance> attendance;     // if the scenario has a quorum or outages
  std::optional<Replicas> replicas;         // if several seeds were requested
  /// Says that the state exceeds the memory of a site's GPUs, and how it would fit. Empty if it fits or if no
  /// GPU memory is given.
  std::string memory_problem;
  std::vector<std::string> warnings;  // what to know before the numbers, as sentences
  std::vector<Provenance> provenance;
  std::vector<std::string> notes;
};

}  // namespace fomoe::costmodel
