// Expert parallelism inside data parallelism: what divides dense parameters and experts.
#include <doctest/doctest.h>

#include "costmodel/compose/check.hpp"
#include "costmodel/compute/compute_times.hpp"
#include "platforms/support/input_error.hpp"
#include "tests/memory_of.hpp"
#include "tests/scenarios.hpp"

namespace fomoe::costmodel {
namespace {

constexpr double kWeights = 2, kGradients = 4, kOptimiser = 4 + 8;

struct Counted {
  double dense, experts;
};

Counted counted(const Scenario& scenario) {
  const ParameterCounts counts = count_parameters(scenario.model);
  return {static_cast<double>(counts.dense()), static_cast<double>(counts.expert + counts.router)};
}

std::string complaint(const Scenario& scenario) {
  try {
    check(scenario);
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

}  // namespace

TEST_CASE("the GPUs that divide the experts also share the dense state: both are the same GPUs") {
  Scenario scenario = tests::ideal_scenario("local_adamw", 2);
  const auto [dense, experts] = counted(scenario);
  SiteGpus& gpus = scenario.gpus;
  gpus.count = gpus.sharded = 8;
  gpus.expert_parallel = 4;
  gpus.zero_stage = 1;
  CHECK(complaint(scenario) == "accepted");
  CHECK(gpus.data_parallel() == 1);
  // Two GPUs have the same part of the experts.
  MemoryBytes memory = memory_per_gpu(scenario);
  CHECK(memory.weights == kWeights * (dense + experts / 4));
  CHECK(memory.gradients == kGradients * (dense + experts / 4));
  CHECK(memory.master_weights + memory.moments == kOptimiser * (dense / 8 + experts / 4 / 2));
  // More experts' GPUs than share the state: the experts are not divided again.
  gpus.sharded = 2;
  memory = memory_per_gpu(scenario);
  CHECK(memory.master_weights + memory.moments == kOptimiser * (dense / 2 + experts / 4));
}

TEST_CASE("tensor-parallel GPUs that do not divide an expert hold different experts") {
  Scenario scenario = tests::ideal_scenario("local_adamw", 2);
  const auto [dense, experts] = counted(scenario);
  SiteGpus& gpus = scenario.gpus;
  gpus.count = gpus.tensor_parallel = 4;
  gpus.expert_parallel = 4;
  CHECK(complaint(scenario) ==
        "compute.expert_parallel: got 4; expected a divisor of 1, the GPUs of a pipeline stage that hold "
        "different parts of the experts; for example expert_parallel = 1");
  gpus.expert_tensor_parallel = 1;
  CHECK(complaint(scenario) == "accepted");
  CHECK(memory_per_gpu(scenario).weights == kWeights * (dense / 4 + experts / 4));
  // Each GPU has an expert of its own, so that there is nothing to sum of them.
  gpus.intra_site_bytes_per_s = 1e9;
  gpus.count = 8;
  scenario.compute = AssumedDevice{1e12, 0, 0.5};
  const double summed = compute_times(scenario, 32).intra_site.gradients;
  CHECK(summed == doctest::Approx(4 * (dense / 4 + experts / 4) / 1e9).epsilon(1e-14));
}

TEST_CASE("context parallelism divides tokens, and shares the sharded state") {
  Scenario scenario = tests::ideal_scenario("local_adamw", 2);
  SiteGpus& gpus = scenario.gpus;
  gpus.count = 4;
  gpus.sharded = gpus.context_parallel = 2;
  gpus.zero_stage = 1;
  const auto [dense, experts] = counted(scenario);
  CHECK(complaint(scenario) == "accepted");
  const MemoryBytes memory = memory_per_gpu(scenario, 4);
  CHECK(memory.master_weights + memory.moments == kOptimiser * (dense + experts) / 4);
  Scenario one = scenario;
  one.gpus = SiteGpus{};
  CHECK(memory.activations == memory_per_gpu(one, 2).activations);
  gpus.count = gpus.context_parallel = 3;
  gpus.sharded = 1;
  CHECK(complaint(scenario) ==
        "compute.context_parallel: got 3; expected a divisor of 10, the tokens of a sequence; for example "
        "context_parallel = 1");
}

TEST_CASE("context parallelism: keys and values around the ring, or heads exchanged") {
  Scenario scenario = tests::ideal_scenario("local_adamw", 2);
  scenario.compute = AssumedDevice{1e12, 0, 0.5};
  SiteGpus& gpus = scenario.gpus;
  gpus.count = gpus.context_parallel = 2;
  gpus.intra_site_bytes_per_s = 1e9;
  const double layers = static_cast<double>(scenario.model.layers), d = 6720;
  REQUIRE(scenario.model.d_model == d);
  const double tokens = 6 * 10 / 2.0;  // of a GPU: half of 6 sequences of 10 tokens
  // One other GPU's keys and values in both passes, and their gradients: 3 times 2 · d elements.
  CHECK(compute_times(scenario, 6).intra_site.context ==
        doctest::Approx(layers * 3 * 2 * d * 2 * tokens / 1e9).epsilon(1e-14));
  gpus.context_exchange = ContextExchange::all_to_all;
  // Half of queries, keys, values and outputs, in both passes.
  CHECK(compute_times(scenario, 6).intra_site.context ==
        doctest::Approx(layers * 2 * 0.5 * 4 * d * 2 * tokens / 1e9).epsilon(1e-14));
}

}  // namespace fomoe::costmodel
