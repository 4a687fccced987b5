// Sends what the nodes of a process did to rank 0 while the run is under way, so that neither the memory of
// the processes nor the message at the end of the run grows with the number of rounds.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "trainer/execution/executor.hpp"
#include "trainer/record/interval_summary.hpp"
#include "trainer/rendezvous/rendezvous.hpp"

namespace fomoe::trainer {

/// Rounds after which every process sends its intervals.
std::int64_t rounds_per_block(const costmodel::Plan& plan);

std::string to_text(const std::vector<costmodel::Interval>& intervals);
std::vector<costmodel::Interval> intervals_from(const std::string& text);

class IntervalStream {
 public:
  /// `rendezvous` is null if this process trains all sites. With `counts` false, another process of the site
  /// observes the same, and this one sends nothing. The arguments must outlive it.
  IntervalStream(Executor& executor, Rendezvous* rendezvous, const costmodel::Plan& plan,
                 std::int64_t first_round, bool counts);

  /// Call it after each round, with the number of rounds done. Every process must.
  void round(std::int64_t done);
  /// The intervals that have not been sent yet, for the last message. Call it once.
  [[nodiscard]] std::vector<costmodel::Interval> rest();
  /// At rank 0, once every process has made its last message: everything that was sent before.
  [[nodiscard]] IntervalSummary& received();

  /// Seconds since the start in which this process's first node was in transfers and did not compute.
  [[nodiscard]] double exposed_s() const;

 private:
  [[nodiscard]] std::vector<costmodel::Interval> take(std::int64_t before);
  void receive(bool wait);

  Executor& executor_;
  Rendezvous* rendezvous_;
  std::int64_t first_round_, block_rounds_;
  bool counts_;
  IntervalSummary summary_;               // used at rank 0, and by a process that trains all sites
  double exposed_s_ = 0;                  // of the intervals that are no longer at the executor
  std::int64_t sent_ = 0, received_ = 0;  // blocks
};

}  // namespace fomoe::trainer
