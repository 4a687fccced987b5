// SMPI runs a real MPI all-reduce over the platform that fomoe simulates. With SMPI's fitted factors taken out
// nothing may differ but what is stated here.
#include "tests/oracles/smpi/smpi.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "tests/oracles/comparison.hpp"
#include "tests/sim/transfers.hpp"

using namespace fomoe;
using namespace fomoe::oracles;
using costmodel::Collective;

namespace {

constexpr long kElements = 1'000'003;  // 4 MB of fp32, in chunks that are not all equal

// SMPI adds an envelope of 16 bytes to every message (tag, communicator, length). fomoe is asked about the
// bytes that SMPI moves: 4 elements more in each of n chunks.
std::vector<double> fomoe_all_reduce(const platforms::Platform& platform, Collective collective,
                                     const costmodel::NetworkModel& network = {}) {
  const int n = platform.size();
  return fomoe_end_s(tests::transfer_only(n, costmodel::Pattern::all_reduce, collective,
                                          {tests::exchange_of(tests::first(n), kElements + 4L * n)}),
                     platform, network);
}

const char* name_of(Collective collective) { return collective == Collective::ring ? "ring" : "direct"; }

double greatest_difference(const std::vector<double>& a, const std::vector<double>& b) {
  double most = 0;
  for (std::size_t i = 0; i < a.size(); ++i) most = std::max(most, std::abs(a[i] / b[i] - 1));
  return most;
}

// Rates and latencies that no two sites share.
platforms::Platform unequal(int count, double latency_s) {
  platforms::Platform platform = platforms::uniform(count, 1e7, 1e7, latency_s);
  for (int a = 0; a < count; ++a) {
    auto& site = platform.sites[static_cast<std::size_t>(a)];
    site.uplink_bytes_per_s *= 1 + (a * 5 % 7) * 0.45;
    site.downlink_bytes_per_s *= 2 + (a * 3 % 5) * 0.8;
    for (int b = 0; b < count; ++b) platform.path(a, b).latency_s *= 1 + ((a * 3 + b * 5) % 11) * 0.3;
  }
  return platform;
}

double longest_latency_s(const platforms::Platform& platform) {
  double longest = 0;
  for (int a = 0; a < platform.size(); ++a) {
    for (int b = 0; b < platform.size(); ++b) {
      if (a != b) longest = std::max(longest, platform.path(a, b).latency_s);
    }
  }
  return longest;
}

}  // namespace

TEST_SUITE_BEGIN("smpi");

TEST_CASE("equal sites: every rank ends when fomoe's node does") {
  // The same fluid model computed along another way: rounding only. SMPI prints 13 digits, and its clock
  // adds up some dozen doubles.
  for (const Collective collective : {Collective::ring, Collective::direct}) {
    for (const int sites : {2, 3, 4, 8}) {
      double most = 0;
      std::vector<double> fomoe, smpi;
      for (const double bytes_per_s : {1.25e7, 1.25e8, 1.25e9}) {
        for (const double latency_s : {0.001, 0.01, 0.1}) {
          const auto platform = platforms::uniform(sites, bytes_per_s, bytes_per_s, latency_s);
          fomoe = fomoe_all_reduce(platform, collective);
          smpi = smpi_end_s(platform, name_of(collective), kElements, without_factors(Sending::rendezvous));
          CAPTURE(sites);
          CAPTURE(bytes_per_s);
          CAPTURE(latency_s);
          CHECK(greatest_difference(fomoe, smpi) <= 1e-9);
          most = std::max(most, greatest_difference(fomoe, smpi));
        }
      }
      char cause[160];
      std::snprintf(cause, sizeof cause, "none; at most %.0e over 0.1, 1, 10 Gb/s × 1, 10, 100 ms", most);
      tell({std::string("SMPI, ") + name_of(collective) + " of " + std::to_string(sites) +
                ", equal, 10 Gb/s, 100 ms",
            latest(fomoe), latest(smpi), cause});
    }
  }
}
TEST_CASE("unequal") {
  for (int n : {2,3,4,8}) for (double l : {0.001, 0.02, 0.1}) for (const Collective c : {Collective::ring, Collective::direct}) {
    auto p = unequal(n, l);
    auto f = fomoe_all_reduce(p, c);
    auto e = smpi_end_s(p, name_of(c), kElements, without_factors(Sending::eager));
    auto r = smpi_end_s(p, name_of(c), kElements, without_factors(Sending::rendezvous));
    printf("%d %g %s  %.6f %.6f %.6f  steps*lat %g\n", n, l, name_of(c), latest(e), latest(f), latest(r), 2*(n-1)*longest_latency_s(p));
  }
}
TEST_CASE("def") {
  for (double bw : {1.25e7, 1.25e8}) for (double l : {0.01, 0.05}) for (const Collective c : {Collective::ring, Collective::direct}) {
    auto p = platforms::uniform(4, bw, bw, l);
    costmodel::NetworkModel m; m.tcp_window_bytes = 4194304; m.latency_factor=11.6436; m.bandwidth_efficiency=0.940694;
    auto e = smpi_end_s(p, name_of(c), kElements, {"smpi/simulate-computation:no", "smpi/wtime:0"});
    printf("%g %g %s  %.6f %.6f %.6f\n", bw, l, name_of(c), latest(e), latest(fomoe_all_reduce(p, c)), latest(fomoe_all_reduce(p, c,m)));
  }
}
TEST_SUITE_END();
