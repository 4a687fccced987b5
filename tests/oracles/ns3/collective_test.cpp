// Compares connections of fomoe that share ports with ns-3: rings, direct exchanges, one site to several.
#include "tests/oracles/ns3/judge.hpp"

using namespace fomoe;
using namespace fomoe::oracles;

TEST_SUITE_BEGIN("ns3");

TEST_CASE("rings and direct exchanges with Reno: acknowledgements wait behind data in deep queues") {
  for (const Case& c : {Case{"ring of 2", "ring", 1e8, 0.005, 4'000'000, 2},
                        Case{"ring of 4", "ring", 1e8, 0.005, 4'000'000, 4},
                        Case{"ring of 4", "ring", 1e8, 0.025, 4'000'000, 4},
                        Case{"ring of 4", "ring", 1e9, 0.025, 40'000'000, 4},
                        Case{"ring of 4, short", "ring", 1e8, 0.05, 400'000, 4},
                        Case{"ring of 4, short", "ring", 1e9, 0.025, 4'000'000, 4},
                        Case{"direct of 4", "direct", 1e8, 0.005, 4'000'000, 4},
                        Case{"direct of 4", "direct", 1e8, 0.025, 4'000'000, 4},
                        Case{"direct of 4", "direct", 1e9, 0.025, 40'000'000, 4}})
    judge_within(c, {}, 0.1, "bursts, behind which acknowledgements wait");
}

TEST_CASE("several to one with Reno: the port is shared, with equal and with unequal latencies") {
  for (const Case& c : {Case{"three to one", "fan-in", 1e8, 0.025, 4'000'000, 4},
                        Case{"three to one", "fan-in", 1e9, 0.005, 4'000'000, 4}})
    judge_within(c, {}, 0.02, "segments and bursts");
  const Star star = {{1e8, 1e8, 0.001}, {1e8, 1e8, 0.002}, {1e8, 1e8, 0.019}, {1e8, 1e8, 0.069}};
  const Case c{"", "fan-in", 1e8, 0.088, 4'000'000, 4};
  const double ns3_s = latest(ns3_transfer(c.traffic, {}, star, c.bytes).end_s);
  judge_star("ns-3, three to one, 3 to 70 ms, 0.1 Gb/s, 4 MB each", star, c, {}, terms_of({}, c, false),
             {0.1 * ns3_s, 0.1 * ns3_s, "which flow fills the queue first"});
}

TEST_CASE("queues that drop under several connections: fomoe, which has no time-outs, is a lower bound") {
  for (const char* kind : {"TcpLinuxReno", "TcpCubic"}) {
    for (Case c : {Case{"ring of 4", "ring", 1e8, 0.025, 4'000'000, 4},
                   Case{"direct of 4", "direct", 1e8, 0.025, 4'000'000, 4},
                   Case{"three to one", "fan-in", 1e8, 0.025, 4'000'000, 4}}) {
      Tcp tcp;
      tcp.kind = kind;
      tcp.queue_bytes = pipe_bytes(c);
      c.name += std::string(", ") + (kind + 3) + ", a queue of one pipe";
      judge(c, tcp, {kAny, 0, "ns-3 waits for time-outs where Linux probes (TLP)"});
    }
  }
}

TEST_SUITE_END();
