// When the fragments of a model are sent and needed (Streaming DiLoCo), and how many of them are in flight at
// once.
#pragma once
#include <cstdint>

#include "costmodel/inputs/scenario.hpp"

namespace fomoe::costmodel {

struct FragmentTurns {
  std::int64_t count, local_steps, overlap_steps;

  /// The step of a full round after which the fragment is sent.
  [[nodiscard]] std::int64_t sent_at(std::int64_t p) const { return (p + 1) * local_steps / count; }
  /// The step after which the site waits for the fragment; beyond `local_steps` it is in the next round.
  [[nodiscard]] std::int64_t waited_at(std::int64_t p) const { return sent_at(p) + overlap_steps; }
};

inline FragmentTurns fragment_turns(const Strategy& strategy) {
  return {strategy.fragments, strategy.local_steps, strategy.overlap_steps};
}

/// Fragments that are in flight at once: most of them at any time, and most of them with the last fragment,
/// which has the embedding tables.
struct FragmentsInFlight {
  double most = 1, with_last = 1;
};

/// In flight when a fragment has just been sent. A site sends before it waits for a fragment of the same
/// round, and waits for those of the round before first.
inline FragmentsInFlight fragments_in_flight(const FragmentTurns& turns) {
  FragmentsInFlight flying;
  for (std::int64_t sent = 0; sent < turns.count; ++sent) {
    const std::int64_t now = turns.sent_at(sent);
    double all = 0;
    bool last = false;
    for (std::int64_t p = 0; p < turns.count; ++p) {
      const bool here = turns.sent_at(p) <= now && turns.waited_at(p) >= now,
                 of_round_before = turns.waited_at(p) - turns.local_steps > now;
      all += (here ? 1 : 0) + (of_round_before ? 1 : 0);
      last = last || (p + 1 == turns.count && (here || of_round_before));
    }
    if (all > flying.most) flying.most = all;
    if (last && all > flying.with_last) flying.with_last = all;
  }
  return flying;
}

}  // namespace fomoe::costmodel
