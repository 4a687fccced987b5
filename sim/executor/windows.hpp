// Runs in which the windows of connections are simulated: what that costs, and the range of the answer. Which
// connection wins, and when one leaves slow start, can hang on little; a run is therefore simulated several
// times, with small delays that differ.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "sim/executor/simulate.hpp"

namespace fomoe::sim {

/// What the bursts of a round cost, in flows of FluidTransport, estimated from the bytes between sites of
/// some usual rounds.
double windows_cost(const costmodel::Plan& plan, const Sequence& sequence,
                    const platforms::Platform& platform, const ComputeSeconds& seconds,
                    const Options& options);

/// The rate of transfers with windows ÷ that without, in the long run: from a round with `share` of the bytes
/// and one with half of that, in which the beginnings of the transfers and the computation are the same. At
/// most 1. Empty if half of that round takes too few round trips to say so.
std::optional<double> long_run_rate(const costmodel::Plan& plan, std::int64_t round, double share,
                                    const platforms::Platform& with_windows,
                                    const platforms::Platform& without, const ComputeSeconds& seconds,
                                    const Options& options);

/// The end of a simulation ÷ that of the typical one.
struct EndRange {
  double low = 1, high = 1;
};

/// As simulate_each(), but each sequence is simulated `times` times. Returns the timelines whose ends are the
/// medians. `range` becomes the range of the sum of the ends.
std::vector<costmodel::Timeline> simulate_typical(const costmodel::Plan& plan,
                                                  const std::vector<Sequence>& sequences,
                                                  const platforms::Platform& platform,
                                                  const ComputeSeconds& seconds, const Options& options,
                                                  int times, EndRange& range);

}  // namespace fomoe::sim
