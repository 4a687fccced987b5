// Tests of ZeRO-3 across sites: two all-gathers and one reduce-scatter in every step.
#include <doctest/doctest.h>

#include "costmodel/compute/compute_times.hpp"
#include "costmodel/counts/memory.hpp"
#include "costmodel/formula/closed_form.hpp"
#include "costmodel/methods/all.hpp"
#include "costmodel/plan/method.hpp"
#include "tests/memory_of.hpp"
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

namespace {

// 4 sites of 2 GPUs, 24 layers, 24 sequences per site and step in micro-batches of 2 per GPU: n = 6.
Scenario layered(Sharding sharding) {
  Scenario scenario = tests::ideal_scenario("fsdp", 4);
  scenario.model.layers = 24;
  scenario.gpus.count = 2;
  scenario.gpus.micro_batch_sequences = 2;
  scenario.workload.global_batch_sequences = 96;
  scenario.workload.tokens = 96 * 10;
  scenario.strategy.sharding = sharding;
  scenario.strategy.fragments = 24;
  return scenario;
}

}  // namespace

TEST_CASE("fsdp with n micro-batches: 3n, 2n + 1, 2 and 2 times (M−1)/M·S, for each sharding") {
  for (const auto& [sharding, copies] :
       std::vector<std::pair<Sharding, double>>{{Sharding::full_shard, 18},
                                                {Sharding::full_shard_no_sync, 13},
                                                {Sharding::shard_grad_op, 2},
                                                {Sharding::hybrid_shard, 2}}) {
    const Scenario scenario = layered(sharding);
    const double payload = 2.0 * static_cast<double>(count_parameters(scenario.model).total());
    CHECK(tests::sent_in_round(tests::plan_of(scenario), 4, 0).total() ==
          doctest::Approx(copies * 3 / 4 * payload).epsilon(1e-9));
    CHECK(closed_form(scenario).bytes_sent_per_site_per_round ==
          doctest::Approx(copies * 3 / 4 * payload).epsilon(1e-9));
  }
}

TEST_CASE("fsdp with int8: gradients have 8 bits, gathered parameters 16") {
  Scenario scenario = layered(Sharding::full_shard);
  scenario.strategy.wire = plain_format(ElementType::int8);
  const auto parameters = static_cast<double>(count_parameters(scenario.model).total());
  const double expected = 3.0 / 4 * parameters * 6 * (2 * 2 + 1 + 4.0 / 256);
  CHECK(closed_form(scenario).bytes_sent_per_site_per_round == doctest::Approx(expected).epsilon(1e-9));
  CHECK(tests::sent_in_round(tests::plan_of(scenario), 4, 0).total() ==
        doctest::Approx(expected).epsilon(1e-4));
}

TEST_CASE("fsdp keeps 18·N/(M·G) bytes on a GPU, and what its sharding gathers") {
  const Scenario scenario = layered(Sharding::full_shard);
  const ParameterCounts counts = count_parameters(scenario.model);
  const auto all = static_cast<double>(counts.total()), table = static_cast<double>(counts.embedding);
  const double layer = (all - table) / 24;
  const auto state = [](const MemoryBytes& memory) { return memory.total() - memory.activations; };
  const double shard = 18 * all / 8;
  // Weights of two units in 2 B, and gradients of the first one, which has the embedding, in 4 B.
  CHECK(state(memory_per_gpu(scenario)) ==
        doctest::Approx(shard + 2 * (2 * layer + table) + 4 * (layer + table)).epsilon(1e-12));
  CHECK(state(memory_per_gpu(layered(Sharding::full_shard_no_sync))) ==
        doctest::Approx(shard + 2 * (2 * layer + table) + 4 * all).epsilon(1e-12));
  const MemoryBytes kept = memory_per_gpu(layered(Sharding::shard_grad_op));
  CHECK(kept.weights + kept.gathered_weights == doctest::Approx(2 * all).epsilon(1e-12));
  // Sharded among the two GPUs of each site.
  CHECK(state(memory_per_gpu(layered(Sharding::hybrid_shard))) ==
        doctest::Approx(18 * all / 2 + 2 * (2 * layer + table) + 4 * (layer + table)).epsilon(1e-12));
}

TEST_CASE(
    "fsdp keeps what table 1 of the ZeRO paper says: 7.5 B, 128 B and 1 T parameters on 64 and 1024 GPUs") {
  // Rajbhandari et al. 2020, stage 3, in GB with 16 B per parameter. This model counts 18 B, because it sums
  // gradients in fp32; moments and master weights have 12 B in both. What is gathered comes on top. The
  // table has two digits, so that 0.117 GB is printed as 0.12.
  struct Row {
    std::int64_t parameters;
    int gpus;
    double gigabytes;
  };
  for (const Row& row :
       {Row{7'500'000'000, 64, 1.88}, Row{7'500'000'000, 1024, 0.12}, Row{128'000'000'000, 64, 32},
        Row{128'000'000'000, 1024, 2}, Row{1'000'000'000'000, 64, 250}, Row{1'000'000'000'000, 1024, 15.6}}) {
    Scenario scenario = layered(Sharding::full_shard);
    scenario.gpus.count = row.gpus / 4;
    scenario.model.vocabulary = 0;
    scenario.model.opaque = OpaqueCounts{row.parameters, 0};
    const MemoryBytes memory = memory_per_gpu(scenario);
    CHECK((memory.weights + memory.master_weights + memory.moments) * 16 / 14 / 1e9 ==
          doctest::Approx(row.gigabytes).epsilon(0.025));
  }
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
