// Tests of memory_remedy(): the fewest settings with which a scenario fits into its GPUs' memory.
#include "costmodel/compose/memory_remedy.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "costmodel/counts/memory.hpp"
#include "tests/memory_of.hpp"
#include "tests/scenarios.hpp"

using namespace fomoe;
using namespace fomoe::costmodel;

namespace {

using Settings = std::vector<std::string>;

/// DiLoCo on two sites of 8 GPUs, each GPU with a replica: 18 B per parameter and 8 B of outer state.
Scenario eight_replicas() {
  Scenario scenario = tests::ideal_scenario("diloco", 2);
  scenario.gpus.count = 8;
  return scenario;
}

}  // namespace

TEST_CASE("memory remedy: it is empty if the model fits or if no memory is given") {
  Scenario scenario = eight_replicas();
  CHECK(memory_remedy(scenario).settings.empty());
  CHECK(memory_problem(scenario).empty());
  scenario.gpus.gpu_memory_bytes = memory_per_gpu(scenario).total();
  CHECK(memory_remedy(scenario).fits);
  CHECK(memory_remedy(scenario).settings.empty());
}

TEST_CASE("memory remedy: sharding is tried first, and settings that it makes unnecessary are left out") {
  Scenario scenario = eight_replicas();
  Scenario sharded = scenario;
  sharded.gpus.sharded = 8;
  const double needed = memory_per_gpu(sharded).total();
  scenario.gpus.gpu_memory_bytes = needed;
  MemoryRemedy remedy = memory_remedy(scenario);
  CHECK(remedy.fits);
  CHECK(remedy.settings == Settings{"compute.sharded=8"});
  CHECK(remedy.gpu_bytes == needed);

  // With one byte less the outer state must move to the host as well.
  scenario.gpus.gpu_memory_bytes = needed - 1;
  remedy = memory_remedy(scenario);
  CHECK(remedy.fits);
  CHECK(remedy.settings == Settings{"compute.sharded=8", "compute.outer_state_on=host"});
  sharded.gpus.outer_state_on = OuterStateOn::host;
  CHECK(remedy.gpu_bytes == memory_per_gpu(sharded).total());
}

TEST_CASE(
    "memory remedy: one sufficient setting is proposed alone, although another one is tried before it") {
  // Outer state is 8 of 26 B per parameter. Sharding over two replicas would save more, but a site has one
  // GPU here.
  Scenario scenario = tests::ideal_scenario("diloco", 2);
  scenario.gpus.gpu_memory_bytes = memory_per_gpu(scenario).total() * 18 / 26;
  CHECK(memory_remedy(scenario).settings == Settings{"compute.outer_state_on=host"});
}

TEST_CASE("memory remedy: if activations are too large, activation checkpointing is the only proposal") {
  // Sharding and outer state on the host are tried first and would save state, but not enough.
  Scenario scenario = eight_replicas();
  scenario.gpus.micro_batch_sequences = 1;
  scenario.model.sequence_length *= 100'000;
  Scenario recomputed = scenario;
  recomputed.gpus.activation_checkpointing = true;
  scenario.gpus.gpu_memory_bytes = memory_per_gpu(recomputed).total();
  REQUIRE(memory_per_gpu(scenario).activations > scenario.gpus.gpu_memory_bytes);
  CHECK(memory_remedy(scenario).settings == Settings{"compute.activation_checkpointing=true"});
}

TEST_CASE("memory remedy: the largest micro-batch that fits, since each one gathers the weights again") {
  Scenario scenario = eight_replicas();
  scenario.gpus.sharded = 8;
  scenario.gpus.intra_site_bytes_per_s = 1e9;
  scenario.compute = AssumedDevice{1e12, 0, 0.5};
  scenario.workload.global_batch_sequences = 16 * 1024;
  scenario.gpus.micro_batch_sequences = 1024;
  scenario.gpus.outer_state_on = OuterStateOn::host;
  Scenario smaller = scenario;
  smaller.gpus.micro_batch_sequences = 600;
  scenario.gpus.gpu_memory_bytes = memory_per_gpu(smaller).total();
  const MemoryRemedy remedy = memory_remedy(scenario);
  CHECK(remedy.fits);
  CHECK(remedy.settings == Settings{"compute.micro_batch_sequences=600"});
}

TEST_CASE(
    "memory remedy: more GPUs are proposed if a site's own do not suffice, and nothing if no setting does") {
  Scenario scenario = tests::ideal_scenario("diloco", 2);
  for (const int gpus : {4, 64}) {  // 64 is the most that is tried
    Scenario more = scenario;
    more.gpus.count = more.gpus.sharded = gpus;
    more.gpus.outer_state_on = OuterStateOn::host;
    scenario.gpus.gpu_memory_bytes = memory_per_gpu(more).total();
    const MemoryRemedy remedy = memory_remedy(scenario);
    CHECK(remedy.fits);
    CHECK(remedy.settings == Settings{"compute.outer_state_on=host",
                                      "compute.gpus_per_site=" + std::to_string(gpus),
                                      "compute.sharded=" + std::to_string(gpus)});
  }

  scenario.gpus.gpu_memory_bytes = 1;
  const MemoryRemedy none = memory_remedy(scenario);
  CHECK_FALSE(none.fits);
  CHECK(remedy_text(none).starts_with("even with compute.outer_state_on=host a GPU would need "));
}

TEST_CASE("memory remedy: experts are divided among a site's GPUs before GPUs are added") {
  // Replicas of Megatron-LM that share nothing but the optimiser's state: whole weights do not fit.
  Scenario scenario = tests::ideal_scenario("diloco", 2);
  scenario.model = *find_preset("xxl");
  scenario.gpus.count = 8;
  scenario.gpus.stack = Stack::megatron;
  scenario.gpus.outer_state_on = OuterStateOn::host;
  Scenario divided = scenario;
  divided.gpus.sharded = 8;
  divided.gpus.zero_stage = 1;
  divided.gpus.expert_parallel = 2;
  REQUIRE(scenario.model.experts % 4 == 0);
  const double needed = counts_of(divided).sites.front().need_of_gpu.needed;
  scenario.gpus.gpu_memory_bytes = needed;
  const MemoryRemedy remedy = memory_remedy(scenario);
  CHECK(remedy.fits);
  CHECK(remedy.settings ==
        Settings{"compute.expert_parallel=2", "compute.sharded=8", "compute.zero_stage=1"});
  CHECK(remedy.gpu_bytes == needed);
}

TEST_CASE("memory remedy: the scenario fits with the proposed settings") {
  // Each proposal is applied to the scenario, and the memory formula must agree that it fits.
  const double whole = memory_per_gpu(eight_replicas()).total();
  for (const double share : {0.9, 0.5, 0.2, 0.15, 0.12}) {
    Scenario scenario = eight_replicas();
    scenario.gpus.micro_batch_sequences = 4;
    scenario.gpus.gpu_memory_bytes = share * whole;
    const MemoryRemedy remedy = memory_remedy(scenario);
    CAPTURE(share);
    CHECK(remedy.gpu_bytes <= scenario.gpus.gpu_memory_bytes);
    CHECK(remedy.fits);
    CHECK_FALSE(remedy.settings.empty());
    CHECK(memory_problem(scenario).ends_with(remedy_text(remedy)));
    scenario.gpus.micro_batch_sequences = 0;
    CHECK(memory_problem(scenario).ends_with("compute.micro_batch_sequences is not given"));
  }
}
