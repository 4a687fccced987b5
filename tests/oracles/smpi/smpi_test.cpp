// Compares fomoe with SMPI, which runs a real MPI all-reduce over the same platform. Without SMPI's fitted
// factors, only the differences that are stated here are allowed.
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

constexpr long kElements = 1'000'008;  // 4 MB of fp32; 24 divides it, so that all chunks are equal

// fomoe's result for the bytes that SMPI moves. SMPI adds an envelope of 16 bytes to every message (tag,
// communicator, length), which is 4 elements more in each of n chunks.
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

// A platform whose sites all have different rates and latencies.
platforms::Platform unequal(int count, double latency_s) {
  platforms::Platform platform = platforms::uniform(count, 1e7, 1e7, latency_s);
  for (int a = 0; a < count; ++a) {
    auto& site = platform.sites[static_cast<std::size_t>(a)];
    site.uplink_bytes_per_s *= 1 + (a * 5 % 7) * 0.45;
    site.downlink_bytes_per_s *= 2 + (a * 3 % 5) * 0.8;
    for (int b = 0; b < count; ++b)
      platform.change_path(
          a, b, [&](platforms::Path& path) { path.latency_s *= 1 + ((a * 3 + b * 5) % 11) * 0.3; });
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
  // Both compute the same fluid model, so they differ by rounding only. SMPI prints 13 digits, and its clock
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

TEST_CASE("unequal sites, ring: SMPI is later, by at most one latency a step") {
  // In SMPI's rendezvous the latency begins when both sides wait for the message. In fomoe it begins when the
  // sender sends, so it may pass while the receiver is still busy. The latency of the slowest hop is never
  // hidden, and no latency is hidden if all hops take the same time.
  for (const int sites : {2, 3, 4, 8}) {
    for (const double latency_s : {0.001, 0.02, 0.1}) {
      const auto platform = unequal(sites, latency_s);
      const auto fomoe = fomoe_all_reduce(platform, Collective::ring);
      const auto smpi = smpi_end_s(platform, "ring", kElements, without_factors(Sending::rendezvous));
      CAPTURE(sites);
      CAPTURE(latency_s);
      const double hidden_s = 2 * (sites - 1) * longest_latency_s(platform);
      for (std::size_t rank = 0; rank < fomoe.size(); ++rank) {
        CHECK(fomoe[rank] <= smpi[rank] * (1 + 1e-9));
        CHECK(fomoe[rank] >= smpi[rank] - hidden_s);
      }
      // The last rank ends at the same time, since the slowest hop decides.
      CHECK(std::abs(latest(fomoe) / latest(smpi) - 1) <= 1e-9);
      if (latency_s == 0.02)
        tell({"SMPI, ring of " + std::to_string(sites) + ", unequal, 8 to 39 ms", latest(fomoe), latest(smpi),
              "none: the slowest hop decides"});
    }
  }
}

TEST_CASE("unequal sites, direct: what SimGrid shares by latency, fomoe shares equally") {
  // A port that is always busy ends its bytes at the same time, however flows share it. Only the start of its
  // last flow differs, by less than the longest latency in each of the two steps.
  for (const int sites : {2, 3, 4, 8}) {
    for (const double latency_s : {0.001, 0.02, 0.1}) {
      const auto platform = unequal(sites, latency_s);
      const double fomoe_s = latest(fomoe_all_reduce(platform, Collective::direct));
      const double smpi_s =
          latest(smpi_end_s(platform, "direct", kElements, without_factors(Sending::rendezvous)));
      CAPTURE(sites);
      CAPTURE(latency_s);
      CHECK(std::abs(fomoe_s - smpi_s) <= 2 * longest_latency_s(platform));
      if (latency_s == 0.02)
        tell({"SMPI, direct of " + std::to_string(sites) + ", unequal, 8 to 39 ms", fomoe_s, smpi_s,
              "SimGrid shares a port ∝ 1/latency, fomoe equally"});
    }
  }
}

TEST_CASE("SMPI as it comes, with factors fitted to clusters") {
  // Predicted for a ring step of b bytes over a path of rate R and latency L, from SMPI's documented
  // defaults:
  //   11.6436 · L + b ÷ (0.940694 · min(R ÷ 1.05, 4 MiB ÷ 2L))
  // The terms are factors on latency and rate, 5 % of the rate for acknowledgements of the data in the other
  // direction, and TCP windows of 4 MiB. The tolerance of 0.5 % covers SMPI's other effects (latency weights
  // the sharing).
  for (const double bytes_per_s : {1.25e7, 1.25e8}) {
    for (const double latency_s : {0.01, 0.05}) {
      const auto platform = platforms::uniform(4, bytes_per_s, bytes_per_s, latency_s);
      const double fomoe_s = latest(fomoe_all_reduce(platform, Collective::ring));
      const double smpi_s = latest(smpi_end_s(platform, "ring", kElements, {"smpi/simulate-computation:no"}));
      const double step_bytes = kElements + 16;
      const double rate = 0.940694 * std::min(bytes_per_s / 1.05, 4194304 / (2 * latency_s));
      const double predicted_s = 6 * (11.6436 * latency_s + step_bytes / rate);
      CHECK(smpi_s == doctest::Approx(predicted_s).epsilon(0.005));
      char name[100];
      std::snprintf(name, sizeof name, "SMPI's defaults, ring of 4, %g Gb/s, %g ms", bytes_per_s * 8e-9,
                    latency_s * 1e3);
      tell({name, fomoe_s, smpi_s, "SMPI: latency × 11.6, rate × 0.94 ÷ 1.05, windows of 4 MiB"});
    }
  }
}

TEST_SUITE_END();
