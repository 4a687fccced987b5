// Tests the terms of the network model, each enabled alone and computed by hand.
#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <cmath>

#include "costmodel/inputs/network_model.hpp"
#include "sim/executor/simulated_run.hpp"
#include "tests/scenarios.hpp"
#include "tests/sim/transfers.hpp"

using namespace fomoe;
using namespace fomoe::tests;
using costmodel::NetworkModel;

namespace {

double round_s(const costmodel::Plan& plan, const platforms::Platform& platform,
               const sim::Options& options) {
  return sim::simulate(
             plan, {0}, platform, [](auto&&...) { return 0.0; }, options)
      .round_end_s[0];
}

// A plan that sends 4 MB from node 0 to node 1.
costmodel::Plan one_flow() {
  return transfer_only(2, Pattern::point_to_point, Collective::ring, {exchange_of({0, 1}, 1'000'000)});
}
constexpr double kBytes = 4e6;

}  // namespace

TEST_CASE("TCP window: a flow gets streams × window ÷ round trip, and so does each of two") {
  // RTT 2 · 50 ms: 2 · 64 kB ÷ 0.1 s = 1.28 MB/s, on ports of 10 MB/s.
  sim::Options options;
  options.network.tcp_window_bytes = 64e3;
  options.network.streams = 2;
  const auto platform = platforms::uniform(3, 1e7, 1e7, 0.05);
  check_close(round_s(one_flow(), platform, options), 0.05 + kBytes / 1.28e6);
  // Two flows leave node 0. Each has its own cap, so they take as long as one.
  const costmodel::Plan two = transfer_only(3, Pattern::point_to_point, Collective::ring,
                                            {exchange_of({0, 1}, 1'000'000), exchange_of({0, 2}, 1'000'000)});
  check_close(round_s(two, platform, options), 0.05 + kBytes / 1.28e6);
  // If the sum of the caps exceeds the port's rate, the flows share the port: 2 · 4 MB ÷ 2 MB/s.
  check_close(round_s(two, platforms::uniform(3, 2e6, 1e7, 0.05), options), 0.05 + 2 * kBytes / 2e6);
  // A wide window changes nothing.
  options.network.tcp_window_bytes = 64e6;
  check_close(round_s(one_flow(), platform, options), 0.05 + kBytes / 1e7);
}

TEST_CASE("send buffer: a connection has at most two thirds of it in flight") {
  sim::Options options;
  options.network.send_buffer_bytes = 96e3;
  const auto platform = platforms::uniform(3, 1e7, 1e7, 0.05);
  check_close(round_s(one_flow(), platform, options), 0.05 + kBytes / (64e3 / 0.1));
  options.network.streams = 2;
  check_close(round_s(one_flow(), platform, options), 0.05 + kBytes / (2 * 64e3 / 0.1));
  // The narrowest of buffer and window decides.
  options.network.tcp_window_bytes = 32e3;
  check_close(round_s(one_flow(), platform, options), 0.05 + kBytes / (2 * 32e3 / 0.1));
  // An ordinary host has one of 4 MiB: 2/3 · 4 MiB ÷ 0.15 s = 149 Mb/s, whatever the links carry.
  const double linux_bytes_per_s = costmodel::flow_cap_bytes_per_s(costmodel::linux_host(), 0.15);
  CHECK(linux_bytes_per_s * 8 == doctest::Approx(149.13e6).epsilon(1e-4));
}

TEST_CASE("what one connection was measured to carry limits a flow, and replaces the send buffer") {
  sim::Options options;
  auto platform = platforms::uniform(3, 1e7, 1e7, 0.05);
  platform.change_path(0, 1, [](platforms::Path& path) { path.connection_bytes_per_s = 5e5; });
  check_close(round_s(one_flow(), platform, options), 0.05 + kBytes / 5e5);
  options.network.streams = 3;
  check_close(round_s(one_flow(), platform, options), 0.05 + kBytes / 1.5e6);
  options.network.send_buffer_bytes = 96e3;  // alone 0.64 MB/s a connection, more than was measured
  check_close(round_s(one_flow(), platform, options), 0.05 + kBytes / 1.5e6);
  options.network.send_buffer_bytes = 48e3;  // less than was measured, so it cannot have been the sender's
  check_close(round_s(one_flow(), platform, options), 0.05 + kBytes / 1.5e6);
  // Other paths have no such limit.
  const costmodel::Plan back =
      transfer_only(2, Pattern::point_to_point, Collective::ring, {exchange_of({1, 0}, 1'000'000)});
  options.network.send_buffer_bytes.reset();
  check_close(round_s(back, platform, options), 0.05 + kBytes / 1e7);
}

TEST_CASE("loss: a flow gets streams × segment ÷ round trip × √(3 ÷ 2p)") {
  sim::Options options;
  options.network.loss_rate = 0.0015;  // √(1.5 ÷ 0.0015) = √1000
  options.network.segment_bytes = 1000;
  options.network.streams = 4;
  const double cap = 4 * 1000 / 0.1 * std::sqrt(1000.0);  // 1.265 MB/s
  check_close(round_s(one_flow(), platforms::uniform(2, 1e7, 1e7, 0.05), options), 0.05 + kBytes / cap);
}

TEST_CASE("bbr: losses cost what is sent again, and probing a fiftieth on average; no cap by loss") {
  sim::Options options;
  options.network.congestion_control = costmodel::CongestionControl::bbr;
  options.network.loss_rate = 0.01;
  const platforms::Platform raw = platforms::uniform(2, 1e7, 1e7, 0.05);
  const auto effective = costmodel::effective_platform(raw, options.network);
  check_close(round_s(one_flow(), effective, options), 0.05 + kBytes / (1e7 * 0.99 * 0.98));
  // With loss_based the same losses leave 1460 B ÷ 0.1 s · √150 = 179 kB/s.
  options.network.congestion_control = costmodel::CongestionControl::reno;
  check_close(round_s(one_flow(), costmodel::effective_platform(raw, options.network), options),
              0.05 + kBytes / (14600 * std::sqrt(150.0)));
  // The window limits flows of both congestion controls.
  options.network.congestion_control = costmodel::CongestionControl::bbr;
  options.network.tcp_window_bytes = 64e3;
  check_close(round_s(one_flow(), effective, options), 0.05 + kBytes / 640e3);
}

TEST_CASE("buckets: each is a ring of its own after the one before, with its latencies and its overhead") {
  // 4 MB in buckets of 1 MB among 4 sites are 4 calls of 2(M−1) = 6 steps, and a step takes latency + 0.25 MB
  // ÷ 1 MB/s.
  const costmodel::Plan plan =
      transfer_only(4, Pattern::all_reduce, Collective::ring, {exchange_of(first(4), 1'000'000)});
  const auto platform = platforms::uniform(4, 1e6, 1e6, 0.05);
  sim::Options options;
  costmodel::Scenario asked;
  const auto in_buckets = [&](std::int64_t bytes) {
    asked.strategy.bucket_bytes = bytes;
    return costmodel::pieces_of(asked, plan);
  };
  options.pieces = in_buckets(1'000'000);
  check_close(round_s(plan, platform, options), 4 * 6 * (0.05 + 0.25));
  options.network.call_overhead_s = 0.01;
  check_close(round_s(plan, platform, options), 4 * (0.01 + 6 * (0.05 + 0.25)));
  // One flat buffer has one overhead and 6 latencies.
  options.pieces = in_buckets(0);
  check_close(round_s(plan, platform, options), 0.01 + 6 * (0.05 + 1.0));
  // The last bucket holds the rest: 1.5 + 1.5 + 1 MB.
  options.pieces = in_buckets(1'500'000);
  check_close(round_s(plan, platform, options), 3 * 0.01 + 3 * 6 * 0.05 + 6 * kBytes / 4 / 1e6);
}

TEST_CASE("a payload rate: what a node sends in each step is prepared first, at that rate") {
  // 4 MB among 4 sites at 1 MB/s: a ring has 6 steps of 1 MB, and a direct exchange has 2 steps of 3 · 1 MB.
  const auto platform = platforms::uniform(4, 1e6, 1e6, 0.05);
  sim::Options options;
  options.network.payload_bytes_per_s = 5e6;
  for (const auto& [collective, steps] : {std::pair{Collective::ring, 6}, {Collective::direct, 2}}) {
    const costmodel::Plan plan =
        transfer_only(4, Pattern::all_reduce, collective, {exchange_of(first(4), 1'000'000)});
    check_close(round_s(plan, platform, options), steps * 0.05 + 6 * 1.0 + 6 * 1e6 / 5e6);
  }
}

TEST_CASE("jitter: within its bounds, the same for the same seed, different for another") {
  sim::Options options;
  options.network.jitter_s = 0.02;
  options.seed = 1;
  const auto platform = platforms::uniform(2, 1e6, 1e6, 0.05);
  const double without = 0.05 + kBytes / 1e6;
  const double a = round_s(one_flow(), platform, options);
  CHECK(a > without);
  CHECK(a <= without + 0.02);
  CHECK(round_s(one_flow(), platform, options) == a);
  options.seed = 2;
  CHECK(round_s(one_flow(), platform, options) != a);
}

TEST_CASE("background traffic, efficiency and latency factor change the platform that flows see") {
  NetworkModel network;
  network.bandwidth_efficiency = 0.9;
  network.background_share = 0.5;
  network.latency_factor = 3;
  const auto platform = costmodel::effective_platform(platforms::uniform(2, 1000, 2000, 0.01), network);
  CHECK(platform.sites[0].uplink_bytes_per_s == doctest::Approx(450));
  CHECK(platform.sites[1].downlink_bytes_per_s == doctest::Approx(900));
  CHECK(platform.path(0, 1).latency_s == doctest::Approx(0.03));
}

TEST_CASE("terms only ever slow a run down, and never change the bytes") {
  const bool ok = rc::check([] {
    const int sites = *rc::gen::inRange(2, 6);
    costmodel::Scenario scenario = ideal_scenario(*rc::gen::element<std::string>("diloco", "ddp"), sites);
    scenario.strategy.collective = *rc::gen::element(Collective::ring, Collective::direct);
    scenario.strategy.ring_order = costmodel::RingOrder::given;
    for (auto& site : scenario.platform.sites) site.uplink_bytes_per_s = 1e6 * *rc::gen::inRange(1, 50);
    tests::change_each_path(
        scenario.platform, [](platforms::Path& path) { path.latency_s = 0.001 * *rc::gen::inRange(0, 200); });
    const costmodel::RunReport base = sim::simulate_scenario(scenario).report;
    costmodel::Scenario slower = scenario;
    NetworkModel& network = slower.network;
    // Caps are not tested here: if a cap slows one of several flows, the others may end earlier.
    switch (*rc::gen::inRange(0, 3)) {
      case 0:
        network.background_share = 0.3;
        break;
      case 1:
        network.call_overhead_s = 0.01;
        break;
      default:
        network.latency_factor = 2;
        break;
    }
    const costmodel::RunReport changed = sim::simulate_scenario(slower).report;
    RC_ASSERT(changed.wall_clock_s >= base.wall_clock_s * (1 - 1e-9));
    RC_ASSERT(changed.bytes_per_token == base.bytes_per_token);
  });
  CHECK(ok);
}

TEST_CASE("loss: the windows that Reno and CUBIC keep, by their response functions") {
  NetworkModel network;
  network.loss_rate = 1e-4;
  network.congestion_control = costmodel::CongestionControl::reno;
  check_close(costmodel::loss_window_bytes(network, 0.1), 1460 * std::sqrt(15000.0));
  network.congestion_control = costmodel::CongestionControl::cubic;
  // (0.4 · 3.7 ÷ 1.2)^¼ = 1.0538; (0.1 ÷ 10⁻⁴)^¾ = 177.83. Reno would keep 122.5 segments.
  CHECK(costmodel::loss_window_bytes(network, 0.1) == doctest::Approx(1460 * 187.4).epsilon(1e-3));
  // With short round trips CUBIC keeps what Reno would keep.
  check_close(costmodel::loss_window_bytes(network, 0.01), 1460 * std::sqrt(15000.0));
  network.congestion_control = costmodel::CongestionControl::bbr;
  CHECK(std::isinf(costmodel::loss_window_bytes(network, 0.1)));
}

TEST_CASE("a connection has one cap, which concurrent flows of a pair share") {
  // Two transfers of 4 MB from 0 to 1 at the same time, over a window of 64 kB in 0.1 s.
  costmodel::Plan plan = one_flow();
  costmodel::RoundPlan round = plan.round(0);
  round.ops.push_back(round.ops[0]);
  plan.round = [round](std::int64_t) { return round; };
  sim::Options options;
  options.network.tcp_window_bytes = 64e3;
  const platforms::Platform fast = platforms::uniform(2, 1e7, 1e7, 0.05);
  check_close(round_s(plan, fast, options), 0.05 + 2 * kBytes / 640e3);
  options.network.streams = 2;
  check_close(round_s(plan, fast, options), 0.05 + 2 * kBytes / 1280e3);
}
