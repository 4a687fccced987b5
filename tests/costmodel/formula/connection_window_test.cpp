// Tests the window of a connection, round trip by round trip, against counts by hand.
#include "costmodel/formula/links/connection_window.hpp"

#include <doctest/doctest.h>

#include "costmodel/formula/closed_form.hpp"
#include "tests/scenarios.hpp"

using namespace fomoe;
using costmodel::ConnectionWindow;
using costmodel::NetworkModel;
using doctest::Approx;

namespace {

constexpr double kRoundTrip_s = 0.1, kRate = 1e8;  // 10 MB fit on the way

NetworkModel from(double window_bytes) {
  NetworkModel network;
  network.initial_window_bytes = window_bytes;
  return network;
}

ConnectionWindow connection(const NetworkModel& network, double most = platforms::kUnlimited) {
  return {network, kRoundTrip_s, most};
}

}  // namespace

TEST_CASE("the window doubles in each round trip until all of the message, or the way, is full") {
  // 10 kB fit into the first window, 70 kB into three: 10 + 20 + 40.
  CHECK(connection(from(1e4)).send_s(1e4, kRate) == Approx(1e4 / kRate));
  CHECK(connection(from(1e4)).send_s(7e4, kRate) == Approx(2 * kRoundTrip_s + 4e4 / kRate));
  // 1, 2, 4 and 8 MB; the next window is larger than the 10 MB that fit on the way.
  CHECK(connection(from(1e6)).send_s(1e9, kRate) == Approx(4 * kRoundTrip_s + (1e9 - 15e6) / kRate));
}

TEST_CASE("a message begins with the window that the one before it has left") {
  ConnectionWindow window = connection(from(1e4));
  (void)window.send_s(7e4, kRate);
  CHECK(window.send_s(8e4, kRate) == Approx(8e4 / kRate));
}

TEST_CASE("an idle connection halves its window for each time-out, down to the first one") {
  NetworkModel network = from(1e4);
  network.idle_restart = true;
  const auto after = [&](double idle_s) {
    ConnectionWindow window = connection(network);
    (void)window.send_s(7e4, kRate);  // the window is now 80 kB
    window.pause(idle_s);
    return window.send_s(8e4, kRate);
  };
  const double at_once = 8e4 / kRate;
  CHECK(after(0.29) == Approx(at_once));
  CHECK(after(0.31) == Approx(kRoundTrip_s + 4e4 / kRate));      // 40 kB, then 40 more
  CHECK(after(0.61) == Approx(2 * kRoundTrip_s + 2e4 / kRate));  // 20 + 40 + 20
  CHECK(after(1000) == Approx(3 * kRoundTrip_s + 1e4 / kRate));  // 10 + 20 + 40 + 10
  network.idle_restart = false;
  CHECK(after(1000) == Approx(at_once));
  network.idle_restart = true;
  network.congestion_control = costmodel::CongestionControl::bbr;
  CHECK(after(1000) == Approx(at_once));
}

TEST_CASE("a receive buffer stops the window, and each full one takes a round trip") {
  // 10, 20, 30, 30 and 10 kB.
  CHECK(connection(from(1e4), 3e4).send_s(1e5, kRate) == Approx(4 * kRoundTrip_s + 1e4 / kRate));
}

TEST_CASE("two thirds of a send buffer are in flight, if the message is larger than the buffer") {
  NetworkModel network = from(1e4);
  network.send_buffer_bytes = 1e6;
  const double small_s = connection(network).send_s(9e5, kRate);
  CHECK(small_s == Approx(6 * kRoundTrip_s + (9e5 - 63e4) / kRate));  // 10 kB · (2⁶ − 1) = 630 kB
  const double long_s = connection(network).send_s(1e9, kRate);
  CHECK(1e9 * kRoundTrip_s / long_s < 1e6 * 2 / 3);
  CHECK(1e9 * kRoundTrip_s / long_s > 1e6 * 2 / 3 * 0.95);  // less what describes the bursts
}

TEST_CASE("closed form: windows add round trips to a transfer, and its first round has more of them") {
  costmodel::Scenario scenario = tests::ideal_scenario("local_sgd", 2);
  scenario.platform = platforms::uniform(2, 1e9, 1e9, 0.05);
  const double ideal_s = costmodel::closed_form(scenario).wall_clock_s;
  scenario.network.initial_window_bytes = 1e6;
  const costmodel::RunReport kept = costmodel::closed_form(scenario);
  // Two messages of half of the model each, one after the other. Only the first one of the run starts slowly.
  ConnectionWindow window(scenario.network, 0.1, platforms::kUnlimited);
  const double half = static_cast<double>(costmodel::count_parameters(scenario.model).total());
  const double first_s = window.send_s(half, 1e9) - half / 1e9;
  REQUIRE(first_s > 0.1);
  CHECK(kept.wall_clock_s == Approx(ideal_s + first_s).epsilon(1e-9));
  // If idle connections start again, that happens in each of the 12 rounds.
  scenario.network.idle_restart = true;
  CHECK(costmodel::closed_form(scenario).wall_clock_s == Approx(ideal_s + 12 * first_s).epsilon(1e-9));
}

TEST_CASE("closed form: windows add nothing without latency, and where they are larger than a transfer") {
  costmodel::Scenario scenario = tests::ideal_scenario("diloco", 3);
  const double ideal_s = costmodel::closed_form(scenario).wall_clock_s;
  scenario.network = costmodel::linux_host();
  scenario.network.bandwidth_efficiency = 1;
  CHECK(costmodel::closed_form(scenario).wall_clock_s == ideal_s);
  scenario.platform = platforms::uniform(3, 1e9, 1e9, 0.05);
  scenario.network = {};
  const double with_latency_s = costmodel::closed_form(scenario).wall_clock_s;
  scenario.network.initial_window_bytes = 1e15;
  CHECK(costmodel::closed_form(scenario).wall_clock_s == Approx(with_latency_s).epsilon(1e-12));
}
