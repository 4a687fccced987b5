// Workers in cycles that share links and a server: how long each cycle takes.
#pragma once
#include <compare>
#include <cstddef>
#include <vector>

namespace fomoe::costmodel {

/// What a worker needs of something that all share, in seconds of each cycle if it has all of it.
struct Use {
  std::size_t shared = 0;  // index of what is shared
  double up_s = 0, down_s = 0;
  [[nodiscard]] double all_s() const { return up_s + down_s; }
  friend auto operator<=>(const Use&, const Use&) = default;
};

/// A worker's cycle without the others.
struct Worker {
  double steps_s = 0;                     // local steps
  double alone_s = 0;                     // steps, the outer step, latencies and the preparation of payloads
  double fragments = 1;                   // cycles until the same fragment is sent again
  double up_late_s = 0, down_late_s = 0;  // latency of a transfer, and what comes before it
  double up_s = 0, down_s = 0;            // transfers over links that no other worker uses
  std::vector<Use> uses;
  friend auto operator<=>(const Worker&, const Worker&) = default;
};

/// Parts of a cycle, in seconds.
struct Cycle {
  double up_s = 0, down_s = 0, all_s = 0;
};

/// The cycle of each worker, by the equations of `own_paces`. `shared` is the number of things that are
/// shared; of thing s, worker w uses the part A_ws ÷ c_w of the time, and the cycles depend on what is free:
///   f_s = 1 − Σ_w A_ws ÷ c_w(f),  A_ws = `all_s()` of w's use of s
/// c_w(f) are piecewise smooth, so that a Newton method finds the logarithms of f (Qi and Sun 1993, A
/// nonsmooth version of Newton's method). Where its steps come no closer, one f_s after the other is found
/// with the rest as it is.
std::vector<Cycle> shared_cycles(const std::vector<Worker>& workers, std::size_t shared);

}  // namespace fomoe::costmodel
