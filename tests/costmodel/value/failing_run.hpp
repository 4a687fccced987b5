// Runs with failures at given times, for tests by hand.
#pragma once
#include <deque>
#include <limits>

#include "costmodel/value/goodput.hpp"

namespace fomoe::tests {

using namespace fomoe::costmodel;

inline constexpr double kNever = std::numeric_limits<double>::infinity();

/// Returns a source of gaps between failures: the given ones in order, and then no failure ever again.
inline Gap gaps(std::deque<double> next) {
  return [next](double events_per_s) mutable {
    if (events_per_s <= 0 || next.empty()) return kNever;
    const double gap = next.front();
    next.pop_front();
    return gap;
  };
}

/// A run of four sites: 100 s of work in rounds of 10 s, with a checkpoint of 1 s after every round.
inline FaultyRun run_of_four(FailurePolicy policy) {
  FaultyRun run;
  run.work_s = 100;
  run.round_s = 10;
  run.sites = 4;
  run.site_failures_per_s = 0.001;
  run.outage_s = 5;
  run.transfer_s = 3;
  run.link_outage_s = 6;
  run.checkpoint_s = 1;
  run.interval_s = 10;
  run.policy = policy;
  return run;
}

}  // namespace fomoe::tests
