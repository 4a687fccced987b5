#include <doctest/doctest.h>

#include <cstdio>
#include <functional>
#include "tests/oracles/comparison.hpp"
#include "tests/oracles/ns3/ns3.hpp"

using namespace fomoe;
using namespace fomoe::oracles;

TEST_SUITE_BEGIN("ns3");
TEST_CASE("explore") {
  for (const char* t : {"ring", "direct"}) for (int n : {3, 4}) for (double R : {1e8, 1e9}) for (double L : {0.005, 0.025, 0.05}) for (long b : {400'000L, 4'000'000L}) {
    if ((b==400000 && R==1e9) || (R == 1e9 && L == 0.05)) continue;
    costmodel::NetworkModel none, one, acks;
    none.bandwidth_efficiency = one.bandwidth_efficiency = kPayload / kWire;
    acks.bandwidth_efficiency = kPayload / (kWire + kAcknowledgement/2);
    one.initial_window_bytes = acks.initial_window_bytes = kInitialWindow;
    auto s = equal_star(n, R, L);
    auto a = ns3_transfer(t, {}, s, b);
    auto q = ns3_transfer(t, {"TcpCubic", R / 8 * 2 * L}, s, b);
    auto f = [&](auto& m) { return latest(fomoe_transfer(t, s, b, m)); };
    std::printf("%s n=%d R=%g L=%g b=%ld: ns3 %.4f cubic-bdp %.4f (drop %ld) | fomoe none %.4f slow %.4f acks %.4f %+.1f%%\n", t, n, R, L, b, latest(a.end_s), latest(q.end_s), q.dropped, f(none), f(one), f(acks), 100*(f(acks)/latest(a.end_s)-1));
    std::fflush(stdout);
  }
}
TEST_SUITE_END();
