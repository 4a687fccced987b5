// Tests messages over simulated connections against results of others: formulas of RFCs and papers.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "sim/executor/simulated_run.hpp"
#include "sim/tcp/tcp_network.hpp"
#include "tests/scenarios.hpp"
#include "tests/sim/transfers.hpp"

using namespace fomoe;
using namespace fomoe::tests;
using costmodel::CongestionControl;
using costmodel::NetworkModel;

namespace {

double round_s(const costmodel::Plan& plan, const platforms::Platform& platform,
               const sim::Options& options) {
  return sim::simulate(
             plan, {0}, platform, [](auto&&...) { return 0.0; }, options)
      .round_end_s[0];
}

costmodel::Plan one_message(double bytes) {
  return transfer_only(2, Pattern::point_to_point, Collective::ring,
                       {exchange_of({0, 1}, static_cast<std::int64_t>(bytes / 4))});
}

double one_message_s(double bytes, double bytes_per_s, double latency_s, const sim::Options& options) {
  return round_s(one_message(bytes), platforms::uniform(2, bytes_per_s, bytes_per_s, latency_s), options);
}

}  // namespace

TEST_CASE("slow start: the first bytes of a connection take the round trips that RFC 5681 gives") {
  // The window doubles from 14480 B: after k round trips, (2ᵏ − 1) · 14480 B have left.
  const sim::Options options = linux_options(CongestionControl::reno);
  for (int trips = 0; trips < 6; ++trips) {
    const double bytes = 0.95 * (std::exp2(trips + 1) - 1) * 14480;
    const double expected_s = trips * 0.1 + 0.05;  // the last window arrives after half a round trip
    CHECK(one_message_s(bytes, 1e10, 0.05, options) == doctest::Approx(expected_s).epsilon(0.06));
  }
}

TEST_CASE("a long message fills its link, whatever the congestion control") {
  for (const auto control : {CongestionControl::cubic, CongestionControl::reno, CongestionControl::bbr}) {
    CAPTURE(costmodel::to_string(control));
    const double bytes = 50e6, ideal_s = bytes / 1e7;
    CHECK(one_message_s(bytes, 1e7, 0.01, linux_options(control)) > ideal_s);
    CHECK(one_message_s(bytes, 1e7, 0.01, linux_options(control)) < 1.06 * ideal_s);
  }
}

TEST_CASE("a send buffer limits a connection to about 2/3 of it in each round trip; more streams help") {
  sim::Options options = linux_options(CongestionControl::reno);
  options.network.send_buffer_bytes = 1e6;
  const double bytes = 100e6;
  const double one_s = one_message_s(bytes, 1e8, 0.05, options);
  CHECK(one_s > bytes / (0.75e6 / 0.1));
  CHECK(one_s < bytes / (0.55e6 / 0.1));
  options.network.streams = 4;
  CHECK(one_message_s(bytes, 1e8, 0.05, options) == doctest::Approx(one_s / 4).epsilon(0.1));
}

TEST_CASE(
    "lines that stand for several connections: twenty carry what twenty times the buffer lets one carry") {
  for (int streams = 1; streams < 40; ++streams) {
    int all = 0;
    for (int line = 0; line < sim::TcpNetwork::lines(streams); ++line)
      all += sim::TcpNetwork::alike(streams, line);
    CHECK(all == streams);
  }
  // Without latencies that differ, as many connections as lines or more share a link in the same way.
  sim::Options options = linux_options(CongestionControl::reno);
  options.network.send_buffer_bytes = 1e6;
  const double bytes = 40e6, one_s = one_message_s(bytes, 1e9, 0.05, options);
  options.network.streams = 20;
  CHECK(one_message_s(20 * bytes, 1e9, 0.05, options) == doctest::Approx(one_s).epsilon(0.02));
  // On a link that they fill, the link decides.
  CHECK(one_message_s(200e6, 1e7, 0.01, options) == doctest::Approx(20).epsilon(0.03));
}

TEST_CASE("loss by chance: Reno carries what Mathis et al. 1997 give, within their 15 %") {
  sim::Options options = linux_options(CongestionControl::reno);
  for (const double loss : {1e-3, 1e-4}) {
    CAPTURE(loss);
    options.network.loss_rate = loss;
    const double rate = 1448 / 0.1 * std::sqrt(1.5 / loss), bytes = 200 * rate;
    CHECK(one_message_s(bytes, 1e9, 0.05, options) == doctest::Approx(bytes / rate).epsilon(0.15));
  }
}

TEST_CASE("a full queue in a router: CUBIC and BBR keep the link busy, and no byte is lost for good") {
  for (const auto control : {CongestionControl::cubic, CongestionControl::bbr}) {
    CAPTURE(costmodel::to_string(control));
    sim::Options options = linux_options(control);
    options.network.uplink_queue = costmodel::UplinkQueue::router;
    const double bytes = 400e6;
    const double seconds = one_message_s(bytes, 1e7, 0.04, options);
    CHECK(seconds > bytes / 1e7);
    CHECK(seconds < 1.12 * bytes / 1e7);
  }
}

TEST_CASE("BBR measures the round trip for 0.2 s in every 10 s, and knows the rate of the path afterwards") {
  // Cardwell et al. 2016: at most 2 % of the time. 0.2 s are 20 round trips here, and rates are forgotten
  // after 10; each time, the pipe drains and fills again, which takes fewer than ten round trips.
  const sim::Options options = linux_options(CongestionControl::bbr);
  const auto time_s = [&](double bytes) { return one_message_s(bytes, 1e8, 0.005, options); };
  const double usual_s = time_s(800e6) - time_s(700e6);  // of 100 MB
  const double before_s = time_s(900e6), after_s = time_s(1900e6), twice_s = time_s(2900e6);
  for (const double more_s : {after_s - before_s, twice_s - after_s}) {
    CHECK(more_s - 10 * usual_s > 0.15);
    CHECK(more_s - 10 * usual_s < 0.2 + 10 * 0.01);
  }
}

TEST_CASE("BBR over several connections: each measures the round trip at a time of its own") {
  // The trainer opens each connection of a pair ten round trips after the one before, here 0.8 s. The parts
  // of a message wait for the slowest connection, so that each of eight pauses holds up a round.
  const auto slow_rounds = [](int streams) {
    sim::Options options = linux_options(CongestionControl::bbr);
    options.network.streams = streams;
    const auto ends_s = sim::simulate(
                            one_message(2e6), std::vector<std::int64_t>(60),
                            platforms::uniform(2, 1e7, 1e7, 0.04), [](auto&&...) { return 0.0; }, options)
                            .round_end_s;
    int slow = 0;
    for (std::size_t i = 5; i < ends_s.size(); ++i) slow += ends_s[i] - ends_s[i - 1] > 0.35 ? 1 : 0;
    return slow;
  };
  CHECK(slow_rounds(1) <= 2);
  CHECK(slow_rounds(8) >= 8);
}

TEST_CASE("in a router's queue, acknowledgements wait behind the data of the other direction") {
  // Both sites send 1 MB at once. In slow start each waits for acknowledgements, which the other's data
  // delay.
  sim::Options options = linux_options(CongestionControl::reno);
  options.network.queue_bdp = 8;
  const auto both =
      transfer_only(2, Pattern::all_to_all_broadcast, Collective::direct, {exchange_of({0, 1}, 1'000'000)});
  const platforms::Platform platform = platforms::uniform(2, 4e6, 4e6, 0.02);
  options.network.uplink_queue = costmodel::UplinkQueue::host;
  const double host_s = round_s(both, platform, options);
  options.network.uplink_queue = costmodel::UplinkQueue::router;
  CHECK(round_s(both, platform, options) > host_s + 0.02);
}

TEST_CASE("flows of one host share its uplink; together they take as long as their bytes") {
  const auto plan = transfer_only(3, Pattern::point_to_point, Collective::ring,
                                  {exchange_of({0, 1}, 5'000'000), exchange_of({0, 2}, 5'000'000)});
  platforms::Platform platform = platforms::uniform(3, 1e7, 1e8, 0.01);
  CHECK(round_s(plan, platform, linux_options()) == doctest::Approx(4.0).epsilon(0.04));
  platform.set_latency(0, 2, 0.05);
  platform.set_latency(2, 0, 0.05);
  CHECK(round_s(plan, platform, linux_options()) == doctest::Approx(4.0).epsilon(0.06));
}

TEST_CASE("a ring: receives are posted one step ahead, so no step waits for the receiver's notice") {
  const auto plan =
      transfer_only(4, Pattern::all_reduce, Collective::ring, {exchange_of(first(4), 1'000'000)});
  sim::Options options = linux_options(CongestionControl::reno);
  options.network.initial_window_bytes = 4e6;  // no slow start
  const double seconds = round_s(plan, platforms::uniform(4, 1e7, 1e7, 0.05), options);
  // 6 steps of 1 MB: 0.1 s and a latency each. A notice in each would add 6 · 0.05 s.
  CHECK(seconds > 6 * 0.15);
  CHECK(seconds < 6 * 0.15 + 0.15);
}

TEST_CASE(
    "a ring over latencies that differ: announcements further ahead, and no step waits for the longest one") {
  const auto plan = transfer_only(4, Pattern::all_reduce, Collective::ring, {exchange_of(first(4), 4'000)});
  sim::Options options = linux_options(CongestionControl::reno);
  // One far hop, of four. What a ring with these latencies needs was found with a loop over steps and nodes:
  // a message departs when the sender's step has begun and the receiver's announcement has arrived.
  platforms::Platform platform = platforms::uniform(4, 1e9, 1e9, 0.01);
  platform.set_latency(2, 3, 0.1);
  platform.set_latency(3, 2, 0.1);
  const auto in_turns = [](int ahead) {
    constexpr int kNodes = 4, kSteps = 6;
    const double latency[kNodes] = {0.01, 0.01, 0.1, 0.01};  // of the hop from that node
    std::vector<std::vector<double>> begins(kSteps + 1, std::vector<double>(kNodes, 0.0));
    for (int step = 0; step < kSteps; ++step) {
      for (int node = 0; node < kNodes; ++node) {
        const int next = (node + 1) % kNodes;
        const double announced = (step < ahead ? 0 : begins[step - ahead][next]) + latency[node];
        const double departs = std::max(begins[step][node], announced);
        begins[step + 1][next] = std::max(begins[step][next], departs + latency[node]);
      }
    }
    return *std::max_element(begins.back().begin(), begins.back().end());
  };
  for (const int ahead : {1, 2, 4}) {
    CAPTURE(ahead);
    options.network.receives_ahead = ahead;
    CHECK(round_s(plan, platform, options) == doctest::Approx(in_turns(ahead)).epsilon(0.02));
  }
  CHECK(in_turns(4) < 0.8 * in_turns(1));
}

TEST_CASE("an outage stops a message until the link is up again; a link that stays down is refused") {
  using Link = platforms::LinkChange::Link;
  platforms::Platform platform = platforms::uniform(2, 1e7, 1e7, 0.01);
  const double usual_s = round_s(one_message(50e6), platform, linux_options());
  platform.changes = {rate_change(Link::uplink, 0, 0, 1, 0), rate_change(Link::uplink, 0, 0, 61, 1e7)};
  const double cut_s = round_s(one_message(50e6), platform, linux_options());
  CHECK(cut_s == doctest::Approx(usual_s + 60).epsilon(0.01));
  platform.changes.pop_back();
  CHECK_THROWS_WITH(round_s(one_message(50e6), platform, linux_options()),
                    doctest::Contains("permanently down"));
}

TEST_CASE("the same seed gives the same answer; every byte of the plan is sent once") {
  costmodel::Scenario scenario = ideal_scenario("diloco", 4);
  scenario.model.d_model = 64;
  scenario.model.d_expert = 64;
  scenario.platform = platforms::uniform(4, 1e7, 1e7, 0.03);
  const costmodel::RunReport ideal = sim::simulate_scenario(scenario).report;
  scenario.network = costmodel::linux_host();
  const costmodel::RunReport one = sim::simulate_scenario(scenario).report;
  const costmodel::RunReport other = sim::simulate_scenario(scenario).report;
  CHECK(one.wall_clock_s == other.wall_clock_s);
  CHECK(one.bytes_per_token == ideal.bytes_per_token);
  REQUIRE(one.wall_clock_range_s.has_value());
  CHECK(one.wall_clock_range_s->low <= one.wall_clock_s);
  CHECK(one.wall_clock_range_s->high >= one.wall_clock_s);
}
