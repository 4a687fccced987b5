// Tests the simulated network with cases computed by hand: latency, unequal links, sharing and byte counts.
#include <doctest/doctest.h>

#include <cmath>

#include "sim/executor/simulate.hpp"
#include "sim/executor/simulated_run.hpp"
#include "tests/scenarios.hpp"
#include "tests/sim/transfers.hpp"

using namespace fomoe;
using namespace fomoe::tests;

TEST_CASE("ring all-reduce with latency takes 2(M−1)·(latency + S/(M·B))") {
  for (const int m : {2, 3, 5, 8}) {
    const std::int64_t elements = 840'000;  // divisible by m
    const double bytes = 4.0 * static_cast<double>(elements), bandwidth = 1e6, latency = 0.05;
    const auto timeline =
        play(transfer_only(m, Pattern::all_reduce, Collective::ring, {exchange_of(first(m), elements)}),
             platforms::uniform(m, bandwidth, bandwidth, latency));
    check_close(timeline.round_end_s[0], 2 * (m - 1) * (latency + bytes / (m * bandwidth)));
  }
}

TEST_CASE("direct all-reduce with latency takes 2·(latency + (M−1)·S/(M·B))") {
  for (const int m : {2, 3, 5, 8}) {
    const std::int64_t elements = 840'000;
    const double bytes = 4.0 * static_cast<double>(elements), bandwidth = 1e6, latency = 0.05;
    const auto timeline =
        play(transfer_only(m, Pattern::all_reduce, Collective::direct, {exchange_of(first(m), elements)}),
             platforms::uniform(m, bandwidth, bandwidth, latency));
    check_close(timeline.round_end_s[0], 2 * (latency + (m - 1) * bytes / (m * bandwidth)));
  }
}

TEST_CASE("two sites with unequal up and down links: each direction runs at the smaller of its two ports") {
  platforms::Platform platform = platforms::uniform(2, 1, 1, 0.010);
  platform.sites[0].uplink_bytes_per_s = 4e6;
  platform.sites[0].downlink_bytes_per_s = 1e6;
  platform.sites[1].uplink_bytes_per_s = 2e6;
  platform.sites[1].downlink_bytes_per_s = 3e6;
  // 0 → 1 runs at min(4, 3) = 3 MB/s, and 1 → 0 at min(2, 1) = 1 MB/s. Half of 8 MB goes each way in each of
  // two steps. A site starts the next step only when its flows of both directions have ended, so both steps
  // take 0.01 s + 4 MB ÷ 1 MB/s.
  const auto timeline = play(
      transfer_only(2, Pattern::all_reduce, Collective::ring, {exchange_of({0, 1}, 2'000'000)}), platform);
  check_close(timeline.round_end_s[0], 2 * (0.010 + 4.0));
  // Site 1 ends at that time too. It has received its half after 0.01 + 4/3 s of the second step, but its own
  // sending ends only then.
  check_close(end_of(timeline, 1), 2 * (0.010 + 4.0));
}

TEST_CASE("three flows share one uplink equally") {
  // Site 0 sends 3, 6 and 9 MB to three sites through 3 MB/s. Each flow gets 1 MB/s until 3 s. The remaining
  // two get 1.5 MB/s until 5 s (6 − 3 = 3 MB). The last one gets 3 MB/s for 9 − 3 − 3 = 3 MB, until 6 s.
  const auto timeline = play(transfer_only(4, Pattern::point_to_point, Collective::ring,
                                           {exchange_of({0, 1}, 750'000), exchange_of({0, 2}, 1'500'000),
                                            exchange_of({0, 3}, 2'250'000)}),
                             [] {
                               auto platform = platforms::uniform(4, 1e9, 1e9, 0);
                               platform.sites[0].uplink_bytes_per_s = 3e6;
                               return platform;
                             }());
  check_close(end_of(timeline, 1), 3);
  check_close(end_of(timeline, 2), 5);
  check_close(end_of(timeline, 3), 6);
}

TEST_CASE("shares are equal whatever the latencies") {
  // Two flows of 4 MB leave an uplink of 2 MB/s at 1 MB/s each, for 4 s. Their last bytes arrive 10 ms and
  // 500 ms later.
  auto platform = platforms::uniform(3, 2e6, 1e9, 0.010);
  platform.set_latency(0, 2, 0.500);
  const auto timeline = play(transfer_only(3, Pattern::point_to_point, Collective::ring,
                                           {exchange_of({0, 1}, 1'000'000), exchange_of({0, 2}, 1'000'000)}),
                             platform);
  check_close(end_of(timeline, 1), 4.01);
  check_close(end_of(timeline, 2), 4.5);
}

TEST_CASE("a path slower than its ports is the limit") {
  auto platform = platforms::uniform(2, 1e9, 1e9, 0);
  platform.set_path_rate(0, 1, 5e5);
  check_close(
      play(transfer_only(2, Pattern::point_to_point, Collective::ring, {exchange_of({0, 1}, 250'000)}),
           platform)
          .round_end_s[0],
      2);
}

TEST_CASE("bytes that cross the links are the plan's, to the byte, with chunks of unequal size") {
  // 10 elements in 4 chunks are 3, 3, 2 and 2. In each half of the ring a site sends all chunks but one, so
  // it sends 2·40 B − two chunks. All sites together send 2·(M−1)·S = 6·40 = 240 B.
  for (const Collective collective : {Collective::ring, Collective::direct}) {
    const auto timeline = play(transfer_only(4, Pattern::all_reduce, collective, {exchange_of(first(4), 10)}),
                               platforms::uniform(4, 1e3, 1e3, 0));
    double sum = 0;
    for (const auto& [pair, bytes] : timeline.sent.bytes) sum += bytes;
    CHECK(sum == 240);
    for (int n = 0; n < 4; ++n) CHECK(timeline.sent.at(n, n) == 0);
  }
  const auto ring = play(transfer_only(4, Pattern::all_reduce, Collective::ring, {exchange_of(first(4), 10)}),
                         platforms::uniform(4, 1e3, 1e3, 0));
  // Node 0 sends chunks 0, 3, 2 (12 + 8 + 8) and then 1, 0, 3 (12 + 12 + 8).
  CHECK(ring.sent.at(0, 1) == 60);
}

TEST_CASE("one element among four sites: three chunks are empty and nothing hangs") {
  const auto timeline =
      play(transfer_only(4, Pattern::all_reduce, Collective::ring, {exchange_of(first(4), 1)}),
           platforms::uniform(4, 1e3, 1e3, 0.5));
  double sum = 0;
  for (const auto& [pair, bytes] : timeline.sent.bytes) sum += bytes;
  CHECK(sum == 6 * 4);
}

TEST_CASE("a node goes on when its own part is done: no barrier between operations") {
  // Sites 0 and 1 exchange data for 2 s. Then site 1 sends to site 2, which only waits until then.
  costmodel::Plan plan =
      transfer_only(3, Pattern::point_to_point, Collective::ring, {exchange_of({0, 1}, 500'000)});
  costmodel::RoundPlan round = plan.round(0);
  round.ops.push_back(
      {"second",
       costmodel::Transfer{Pattern::point_to_point, Collective::ring, {exchange_of({2, 0}, 250'000)}},
       {0}});
  plan.round = [round](std::int64_t) { return round; };
  const auto timeline = play(plan, platforms::uniform(3, 1e6, 1e6, 0));
  // 2 → 0 cannot start before 2 s, since node 0 sends until then. It ends at 2 + 1 = 3 s.
  check_close(end_of(timeline, 2), 3);
  check_close(end_of(timeline, 1), 2);
}

TEST_CASE("a fluid ring: one latency, and the bytes of all steps at the port's rate") {
  // Each of M sites sends 2(M−1) chunks of S/M to the next one: t = latency + 2(M−1)/M · S/B.
  const int m = 4;
  const std::int64_t elements = 840'000;
  const double bytes = 4.0 * static_cast<double>(elements), bandwidth = 1e6, latency = 0.05;
  const costmodel::Plan plan =
      transfer_only(m, Pattern::all_reduce, Collective::ring, {exchange_of(first(m), elements)});
  const auto platform = platforms::uniform(m, bandwidth, bandwidth, latency);
  const auto timeline = sim::simulate(
      plan, {0}, platform, [](auto&&...) { return 0.0; }, options_of(costmodel::RingModel::fluid));
  check_close(timeline.round_end_s[0], latency + 2.0 * (m - 1) / m * bytes / bandwidth);
  const auto stepwise = play(plan, platform);
  CHECK(timeline.sent.bytes == stepwise.sent.bytes);
}

TEST_CASE("stepwise and fluid rings agree within 1 % where latency is negligible, on unequal ports too") {
  // The latency is 0.1 ms, and a chunk of at least 2.1 MB ÷ 8 takes 0.26 s at 1 MB/s. So the latencies are
  // 0.04 % of the time.
  for (const int m : {2, 3, 8}) {
    auto platform = platforms::uniform(m, 1e6, 1e6, 1e-4);
    platform.sites[0].uplink_bytes_per_s = 7e5;
    const costmodel::Plan plan =
        transfer_only(m, Pattern::all_reduce, Collective::ring, {exchange_of(first(m), 525'000)});
    const auto end_s = [&](costmodel::RingModel model) {
      return sim::simulate(
                 plan, {0}, platform, [](auto&&...) { return 0.0; }, options_of(model))
          .round_end_s[0];
    };
    const double stepwise = end_s(costmodel::RingModel::stepwise);
    CHECK(std::abs(end_s(costmodel::RingModel::fluid) - stepwise) <= 0.01 * stepwise);
  }
}
