// Compares fomoe with ns-3 for one TCP connection: efficiency, slow start, windows, and queues that drop
// packets.
#include <limits>

#include "tests/oracles/ns3/judge.hpp"

using namespace fomoe;
using namespace fomoe::oracles;

namespace {

constexpr double kAny = std::numeric_limits<double>::infinity();

const Case kLong[] = {{"one transfer", "bulk", 1e8, 0.005, 10'000'000},
                      {"one transfer", "bulk", 1e8, 0.025, 10'000'000},
                      {"one transfer", "bulk", 1e8, 0.1, 10'000'000},
                      {"one transfer", "bulk", 1e9, 0.005, 10'000'000},
                      {"one transfer", "bulk", 1e9, 0.025, 10'000'000}};

}  // namespace

TEST_SUITE_BEGIN("ns3");

TEST_CASE("a transfer that outlasts its ramp: fomoe's formula is exact but for packets") {
  for (Case c : kLong) {
    c.name += ", every segment acknowledged";
    Tcp tcp;
    tcp.segments_an_ack = 1;
    judge(c, tcp, tcp_terms(false), {packets_s(c), 0, "segments are stored and forwarded, a fluid is not"});
  }
}

TEST_CASE("a transfer that outlasts its ramp, with delayed acknowledgements") {
  for (const Case& c : kLong) {
    judge(c, {}, tcp_terms(false),
          {packets_s(c) + delayed_acks_s(c), 0, "a delayed acknowledgement takes a tenth off the ramp"});
  }
}

TEST_CASE("with all terms off fomoe is a lower bound") {
  for (Case c : kLong) {
    c.name += ", all terms off";
    judge(c, {}, {}, {kAny, 0, "headers and slow start are left out"});
  }
}

TEST_CASE("a transfer that ends within its ramp") {
  for (const Case& c : {Case{"one transfer, short", "bulk", 1e8, 0.025, 400'000},
                        Case{"one transfer, short", "bulk", 1e8, 0.05, 400'000},
                        Case{"one transfer, short", "bulk", 1e9, 0.005, 400'000},
                        Case{"one transfer, short", "bulk", 1e9, 0.025, 4'000'000}}) {
    judge(c, {}, tcp_terms(false),
          {packets_s(c) + delayed_acks_s(c), 0, "packets, and delayed acknowledgements in the ramp"});
  }
}

TEST_CASE("a window: whole segments, of which two wait for their acknowledgement, in bursts") {
  for (const long window : {65'536L, 262'144L}) {
    for (const double latency_s : {0.01, 0.05}) {
      const Case c{"window of " + std::to_string(window / 1024) + " KiB", "bulk", 1e8, latency_s, 5'000'000};
      Tcp tcp;
      tcp.window_bytes = window;
      costmodel::NetworkModel network = tcp_terms(false);
      // The cost of waiting segments is computed with fomoe itself, with a window that is smaller by two
      // segments.
      const Star star = equal_star(2, c.bits_per_s, c.latency_s);
      network.tcp_window_bytes = static_cast<double>(window) - 2 * kPayload;
      const double smaller_s = latest(fomoe_transfer("bulk", star, c.bytes, network));
      network.tcp_window_bytes = static_cast<double>(window);
      const double waiting_s = smaller_s - latest(fomoe_transfer("bulk", star, c.bytes, network));
      judge(c, tcp, network,
            {waiting_s + packets_s(c) + delayed_acks_s(c), round_trip_s(c),
             "two segments wait for their acknowledgement; a window leaves in a burst"});
    }
  }
}

TEST_CASE("an open connection after 2 s of silence: ns-3 keeps its window, as fomoe without idle_restart") {
  const Case c{"twice, 2 s apart", "again", 1e8, 0.025, 4'000'000};
  judge(c, {}, tcp_terms(false),
        {packets_s(c) + delayed_acks_s(c), 0,
         "as above; Linux would start slowly again, ns-3 has no such rule"});
}

TEST_CASE("queues that drop: fomoe is a lower bound") {
  // fomoe does not model the cost of losses. Neither Reno nor Cubic is always the faster one.
  for (const double pipes : {1.0, 0.25}) {
    for (const char* kind : {"TcpLinuxReno", "TcpCubic"}) {
      for (const long bytes : {4'000'000L, 10'000'000L}) {
        Case c{std::string(kind + 3) + ", a queue of " + (pipes == 1 ? "one pipe" : "¼ pipe"), "bulk", 1e8,
               0.025, bytes};
        Tcp tcp;
        tcp.kind = kind;
        tcp.queue_bytes = pipes * pipe_bytes(c);
        const Star star = equal_star(2, c.bits_per_s, c.latency_s);
        CHECK(ns3_transfer(c.traffic, tcp, star, c.bytes).dropped > 0);
        judge(c, tcp, tcp_terms(false), {kAny, 0, "the ramp overshoots pipe and queue: losses"});
      }
    }
  }
}

TEST_SUITE_END();
