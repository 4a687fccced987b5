// Rounds in which not all nodes take part, because a site is slow or has stopped.
//
// Slow sites (strategy.quorum): a synchronisation begins when all nodes are ready, or straggler_timeout_s
// after `quorum` of them are. The nodes that are not ready then are left out of the round, and their work of
// that round is lost. With a time-out of 0 these are the backup workers of Chen et al. 2016, "Revisiting
// Distributed Synchronous SGD" (arXiv 1604.00981).
//
// Stopped sites (failures.outages), by failures.policy:
//   wait  all sites stop until the site is back, and then go on from the last checkpoint
//   drop  the others wait drop_after_s from the time when they are ready for the next synchronisation, and
//         then go on without the site. A synchronisation that the failure interrupts begins again.
//
// A node that was left out, or whose site is back while others went on, fetches the training state from a
// node that took part, and takes part again from the next round on. Where all go back, each reads its own
// checkpoint.
#pragma once
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "costmodel/inputs/failures.hpp"
#include "costmodel/plan/plan.hpp"

namespace fomoe::costmodel {

struct AttendanceRules {
  std::optional<std::int64_t> quorum;  // workers that must be ready; empty: all
  double straggler_timeout_s = 0;
  std::vector<Outage> outages;
  double drop_after_s = std::numeric_limits<double>::infinity();  // infinite: failures.policy is wait
  std::int64_t checkpoint_rounds = 1;  // under wait: rounds between two checkpoints
  double checkpoint_s = 0;             // under wait: duration of a checkpoint; all nodes write it at once
  double restore_s = 0;                // under wait: until the site that is back has read its checkpoint
  double state_bytes = 0;              // training state that a node fetches from another one
  [[nodiscard]] bool any() const { return quorum.has_value() || !outages.empty(); }
};

}  // namespace fomoe::costmodel
