// The yardstick of the simulator's benchmarks: SimGrid code that somebody would write by hand.
#pragma once
#include <cstdint>

namespace fomoe::tests {

/// Simulates `rounds` ring all-reduces among `sites` equal sites in a child process, and returns the
/// simulated seconds. A ring has 2(sites − 1) steps, and each site sends a chunk of `bytes` in each of them.
double rings_by_hand(int sites, int rounds, std::uint64_t bytes, double bytes_per_s, double latency_s);

}  // namespace fomoe::tests
