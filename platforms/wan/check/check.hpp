// Does the emulation do what the platform says? Measured before anything is run over it.
#pragma once
#include <string>
#include <vector>

#include "platforms/wan/network/isolation.hpp"
#include "platforms/wan/network/layout.hpp"

namespace fomoe::platforms::wan {

struct Measured {
  double alone = 0;     // nothing else on the way
  double together = 0;  // every site busy at the same time
};

/// Rates count IP and TCP headers, as the links do.
struct PairCheck {
  int from = 0, to = 0;
  double asked_bytes_per_s = 0;
  Measured bytes_per_s;
  double asked_round_trip_s = 0;
  Measured round_trip_s;
};

struct Check {
  double relay_bytes_per_s = 0;  // the most that the relay carried, of links without limits
  double aggregate_bytes_per_s = 0;
  std::vector<PairCheck> pairs;
};

inline constexpr double kTolerance = 0.05;
/// A round trip passes four process switches on each side, which take this much on a busy machine, however
/// short the latency.
inline constexpr double kRoundTripTolerance_s = 0.0005;
/// Beyond this share of its maximum the relay itself would delay packets.
inline constexpr double kRelayShare = 0.5;

bool rate_misses(double asked, double measured);
bool round_trip_misses(double asked_s, double measured_s);

/// Empty: the relay is fast enough. Otherwise the reason why not.
std::string too_much_for_relay(const Check& check);
/// One line for each value that is off by more than the tolerance.
std::vector<std::string> misses(const Check& check, const Layout& layout);
std::string check_text(const Check& check, const Layout& layout);

using Cores = std::vector<std::vector<int>>;  // per site; empty: any

/// Of a full TCP segment: the MTU without IP and TCP headers.
double payload_per_segment(int mtu, bool timestamps);

double measure_relay(const Layout& layout, const std::vector<SiteNetwork>& sites, const Cores& cores,
                     int relay_core);
/// Over a relay that runs.
std::vector<PairCheck> measure_pairs(const Layout& layout, const std::vector<SiteNetwork>& sites,
                                     const Cores& cores);

}  // namespace fomoe::platforms::wan
