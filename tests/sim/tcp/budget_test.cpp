// Tests when the windows of connections are simulated: a budget of bursts, whose size depends on rates.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "sim/executor/simulated_run.hpp"
#include "tests/scenarios.hpp"

using namespace fomoe;

namespace {

/// Whether the answer says that windows were left out, for a payload of that many bytes.
bool leaves_windows_out(const std::string& method, double rate_bytes_per_s, std::int64_t most_flows) {
  costmodel::Scenario scenario = tests::ideal_scenario(method, 3);
  for (platforms::Site& site : scenario.platform.sites)
    site.uplink_bytes_per_s = site.downlink_bytes_per_s = rate_bytes_per_s;
  scenario.network.initial_window_bytes = 14480;
  sim::RunOptions options;
  options.rounds = 5;
  options.most_flows = most_flows;
  const auto notes = sim::simulate_scenario(scenario, options).report.notes;
  return std::any_of(notes.begin(), notes.end(), [](const std::string& note) {
    return note.find("not simulated one by one") != std::string::npos;
  });
}

}  // namespace

TEST_CASE("slow connections send smaller bursts, which count towards the limit") {
  constexpr std::int64_t kMost = 30'000;
  CHECK(!leaves_windows_out("diloco", 125e6, kMost));
  CHECK(leaves_windows_out("diloco", 125e3, kMost));
}

TEST_CASE("the rounds of asynchronous methods count their transfers, although single ones may send nothing") {
  // At 125 kB/s, a transfer of 732 MB takes longer than all steps of the run at the server's site, so that
  // each of the two other sites has one cycle in 12 rounds. The mean round has 4/12 of a transfer, in bursts
  // of two segments, and eight bursts count as one flow: 4/12 · 732e6/2896/8 = 10,500. At 125 MB/s the two
  // sites have about 6 cycles each, in bursts of more than 16 segments: less than 24/12 · 732e6/23168/8 =
  // 7,900.
  constexpr std::int64_t kMost = 9'000;
  CHECK(!leaves_windows_out("async_diloco", 125e6, kMost));
  CHECK(leaves_windows_out("async_diloco", 125e3, kMost));
}

TEST_CASE("too many bytes for windows: links carry what they carry with windows in a shorter round") {
  // Three sites send to each other at once behind routers whose queues are short, so that windows overflow
  // them. The exact answer is that of all windows.
  costmodel::Scenario scenario = tests::ideal_scenario("diloco", 3);
  scenario.strategy.collective = costmodel::Collective::direct;
  scenario.platform = platforms::uniform(3, 25e6, 25e6, 0.01);
  scenario.network = costmodel::linux_host();
  scenario.network.congestion_control = costmodel::CongestionControl::reno;
  scenario.network.uplink_queue = costmodel::UplinkQueue::router;
  scenario.network.queue_bdp = 0.3;
  const auto round_s = [&](std::int64_t most_flows) {
    const costmodel::RunReport report =
        sim::simulate_scenario(scenario, {.rounds = 1, .most_flows = most_flows}).report;
    return report.round.communication_s;
  };
  const double exact_s = round_s(10'000'000), shorter_s = round_s(30000);
  scenario.network.initial_window_bytes.reset();
  const double without_s = round_s(6'000);
  CHECK(without_s < 0.9 * exact_s);
  CHECK(std::abs(shorter_s - exact_s) < 0.5 * (exact_s - without_s));
}
