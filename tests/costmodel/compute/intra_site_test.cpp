// Tests of the step times of sites with many GPUs: the terms of parallelism.hpp by hand, and step times from
// the profile of one GPU.
#include <doctest/doctest.h>

#include "costmodel/compute/compute_times.hpp"
#include "costmodel/counts/memory.hpp"
#include "costmodel/formula/closed_form.hpp"
#include "costmodel/formula/memory_throughput.hpp"
#include "costmodel/model/flops.hpp"
#include "platforms/support/input_error.hpp"
#include "tests/memory_of.hpp"
#include "tests/scenarios.hpp"

using namespace fomoe;
using namespace fomoe::costmodel;

namespace {

// divisible_shape: d 6720, L 2, N_e 8, k 2, V 100, s 10
constexpr double d = 6720, s = 10, L = 2;
constexpr double kFabric = 1e9;

Scenario on_gpus(const SiteGpus& gpus) {
  Scenario scenario = tests::ideal_scenario("diloco", 2);
  scenario.compute = AssumedDevice{1e12, 0, 0.5};
  scenario.gpus = gpus;
  scenario.gpus.intra_site_bytes_per_s = kFabric;
  scenario.gpus.micro_batch_sequences = 2;
  return scenario;
}

double dense(const Scenario& scenario) {
  return static_cast<double>(count_parameters(scenario.model).dense());
}
double sparse(const Scenario& scenario) {
  const ParameterCounts counts = count_parameters(scenario.model);
  return static_cast<double>(counts.expert + counts.router);
}

/// Executed FLOPs of a token in the forward and the backward pass, once.
double executed_flops(const ModelShape& shape) {
  return causal_flops(shape, flops_per_token(shape, 8, false, FlopsAccounting::mechanism)).total();
}
/// Forward and backward of all sequences, divided among all GPUs: F·B_l·s ÷ (efficiency · peak · GPUs).
double computation_s(const Scenario& scenario, double sequences) {
  return executed_flops(scenario.model) * sequences * s / (0.5 * 1e12 * scenario.gpus.count);
}

bool states(const ComputeTimes& times, const std::string& what, Origin origin) {
  for (const Provenance& entry : times.provenance)
    if (entry.what == what && entry.origin == origin) return true;
  return false;
}

// Share of the FLOPs that activation checkpointing repeats: all but those of the unembedding.
double layers_share(const ModelShape& shape) {
  const auto unembedding = 6.0 * static_cast<double>(shape.vocabulary * shape.d_model);
  return 1 - unembedding / full_replica_flops(shape).total();
}

}  // namespace

TEST_CASE(
    "data parallel: the batch is divided, and 2(n−1)/n of the 32-bit gradients cross the site's network") {
  const Scenario scenario = on_gpus({4});
  const ComputeTimes times = compute_times(scenario, 32);
  const double gradients = 4 * (2 * 3 / 4.0) * (dense(scenario) + sparse(scenario)) / kFabric;
  CHECK(times.gradients_s == doctest::Approx(computation_s(scenario, 32) + gradients).epsilon(1e-14));
  CHECK(times.optimizer_s == 0);
  CHECK(states(times, "gradients inside a site", Origin::computed));
}

TEST_CASE(
    "without a given intra-site bandwidth its transfers take 0 s, and the report says that this is assumed") {
  Scenario scenario = on_gpus({4});
  scenario.gpus.intra_site_bytes_per_s = 0;
  const ComputeTimes times = compute_times(scenario, 32);
  CHECK(times.gradients_s == doctest::Approx(computation_s(scenario, 32)).epsilon(1e-14));
  CHECK(states(times, "communication inside a site", Origin::assumed));
}

TEST_CASE(
    "ZeRO 1 sends 32-bit gradients once, and 16-bit weights after the optimiser; ZeRO 3 gathers per "
    "micro-batch") {
  SiteGpus gpus{8};
  gpus.sharded = 4;  // and 2 replicas of the shards
  gpus.zero_stage = 1;
  Scenario scenario = on_gpus(gpus);
  const double n = dense(scenario) + sparse(scenario);
  const ComputeTimes one = compute_times(scenario, 64);
  const double reduced = 4 * (3 / 4.0 + 2 * (1 / 2.0) / 4) * n / kFabric;
  const double gathered = 2 * (3 / 4.0) * n / kFabric;
  CHECK(one.intra_site.gradients == doctest::Approx(reduced).epsilon(1e-14));
  CHECK(one.optimizer_s == doctest::Approx(gathered).epsilon(1e-14));
  CHECK(reduced / 2 + gathered == doctest::Approx(2 * (2 * 7 / 8.0) * n / kFabric).epsilon(1e-14));
  scenario.gpus.zero_stage = 3;
  const ComputeTimes three = compute_times(scenario, 64);  // 8 sequences per GPU: 4 micro-batches of 2
  CHECK(three.intra_site.weight_gathers == doctest::Approx(4 * 2 * gathered).epsilon(1e-14));
  CHECK(three.intra_site.gradients == doctest::Approx(4 * reduced).epsilon(1e-14));  // once a micro-batch
  CHECK(three.optimizer_s == 0);
}

TEST_CASE(
    "a pipeline of torchtitan gathers the weights of a stage and reduces its gradients once in a step") {
  SiteGpus gpus{8};
  gpus.sharded = 4;
  gpus.pipeline_parallel = 2;
  gpus.stack = Stack::torchtitan;
  const Scenario scenario = on_gpus(gpus);
  const ComputeTimes times = compute_times(scenario, 64);  // 16 sequences a replica: 8 micro-batches of 2
  const StageParameters held =
      stage_parameters(site_model(scenario), SiteLoad{8, dense(scenario), sparse(scenario), 2, 64}, 0);
  const double crossed = 2 * (3 / 4.0) * (held.dense + held.experts) / kFabric;
  CHECK(times.intra_site.weight_gathers == doctest::Approx(crossed).epsilon(1e-14));
  CHECK(times.intra_site.gradients == doctest::Approx(2 * crossed).epsilon(1e-14));
}

TEST_CASE("a sequence is not divided among replicas, and a stage has whole layers") {
  SiteGpus gpus{8};
  const Scenario scenario = on_gpus(gpus);
  const auto computation = [](const Scenario& of, double sequences) {
    const ComputeTimes times = compute_times(of, sequences);
    return times.gradients_s - times.intra_site.before_optimizer();
  };
  const double one_each = computation(scenario, 8);
  CHECK(computation(scenario, 1) == doctest::Approx(one_each).epsilon(1e-13));
  CHECK(computation(scenario, 9) == doctest::Approx(2 * one_each).epsilon(1e-13));
  Scenario three_layers = scenario;
  three_layers.model.layers = 3;
  three_layers.gpus.pipeline_parallel = 2;
  const ComputeTimes times = compute_times(three_layers, 32);  // 8 sequences a replica: 4 micro-batches of 2
  const double repeated = times.gradients_s - times.intra_site.gradients - times.intra_site.bubble;
  CHECK(times.intra_site.bubble == doctest::Approx((1 / 4.0 + 4 / 3.0 - 1) * repeated).epsilon(1e-13));
}

TEST_CASE("sequence parallelism divides what goes to experts and to the next stage") {
  SiteGpus gpus{8};
  gpus.tensor_parallel = 4;
  gpus.pipeline_parallel = 2;
  gpus.sequence_parallel = false;
  const double whole = compute_times(on_gpus(gpus), 32).intra_site.stages;
  gpus.sequence_parallel = true;
  CHECK(compute_times(on_gpus(gpus), 32).intra_site.stages == doctest::Approx(whole / 4).epsilon(1e-14));
  gpus.pipeline_parallel = 1;
  gpus.expert_parallel = 2;
  gpus.expert_tensor_parallel = 1;
  const double divided = compute_times(on_gpus(gpus), 32).intra_site.expert;
  gpus.sequence_parallel = false;
  CHECK(compute_times(on_gpus(gpus), 32).intra_site.expert == doctest::Approx(4 * divided).epsilon(1e-14));
  // Two GPUs that divide an expert gather the rows that either has got: (1/2 + 1) instead of 1/2.
  gpus.sequence_parallel = true;
  gpus.expert_tensor_parallel = 2;
  CHECK(compute_times(on_gpus(gpus), 32).intra_site.expert == doctest::Approx(3 * divided).epsilon(1e-14));
}

TEST_CASE("tensor parallel: 4 all-reduces per layer of all tokens of the replica, 6 with recomputation") {
  SiteGpus gpus{8};
  gpus.tensor_parallel = 4;  // 2 replicas
  Scenario scenario = on_gpus(gpus);
  const double activations = 2 * (32 / 2.0 * s) * d;  // bytes of one replica's tokens
  const double all_reduce = 2 * 3 / 4.0 * activations / kFabric;
  CHECK(compute_times(scenario, 32).intra_site.tensor == doctest::Approx(4 * L * all_reduce).epsilon(1e-14));
  scenario.gpus.activation_checkpointing = true;
  const ComputeTimes again = compute_times(scenario, 32);
  CHECK(again.intra_site.tensor == doctest::Approx(6 * L * all_reduce).epsilon(1e-14));
  // Recomputation adds a third of all FLOPs but the unembedding's: 8 instead of 6 per parameter.
  const double executed_layers = 1 - (1 - layers_share(scenario.model)) *
                                         full_replica_flops(scenario.model).total() /
                                         executed_flops(scenario.model);
  CHECK(again.gradients_s - again.intra_site.before_optimizer() ==
        doctest::Approx(computation_s(scenario, 32) * (1 + executed_layers / 3)).epsilon(1e-13));
}

TEST_CASE(
    "expert parallel: 4 all-to-alls per layer; all GPUs sum dense gradients, and none sum expert gradients") {
  SiteGpus gpus{2};
  gpus.expert_parallel = 2;
  const Scenario scenario = on_gpus(gpus);
  const ComputeTimes times = compute_times(scenario, 32);
  const double dispatched = 2 * (16 * s) * 2 * d / kFabric;  // k = 2 copies of a GPU's tokens
  CHECK(times.intra_site.expert == doctest::Approx(4 * L * (1 / 2.0) * dispatched).epsilon(1e-14));
  CHECK(times.intra_site.gradients ==
        doctest::Approx(4 * (2 * 1 / 2.0) * dense(scenario) / kFabric).epsilon(1e-14));
}

TEST_CASE("pipeline: a bubble of (p−1)/m, and activations between the stages") {
  SiteGpus gpus{2};
  gpus.pipeline_parallel = 2;
  const Scenario scenario = on_gpus(gpus);
  const ComputeTimes times = compute_times(scenario, 32);  // one replica: 16 micro-batches of 2
  const double transfers = 2 * 2 * (32 * s) * d / kFabric;
  CHECK(times.intra_site.stages == doctest::Approx(transfers).epsilon(1e-14));
  CHECK(times.intra_site.bubble ==
        doctest::Approx((computation_s(scenario, 32) + transfers) / 16).epsilon(1e-14));
  CHECK(states(times, "pipeline bubble", Origin::computed));
}

TEST_CASE("the size of a micro-batch is stated as assumed where time depends on it and it is not given") {
  const auto assumed = [](int pipeline, int sharded, int zero_stage, std::int64_t given) {
    SiteGpus gpus{2};
    gpus.pipeline_parallel = pipeline;
    gpus.sharded = sharded;
    gpus.zero_stage = zero_stage;
    Scenario scenario = on_gpus(gpus);
    scenario.gpus.micro_batch_sequences = given;
    return states(compute_times(scenario, 32), "micro-batch", Origin::assumed);
  };
  CHECK(assumed(2, 1, 3, 0));        // its bubble
  CHECK(assumed(1, 2, 3, 0));        // weights are gathered for each micro-batch
  CHECK_FALSE(assumed(1, 2, 2, 0));  // weights are gathered once in a step
  CHECK_FALSE(assumed(1, 1, 3, 0));
  CHECK_FALSE(assumed(2, 1, 3, 4));
}

TEST_CASE(
    "a profile is of one GPU, so replicas divide the site's batch; a given step time is of the whole site") {
  Scenario scenario = on_gpus({4});
  ProfiledCompute profiled;
  profiled.micro_batch_sequences = 2;
  profiled.profile.model = scenario.model;
  profiled.profile.points.push_back({2, 8, false, 0, {{0.1, 0.2, 0.05}}});
  scenario.compute = profiled;
  scenario.gpus.intra_site_bytes_per_s = 0;
  // 32 sequences on 4 GPUs are 4 micro-batches of 2 on each GPU.
  CHECK(compute_times(scenario, 32).gradients_s == doctest::Approx(4 * (0.1 + 0.2)).epsilon(1e-14));
  CHECK(compute_times(scenario, 32).optimizer_s == 0.05);
  scenario.gpus.activation_checkpointing = true;
  CHECK(compute_times(scenario, 32).gradients_s ==
        doctest::Approx(4 * ((1 + layers_share(scenario.model)) * 0.1 + 0.2)).epsilon(1e-13));
  scenario.gpus.sharded = 4;
  CHECK(compute_times(scenario, 32).optimizer_s == 0.05 / 4);
  scenario.compute = GivenStepTime{3.0};
  CHECK(compute_times(scenario, 32).step_s() == 3.0);
}

TEST_CASE("Prediction 2: super-linear in 1/O_e while communication dominates, flat where computation does") {
  Scenario scenario = tests::ideal_scenario("fomoe", 8, 8);
  scenario.model.experts = 64;  // most parameters are in experts, so that O_e decides memory and payload
  scenario.model.d_expert = 256;
  scenario.compute = AssumedDevice{1e16, 0, 1.0};
  scenario.strategy.local_steps = 1;
  scenario.platform = platforms::uniform(8, 1e6, 1e6, 0);
  // Memory for a full replica and four sequences.
  scenario.gpus.gpu_memory_bytes = memory_per_gpu(scenario, 4).total();
  const MemoryThroughput all = memory_throughput(scenario, 8), half = memory_throughput(scenario, 4),
                         quarter = memory_throughput(scenario, 2);
  CHECK(all.micro_batch_sequences == 4);
  // Half of the experts' 26 B per parameter become free for sequences.
  const double freed = memory_per_gpu(scenario, 0).total() - [&] {
    Scenario fewer = scenario;
    fewer.strategy.expert_overlap = 4;
    return memory_per_gpu(fewer, 0).total();
  }();
  const double sequence = memory_per_gpu(scenario, 1).activations;
  CHECK(half.micro_batch_sequences == 4 + static_cast<std::int64_t>(freed / sequence));
  CHECK(half.tokens_per_s > 2 * all.tokens_per_s);
  CHECK(quarter.tokens_per_s > 4 * all.tokens_per_s);
  CHECK(half.bytes_per_token < all.bytes_per_token / 2);

  scenario.platform = platforms::uniform(8, 1e18, 1e18, 0);
  // The payload no longer matters: tokens/s = M · MFU · peak ÷ F, and F falls only where N_le < k.
  const double bound =
      8 * 1e16 / flops_per_token(scenario.model, 32, false, FlopsAccounting::mechanism).total();
  CHECK(memory_throughput(scenario, 4).tokens_per_s == doctest::Approx(bound).epsilon(1e-3));

  scenario.gpus.gpu_memory_bytes = 1;
  CHECK(memory_throughput(scenario, 4).micro_batch_sequences == 0);
  scenario.compute = GivenStepTime{1};
  CHECK_THROWS_AS((void)memory_throughput(scenario, 4), InputError);
}

TEST_CASE("ZeRO 3 gathers and reduces once more for a smaller last micro-batch") {
  Scenario scenario = on_gpus({2});
  scenario.gpus.sharded = 2;
  const auto with = [&](std::int64_t micro_batch) {
    scenario.gpus.micro_batch_sequences = micro_batch;
    return compute_times(scenario, 10).intra_site;  // 5 sequences of each GPU
  };
  const IntraSiteSeconds one = with(5);
  for (const std::int64_t micro_batch : {3, 4}) {
    CHECK(with(micro_batch).weight_gathers == doctest::Approx(2 * one.weight_gathers).epsilon(1e-14));
    CHECK(with(micro_batch).gradients == doctest::Approx(2 * one.gradients).epsilon(1e-14));
  }
  CHECK(with(2).weight_gathers == doctest::Approx(3 * one.weight_gathers).epsilon(1e-14));
}

TEST_CASE("the buffers of a capacity factor are exchanged whole among the GPUs of a site") {
  Scenario scenario = on_gpus({2});
  scenario.strategy.method = find_method("expert_parallel_wan");
  scenario.gpus.expert_parallel = 2;
  scenario.strategy.capacity_factor = 1;
  const double without = compute_times(scenario, 4).intra_site.expert;
  CHECK(without > 0);
  scenario.strategy.capacity_factor = 2;
  CHECK(compute_times(scenario, 4).intra_site.expert == doctest::Approx(2 * without).epsilon(1e-14));
}

TEST_CASE("tensor parallelism: a layer that is a single block has one all-reduce in each pass") {
  Scenario scenario = on_gpus({2});
  scenario.gpus.tensor_parallel = 2;
  const double both = compute_times(scenario, 4).intra_site.tensor;
  // 4·L all-reduces of 2(t−1)/t · 2·T·d bytes, of the tokens of 4 sequences
  CHECK(both == doctest::Approx(4 * L * 2 * 1 / 2.0 * 2 * (4 * s) * d / kFabric).epsilon(1e-14));
  scenario.model.layers_without_attention = 1;
  CHECK(compute_times(scenario, 4).intra_site.tensor == doctest::Approx(both * 3 / 4).epsilon(1e-14));
}
