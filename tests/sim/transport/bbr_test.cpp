// Tests the probes and the start-up of TCP's BBR, computed by hand. The network has one uplink of 1 MB/s and
// a one-way latency of 50 ms.
#include <doctest/doctest.h>

#include "costmodel/inputs/network_model.hpp"
#include "sim/executor/simulated_run.hpp"
#include "sim/transport/flow_start.hpp"
#include "tests/scenarios.hpp"
#include "tests/sim/transfers.hpp"

using namespace fomoe;
using namespace fomoe::tests;

namespace {

constexpr double kLatency_s = 0.05, kRate = 1e6, kProbe_s = 0.1 + 0.2;

sim::Options bbr() {
  sim::Options options;
  options.network.congestion_control = costmodel::CongestionControl::bbr;
  options.senders = costmodel::Senders::one_by_one;
  return options;
}

// Simulates `times` transfers in sequence from node 0 to node 1, with `think_s` of computation before each.
// Returns the end of the last one.
double end_s(std::int64_t bytes, int times, double think_s, const sim::Options& options) {
  costmodel::Plan plan =
      transfer_only(2, Pattern::point_to_point, Collective::ring, {exchange_of({0, 1}, bytes / 4)});
  costmodel::RoundPlan round = plan.round(0);
  round.ops.insert(round.ops.begin(),
                   {"think", costmodel::Compute{costmodel::Work::whole_step, {0, 1}, 1, 1}, {}});
  round.ops[1].after = {0};
  plan.round = [round](std::int64_t) { return round; };
  const std::vector<std::int64_t> rounds(static_cast<std::size_t>(times), 0);
  return sim::simulate(
             plan, rounds, platforms::uniform(2, kRate, kRate, kLatency_s),
             [=](auto&&...) { return think_s; }, options)
      .round_end_s.back();
}

}  // namespace

TEST_CASE(
    "bbr probes after 10 s of sending: for a round trip and 200 ms, or two round trips, nothing comes") {
  check_close(costmodel::bbr_probe_s(0.1), kProbe_s);
  check_close(costmodel::bbr_probe_s(0.3), 0.6);
  check_close(end_s(9'000'000, 1, 0, bbr()), kLatency_s + 9);
  // 10 s of sending, a probe, 10 s, a probe, 2 s.
  check_close(end_s(22'000'000, 1, 0, bbr()), kLatency_s + 22 + 2 * kProbe_s);
}

TEST_CASE("bbr: a silence does not put off a probe that comes due in it") {
  // Probes are due at 10 s and 22.45 s, when nothing is sent. Each transfer has one probe.
  check_close(end_s(2'000'000, 2, 12, bbr()), 2 * (12 + kLatency_s + 2 + kProbe_s));
  // A short transfer has ended when the probe begins.
  check_close(end_s(50'000, 2, 12, bbr()), 2 * (12 + kLatency_s + 0.05));
}

TEST_CASE("bbr: a probe that comes due while acknowledgements arrive is not put off either") {
  // 200 transfers take 25 ms each, after 50 ms of latency. The probe is due at 10 s, 25 ms before the bytes
  // of one transfer would move.
  check_close(end_s(25'000, 200, 0, bbr()), 200 * (kLatency_s + 0.025) + kProbe_s - 0.025);
}

TEST_CASE("bbr: probes of rounds that are played anew on the same network are those of the first time") {
  const costmodel::Plan plan =
      transfer_only(2, Pattern::point_to_point, Collective::ring, {exchange_of({0, 1}, 3'000'000)});
  const auto played = sim::simulate_each(
      plan, {{{0}}, {{0, 0}}}, platforms::uniform(2, kRate, kRate, kLatency_s), [](auto&&...) { return 0.0; },
      bbr());
  check_close(played[0].round_end_s[0], kLatency_s + 12 + kProbe_s);
  check_close(played[1].round_end_s[0], kLatency_s + 12 + kProbe_s);
  // The second probe begins 10 s after the end of the first one.
  check_close(played[1].round_end_s[1], 2 * (kLatency_s + 12) + 2 * kProbe_s);
}

TEST_CASE("bbr: flows that begin together probe together") {
  const costmodel::Plan plan =
      transfer_only(3, Pattern::point_to_point, Collective::ring,
                    {exchange_of({0, 1}, 2'000'000), exchange_of({1, 2}, 2'000'000)});
  const double both_s = sim::simulate(
                            plan, {0}, platforms::uniform(3, kRate / 2, kRate / 2, kLatency_s),
                            [](auto&&...) { return 0.0; }, bbr())
                            .round_end_s[0];
  check_close(both_s, kLatency_s + 16 + kProbe_s);
}

TEST_CASE("bbr: a run whose every round is executed has probes, a sample of rounds their mean share") {
  costmodel::Scenario scenario = ideal_scenario("diloco", 2);
  scenario.compute = costmodel::GivenStepTime{0.001};
  scenario.network.congestion_control = costmodel::CongestionControl::bbr;
  const auto simulated = [&](sim::RunOptions options) {
    return sim::simulate_scenario(scenario, options).report;
  };
  sim::RunOptions all;
  all.all_rounds = true;
  const costmodel::RunReport every = simulated(all), some = simulated({});
  REQUIRE(every.round.count > 3);
  REQUIRE(every.wall_clock_s < costmodel::kBbrProbeEvery_s);
  scenario.network.congestion_control = costmodel::CongestionControl::loss_based;
  check_close(every.wall_clock_s, simulated(all).wall_clock_s);  // too short for a probe
  CHECK(some.wall_clock_s > every.wall_clock_s * 1.001);
}

TEST_CASE(
    "bbr: where nodes compute for 10 s before they send, every round has a probe, and a sample of them is "
    "enough") {
  costmodel::Scenario scenario = ideal_scenario("diloco", 2);
  scenario.network.congestion_control = costmodel::CongestionControl::bbr;
  sim::RunOptions some;
  some.rounds = 2;
  const double steps = static_cast<double>(scenario.strategy.local_steps);
  scenario.compute = costmodel::GivenStepTime{9.9 / steps};
  CHECK(sim::simulate_scenario(scenario, some).senders == costmodel::Senders::averaged);
  scenario.compute = costmodel::GivenStepTime{10.1 / steps};
  CHECK(sim::simulate_scenario(scenario, some).senders == costmodel::Senders::one_by_one);
}

TEST_CASE("bbr starts 1.8 times faster each round trip, and up to the share that flows get") {
  costmodel::NetworkModel network = bbr().network;
  network.initial_window_bytes = 10e3;
  // The bandwidth-delay product is 100 kB. The windows are 10, 18, 32.4 and 58.32 kB in 4 round trips,
  // together 118.72 kB.
  check_close(costmodel::slow_start_s(network, 0, 4e6, kRate, 0.1), 4 * 0.1 - 0.11872);
  // Bytes sent before widen the window by 0.8 of their number: 10 + 0.8 · 28, as after windows of 10 and 18
  // kB.
  check_close(costmodel::slow_start_s(network, 28e3, 4e6, kRate, 0.1), 2 * 0.1 - (32.4e3 + 58.32e3) / 1e6);
  // Each of two flows gets half of the rate, so its windows are 10, 18 and 32.4 kB.
  check_close(costmodel::slow_start_s(network, 0, 4e6, kRate / 2, 0.1), 3 * 0.1 - 60.4e3 / 0.5e6);
  const std::vector<costmodel::Node> nodes = {{costmodel::NodeKind::worker, 0},
                                              {costmodel::NodeKind::worker, 1}};
  const platforms::Platform two_sites = platforms::uniform(2, kRate, kRate, kLatency_s);
  sim::FlowStart start(nodes, two_sites, network, 0);
  check_close(start.wait_s(0, 1, 4'000'000, 0, {2, 1}, 0), kLatency_s + 3 * 0.1 - 60.4e3 / 0.5e6);
}
