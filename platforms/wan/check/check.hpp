// The check of the emulation: measures the rates and round trips of all pairs of sites, and compares them
// with the platform, before a command runs on it.
#pragma once
#include <string>
#include <vector>

#include "platforms/wan/network/isolation.hpp"
#include "platforms/wan/network/layout.hpp"

namespace fomoe::platforms::wan {

struct Measured {
  double alone = 0;     // with no other traffic
  double together = 0;  // with every site sending at the same time
};

/// Asked and measured values of one ordered pair of sites. Rates include IP and TCP headers, as on the links.
struct PairCheck {
  int from = 0, to = 0;
  double asked_bytes_per_s = 0;
  Measured bytes_per_s;
  double asked_round_trip_s = 0;
  Measured round_trip_s;
};

struct Check {
  double relay_bytes_per_s = 0;      // throughput of the relay with links without limits
  double aggregate_bytes_per_s = 0;  // Layout::aggregate_bytes_per_s()
  std::vector<PairCheck> pairs;
};

inline constexpr double kTolerance = 0.05;
/// A round trip includes four process switches on each side, which take this much on a busy machine, however
/// short the latency is.
inline constexpr double kRoundTripTolerance_s = 0.0005;
/// Beyond this fraction of its throughput the relay itself would delay packets.
inline constexpr double kRelayShare = 0.5;

bool rate_misses(double asked, double measured);
bool round_trip_misses(double asked_s, double measured_s);

/// The reason why the relay is too slow for the platform; empty if it is fast enough.
std::string too_much_for_relay(const Check& check);
/// One line of text for each value that deviates by more than the tolerance.
std::vector<std::string> misses(const Check& check, const Layout& layout);
std::string check_text(const Check& check, const Layout& layout);

using Cores = std::vector<std::vector<int>>;  // [site]: its CPU cores; empty if any core may be used

/// Payload bytes of a full TCP segment: the MTU minus the IP and TCP headers.
double payload_per_segment(int mtu, bool timestamps);

/// Throughput of a relay for these sites without limits or latencies, in bytes per second.
double measure_relay(const Layout& layout, const std::vector<SiteNetwork>& sites, const Cores& cores,
                     int relay_core);
/// Measures all ordered pairs of sites. A relay must be running.
std::vector<PairCheck> measure_pairs(const Layout& layout, const std::vector<SiteNetwork>& sites,
                                     const Cores& cores);

}  // namespace fomoe::platforms::wan
