// All-reduces over persistent TCP connections in ns-3, and flows that share a port, against fomoe.
#include <algorithm>
#include <limits>

#include "tests/oracles/ns3/judge.hpp"

using namespace fomoe;
using namespace fomoe::oracles;

namespace {

constexpr double kAny = std::numeric_limits<double>::infinity();

}  // namespace

TEST_SUITE_BEGIN("ns3");

TEST_CASE("a ring whose chunks outlast the ramp") {
  // A site's acknowledgements wait in its own uplink behind its data: the ramp's trips get longer.
  for (const Case& c : {Case{"ring of 3", "ring", 1e8, 0.005, 4'000'000, 3},
                        Case{"ring of 4", "ring", 1e8, 0.005, 4'000'000, 4},
                        Case{"ring of 4", "ring", 1e8, 0.025, 4'000'000, 4}}) {
    judge(c, {}, tcp_terms(true), {round_trip_s(c), 0, "acknowledgements wait behind data in the ramp"});
  }
}

TEST_CASE("a ring whose chunks end within the ramp") {
  // Two errors of one round trip each, of opposite sign: the last trip of the ramp is charged whole (late), and
  // a connection that has sent once is taken to be at full speed, though its window has only begun to open.
  for (const Case& c : {Case{"ring of 4, short", "ring", 1e8, 0.05, 400'000, 4},
                        Case{"ring of 4, short", "ring", 1e8, 0.025, 400'000, 4},
                        Case{"ring of 4, short", "ring", 1e9, 0.025, 4'000'000, 4}}) {
    judge(c, {}, tcp_terms(true),
          {2 * round_trip_s(c), round_trip_s(c),
           "late: a ramp's last trip charged whole; early: later steps charged no ramp"});
  }
}

TEST_CASE("a ring among unequal sites") {
  // In bit/s: the 50 Mb/s uplink of the last site is the slowest hop. Its latency is 25 ms.
  const Star star = {{1e8, 2e8, 0.01}, {2e8, 4e8, 0.02}, {5e7, 1e8, 0.005}};
  const Case c{"", "ring", 5e7, 0.03, 4'000'000, 3};
  judge_star("ns-3, ring of 3, unequal, 4 MB", star, c, {}, tcp_terms(true),
             {round_trip_s(c), round_trip_s(c), "acknowledgements wait behind data; ramps of unequal hops"});
}

TEST_CASE("a ring with windows of two pipes: data both ways needs wider ones than fomoe says") {
  // W ÷ RTT is twice the rate, so fomoe sees no limit. But the round trip includes the queue in front of the
  // acknowledgements, which is itself a window long (Zhang, Shenker and Clark 1991, two-way traffic).
  const Case c{"ring of 4, window of two pipes", "ring", 1e8, 0.005, 4'000'000, 4};
  costmodel::NetworkModel network = tcp_terms(true);
  network.tcp_window_bytes = 2 * pipe_bytes(c);
  Tcp tcp;
  tcp.window_bytes = static_cast<long>(2 * pipe_bytes(c));
  judge(c, tcp, network, {kAny, 0, "acknowledgements queue behind data: the round trip is longer than RTT"});
}

TEST_CASE("direct exchange: flows that share an uplink ramp together") {
  // fomoe lets each flow ramp up to the whole port: log2(3) trips more than each needs for its third.
  for (const Case& c : {Case{"direct of 4", "direct", 1e8, 0.005, 4'000'000, 4},
                        Case{"direct of 4", "direct", 1e8, 0.025, 4'000'000, 4},
                        Case{"direct of 4", "direct", 1e9, 0.025, 4'000'000, 4}}) {
    judge(c, {}, tcp_terms(true),
          {round_trip_s(c), (1 + std::log2(3)) * round_trip_s(c),
           "late: each flow is charged the ramp to the whole port, which they share"});
  }
}

TEST_CASE("one site to three, and three to one: the port is shared") {
  for (const char* traffic : {"fan", "fan-in"}) {
    for (const Case& c : {Case{std::string(traffic) == "fan" ? "one to three" : "three to one", traffic, 1e8,
                               0.025, 4'000'000, 4},
                          Case{std::string(traffic) == "fan" ? "one to three" : "three to one", traffic, 1e9,
                               0.005, 4'000'000, 4}}) {
      Tcp tcp;  // not wider: queues of seconds make TCP send again what is only late
      tcp.window_bytes = static_cast<long>(2 * pipe_bytes(c));
      judge(c, tcp, tcp_terms(false),
            {packets_s(c) + delayed_acks_s(c), (1 + std::log2(3)) * round_trip_s(c),
             "late: each flow is charged the ramp to the whole port, which they share"});
    }
  }
}

TEST_CASE("queues of one pipe that drop, under a ring: fomoe is a lower bound") {
  Case c{"ring of 4, Cubic, a queue of one pipe", "ring", 1e8, 0.025, 4'000'000, 4};
  Tcp tcp;
  tcp.kind = "TcpCubic";
  tcp.queue_bytes = pipe_bytes(c);
  judge(c, tcp, tcp_terms(true),
        {kAny, 0, "losses at the end of a chunk wait for a time-out; Linux probes for them (TLP), ns-3 does not"});
}

TEST_SUITE_END();
