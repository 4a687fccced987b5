// Tests of the durations of stages over links that differ.
#include "costmodel/formula/links/links.hpp"

#include <doctest/doctest.h>

#include <memory>

#include "costmodel/formula/links/shared_port.hpp"

using namespace fomoe;
using namespace fomoe::costmodel;
using doctest::Approx;

namespace {

platforms::Platform three_sites() {
  platforms::Platform platform = platforms::uniform(3, 1000, 1000, 0.1);
  platform.sites[0].uplink_bytes_per_s = 200;
  platform.sites[1].uplink_bytes_per_s = 100;
  platform.sites[2].uplink_bytes_per_s = 80;
  platform.sites[2].downlink_bytes_per_s = 50;
  return platform;
}

}  // namespace

TEST_CASE(
    "a star by hand: the first site's uplink of 200 B/s is shared, and each client answers when it has "
    "received") {
  // 100 B to each: the slow client takes 50 B/s and 2 s, which leaves 150 B/s to the other one, 2/3 s. Then
  // two latencies of 0.1 s, and 100 B back over the client's uplink of 100 or 80 B/s.
  CHECK(star_s(three_sites(), 100, 100) == Approx(2 + 0.2 + 100.0 / 80).epsilon(1e-12));
  CHECK(star_s(three_sites(), 100, 0.001) == Approx(2 + 0.2 + 0.001 / 80).epsilon(1e-12));
  platforms::Platform fast = three_sites();
  fast.sites[2].downlink_bytes_per_s = 1000;  // both then have 100 B/s, and end after 1 s
  CHECK(star_s(fast, 100, 100) == Approx(1 + 0.2 + 100.0 / 80).epsilon(1e-12));
}

TEST_CASE("two transfers by hand: while one waits for a latency, the other one has the port") {
  // Of 100 B/s, with a latency of 1 s: 2 steps of 100 B, and one of 300 B. Both send 100 B in 2 s. Until 3 s,
  // the other one sends 100 B, and then both send their last 100 B until 5 s, which arrive at 6 s.
  const Chain two{2, 100, 1, 1}, one{1, 300, 1, 1};
  CHECK(both_end_s(two, one, 100) == Approx(6).epsilon(1e-12));
  CHECK(both_end_s(one, two, 100) == Approx(6).epsilon(1e-12));
  // Its three flows have 75 B/s until 4 s, when both have sent. The second step is sent from 5 to 6 s.
  CHECK(both_end_s(two, {1, 300, 3, 1}, 100) == Approx(7).epsilon(1e-12));
  // Without latencies, nobody leaves the port free.
  CHECK(both_end_s({2, 100, 1, 0}, {1, 300, 1, 0}, 100) == Approx(5).epsilon(1e-12));
  CHECK(both_end_s({14, 1e6, 1, 0}, {2, 8e6, 2, 0}, 1e6) == Approx(30).epsilon(1e-9));
  // A small one is hidden by the latencies of the other one.
  CHECK(both_end_s({10, 100, 1, 1}, {1, 1, 1, 1}, 100) == Approx(20.01).epsilon(1e-12));
}

TEST_CASE("two transfers by hand that share a connection: one message after another") {
  // 2 messages of 2 s and one of 3 s, which arrive 1 s later. From 0 to 2 s the first, until 5 s the other
  // one, and from then on the second of the first transfer, which arrives at 8 s.
  CHECK(in_turn_s({2, 2, 1}, {1, 3, 1}) == Approx(8).epsilon(1e-12));
  // The one message of 3 s goes first; the others are sent from 3 to 5 s and from 6 to 8 s.
  CHECK(in_turn_s({1, 3, 1}, {2, 2, 1}) == Approx(9).epsilon(1e-12));
  // A message that fits into a wait delays nothing.
  CHECK(in_turn_s({3, 1, 4}, {1, 4, 1}) == Approx(15).epsilon(1e-12));
  CHECK(in_turn_s({3, 1, 4}, {0, 4, 1}) == Approx(15).epsilon(1e-12));
}

TEST_CASE("a direct exchange by hand: each step waits for the slowest port") {
  platforms::Platform platform = platforms::uniform(2, 1000, 1000, 0.1);
  platform.sites[1].uplink_bytes_per_s = 50;
  CHECK(direct_exchange_s(platform, 1, 100) == Approx(2.1).epsilon(1e-12));
  CHECK(direct_exchange_s(platform, 3, 100) == Approx(6.3).epsilon(1e-12));
  // The slow site sends 100 B to each of two others.
  platform = platforms::uniform(3, 1000, 1000, 0.1);
  platform.sites[1].uplink_bytes_per_s = 50;
  CHECK(direct_exchange_s(platform, 1, 100) == Approx(4.1).epsilon(1e-12));
}

TEST_CASE("exchanges of few bytes end, however large the clock is beside their time") {
  // The last bytes of a flow take less than the distance between two neighbouring times.
  for (const double latency_s : {0.07, 0.31, 7.3, 4001.7}) {
    for (const double bytes : {1e-3, 1.0, 37.0, 5e4}) {
      platforms::Platform platform = platforms::uniform(4, 1e10, 3e10, latency_s);
      for (int site = 0; site < platform.size(); ++site) {
        platform.sites[static_cast<std::size_t>(site)].uplink_bytes_per_s *= 1 + 0.37 * site;
        for (int to = 0; to < platform.size(); ++to) {
          if (to != site) platform.set_latency(site, to, latency_s * (1 + 0.1 * site + 0.013 * to));
        }
      }
      const double slowest_s = latency_s * (1 + 0.1 * 3 + 0.013 * 2);  // from site 3 to site 2
      const double least_s = bytes / 1e10;
      const double exchange_s = direct_exchange_s(platform, 1, bytes);
      CHECK(exchange_s > least_s);
      CHECK(exchange_s < slowest_s + 12 * least_s + 1e-9 * slowest_s);
      CHECK(star_s(platform, bytes, bytes) < 2 * slowest_s + 24 * least_s + 1e-9 * slowest_s);
    }
  }
}
