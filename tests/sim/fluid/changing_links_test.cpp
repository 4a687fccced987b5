// Tests rates and latencies that change during a run, links that paths share, and links that stay down,
// computed by hand.
#include <doctest/doctest.h>

#include <stdexcept>

#include "sim/executor/simulate.hpp"
#include "tests/scenarios.hpp"
#include "tests/sim/transfers.hpp"

using namespace fomoe;
using platforms::LinkChange;
using tests::rate_change;

namespace {

// Simulates a transfer of `gigabytes` over each (from, to) pair, all at the same time. Returns the seconds.
double seconds(const platforms::Platform& platform, const std::vector<std::pair<int, int>>& pairs,
               double gigabytes) {
  costmodel::Plan plan;
  for (int site = 0; site < platform.size(); ++site)
    plan.nodes.push_back({costmodel::NodeKind::worker, site, 1});
  costmodel::Payload payload;
  payload.elements = static_cast<std::int64_t>(gigabytes * 5e8);  // elements of two bytes
  costmodel::Transfer transfer;
  transfer.pattern = costmodel::Pattern::point_to_point;
  for (const auto& [from, to] : pairs) transfer.exchanges.push_back({{from, to}, {payload}});
  costmodel::RoundPlan round;
  round.ops.push_back({"send", transfer, {}});
  plan.rounds = plan.steps = 1;
  plan.round = [round](std::int64_t) { return round; };
  return sim::simulate(plan, {0}, platform, [](auto&&...) { return 0.0; }).round_end_s[0];
}

}  // namespace

TEST_CASE("a flow ends when the integral of its rate is its bytes") {
  platforms::Platform platform = platforms::uniform(2, 1e9, 1e9, 0);
  // 1 GB/s for 2 s, then 0.5 GB/s: 3 GB take 2 + 1/0.5 = 4 s.
  platform.changes = {rate_change(LinkChange::Link::uplink, 0, 0, 2, 5e8)};
  CHECK(seconds(platform, {{0, 1}}, 3) == doctest::Approx(4).epsilon(1e-9));
  // From 3 s on the uplink has 2 GB/s, but the downlink passes only 1 GB/s: 2 + 0.5 + 0.5 GB in 3.5 s.
  platform.changes.push_back(rate_change(LinkChange::Link::uplink, 0, 0, 3, 2e9));
  CHECK(seconds(platform, {{0, 1}}, 3) == doctest::Approx(3.5).epsilon(1e-9));
  // The other direction is another link.
  CHECK(seconds(platform, {{1, 0}}, 3) == doctest::Approx(3).epsilon(1e-9));
}

TEST_CASE("a path that nothing limited gets a rate, and a latency, while the run goes on") {
  platforms::Platform platform = platforms::uniform(2, 1e9, 1e9, 0.5);
  platform.changes = {rate_change(LinkChange::Link::path, 0, 1, 1.5, 2e8)};
  // The flow sends 1.5 GB in 1.5 s, and the rest at 0.2 GB/s; the last byte arrives 0.5 s later.
  CHECK(seconds(platform, {{0, 1}}, 2) == doctest::Approx(1.5 + 0.5 / 0.2 + 0.5).epsilon(1e-9));
  // A direct all-reduce of 1 GB has two phases. The first waited 0.5 s; the second waits the latency of its
  // own start.
  platform.changes[0].bandwidth_bytes_per_s.reset();
  platform.changes[0].at_s = 0.2;
  platform.changes[0].latency_s = 0.25;
  platform.changes.push_back(platform.changes[0]);
  std::swap(platform.changes[1].from, platform.changes[1].to);
  const costmodel::Plan plan =
      tests::transfer_only(2, costmodel::Pattern::all_reduce, costmodel::Collective::direct,
                           {tests::exchange_of({0, 1}, 250'000'000)});
  CHECK(tests::play(plan, platform).round_end_s[0] == doctest::Approx(0.5 + 0.5 + 0.25 + 0.5).epsilon(1e-9));
}

TEST_CASE("a trace that repeats: 1 GB/s and 0.5 GB/s in turn, 10 s each") {
  platforms::Platform platform = platforms::uniform(2, 1e9, 1e9, 0);
  platform.changes = {rate_change(LinkChange::Link::downlink, 1, 1, 0, 1e9),
                      rate_change(LinkChange::Link::downlink, 1, 1, 10, 5e8)};
  platform.changes_period_s = 20;
  CHECK(seconds(platform, {{0, 1}}, 40) ==
        doctest::Approx(50).epsilon(1e-9));  // 15 GB in 20 s, twice, and 10 GB
}

TEST_CASE("a link that is down and comes back: the flow waits; one that stays down is said, not waited for") {
  platforms::Platform platform = platforms::uniform(2, 1e9, 1e9, 0);
  platform.changes = {rate_change(LinkChange::Link::uplink, 0, 0, 1, 0),
                      rate_change(LinkChange::Link::uplink, 0, 0, 7, 1e9)};
  CHECK(seconds(platform, {{0, 1}}, 2) == doctest::Approx(8).epsilon(1e-6));
  platform.changes.pop_back();
  CHECK(seconds(platform, {{0, 1}}, 0.5) == doctest::Approx(0.5));  // ends before the link goes down
  CHECK(seconds(platform, {{1, 0}}, 2) == doctest::Approx(2));      // in the other direction
  CHECK_THROWS_WITH_AS((void)seconds(platform, {{0, 1}}, 2),
                       "the run cannot finish: uplink of site-0 is permanently down from 1.000000 s on, and "
                       "site-0 has data to send to site-1",
                       std::runtime_error);
  platform.changes[0] = rate_change(LinkChange::Link::uplink, 1, 1, 1, 0);
  CHECK_THROWS_WITH_AS((void)seconds(platform, {{1, 0}}, 2),
                       doctest::Contains("uplink of site-1 is permanently down"), std::runtime_error);
  // A trace that repeats, and never raises the link.
  platform.changes_period_s = 10;
  CHECK_THROWS_WITH_AS((void)seconds(platform, {{1, 0}}, 2),
                       doctest::Contains("uplink of site-1 is permanently down"), std::runtime_error);
}

TEST_CASE("a flow that begins while a link is slow, or down, gets what the link becomes") {
  platforms::Platform platform = platforms::uniform(2, 1e9, 1e9, 0.5);
  platform.changes = {rate_change(LinkChange::Link::uplink, 0, 0, 0.1, 1e8),
                      rate_change(LinkChange::Link::uplink, 0, 0, 1.5, 1e9)};
  // 0.1 GB leave at 1 GB/s, 0.14 GB in the next 1.4 s, and the rest at 1 GB/s from 1.5 s on.
  CHECK(seconds(platform, {{0, 1}}, 2) == doctest::Approx(1.5 + 1.76 + 0.5).epsilon(1e-9));
  platform.changes[0].bandwidth_bytes_per_s = 0;
  CHECK(seconds(platform, {{0, 1}}, 2) == doctest::Approx(1.5 + 1.9 + 0.5).epsilon(1e-6));
}

TEST_CASE("a backbone is shared by the paths of two regions, in each direction by itself") {
  platforms::Platform platform = platforms::uniform(4, 1e9, 1e9, 0);
  platform.shared_links = {{"west to east", 1e9}, {"east to west", 1e9}};
  for (const int west : {0, 1}) {
    for (const int east : {2, 3}) {
      platform.share(west, east, {0});
      platform.share(east, west, {1});
    }
  }
  CHECK(seconds(platform, {{0, 2}}, 1) == doctest::Approx(1));
  CHECK(seconds(platform, {{0, 2}, {1, 3}}, 1) == doctest::Approx(2));  // each flow gets half
  CHECK(seconds(platform, {{0, 2}, {3, 1}}, 1) == doctest::Approx(1));  // opposite directions
  CHECK(seconds(platform, {{0, 1}, {2, 3}}, 1) == doctest::Approx(1));  // within a region
  platform.changes = {rate_change(LinkChange::Link::shared, 0, 0, 0.5, 5e8)};
  CHECK(seconds(platform, {{0, 2}}, 1) == doctest::Approx(1.5).epsilon(1e-9));  // 0.5 GB at 1, 0.5 at 0.5
}

TEST_CASE("a connection's cap follows the latency, also if it changes before the first flow") {
  const costmodel::Plan plan =
      tests::transfer_only(2, costmodel::Pattern::point_to_point, costmodel::Collective::ring,
                           {tests::exchange_of({0, 1}, 250'000)});
  sim::Options options;
  options.network.tcp_window_bytes = 1e5;
  const auto end_s = [&](double change_s) {
    platforms::Platform platform = platforms::uniform(2, 1e7, 1e7, 0.05);
    for (const auto& [from, to] : {std::pair{0, 1}, {1, 0}}) {
      platforms::LinkChange change;
      change.at_s = change_s;
      change.link = LinkChange::Link::path;
      change.from = from;
      change.to = to;
      change.latency_s = 0.1;
      platform.changes.push_back(change);
    }
    return sim::simulate(
               plan, {0}, platform, [](auto&&...) { return 0.0; }, options)
        .round_end_s[0];
  };
  // 1 MB at 100 kB ÷ 0.1 s = 1 MB/s; after the change at 100 kB ÷ 0.2 s. The first byte took 0.05 s.
  CHECK(end_s(0.55) == doctest::Approx(0.55 + 0.5 / 0.5).epsilon(1e-6));
  CHECK(end_s(0) == doctest::Approx(0.1 + 1 / 0.5).epsilon(1e-6));
}
