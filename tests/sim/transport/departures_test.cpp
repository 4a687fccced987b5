// Tests of flows that take their uplink when they are sent and their downlink when they arrive, by hand.
#include <doctest/doctest.h>

#include <algorithm>

#include "costmodel/plan/plan.hpp"
#include "sim/executor/simulate.hpp"

using namespace fomoe;
using costmodel::Pattern;

namespace {

// All sites at 1 Gb/s, and a one-way latency for each site, which holds for its paths from and to site 0.
platforms::Platform star(const std::vector<double>& latency_s) {
  platforms::Platform platform = platforms::uniform(static_cast<int>(latency_s.size()), 1.25e8, 1.25e8, 0);
  for (int a = 0; a < platform.size(); ++a) {
    for (int b = 0; b < platform.size(); ++b)
      platform.set_latency(a, b,
                           latency_s[static_cast<std::size_t>(a)] + latency_s[static_cast<std::size_t>(b)]);
  }
  return platform;
}

costmodel::Payload of_bytes(double bytes) {
  costmodel::Payload payload;
  payload.elements = static_cast<std::int64_t>(bytes / 2);  // bf16
  return payload;
}

double seconds(const platforms::Platform& platform, Pattern pattern, double bytes,
               const sim::Options& options = {}) {
  costmodel::Plan plan;
  std::vector<int> nodes;
  for (int site = 0; site < platform.size(); ++site) {
    plan.nodes.push_back({costmodel::NodeKind::worker, site, 1});
    nodes.push_back(site);
  }
  plan.rounds = plan.steps = 1;
  costmodel::RoundPlan round;
  round.ops.push_back(
      {"transfer",
       costmodel::Transfer{pattern, costmodel::Collective::direct, {{nodes, {of_bytes(bytes)}}}},
       {}});
  plan.round = [round](std::int64_t) { return round; };
  return sim::simulate(
             plan, {0}, platform, [](auto&&...) { return 0.0; }, options)
      .round_end_s[0];
}

}  // namespace

TEST_CASE("fan-out: flows share the sender's uplink from the start, however far they go") {
  // 2 · 50 MB leave in 0.8 s, and the last bytes of the far flow arrive 150 ms later.
  CHECK(seconds(star({0, 0.005, 0.15}), Pattern::broadcast, 50e6) == doctest::Approx(0.95).epsilon(1e-6));
  // 2 · 12.5 MB leave in 0.2 s.
  CHECK(seconds(star({0, 0.005, 0.15}), Pattern::broadcast, 12.5e6) == doctest::Approx(0.35).epsilon(1e-6));
  // All bytes have left before any of them arrives.
  CHECK(seconds(star({0, 0.4, 0.5}), Pattern::broadcast, 12.5e6) == doctest::Approx(0.7).epsilon(1e-6));
  // Four receivers.
  CHECK(seconds(star({0, 0.01, 0.02, 0.03, 0.3}), Pattern::broadcast, 12.5e6) ==
        doctest::Approx(0.7).epsilon(1e-6));
}

TEST_CASE("fan-in: a near flow has the receiver's downlink alone until the far one arrives") {
  // The downlink is busy from the first byte to the last one: 5 ms + 0.8 s.
  CHECK(seconds(star({0, 0.005, 0.15}), Pattern::reduce, 50e6) == doctest::Approx(0.805).epsilon(1e-6));
  // The near flow is over after 0.105 s, before the far one arrives.
  CHECK(seconds(star({0, 0.005, 0.15}), Pattern::reduce, 12.5e6) == doctest::Approx(0.25).epsilon(1e-6));
}

TEST_CASE("a lone flow takes latency + bytes ÷ rate, whatever the other latencies") {
  platforms::Platform platform = star({0.02, 0.1});
  platform.set_latency(0, 1, 0.2);  // the two directions differ
  CHECK(seconds(platform, Pattern::broadcast, 12.5e6) == doctest::Approx(0.3).epsilon(1e-6));
  CHECK(seconds(platform, Pattern::reduce, 12.5e6) == doctest::Approx(0.12 + 0.1).epsilon(1e-6));
}

namespace {

struct Sent {
  int from, to;  // nodes
  double bytes;
  double after_s = 0;  // how long the sender and the receiver compute before
};

// When each of several transfers ends that run at the same time, each of one flow. `site` is the site of each
// node.
std::vector<double> ends_s(const platforms::Platform& platform, const std::vector<int>& site,
                           const std::vector<Sent>& flows) {
  costmodel::Plan plan;
  for (const int of : site) plan.nodes.push_back({costmodel::NodeKind::worker, of, 1});
  plan.rounds = plan.steps = 1;
  costmodel::RoundPlan round;
  for (const Sent& flow : flows) {
    costmodel::Compute before;
    before.nodes = {flow.from, flow.to};
    round.ops.push_back({"before", before, {}});
    const auto last = static_cast<costmodel::OpId>(round.ops.size() - 1);
    round.ops.push_back({"flow",
                         costmodel::Transfer{Pattern::broadcast,
                                             costmodel::Collective::direct,
                                             {{{flow.from, flow.to}, {of_bytes(flow.bytes)}}}},
                         {last}});
  }
  plan.round = [round](std::int64_t) { return round; };
  const auto timeline = sim::simulate(plan, {0}, platform, [&](auto&&, auto&&, auto&&, costmodel::OpId op) {
    return flows[static_cast<std::size_t>(op / 2)].after_s;
  });
  std::vector<double> ends(flows.size(), 0);
  for (const costmodel::Interval& part : timeline.intervals) {
    double& end_s = ends[static_cast<std::size_t>(part.op / 2)];
    end_s = std::max(end_s, part.end_s);
  }
  return ends;
}

}  // namespace

TEST_CASE("operations that run at the same time share links as the flows of one operation do") {
  platforms::Platform platform = platforms::uniform(3, 1e6, 1e9, 0.1);
  platform.set_latency(0, 2, 0.6);
  // Each flow has half of the uplink of 1 MB/s for 2 s.
  auto ends = ends_s(platform, {0, 1, 2}, {{0, 1, 1e6}, {0, 2, 1e6}});
  CHECK(ends[0] == doctest::Approx(2.1).epsilon(1e-6));
  CHECK(ends[1] == doctest::Approx(2.6).epsilon(1e-6));
  // The far flow is sent alone for 0.5 s; 1 MB of the other one leaves from 0.5 to 2 s with half of the
  // uplink until 1.5 s, and with all of it afterwards.
  ends = ends_s(platform, {0, 1, 2}, {{0, 1, 1e6, 0.5}, {0, 2, 1e6}});
  CHECK(ends[0] == doctest::Approx(2.1).epsilon(1e-6));
  CHECK(ends[1] == doctest::Approx(2.1).epsilon(1e-6));
}

TEST_CASE("nodes of one site share its links from the start too") {
  platforms::Platform platform = platforms::uniform(3, 1e6, 1e9, 0.1);
  platform.set_latency(0, 2, 0.6);
  const auto ends = ends_s(platform, {0, 0, 1, 2}, {{0, 2, 1e6}, {1, 3, 1e6}});
  CHECK(ends[0] == doctest::Approx(2.1).epsilon(1e-6));
  CHECK(ends[1] == doctest::Approx(2.6).epsilon(1e-6));
}

TEST_CASE("a latency of 0 is the limit of small latencies") {
  platforms::Platform platform = platforms::uniform(3, 1e7, 1e9, 0);
  platform.sites[0].uplink_bytes_per_s = 1e6;
  platform.set_latency(1, 2, 0.2);
  platforms::Platform almost = platform;
  for (int a = 0; a < 3; ++a) {
    for (int b = 0; b < 3; ++b) almost.set_latency(a, b, std::max(almost.path(a, b).latency_s, 1e-9));
  }
  for (const Pattern pattern : {Pattern::broadcast, Pattern::reduce, Pattern::all_to_all_broadcast,
                                Pattern::all_reduce, Pattern::all_to_all})
    CHECK(seconds(platform, pattern, 1e6) == doctest::Approx(seconds(almost, pattern, 1e6)).epsilon(1e-6));
}

TEST_CASE("equal latencies: departures shift all flows alike") {
  const platforms::Platform equal = platforms::uniform(4, 1.25e8, 1.25e8, 0.05);
  platforms::Platform almost = equal;
  almost.change_path(0, 1, [&](platforms::Path& path) {
    path.latency_s += 1e-9;
  });  // takes the other way through the engine
  for (const Pattern pattern : {Pattern::broadcast, Pattern::reduce, Pattern::all_to_all_broadcast,
                                Pattern::all_reduce, Pattern::all_to_all}) {
    CHECK(seconds(almost, pattern, 12.5e6) == doctest::Approx(seconds(equal, pattern, 12.5e6)).epsilon(1e-6));
  }
}

TEST_CASE("a shared link is taken when a flow is sent, or, at the receivers, when it arrives") {
  // Site 0 sends 50 MB to each of two sites, through one link of 1 Gb/s. Its own uplink has 10 Gb/s.
  platforms::Platform platform = star({0, 0.005, 0.15});
  platform.sites[0].uplink_bytes_per_s = 1.25e9;
  platform.shared_links = {{"line", 1.25e8}};
  for (const int to : {1, 2}) platform.share(0, to, {0});
  // The line sends both from the start, for 0.8 s; the last bytes of the far flow arrive 150 ms later.
  CHECK(seconds(platform, Pattern::broadcast, 50e6) == doctest::Approx(0.95).epsilon(1e-6));
  // At the receivers, the line is busy from the first byte of the near flow on: 5 ms + 0.8 s.
  for (const int to : {1, 2}) platform.share(0, to, {0}, 1);
  CHECK(seconds(platform, Pattern::broadcast, 50e6) == doctest::Approx(0.805).epsilon(1e-6));
  // A limit of each flow.
  platform.shared_links[0].per_flow = true;
  CHECK(seconds(platform, Pattern::broadcast, 50e6) == doctest::Approx(0.15 + 0.4).epsilon(1e-6));
}
