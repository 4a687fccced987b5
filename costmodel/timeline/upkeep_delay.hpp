// By how much validation, checkpoints and logs between the rounds made a training longer.
//
// A site's upkeep delays whatever the site does next, and, through the transfers, all sites that wait for it.
// If the site would have waited for others anyway, its upkeep delays nobody. So the recorded operations are
// walked through once more, in the order of time. Each node n keeps by how much earlier it would be without
// any upkeep:
//
//   upkeep                           earlier(n) += its duration
//   a transfer, which begins at      J = max of its nodes' starts, and would begin at
//                                    J' = max of (start − earlier)
//   end of n's part of the transfer  earlier(n) = J − J', if n was waiting for it then
//
// A node that computes when its part ends has not waited for it.
#pragma once
#include <cstddef>
#include <vector>

#include "costmodel/timeline/timeline.hpp"

namespace fomoe::costmodel {

/// Takes the intervals of a run in pieces: those of rounds that are complete, in the order of the rounds.
class UpkeepDelay {
 public:
  explicit UpkeepDelay(std::size_t nodes) : earlier_s_(nodes, 0) {}

  void add(const std::vector<Interval>& complete);
  /// Seconds by which the rounds so far would have ended earlier.
  [[nodiscard]] double seconds() const { return delay_s_; }

 private:
  std::vector<double> earlier_s_;
  double end_s_ = 0;    // the last end of an operation
  double delay_s_ = 0;  // of the node that ended it
};

}  // namespace fomoe::costmodel
