// Samples the rounds of a run whose links change over time, for runs that are too long to execute every
// round.
//
// How long a round takes depends on when it starts. The sampler therefore executes rounds that start at
// chosen times on the clock of the changes (platforms/link_changes.hpp): at evenly spaced times, at each
// change, and one round before it. Between these times it interpolates linearly. With d(t) the duration of a
// round that starts at t, the rounds of the run start at t₀, t₁ = t₀ + d(t₀), t₂ = t₁ + d(t₁), …; following
// this recurrence to the last round gives the wall clock, and how many rounds each sample represents. If the
// changes repeat after a few rounds, the first rounds of the run are executed without a gap instead.
#pragma once
#include <cstdint>
#include <vector>

#include "costmodel/timeline/class_mean.hpp"
#include "sim/executor/simulate.hpp"

namespace fomoe::sim {

struct ChangingRounds {
  /// Together they represent all rounds of the run. The first one is the first round of the run, which starts
  /// on a new network.
  std::vector<costmodel::RoundSample> samples;
  /// Change of the wall clock if every other start time is left out, in seconds.
  double doubt_s = 0;
  std::size_t start_times = 0;
  bool gapless = false;                             // the executed rounds are the first rounds of the run
  std::vector<std::vector<std::int64_t>> executed;  // [class]: indices of the executed rounds
};

/// `most_rounds`: about as many rounds are executed at most. `random`: rounds that start at the same time
/// differ at random, so several are executed for each start time.
ChangingRounds sample_changing_rounds(const costmodel::Plan& plan, const platforms::Platform& platform,
                                      const ComputeSeconds& seconds, const Options& options,
                                      std::int64_t most_rounds, bool random);

}  // namespace fomoe::sim
