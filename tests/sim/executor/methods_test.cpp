// Tests every method in the ideal case (equal sites, fluid links, no latency, all sizes divisible): the
// simulation and the closed form agree to 1e-9. A new method is tested as soon as it is in the list of
// methods.
#include <doctest/doctest.h>

#include <cmath>
#include <map>

#include "costmodel/compose/composition.hpp"
#include "costmodel/formula/closed_form.hpp"
#include "costmodel/methods/all.hpp"
#include "costmodel/plan/method.hpp"
#include "platforms/support/input_error.hpp"
#include "sim/executor/simulate.hpp"
#include "sim/executor/simulated_run.hpp"
#include "tests/scenarios.hpp"

using namespace fomoe;
using costmodel::Collective;
using costmodel::RunReport;

namespace {

// Methods whose closed form is only approximate in the ideal case, with the reason. Their times must agree
// within 2 % nevertheless. Their bytes need not: over such slow links some sites exchange only once or twice.
const std::map<std::string, std::string, std::less<>> kOnlyApproximate = {
    {"decoupled_diloco",
     "nobody waits for a fragment that has never been sent, which the formula leaves out"}};
// Methods in which a node waits for a transfer for longer than the transfer takes, with the reason. Their
// times must agree nevertheless.
const std::map<std::string, std::string, std::less<>> kWantedLonger = {
    {"fedavg",
     "the server's own site gets the model at once, so it ends its steps first and then wants the next"}};
// Methods whose sites do different work at the same time, with the reason. The exposed time of one site is
// then not a sum over stages. Their wall-clock times and utilisation must agree nevertheless.
const std::map<std::string, std::string, std::less<>> kUnlikeSites = {
    {"pipeline_wan", "each stage waits for the ones before it, the first for the last ones' gradients"},
    {"async_diloco", "the server's own site sends nothing and runs ahead of the others"}};

bool close(double value, double expected, double tolerance) {
  return std::abs(value - expected) <= tolerance * std::abs(expected) + 1e-300;
}

void check_equal(const costmodel::Scenario& scenario) {
  const RunReport formula = costmodel::closed_form(scenario);
  const RunReport simulated = sim::simulate_scenario(scenario).report;
  CAPTURE(scenario.strategy.method->name);
  CAPTURE(scenario.sites());
  CAPTURE(scenario.strategy.expert_overlap);
  CAPTURE(costmodel::to_string(scenario.strategy.collective));
  if (kOnlyApproximate.contains(scenario.strategy.method->name)) {
    CHECK(close(simulated.wall_clock_s, formula.wall_clock_s, 0.02));
    return;
  }
  CHECK(close(simulated.bytes_per_token, formula.bytes_per_token, 1e-12));
  CHECK(close(simulated.bytes_sent_per_site_per_round, formula.bytes_sent_per_site_per_round, 1e-12));
  CHECK(close(simulated.wall_clock_s, formula.wall_clock_s, 1e-9));
  CHECK(close(simulated.compute_utilization, formula.compute_utilization, 1e-9));
  if (kUnlikeSites.contains(scenario.strategy.method->name)) return;
  if (kWantedLonger.contains(scenario.strategy.method->name)) {
    CHECK(simulated.round.communication_s >= formula.round.communication_s * (1 - 1e-9));
  } else {
    CHECK(close(simulated.round.communication_s, formula.round.communication_s, 1e-9));
  }
  CHECK(close(simulated.round.exposed_communication_s, formula.round.exposed_communication_s, 1e-9));
}

// Whether a recursive collective (halving and doubling) fits the scenario: it needs sums only, and a power of
// two of sites.
bool recursive_fits(const costmodel::Scenario& scenario) {
  try {
    costmodel::check_composition(scenario);
    return true;
  } catch (const InputError&) {
    return false;
  }
}

}  // namespace

TEST_CASE("ideal: every method of the list, simulated = closed form") {
  for (const costmodel::Method& method : costmodel::methods()) {
    for (const int sites : {2, 4, 8}) {
      for (int overlap = method.partial_experts ? 1 : sites; overlap <= sites; overlap *= 2) {
        for (const Collective collective : {Collective::ring, Collective::direct, Collective::recursive}) {
          costmodel::Scenario scenario = tests::every_axis_scenario(std::string(method.name), sites, overlap);
          scenario.strategy.collective = collective;
          if (collective == Collective::recursive && !recursive_fits(scenario)) continue;
          check_equal(scenario);
        }
      }
    }
  }
}

TEST_CASE("ideal: every method on links so fast that whatever can hide does") {
  for (const costmodel::Method& method : costmodel::methods()) {
    costmodel::Scenario scenario = tests::every_axis_scenario(std::string(method.name), 4);
    scenario.platform = platforms::uniform(4, 1e13, 1e13, 0);
    check_equal(scenario);
  }
}

TEST_CASE(
    "recursive halving and doubling: 2·log2 M latencies, the bytes of a ring, among unequal chunks too") {
  costmodel::Scenario scenario = tests::ideal_scenario("local_sgd", 8);
  scenario.strategy.collective = Collective::recursive;
  scenario.platform = platforms::uniform(8, 1e9, 1e9, 0.010);
  const double bytes = 2.0 * static_cast<double>(costmodel::count_parameters(scenario.model).total());
  const double expected = 60 + 12 * (2 * 3 * 0.010 + 2 * 7.0 / 8 * bytes / 1e9);
  CHECK(close(sim::simulate_scenario(scenario).report.wall_clock_s, expected, 1e-9));
  CHECK(close(costmodel::closed_form(scenario).wall_clock_s, expected, 1e-9));
  scenario.model.vocabulary = 101;  // not divisible by 8
  const auto ring = [&](Collective collective) {
    scenario.strategy.collective = collective;
    return sim::simulate_scenario(scenario).report.bytes_per_token;
  };
  CHECK(close(ring(Collective::recursive), ring(Collective::ring), 1e-6));
}

TEST_CASE("streaming by hand: what a fragment does not hide behind τ steps shows, and nothing else") {
  // 2 sites, 2 fragments, K = 6: each fragment has 3 steps of 1 s between its turn and the next one's. With
  // ring and M = 2 a site sends 2(M−1)/M = 1 times the fragment: t = bytes ÷ bandwidth.
  costmodel::Scenario scenario = tests::every_axis_scenario("streaming_diloco", 2);
  scenario.strategy.wire = costmodel::plain_format(costmodel::ElementType::bf16);
  scenario.model.vocabulary = 1;
  const auto counts = costmodel::count_parameters(scenario.model);
  const double first =
      2.0 * static_cast<double>(counts.total() - counts.embedding) / 2;  // bf16, one of two layers
  const double last = first + 2.0 * static_cast<double>(counts.embedding);
  const auto wall_clock_s = [&](std::int64_t overlap_steps, double bandwidth) {
    scenario.strategy.overlap_steps = overlap_steps;
    scenario.platform = platforms::uniform(2, bandwidth, bandwidth, 0);
    return sim::simulate_scenario(scenario, {.rounds = {}, .all_rounds = true}).report.wall_clock_s;
  };
  const double rounds = 10, steps_s = 60 * 1.0;
  // With this bandwidth the first fragment takes 2.5 s. The last one takes a little longer, since it also
  // holds the embedding.
  const double bandwidth = first / 2.5;
  const double first_s = 2.5, last_s = last / bandwidth;
  // τ = 0: nothing hides.
  CHECK(close(wall_clock_s(0, bandwidth), steps_s + rounds * (first_s + last_s), 1e-9));
  // τ = 1: one step hides a second of each fragment. The last fragment of the run has no step after it, so
  // all of it is exposed.
  CHECK(close(wall_clock_s(1, bandwidth), steps_s + rounds * (first_s - 1 + last_s - 1) + 1, 1e-9));
  // τ = 3: everything hides except the end of the run.
  CHECK(close(wall_clock_s(3, bandwidth), steps_s + last_s, 1e-9));
  // τ = K, with a bandwidth that makes the network the bottleneck (4.5 s per fragment, 3 s of computation):
  // after the first three steps the network is always busy.
  CHECK(close(wall_clock_s(6, first / 4.5), 3 + rounds * (4.5 + last / first * 4.5), 1e-9));
}

TEST_CASE("diloco_x by hand: a synchronisation hides behind the next K steps") {
  costmodel::Scenario scenario = tests::every_axis_scenario("diloco_x", 2);
  scenario.strategy.wire = costmodel::plain_format(costmodel::ElementType::bf16);
  const double payload = 2.0 * static_cast<double>(costmodel::count_parameters(scenario.model).total());
  const auto wall_clock_s = [&](double synchronisation_s) {
    const double bandwidth = payload / synchronisation_s;
    scenario.platform = platforms::uniform(2, bandwidth, bandwidth, 0);
    return sim::simulate_scenario(scenario).report.wall_clock_s;
  };
  CHECK(close(wall_clock_s(4), 10 * 6 + 4, 1e-9));    // all but the last are hidden
  CHECK(close(wall_clock_s(9), 6 + 10 * 9.0, 1e-9));  // 6 of 9 s are hidden; the network is always busy
}

TEST_CASE("overlapping rounds: the shortcut gives what all rounds give, a short last one included") {
  for (const char* method : {"diloco_x", "streaming_diloco"}) {
    costmodel::Scenario scenario = tests::every_axis_scenario(method, 4);
    scenario.workload.tokens = 200LL * 4 * 10;  // 200 steps: 33 rounds of 6 and one of 2
    scenario.platform = platforms::uniform(4, 5e9, 5e9, 0.01);
    const RunReport some = sim::simulate_scenario(scenario).report;
    const RunReport all = sim::simulate_scenario(scenario, {.rounds = {}, .all_rounds = true}).report;
    CAPTURE(method);
    CHECK(close(some.wall_clock_s, all.wall_clock_s, 1e-9));
    CHECK(close(some.round.exposed_communication_s, all.round.exposed_communication_s, 1e-9));
    CHECK(close(some.compute_utilization, all.compute_utilization, 1e-9));
    CHECK(close(some.bytes_per_token, all.bytes_per_token, 1e-12));
  }
}

TEST_CASE("two nodes at one site: nothing between them crosses the WAN, and it takes no time") {
  costmodel::Plan plan;
  plan.nodes = {{costmodel::NodeKind::worker, 0, 1},
                {costmodel::NodeKind::server, 0, 0},
                {costmodel::NodeKind::worker, 1, 1}};
  plan.rounds = plan.steps = 1;
  costmodel::Payload payload;
  payload.elements = 500'000'000;  // bf16: 1 GB
  const auto transfer = [&](std::vector<int> nodes) {
    costmodel::Transfer made;
    made.pattern = costmodel::Pattern::reduce;
    made.exchanges = {{std::move(nodes), {payload}}};
    return made;
  };
  platforms::Platform platform = platforms::uniform(2, 1e9, 1e9, 0.5);
  const auto seconds = [&](std::vector<int> nodes) {
    costmodel::RoundPlan round;
    round.ops.push_back({"reduce", transfer(std::move(nodes)), {}});
    plan.round = [round](std::int64_t) { return round; };
    return sim::simulate(plan, {0}, platform, [](auto&&...) { return 0.0; }).round_end_s[0];
  };
  CHECK(seconds({1, 0}) < 1e-9);                            // inside site 0
  CHECK(seconds({1, 0, 2}) == doctest::Approx(0.5 + 1.0));  // only the remote node uses the link
  platform.sites[0].fabric_bytes_per_s = 1e8;
  CHECK(seconds({1, 0}) == doctest::Approx(10.0));  // with a stated fabric rate
}

TEST_CASE("ideal: streaming with unequal fragments: norms at both ends, the embedding in the last") {
  costmodel::Scenario scenario = tests::every_axis_scenario("streaming_diloco", 4);
  scenario.model.layers = 6;
  for (const int fragments : {1, 2, 3, 6}) {
    scenario.strategy.fragments = fragments;
    scenario.strategy.overlap_steps =
        fragments == 6 ? 0 : 1;  // less than K/P: no two fragments travel at once
    check_equal(scenario);
  }
}

TEST_CASE("ideal: every method, with uplinks that differ from downlinks, and unequal formats each way") {
  for (const costmodel::Method& method : costmodel::methods()) {
    for (const double faster : {0.25, 3.0}) {
      costmodel::Scenario scenario = tests::every_axis_scenario(std::string(method.name), 4, 2);
      scenario.platform = platforms::uniform(4, 1e8 * faster, 1e8, 0);
      check_equal(scenario);
      if (method.name != "fedavg" && method.name != "async_diloco") continue;
      scenario.strategy.wire = costmodel::plain_format(costmodel::ElementType::int8);  // only upwards
      scenario.platform.paths.change_all([&](platforms::Path& path) { path.bandwidth_bytes_per_s = 5e7; });
      check_equal(scenario);
    }
  }
}

TEST_CASE("ideal: every number format, dense and sparse, simulated = closed form") {
  using costmodel::ElementType;
  for (const char* method : {"ddp", "diloco", "fomoe", "diloco_x", "streaming_diloco"}) {
    for (const ElementType type :
         {ElementType::fp32, ElementType::fp8, ElementType::int8, ElementType::int4, ElementType::int2}) {
      costmodel::Scenario scenario = tests::every_axis_scenario(method, 4, 2);
      scenario.strategy.wire = costmodel::plain_format(type);
      check_equal(scenario);
      scenario.strategy.wire = costmodel::top_k_format(type, 64.0 / 4096, 12);
      check_equal(scenario);
    }
  }
}
