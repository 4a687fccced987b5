// The state of a platform's links over time. Times of changes count on a clock of their own, which shows
// Platform::changes_start_s when the run starts. If the changes repeat, they have no beginning: before its
// first change in a period, a link has the state in which its last change of the period before left it.
#pragma once
#include <cstddef>

#include "platforms/platform.hpp"

namespace fomoe::platforms {

/// Gives the change's link the rate and the latency of the change.
void apply(Platform& platform, const LinkChange& change);

/// The rate of the change's link.
double rate_of(const Platform& platform, const LinkChange& change);
void set_rate(Platform& platform, const LinkChange& change, double bytes_per_s);

/// The platform as its links are when the clock of the changes shows `clock_s`, in seconds.
Platform state_at(const Platform& platform, double clock_s);

/// The first change after a time.
struct NextChange {
  std::size_t index = 0;      // in Platform::changes; their number if none follows
  double period_start_s = 0;  // start of the change's period, on the clock of the changes
};
NextChange next_change(const Platform& platform, double clock_s);

/// Whether a link is down, that is, has rate 0.
bool has_dead_link(const Platform& platform);

}  // namespace fomoe::platforms
