// Compares one connection of fomoe with ns-3: slow start, windows, silence, and queues that drop packets.
#include "tests/oracles/ns3/judge.hpp"

using namespace fomoe;
using namespace fomoe::oracles;

namespace {

const Case kLong[] = {{"one transfer", "bulk", 1e8, 0.005, 10'000'000},
                      {"one transfer", "bulk", 1e8, 0.025, 10'000'000},
                      {"one transfer", "bulk", 1e8, 0.1, 10'000'000},
                      {"one transfer", "bulk", 1e9, 0.005, 10'000'000},
                      {"one transfer", "bulk", 1e9, 0.025, 40'000'000}};
const Case kShort[] = {{"one transfer, short", "bulk", 1e8, 0.025, 400'000},
                       {"one transfer, short", "bulk", 1e8, 0.05, 400'000},
                       {"one transfer, short", "bulk", 1e9, 0.005, 400'000},
                       {"one transfer, short", "bulk", 1e9, 0.025, 4'000'000}};

}  // namespace

TEST_SUITE_BEGIN("ns3");

TEST_CASE("one transfer, longer and shorter than its slow start, with Reno, CUBIC and BBR") {
  for (const char* kind : {"TcpLinuxReno", "TcpCubic", "TcpBbr"}) {
    Tcp tcp;
    tcp.kind = kind;
    for (const auto& cases : {std::vector<Case>(std::begin(kLong), std::end(kLong)),
                              std::vector<Case>(std::begin(kShort), std::end(kShort))}) {
      for (Case c : cases) {
        c.name += std::string(", ") + (kind + 3);
        // BBR leaves the start-up after three round trips in which the rate did not grow, and then empties
        // the queue.
        const double phases_s = tcp.kind == "TcpBbr" ? 0.5 * round_trip_s(c) : 0;
        judge(c, tcp,
              {packets_s(c) + delayed_acks_s(c) + phases_s, bursts_s(c) + phases_s,
               "segments and delayed acknowledgements in ns-3, bursts in fomoe"});
      }
    }
  }
}

TEST_CASE("one transfer in which every segment is acknowledged") {
  Tcp tcp;
  tcp.segments_an_ack = 1;
  for (Case c : kLong) {
    c.name += ", every segment acknowledged";
    judge(c, tcp, {packets_s(c), bursts_s(c) + delayed_acks_s(c), "fomoe acknowledges bursts"});
  }
}

TEST_CASE("with all terms off fomoe is a lower bound") {
  for (Case c : kLong) {
    c.name += ", all terms off";
    judge_star("ns-3, " + title(c), equal_star(2, c.bits_per_s, c.latency_s), c, {}, {},
               {kAny, 0, "headers and slow start are left out"});
  }
}

TEST_CASE("a receive window: whole segments, of which two wait for their acknowledgement") {
  for (const long window : {65'536L, 262'144L}) {
    for (const double latency_s : {0.01, 0.05}) {
      const Case c{"window of " + std::to_string(window / 1024) + " KiB", "bulk", 1e8, latency_s, 5'000'000};
      Tcp tcp;
      tcp.window_bytes = window;
      // Two segments of each window wait, so that ns-3 sends less in each round trip.
      const double trips = static_cast<double>(c.bytes) / static_cast<double>(window);
      const double waiting_s = trips * round_trip_s(c) * 2 * kPayload / static_cast<double>(window);
      // In each round trip, fomoe stores and forwards a burst at two links. With GSO, emulated links do too,
      // and real ones do not.
      const double stored_s = trips * 2 * 65536 * 8 / c.bits_per_s;
      judge(c, tcp,
            {waiting_s + packets_s(c) + delayed_acks_s(c), stored_s + bursts_s(c),
             "two segments wait in ns-3; in fomoe each link passes on whole bursts"});
    }
  }
}

TEST_CASE("an open connection after 2 s of silence: ns-3 keeps its window, as fomoe without idle_restart") {
  const Case c{"twice, 2 s apart", "again", 1e8, 0.025, 4'000'000};
  judge(c, {},
        {packets_s(c) + delayed_acks_s(c), 2 * bursts_s(c),
         "as above; Linux would start slowly again, ns-3 has no such rule"});
}

TEST_CASE("queues that drop: what losses cost one connection") {
  for (const double pipes : {1.0, 0.25}) {
    for (const char* kind : {"TcpLinuxReno", "TcpCubic"}) {
      for (Case c : kLong) {
        Tcp tcp;
        tcp.kind = kind;
        tcp.queue_bytes = pipes * pipe_bytes(c);
        if (tcp.queue_bytes < 262'144) continue;  // fomoe's queues have room for so much at least
        c.name += std::string(", ") + (kind + 3) + ", a queue of " + (pipes == 1 ? "one pipe" : "1/4 pipe");
        judge_within(c, tcp, 0.2, "recovery in ns-3 and in fomoe; ns-3's HyStart reacts to longer delays");
      }
    }
  }
}

TEST_SUITE_END();
