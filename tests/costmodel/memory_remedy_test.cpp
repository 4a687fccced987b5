// What a scenario that does not fit is told: the fewest settings with which it would.
#include "costmodel/compose/memory_remedy.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "costmodel/model/memory.hpp"
#include "tests/scenarios.hpp"

using namespace fomoe;
using namespace fomoe::costmodel;

namespace {

using Settings = std::vector<std::string>;

/// DiLoCo on two sites of 8 GPUs, each with a replica: 18 B a parameter and 8 B of outer state.
Scenario eight_replicas() {
  Scenario scenario = tests::ideal_scenario("diloco", 2);
  scenario.gpus.count = 8;
  return scenario;
}

}  // namespace

TEST_CASE("memory remedy: nothing is said where it fits, or where nobody gave the memory") {
  Scenario scenario = eight_replicas();
  CHECK(memory_remedy(scenario).settings.empty());
  CHECK(memory_note(scenario).empty());
  scenario.gpus.gpu_memory_bytes = memory_per_gpu(scenario).total();
  CHECK(memory_remedy(scenario).fits);
  CHECK(memory_remedy(scenario).settings.empty());
}

TEST_CASE("memory remedy: sharding comes first, and what it makes unnecessary is left out") {
  Scenario scenario = eight_replicas();
  Scenario sharded = scenario;
  sharded.gpus.sharded = 8;
  const double needed = memory_per_gpu(sharded).total();
  scenario.gpus.gpu_memory_bytes = needed;
  MemoryRemedy remedy = memory_remedy(scenario);
  CHECK(remedy.fits);
  CHECK(remedy.settings == Settings{"compute.sharded=8"});
  CHECK(remedy.gpu_bytes == needed);

  // One byte less, and the outer state has to move.
  scenario.gpus.gpu_memory_bytes = needed - 1;
  remedy = memory_remedy(scenario);
  CHECK(remedy.fits);
  CHECK(remedy.settings == Settings{"compute.sharded=8", "compute.outer_state_on=host"});
  sharded.gpus.outer_state_on = OuterStateOn::host;
  CHECK(remedy.gpu_bytes == memory_per_gpu(sharded).total());
}

TEST_CASE("memory remedy: one setting is enough where it is, though another would be tried before it") {
  // Outer state is 8 of 26 B; sharding over two replicas would save more, but here there is one GPU.
  Scenario scenario = tests::ideal_scenario("diloco", 2);
  scenario.gpus.gpu_memory_bytes = memory_per_gpu(scenario).total() * 18 / 26;
  CHECK(memory_remedy(scenario).settings == Settings{"compute.outer_state_on=host"});
}

TEST_CASE("memory remedy: where activations are what does not fit, recomputing them is all that is said") {
  // Sharding and the host would save state, are tried first, and are not enough.
  Scenario scenario = eight_replicas();
  scenario.gpus.micro_batch_sequences = 100'000;
  Scenario recomputed = scenario;
  recomputed.gpus.activation_checkpointing = true;
  scenario.gpus.gpu_memory_bytes = memory_per_gpu(recomputed).total();
  REQUIRE(memory_per_gpu(scenario).activations > scenario.gpus.gpu_memory_bytes);
  CHECK(memory_remedy(scenario).settings == Settings{"compute.activation_checkpointing=true"});
}

TEST_CASE("memory remedy: more GPUs where the site's own do not suffice, and no promise where none do") {
  Scenario scenario = tests::ideal_scenario("diloco", 2);
  Scenario four = scenario;
  four.gpus.count = four.gpus.sharded = 4;
  four.gpus.outer_state_on = OuterStateOn::host;
  scenario.gpus.gpu_memory_bytes = memory_per_gpu(four).total();
  const MemoryRemedy remedy = memory_remedy(scenario);
  CHECK(remedy.fits);
  CHECK(remedy.settings ==
        Settings{"compute.outer_state_on=host", "compute.gpus_per_site=4", "compute.sharded=4"});

  scenario.gpus.gpu_memory_bytes = 1;
  const MemoryRemedy none = memory_remedy(scenario);
  CHECK_FALSE(none.fits);
  CHECK(remedy_text(none).starts_with("even with compute.outer_state_on=host it would need "));
}

TEST_CASE("memory remedy: what is proposed fits, and fits no longer with one setting less") {
  // Held to the memory formula by the settings themselves: every proposal is put into the scenario.
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
    CHECK(memory_note(scenario).ends_with(remedy_text(remedy)));
    scenario.gpus.micro_batch_sequences = 0;
    CHECK(memory_note(scenario).ends_with("come on top"));
  }
}
