// Tests the times of BBR's probes for the round trip, computed by hand with round trips of 0.1 s.
#include "sim/transport/probe_clock.hpp"

#include <doctest/doctest.h>

#include <map>
#include <vector>

#include "tests/sim/transfers.hpp"

using namespace fomoe;
using namespace fomoe::tests;
using sim::ProbeClock;

namespace {

constexpr double kRoundTrip_s = 0.1, kProbe_s = 0.3, kSetUp_s = ProbeClock::kSetUp_round_trips * kRoundTrip_s;
const ProbeClock::Pair kPair{0, 1};

struct Path {
  explicit Path(double drawn) : draw(drawn) {}
  double draw;
  double now_s = 0;
  std::multimap<double, std::function<void()>> timers;
  std::vector<double> probes_s;  // start times of the probes
  bool open = true;
  ProbeClock clock{{[this] { return now_s; },
                    [this](double delay_s, std::function<void()> call) {
                      timers.emplace(now_s + delay_s, std::move(call));
                    },
                    [](ProbeClock::Pair) { return kRoundTrip_s; },
                    [this](ProbeClock::Pair, std::uint64_t) { return draw; },
                    [this](ProbeClock::Pair, bool is) {
                      open = is;
                      if (!is) probes_s.push_back(now_s);
                    }}};

  void until(double end_s) {
    while (!timers.empty() && timers.begin()->first <= end_s) {
      now_s = timers.begin()->first;
      const auto call = std::move(timers.begin()->second);
      timers.erase(timers.begin());
      call();
    }
    now_s = end_s;
  }
  void send(double for_s) {
    clock.flow_began(kPair);
    until(now_s + for_s);
    clock.flow_ended(kPair);
  }
};

constexpr double kNever = 1 - 1e-9;  // a draw with which a round trip never counts as the shortest

}  // namespace

TEST_CASE("probes: 10 s after the set-up, and after each other") {
  Path path(kNever);
  path.send(30);
  REQUIRE(path.probes_s.size() == 3);
  check_close(path.probes_s[0], 10 - kSetUp_s);
  check_close(path.probes_s[1], 20 - kSetUp_s + kProbe_s);
  check_close(path.probes_s[2], 30 - kSetUp_s + 2 * kProbe_s);
  CHECK(path.open);
}

TEST_CASE("probes: a round trip after a silence that is the shortest so far puts them off") {
  Path path(0);  // a draw with which every round trip counts as the shortest
  for (int i = 0; i < 20; ++i) {
    path.until(2 * i);
    path.send(1);
  }
  CHECK(path.probes_s.empty());
  path.until(40);
  path.send(12);  // the estimate dates from half a round trip before the first byte
  REQUIRE(path.probes_s.size() == 1);
  check_close(path.probes_s[0], 50 - kRoundTrip_s / 2);
}

TEST_CASE("probes: the second round trip is the shortest by 3 ÷ 4, the third by 1 ÷ 2") {
  const auto first_probe_s = [](double draw) {
    Path path(draw);
    path.send(1);
    path.until(3);
    path.send(20);
    return path.probes_s.at(0);
  };
  check_close(first_probe_s(0.49), 3 + 10 - kRoundTrip_s / 2);
  check_close(first_probe_s(0.51), 10 - kRoundTrip_s / 2);
  check_close(first_probe_s(0.74), 10 - kRoundTrip_s / 2);
  check_close(first_probe_s(0.76), 10 - kSetUp_s);
}

TEST_CASE("probes: after one the next silence tells") {
  Path path(kNever);
  path.send(10);
  REQUIRE(path.probes_s.size() == 1);
  path.until(12);
  path.send(10.1);
  REQUIRE(path.probes_s.size() == 2);
  check_close(path.probes_s[1], 12 + 10 - kRoundTrip_s / 2);
}

TEST_CASE("probes: transfers that follow within a round trip tell nothing") {
  Path path(0);
  path.until(1);
  for (int i = 0; i < 200; ++i) {
    path.send(0.05);
    path.until(path.now_s + 0.05);
  }
  REQUIRE(path.probes_s.size() == 1);
  CHECK(path.probes_s[0] < 11.01);
}

TEST_CASE("probes: one that comes due in a silence begins when the next bytes are acknowledged") {
  for (const double send_s : {0.05, 1.0}) {
    Path path(0);
    path.send(1);
    path.until(15);
    path.send(send_s);
    path.until(20);
    REQUIRE(path.probes_s.size() == 1);
    check_close(path.probes_s[0], 15 + kRoundTrip_s);
  }
}
