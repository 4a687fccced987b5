// Tests of ZeRO-3 across sites: two all-gathers and one reduce-scatter in every step.
#include <doctest/doctest.h>

#include "costmodel/compute/compute_times.hpp"
#include "costmodel/formula/closed_form.hpp"
#include "costmodel/methods/all.hpp"
#include "costmodel/model/memory.hpp"
#include "costmodel/plan/method.hpp"
#include "tests/plan_bytes.hpp"
#include "tests/scenarios.hpp"

using namespace fomoe;
using namespace fomoe::costmodel;

TEST_CASE("fsdp: B = 3(M−1)/M·S per site and step, 1.5 times the bytes of ddp") {
  for (const int sites : {2, 4, 8}) {
    const Scenario scenario = tests::ideal_scenario("fsdp", sites);
    const double payload = 2.0 * static_cast<double>(count_parameters(scenario.model).total());  // bf16
    const double sent = tests::sent_in_round(tests::plan_of(scenario), scenario.sites(), 0).total();
    CHECK(sent == doctest::Approx(3.0 * (sites - 1) / sites * payload).epsilon(1e-13));
    const double ddp =
        tests::sent_in_round(tests::plan_of(tests::ideal_scenario("ddp", sites)), scenario.sites(), 0)
            .total();
    CHECK(sent == doctest::Approx(1.5 * ddp).epsilon(1e-13));
  }
}

TEST_CASE("fsdp by hand: M = 4, 1 GB/s, 10 ms, ring: 9 hops and 9/4·S bytes in every step of 1 s") {
  Scenario scenario = tests::ideal_scenario("fsdp", 4);
  scenario.platform = platforms::uniform(4, 1e9, 1e9, 0.010);
  const double payload = 2.0 * static_cast<double>(count_parameters(scenario.model).total());
  const RunReport report = closed_form(scenario);
  CHECK(report.round.count == 60);  // a round is one step
  CHECK(report.round.duration_s == doctest::Approx(1 + 9 * 0.010 + 9.0 / 4 * payload / 1e9).epsilon(1e-12));
}

TEST_CASE(
    "fsdp: forward runs between the gathers, backward between the second gather and the reduce-scatter") {
  const RoundPlan round = find_method("fsdp")->plan(tests::ideal_scenario("fsdp", 4)).round(0);
  REQUIRE(round.ops.size() == 6);
  CHECK(std::get<Transfer>(round.ops[0].what).pattern == Pattern::all_gather);
  CHECK(std::get<Compute>(round.ops[1].what).work == Work::forward);
  CHECK(std::get<Transfer>(round.ops[2].what).pattern == Pattern::all_gather);
  CHECK(std::get<Compute>(round.ops[3].what).work == Work::backward);
  CHECK(std::get<Transfer>(round.ops[4].what).pattern == Pattern::reduce_scatter);
  CHECK(std::get<Compute>(round.ops[5].what).share == 0.25);  // the optimiser updates one of four shards
}

TEST_CASE("fsdp keeps 1/M of parameters and moments, and a step also needs whole weights and gradients") {
  const MemoryBytes sharded = memory_per_site(tests::ideal_scenario("fsdp", 4));
  const MemoryBytes replica = memory_per_site(tests::ideal_scenario("ddp", 4));
  CHECK(sharded.weights == doctest::Approx(replica.weights / 4).epsilon(1e-12));
  CHECK(sharded.master_weights == doctest::Approx(replica.master_weights / 4).epsilon(1e-12));
  CHECK(sharded.moments == doctest::Approx(replica.moments / 4).epsilon(1e-12));
  // The plan gathers the whole model at once, not layer by layer.
  CHECK(sharded.weights + sharded.gathered_weights == doctest::Approx(replica.weights).epsilon(1e-12));
  CHECK(sharded.gradients == doctest::Approx(replica.gradients).epsilon(1e-12));
}

TEST_CASE(
    "a given step time is split by an assumption, forward one third; a profile gives the measured split") {
  const ComputeTimes given = compute_times(tests::ideal_scenario("fsdp", 4), 1);
  CHECK(work_s(given, Work::forward) == doctest::Approx(1.0 / 3));
  CHECK(work_s(given, Work::backward) == doctest::Approx(2.0 / 3));
  bool said = false;
  for (const Provenance& entry : given.provenance)
    said = said || (entry.what == "forward pass" && entry.origin == Origin::assumed);
  CHECK(said);

  Scenario scenario = tests::ideal_scenario("fsdp", 4);
  StepProfile profile;
  profile.model = scenario.model;
  profile.points = {{2, 8, false, 0, {{0.3, 0.5, 0.1}}}};
  scenario.compute = ProfiledCompute{profile, 2};
  const ComputeTimes measured = compute_times(scenario, 4);  // two micro-batches of 2
  CHECK(work_s(measured, Work::forward) == doctest::Approx(0.6));
  CHECK(work_s(measured, Work::backward) == doctest::Approx(1.0));
  CHECK(work_s(measured, Work::optimizer) == doctest::Approx(0.1));
}
