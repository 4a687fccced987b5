// Tests the bandwidth estimates of BBR senders, computed by hand with uplinks of 100 MB/s and round trips of
// 0.1 s.
#include "sim/transport/sender_rates.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <limits>
#include <map>

#include "sim/executor/simulate.hpp"
#include "tests/sim/transfers.hpp"

using namespace fomoe;
using namespace fomoe::tests;
using sim::SenderRates;
using Pair = SenderRates::Pair;

namespace {

constexpr double kRoundTrip_s = 0.1, kUplink = 1e8;

// A test double of the network: a clock, and uplinks that share their rate equally among senders up to the
// senders' limits.
struct Links {
  double now_s = 0;
  std::multimap<double, std::function<void()>> timers;
  std::map<Pair, double> delivered, limit;
  std::map<Pair, bool> sends;
  std::map<Pair, double> draws;
  double uplink = kUplink, round_trip_s = kRoundTrip_s;
  SenderRates rates{{[this] { return now_s; },
                     [this](double delay_s, std::function<void()> call) {
                       timers.emplace(now_s + delay_s, std::move(call));
                     },
                     [this](Pair) { return round_trip_s; }, [this](int) { return uplink; },
                     [this](Pair pair) { return draws[pair]; }, [this](Pair pair) { return delivered[pair]; },
                     [](Pair pair) { return pair; },
                     [this](Pair pair, double bytes_per_s) { limit[pair] = bytes_per_s; }}};

  double limit_of(Pair pair) const {
    const auto found = limit.find(pair);
    return found == limit.end() ? std::numeric_limits<double>::infinity() : found->second;
  }
  double rate(Pair pair) {
    if (!sends[pair]) return 0;
    double left = uplink;
    int equal = 0;
    for (const auto& [other, does] : sends) {
      if (!does || other.first != pair.first) continue;
      if (limit_of(other) < uplink)
        left -= limit_of(other);
      else
        ++equal;
    }
    return limit_of(pair) < uplink ? limit_of(pair) : left / equal;
  }
  void until(double end_s) {
    while (now_s < end_s) {
      const double next_s = timers.empty() ? end_s : std::min(end_s, timers.begin()->first);
      for (auto& [pair, bytes] : delivered) bytes += rate(pair) * (next_s - now_s);
      now_s = next_s;
      while (!timers.empty() && timers.begin()->first <= now_s + 1e-12) {
        const auto call = std::move(timers.begin()->second);
        timers.erase(timers.begin());
        call();
      }
    }
  }
  void begin(Pair pair) {
    delivered[pair] += 0;
    rates.flow_began(pair);
    sends[pair] = true;
  }
  void end(Pair pair) {
    rates.flow_ended(pair);
    sends[pair] = false;
  }
  // Two senders send from now until end_s, and each gets half of the uplink.
  void share(Pair one, Pair other, double end_s) {
    begin(one);
    begin(other);
    until(end_s);
    end(one);
    end(other);
  }
};

const Pair kOne{0, 1}, kOther{0, 2};

}  // namespace

TEST_CASE("bbr: one alone, and two that begin and end together, have all that the link carries") {
  Links links;
  links.begin(kOne);
  links.until(20);
  check_close(links.delivered[kOne], 20 * kUplink);
  links.end(kOne);
  links.until(21);
  links.begin(kOne);
  links.until(41);
  check_close(links.delivered[kOne], 40 * kUplink);
}

TEST_CASE("bbr: one that is left alone goes on with a quarter more, and 7 round trips later grows fast") {
  Links links;
  links.begin(kOne);
  links.begin(kOther);
  links.until(4);
  links.end(kOne);
  check_close(links.rate(kOther), 0.5 * kUplink * 1.25);
  links.until(4.69);
  check_close(links.rate(kOther), 0.5 * kUplink * 1.25);
  links.until(4.71);
  check_close(links.rate(kOther), 0.5 * kUplink * 1.25 * 1.25);
  links.until(4.81);
  check_close(links.rate(kOther), 0.5 * kUplink * 1.25 * 1.25 * 1.25);
  links.until(4.91);
  check_close(links.rate(kOther), kUplink);
}

TEST_CASE(
    "bbr: where acknowledgements wait behind what the receiver sends, each raise ends after a round trip") {
  Links links;
  links.begin(kOne);
  links.begin(kOther);
  // Two other senders share the receiver's uplink.
  links.begin({2, 0});
  links.begin({2, 1});
  links.until(4);
  links.end(kOne);
  links.until(4.71);
  check_close(links.rate(kOther), 0.5 * kUplink * 1.25 * 1.25);
  links.until(5.49);
  check_close(links.rate(kOther), 0.5 * kUplink * 1.25 * 1.25);
  links.until(5.51);
  check_close(links.rate(kOther), 0.5 * kUplink * 1.25 * 1.25 * 1.25);
}

TEST_CASE("bbr: what a connection carried last is where its next transfer begins") {
  Links links;
  links.share(kOne, kOther, 4);
  links.until(30);
  links.begin(kOther);
  check_close(links.rate(kOther), 0.5 * kUplink * 1.25);
  // A new sender takes the remaining rate. The two share the uplink when their estimates exceed its rate.
  Links unequal;
  unequal.begin(kOne);
  unequal.begin(kOther);
  unequal.until(4);
  unequal.end(kOne);
  unequal.until(8);  // the other sender has had the whole uplink
  unequal.end(kOther);
  unequal.begin(kOne);
  unequal.begin(kOther);
  check_close(unequal.rate(kOne), kUplink / 3);
  check_close(unequal.rate(kOther), kUplink * 2 / 3);
}

TEST_CASE("bbr: a rate is forgotten after ten round trips of sending less") {
  for (const double half_s : {0.5, 1.5}) {
    Links links;
    links.begin(kOne);
    links.until(4);
    links.rates.while_links_change([&] { links.uplink = kUplink / 2; });
    links.until(4 + half_s);
    links.rates.while_links_change([&] { links.uplink = kUplink; });
    check_close(links.rate(kOne), half_s < 1 ? kUplink : kUplink / 2 * 1.25);
  }
}

TEST_CASE("bbr: one that has no pace yet shares with others, who keep to theirs, for three round trips") {
  Links links;
  links.share(kOne, kOther, 4);
  links.begin(kOther);
  links.begin({0, 3});
  check_close(links.limit_of(kOther), 0.5 * kUplink * 1.25);
  CHECK(links.limit_of({0, 3}) > kUplink);
  links.until(4.31);
  CHECK(links.limit_of({0, 3}) < kUplink);
  check_close(links.rate(kOther) + links.rate({0, 3}), kUplink);
}

TEST_CASE("bbr: senders that pace less than two segments a millisecond share equally, whatever they pace") {
  constexpr double kSlow = 6e6;  // two segments per millisecond are 2.896e6
  Links links;
  links.uplink = kSlow;
  links.draws = {{kOne, 1}, {kOther, -1}};
  links.begin(kOne);
  links.begin(kOther);
  links.until(0.5);
  links.rates.while_links_change([] {});  // samples both: 1.25 times 3.45e6 and 2.55e6
  check_close(links.rate(kOne) / links.rate(kOther), 3.45 / 2.55);
  links.rates.while_links_change([&] { links.uplink = kSlow / 2; });
  links.until(3);  // the old samples of both have expired
  check_close(links.rate(kOne), kSlow / 4);
  check_close(links.rate(kOther), kSlow / 4);
}

TEST_CASE("bbr: senders leave their start with rates a little apart") {
  Links links;
  links.draws = {{kOne, 1}, {kOther, -1}};
  links.begin(kOne);
  links.begin(kOther);
  links.until(0.5);
  links.rates.while_links_change([] {});  // samples both
  check_close(links.rate(kOne) / links.rate(kOther), 1.15 / 0.85);
  check_close(links.rate(kOne) + links.rate(kOther), kUplink);
}

TEST_CASE("bbr: bursts shorter than a round trip neither end a start, nor lower a rate, nor raise it") {
  Links links;
  const auto bursts = [&](double burst_s, double silence_s) {
    for (int i = 0; i < 50; ++i) {
      links.begin(kOther);
      links.until(links.now_s + burst_s);
      links.end(kOther);
      links.until(links.now_s + silence_s);
    }
  };
  bursts(0.05, 0.2);
  CHECK(links.limit_of(kOther) > kUplink);
  links.share(kOne, kOther, links.now_s + 4);
  links.until(links.now_s + 1);
  bursts(0.05, 0.2);
  check_close(links.limit_of(kOther), 0.5 * kUplink * 1.25);
  links.rates.while_links_change([&] { links.uplink = kUplink / 10; });
  bursts(0.05, 0.2);
  links.rates.while_links_change([&] { links.uplink = kUplink; });
  bursts(0.05, 0.2);
  check_close(links.limit_of(kOther), 0.5 * kUplink * 1.25);
  // It sends during nine tenths of the time, at 1.25 times the rate. Within a round trip 1.125 times as much
  // arrives.
  bursts(0.09, 0.01);
  CHECK(links.limit_of(kOther) > 0.5 * kUplink * 1.25 * 1.125);
}

TEST_CASE("bbr: messages that follow each other at once are one burst, however short they are") {
  Links links;
  for (int i = 0; i < 2000; ++i) {
    links.begin(kOther);
    links.until(links.now_s + 0.005 * kRoundTrip_s);
    links.end(kOther);
  }
  check_close(links.limit_of(kOther), kUplink);
}

TEST_CASE("bbr: a start is over when three round trips have been seen, also where they become shorter") {
  Links links;
  links.round_trip_s = 0.3;
  for (int i = 0; i < 2; ++i) {
    links.begin(kOther);
    links.until(links.now_s + 0.3);
    links.end(kOther);
    links.until(links.now_s + 1);
  }
  links.round_trip_s = kRoundTrip_s;  // the sender has seen six such round trips, but none since then
  links.begin(kOther);
  links.until(links.now_s + kRoundTrip_s / 2);
  links.rates.while_links_change([] {});  // looks at it
  CHECK(links.limit_of(kOther) > kUplink * 2);
  links.until(links.now_s + kRoundTrip_s);
  links.rates.while_links_change([] {});
  check_close(links.limit_of(kOther), kUplink);
}

TEST_CASE("bbr: what came within the last round trip counts, not how fast it came at last") {
  Links links;
  links.begin(kOne);
  links.begin(kOther);
  links.until(4);
  links.end(kOne);
  links.until(4.05);  // half a round trip at 1.25 times the rate
  links.end(kOther);
  links.until(30);
  links.begin(kOther);
  check_close(links.rate(kOther), 0.5 * kUplink * 1.25);
  links.until(30.05);
  links.rates.while_links_change([] {});  // samples it when a raise is due
  check_close(links.rate(kOther), 0.5 * kUplink * 1.125 * 1.25);
}

TEST_CASE("bbr: of three on an uplink the one that had it all is looked at too, and gives way") {
  Links links;
  const Pair third{0, 3};
  links.share(kOne, kOther, 4);
  links.begin(third);
  links.until(8);
  links.begin(kOne);
  links.begin(kOther);
  links.until(20);
  CHECK(links.rate(third) < kUplink * 0.6);
  check_close(links.rate(third) + links.rate(kOne) + links.rate(kOther), kUplink);
}

TEST_CASE("bbr: an outage teaches a sender nothing, a slow time does") {
  for (const double slow : {0.0, 0.1 * kUplink}) {
    Links links;
    links.begin(kOne);
    links.until(4);
    links.rates.while_links_change([&] { links.uplink = slow; });
    links.until(64);
    check_close(links.rate(kOne), slow);
    links.rates.while_links_change([&] { links.uplink = kUplink; });
    check_close(links.rate(kOne), slow > 0 ? 1.25 * slow : kUplink);
    links.until(66);
    check_close(links.rate(kOne), kUplink);
  }
}

TEST_CASE(
    "bbr: a simulated transfer that is left alone on an uplink takes it over late, with loss it does so at "
    "once") {
  sim::Options options;
  options.senders = costmodel::Senders::one_by_one;
  const costmodel::Plan plan =
      transfer_only(3, Pattern::point_to_point, Collective::ring,
                    {exchange_of({0, 1}, 50'000'000), exchange_of({0, 2}, 1'50'000'000)});
  const auto end_s = [&] {
    return sim::simulate(
               plan, {0}, platforms::uniform(3, kUplink, kUplink, kRoundTrip_s / 2),
               [](auto&&...) { return 0.0; }, options)
        .round_end_s[0];
  };
  check_close(end_s(), 0.05 + 8);
  options.network.congestion_control = costmodel::CongestionControl::bbr;
  // After 4 s at half of the uplink, 400 MB are left. The start-up set the estimate to 42.5 to 57.5 MB/s. The
  // sender has 1.25 times that for 0.7 s, and then rises in steps of 0.1 s. It carries 21 to 38 MB less than
  // the full rate would in 4 s.
  CHECK(end_s() > 0.05 + 8 + 0.2);
  CHECK(end_s() < 0.05 + 8 + 0.39);
}
