// Tests of the order of the rings in a plan: which hops count, and for which transfers.
#include "costmodel/compose/ring_orders.hpp"

#include <doctest/doctest.h>

#include "costmodel/compose/make_plan.hpp"
#include "costmodel/formula/closed_form.hpp"
#include "costmodel/plan/method.hpp"
#include "tests/scenarios.hpp"

using namespace fomoe;
using costmodel::HopTimes;
using costmodel::NodeId;
using costmodel::Scenario;

namespace {

double chunk_bytes(const Scenario& scenario) {
  return 2.0 * static_cast<double>(costmodel::count_parameters(scenario.model).total()) / scenario.sites();
}

// Four sites. The ring 0 → 2 → 1 → 3 → 0 has no latency but slow paths, on which a chunk of the whole model
// takes 1 s. All other paths are twice as fast, and far.
constexpr double kFar_s = 0.2;
const std::vector<NodeId> kNear = {0, 2, 1, 3}, kGiven = {0, 1, 2, 3};

Scenario near_or_fast(const std::string& method, std::int64_t times_vocabulary = 1) {
  Scenario scenario = tests::ideal_scenario(method, 4);
  scenario.model.vocabulary *= times_vocabulary;
  const double slow_bytes_per_s = chunk_bytes(scenario);
  for (platforms::Site& site : scenario.platform.sites)
    site.uplink_bytes_per_s = site.downlink_bytes_per_s = 1e15;
  for (int from = 0; from < 4; ++from) {
    for (int to = 0; to < 4; ++to) {
      if (from == to) continue;
      const bool near = std::vector{2, 3, 1, 0}[static_cast<std::size_t>(from)] == to;
      scenario.platform.paths.set(from, to,
                                  {near ? 0 : kFar_s, near ? slow_bytes_per_s : 2 * slow_bytes_per_s});
    }
  }
  return scenario;
}

std::vector<NodeId> ring_of(const Scenario& scenario) {
  std::vector<NodeId> ring = kGiven;
  costmodel::RingOrders(scenario).apply(ring);
  return ring;
}

bool near_first(const Scenario& scenario) {
  const std::vector<NodeId> ring = ring_of(scenario);
  REQUIRE(ring.front() == 0);
  return ring == kNear;
}

}  // namespace

TEST_CASE("hops: the latencies of all steps + bytes ÷ the slowest of uplink, path, downlink and cap") {
  Scenario scenario = tests::ideal_scenario("diloco", 4);
  scenario.platform.paths.set(0, 1, {0.25, 5e8});
  scenario.platform.sites[2].downlink_bytes_per_s = 2e8;
  constexpr double kSteps = 6;  // 2(M − 1), each with a chunk
  const double bytes = kSteps * chunk_bytes(scenario);
  const HopTimes times = costmodel::hop_times(scenario);
  CHECK(times.at(0, 1) == doctest::Approx(kSteps * 0.25 + bytes / 5e8));
  CHECK(times.at(1, 2) == doctest::Approx(bytes / 2e8));
  CHECK(times.at(2, 1) == doctest::Approx(bytes / 1e9));
}

TEST_CASE("equal sites keep their order, and ring_order = given keeps it too") {
  Scenario scenario = tests::ideal_scenario("diloco", 5);
  CHECK(costmodel::ring_order_note(scenario).empty());
  scenario.platform.set_latency(0, 1, 3);  // the ring 0 → 2 → 1 → … avoids this path
  const std::string note = costmodel::ring_order_note(scenario);
  CHECK(note.find("ring order site-") == 0);
  CHECK(note.find("strategy.ring_order") != std::string::npos);
  scenario.strategy.ring_order = costmodel::RingOrder::given;
  CHECK(costmodel::ring_order_note(scenario).empty());
}

TEST_CASE("the order is that for the transfers of a round: latencies count once for each of them") {
  // One transfer of the whole model: 0.5 + 0.2 s over a far hop, and 1 s over a near one. n transfers take
  // 0.5 + 0.2 n over a far hop, so that a near one is faster from n = 3 on.
  Scenario scenario = near_or_fast("streaming_diloco");
  for (const int fragments : {1, 2, 3, 4}) {
    CAPTURE(fragments);
    scenario.strategy.fragments = fragments;
    CHECK(near_first(scenario) == (fragments >= 3));
  }
  scenario = near_or_fast("ddp");
  CHECK_FALSE(near_first(scenario));
  scenario.strategy.bucket_bytes = static_cast<std::int64_t>(chunk_bytes(scenario));  // four of them
  CHECK(near_first(scenario));
  scenario.strategy.bucket_bytes = 0;
  scenario.strategy.granularity = costmodel::Granularity::tensor;
  CHECK(near_first(scenario));
  scenario.strategy.collective = costmodel::Collective::direct;
  CHECK(ring_of(scenario) == kGiven);
}

TEST_CASE("regions stay together only where fewer hops then cross the links that they share") {
  Scenario scenario = tests::ideal_scenario("diloco", 4);
  for (int site = 0; site < 4; ++site)
    scenario.platform.sites[static_cast<std::size_t>(site)].region = site == 1 ? "b" : "a";
  scenario.platform.shared_links = {{"backbone", 1e12}};
  CHECK(ring_of(scenario) == kGiven);  // 0 → 1 → 2 → 3 crosses twice, as any ring does
  scenario.platform.sites[3].region = "b";
  CHECK(ring_of(scenario) == std::vector<NodeId>{0, 2, 1, 3});
}

TEST_CASE("the order is that for what the method sends: dept leaves out the embedding") {
  // The layers alone take little time over slow paths; the whole model takes more than far ones do.
  for (const char* method : {"diloco", "dept"})
    CHECK(near_first(near_or_fast(method, 1000)) == (std::string(method) == "dept"));
}

TEST_CASE("partial replicas: the rings of the owners of experts have an order as well") {
  Scenario scenario = near_or_fast("fomoe");
  scenario.strategy.expert_overlap = 3;
  scenario.platform.set_latency(0, 1, 3);
  const costmodel::Plan plan = costmodel::make_plan(scenario);
  for (const costmodel::Op& op : plan.round(0).ops) {
    const auto* transfer = std::get_if<costmodel::Transfer>(&op.what);
    if (transfer == nullptr || transfer->pattern != costmodel::Pattern::all_reduce) continue;
    for (const costmodel::Exchange& exchange : transfer->exchanges) {
      for (std::size_t i = 0; i < exchange.nodes.size(); ++i)
        CHECK_FALSE((exchange.nodes[i] == 0 && exchange.nodes[(i + 1) % exchange.nodes.size()] == 1));
    }
  }
}

TEST_CASE("all rings of a plan are in the order that the closed form charges") {
  for (const char* method : {"ddp", "diloco", "demo", "sparse_loco", "fsdp", "local_adamw"}) {
    CAPTURE(method);
    Scenario scenario = near_or_fast(method);
    scenario.strategy.granularity = costmodel::Granularity::tensor;
    int rings = 0;
    for (const costmodel::Op& op : costmodel::make_plan(scenario).round(0).ops) {
      const auto* transfer = std::get_if<costmodel::Transfer>(&op.what);
      if (transfer == nullptr) continue;
      for (const costmodel::Exchange& exchange : transfer->exchanges) {
        CHECK(exchange.nodes == ring_of(scenario));
        ++rings;
      }
    }
    CHECK(rings > 0);
  }
}
