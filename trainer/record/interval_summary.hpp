// What the nodes of a run did and when, in bounded memory. Intervals of recent rounds are kept as they are.
// Those of earlier rounds are reduced to the sums from which a report is computed: for each site the seconds
// in which it computed, in which flows were in flight, and in which flows were in flight and nothing was
// computed. The end of each round is kept as well (8 bytes a round).
//
// A report needs more of two rounds only: the last one has the critical path, and the middle one is drawn.
#pragma once
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "costmodel/math/spans.hpp"
#include "costmodel/plan/plan.hpp"
#include "costmodel/timeline/timeline.hpp"
#include "costmodel/timeline/upkeep_delay.hpp"

namespace fomoe::trainer {

/// Rounds for which intervals are kept. Transfers that continue into later rounds end within fewer.
inline constexpr std::int64_t kKeptRounds = 8;

class IntervalSummary {
 public:
  /// `first_round` is the first executed round of the plan, which must outlive the summary.
  IntervalSummary(const costmodel::Plan& plan, std::int64_t first_round);

  /// Adds intervals of some nodes. Their rounds are those of the plan.
  void add(const std::vector<costmodel::Interval>& intervals);
  /// Reduces the rounds before `round` to sums. All of their intervals must have been added.
  void fold(std::int64_t round);

  /// The timeline of the executed rounds, for a report. The rounds that were reduced are represented by a few
  /// spans with the same sums, which end before the other rounds begin.
  [[nodiscard]] costmodel::Timeline timeline() const;
  /// A timeline that has the intervals around the middle one of the executed rounds, for the picture.
  [[nodiscard]] costmodel::Timeline around_middle() const;
  /// Seconds by which the run would be shorter without validation, checkpoints and logs between its rounds.
  [[nodiscard]] double upkeep_delay_s() const;

  /// Number of intervals and spans in memory.
  [[nodiscard]] std::size_t kept() const;

 private:
  struct OfSite {
    double compute_s = 0, transferring_s = 0, exposed_s = 0;
    double until_s = 0;                         // the sums are those of the time until then
    std::vector<costmodel::Span> transferring;  // the parts of flows after that time
    costmodel::NodeId node = 0;                 // some node of the site
  };
  void fold_sites(const std::vector<costmodel::Interval>& old);
  void fold_communication(const std::vector<costmodel::Interval>& old);
  void add_sums(costmodel::Timeline& timeline) const;
  [[nodiscard]] costmodel::Timeline frame() const;
  [[nodiscard]] const costmodel::Node& node_of(const costmodel::Interval& interval) const;

  const costmodel::Plan& plan_;
  std::int64_t first_round_;
  std::int64_t folded_ = 0;                       // position of the first round that is not reduced
  std::vector<costmodel::Interval> pending_;      // their rounds are positions among the executed ones
  std::vector<costmodel::Interval> near_middle_;  // reduced intervals that the picture needs
  std::vector<double> round_end_s_;               // by position; 0: no interval so far
  std::vector<OfSite> sites_;
  costmodel::UpkeepDelay upkeep_delay_;  // of the reduced rounds
  double communication_s_ = 0;           // sum over the reduced rounds
};

}  // namespace fomoe::trainer
