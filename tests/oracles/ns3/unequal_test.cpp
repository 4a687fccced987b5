// Compares fomoe with ns-3 where flows that share a port have different latencies. The near flows have ended
// before the far one has ramped up, so its window has to grow until it can use the whole port. In exchanges
// in both directions with such latencies, ns-3's sockets wait for spurious time-outs (hundreds of seconds),
// so there is no such case.
#include <algorithm>

#include "tests/oracles/ns3/judge.hpp"

using namespace fomoe;
using namespace fomoe::oracles;

namespace {

/// Equal ports, and these latencies to the hub.
Star star_of(double bits_per_s, std::initializer_list<double> half_latencies_s) {
  Star star;
  for (const double half_s : half_latencies_s) star.push_back({bits_per_s, bits_per_s, half_s});
  return star;
}

/// Twice the largest latency between two sites.
double longest_round_trip_s(const Star& star) {
  std::vector<double> halves_s;
  for (const StarSite& site : star) halves_s.push_back(site.half_latency_s);
  std::sort(halves_s.rbegin(), halves_s.rend());
  return 2 * (halves_s[0] + halves_s[1]);
}

}  // namespace

TEST_SUITE_BEGIN("ns3");

TEST_CASE("one site to several, and several to one, with latencies that differ between pairs") {
  struct Example {
    std::string name, traffic;
    Star star;
    long bytes;
  };
  const Example examples[] = {
      {"one to two, 5 and 150 ms, 1 Gb/s, 50 MB each", "fan", star_of(1e9, {0, 0.005, 0.15}), 50'000'000},
      {"one to two, 5 and 150 ms, 1 Gb/s, 12.5 MB each", "fan", star_of(1e9, {0, 0.005, 0.15}), 12'500'000},
      {"one to three, 3 to 70 ms, 0.1 Gb/s, 4 MB each", "fan", star_of(1e8, {0.001, 0.002, 0.019, 0.069}),
       4'000'000},
      {"two to one, 5 and 150 ms, 1 Gb/s, 50 MB each", "fan-in", star_of(1e9, {0, 0.005, 0.15}), 50'000'000},
      {"three to one, 3 to 70 ms, 0.1 Gb/s, 4 MB each", "fan-in", star_of(1e8, {0.001, 0.002, 0.019, 0.069}),
       4'000'000}};
  for (const Example& one : examples) {
    const Case c{"",
                 one.traffic,
                 one.star[0].up_bits_per_s,
                 longest_round_trip_s(one.star) / 2,
                 one.bytes,
                 static_cast<int>(one.star.size())};
    judge_star("ns-3, " + one.name, one.star, c, {}, tcp_terms(false),
               {packets_s(c) + delayed_acks_s(c), 0,
                "packets, and delayed acknowledgements in the ramp of the farthest flow"});
  }
}

TEST_SUITE_END();
