// Tests of the memory of a site's GPUs, by class and by hand.
#include <doctest/doctest.h>

#include "costmodel/compose/check.hpp"
#include "costmodel/counts/counts.hpp"
#include "costmodel/counts/memory.hpp"
#include "costmodel/formula/closed_form.hpp"
#include "costmodel/timeline/report_assembly.hpp"
#include "platforms/support/input_error.hpp"
#include "tests/memory_of.hpp"
#include "tests/scenarios.hpp"

using namespace fomoe;
using namespace fomoe::costmodel;

namespace {

// divisible_shape: d 6720, L 2, 4 heads, N_e 8, k 2, d_expert 16, V 100, s 10
constexpr double d = 6720, V = 100, s = 10, L = 2;

double parameters(const Scenario& scenario) {
  return static_cast<double>(count_parameters(scenario.model).total());
}

}  // namespace

TEST_CASE("activations of a dense layer: 32·d bytes per token, which is 34·d without the dropout masks") {
  // Korthikanti et al. 2022, eq. 1, without 5·a·s/h: the 11·d of attention and the 19·d of the MLP include a
  // dropout mask of one byte per element each, and 4·d are the inputs of the norms.
  Scenario scenario = tests::ideal_scenario("diloco", 2);
  ModelShape& shape = scenario.model;
  shape.experts = shape.active_experts = 0;
  shape.dense_layers = shape.layers;
  shape.d_ffn = 4 * shape.d_model;
  shape.norms_per_layer = 2;
  CHECK(site_model(scenario).dense_layer_bytes_per_token == (11 - 1 + 19 - 1 + 4) * d);
}

TEST_CASE("activations of a layer with experts, by its tensors") {
  Scenario scenario = tests::ideal_scenario("fomoe", 4, 4);
  const double attention = 2 * (d + d + 2 * d + d);  // input, queries, keys and values, result
  const double norms = 2 * 4 * d;
  const double input_and_scores = 2 * d + 4 * 8;
  const double expert = 2 * 16;                                            // the up-projection
  const double layer = attention + norms + input_and_scores + 2 * expert;  // k = 2
  const double tokens = 3 * s;
  const double outside = tokens * (2 * d * 3 + 2 * V);  // inputs of two norms and of the unembedding, logits
  CHECK(memory_per_gpu(scenario, 3).activations == tokens * L * layer + outside);
  CHECK(memory_per_gpu(scenario, 0).activations == 0);
  // With one local expert of eight, one of the two chosen experts runs; with skip-token, an eighth of the
  // chosen rows do.
  scenario.model.experts = 8;
  scenario.platform = platforms::uniform(8, 1e9, 1e9, 0);
  scenario.strategy.expert_overlap = 1;
  CHECK(memory_per_gpu(scenario, 3).activations == tokens * L * (layer - expert) + outside);
  scenario.strategy.skip_token = true;
  CHECK(memory_per_gpu(scenario, 3).activations == tokens * L * (layer - 1.75 * expert) + outside);
}

TEST_CASE("experts on another GPU get copies of the tokens, which are kept as the answers are") {
  const double copies = 2 * (2 * d + 16);  // a token's copy, the expert's output, and what SiLU gives
  Scenario scenario = tests::ideal_scenario("diloco", 2);
  const double here = site_model(scenario).bytes_per_token_and_expert;
  scenario.gpus.count = scenario.gpus.expert_parallel = 2;
  CHECK(site_model(scenario).bytes_per_token_and_expert == here + copies);
  for (const char* method : {"expert_parallel_wan", "remote_experts"}) {
    CAPTURE(method);
    CHECK(site_model(tests::ideal_scenario(method, 2)).bytes_per_token_and_expert == here + copies);
  }
}

TEST_CASE("activation checkpointing keeps 2·d bytes per token and layer, and one whole layer") {
  Scenario scenario = tests::ideal_scenario("diloco", 2);
  const SiteModel model = site_model(scenario);
  const double layer = model.moe_layer_bytes_per_token + 2 * model.bytes_per_token_and_expert;
  scenario.gpus.activation_checkpointing = true;
  const double tokens = 5 * s, outside = tokens * (2 * d * 3 + 2 * V);
  CHECK(memory_per_gpu(scenario, 5).activations == tokens * (L * 2 * d + layer) + outside);
}

TEST_CASE("logits: chunks of equally many tokens, of at most 2 GiB; more sequences may need less memory") {
  Scenario scenario = tests::ideal_scenario("diloco", 2);
  scenario.model.vocabulary = 8'000'000;
  scenario.gpus.activation_checkpointing = true;
  const auto bytes = [&](double sequences) { return memory_per_gpu(scenario, sequences).activations; };
  // 13 sequences: 130 tokens · 16 MB = 2,080 MB < 2 GiB; 14: 2,240 MB, in two chunks.
  const double without_logits = bytes(2) - bytes(1) - 160e6;
  CHECK(bytes(13) - bytes(12) == doctest::Approx(without_logits + 160e6).epsilon(1e-9));
  CHECK(bytes(14) - bytes(13) == doctest::Approx(without_logits + 1120e6 - 2080e6).epsilon(1e-9));
  CHECK(bytes(15) - bytes(14) == doctest::Approx(without_logits + 80e6).epsilon(1e-9));
  const auto largest_in_memory_of = [&](double sequences) {
    scenario.gpus.gpu_memory_bytes = memory_per_gpu(scenario, sequences).total();
    return largest_micro_batch_sequences(scenario).value();
  };
  // 12 need more; 42, in four chunks, as much as 10.5 in one and the activations of 31 more.
  CHECK(largest_in_memory_of(11) == 42);
  CHECK(largest_in_memory_of(30) == 30);
}

TEST_CASE("ZeRO divides moments and master weights, then also gradients, then also weights") {
  Scenario scenario = tests::ideal_scenario("diloco", 2);
  const double n = parameters(scenario);
  scenario.gpus.count = scenario.gpus.sharded = 4;
  const double per_parameter[] = {0, 2 + 4 + (12 + 8) / 4.0, 2 + (4 + 12 + 8) / 4.0, (2 + 4 + 12 + 8) / 4.0};
  for (const int stage : {1, 2, 3}) {
    CAPTURE(stage);
    scenario.gpus.zero_stage = stage;
    const MemoryBytes gpu = memory_per_gpu(scenario);
    CHECK(gpu.total() - gpu.gathered_weights == per_parameter[stage] * n);
    // While a layer is computed its weights are whole. A GPU keeps a quarter and gathers the rest.
    const double layer = (n - V * d) / L;
    CHECK(gpu.gathered_weights == (stage == 3 ? 2 * layer : 0));
    CHECK(memory_per_site(scenario).total() == 4 * gpu.total());
  }
}

TEST_CASE("tensor, expert and pipeline parallelism divide their parts of the parameters and activations") {
  Scenario scenario = tests::ideal_scenario("local_adamw", 2);
  const ParameterCounts counts = count_parameters(scenario.model);
  const auto dense = static_cast<double>(counts.dense());
  const auto experts = static_cast<double>(counts.expert + counts.router);
  SiteGpus& gpus = scenario.gpus;
  gpus.count = gpus.tensor_parallel = 4;
  CHECK(memory_per_gpu(scenario).total() == 18 * (dense + experts) / 4);
  CHECK(memory_per_gpu(scenario, 2).activations == [&] {
    Scenario one = scenario;
    one.gpus = SiteGpus{};
    return memory_per_gpu(one, 2).activations / 4;
  }());
  gpus = SiteGpus{};
  gpus.count = gpus.expert_parallel = 2;
  CHECK(memory_per_gpu(scenario).total() == 18 * (dense + experts / 2));
  CHECK(memory_per_site(scenario).total() == 18 * (2 * dense + experts));
  gpus = SiteGpus{};
  gpus.count = gpus.pipeline_parallel = 2;
  // Tied embedding tables: one copy at each end of the pipeline.
  const double blocks = dense - V * d + experts;
  CHECK(memory_per_gpu(scenario).total() == 18 * (blocks / 2 + V * d));
  CHECK(memory_per_site(scenario).total() == 18 * (blocks + 2 * V * d));
  // The first of two stages has two micro-batches in flight, each with the activations of one layer. The last
  // stage has one micro-batch in flight, and the logits.
  const SiteModel model = site_model(scenario);
  const double layer = model.moe_layer_bytes_per_token + 2 * model.bytes_per_token_and_expert;
  CHECK(memory_per_gpu(scenario, 1).activations == s * 2 * layer);
  gpus.micro_batch_sequences = 1;
  CHECK(memory_per_site(scenario).activations == s * (2 + 1) * layer + s * (2 * d * 3 + 2 * V));
}

TEST_CASE("outer state on the host: one copy per site, and none on its GPUs") {
  Scenario scenario = tests::ideal_scenario("diloco", 2);
  scenario.gpus.count = 8;
  const double n = parameters(scenario);
  CHECK(memory_per_site(scenario).total() == 8 * 26 * n);
  CHECK(host_bytes_per_site(scenario) == 0);
  scenario.gpus.outer_state_on = OuterStateOn::host;
  CHECK(memory_per_site(scenario).total() == 8 * 18 * n);
  CHECK(host_bytes_per_site(scenario) == 8 * n);
}

TEST_CASE("the largest micro-batch fits, and one sequence more does not") {
  Scenario scenario = tests::ideal_scenario("diloco", 2);
  CHECK_FALSE(largest_micro_batch_sequences(scenario).has_value());  // the GPU memory is not given
  const double state = memory_per_gpu(scenario, 0).total();
  const double sequence = memory_per_gpu(scenario, 1).activations;  // linear: the logits stay below a chunk
  scenario.gpus.gpu_memory_bytes = state + 7.5 * sequence;
  CHECK(largest_micro_batch_sequences(scenario) == 7);
  scenario.gpus.gpu_memory_bytes = state + 7 * sequence;
  CHECK(largest_micro_batch_sequences(scenario) == 7);
  scenario.gpus.gpu_memory_bytes = state + 0.5 * sequence;
  CHECK(largest_micro_batch_sequences(scenario) == 0);
}

TEST_CASE("every executor's report has the same memory, and warns if a GPU has too little") {
  Scenario scenario = tests::ideal_scenario("diloco", 2);
  scenario.gpus.count = 2;
  scenario.gpus.micro_batch_sequences = 1;
  scenario.gpus.gpu_memory_bytes = 1;
  const RunReport report = closed_form(scenario);
  CHECK(report.sites[0].memory_bytes == memory_per_site(scenario).total());
  CHECK(report.memory_problem.starts_with("does not fit: a GPU needs "));
}

TEST_CASE("parallel degrees that do not divide are refused, and the message has degrees that would") {
  const auto complaint = [](auto&& change) -> std::string {
    Scenario scenario = tests::ideal_scenario("fomoe", 4, 2);  // N_le = 4
    change(scenario);
    try {
      check(scenario);
    } catch (const InputError& error) {
      return error.what();
    }
    return "accepted";
  };
  CHECK(complaint([](Scenario& x) { x.gpus.count = x.gpus.expert_parallel = 2; }) == "accepted");
  CHECK(complaint([](Scenario& x) {
          x.gpus.count = 6;
          x.gpus.sharded = 4;
        }) ==
        "compute.gpus_per_site: got 6; expected a multiple of 4, the product of sharded, tensor_parallel, "
        "context_parallel and pipeline_parallel; for example gpus_per_site = 4");
  CHECK(complaint([](Scenario& x) { x.gpus.count = x.gpus.tensor_parallel = 3; }) ==
        "compute.tensor_parallel: got 3; expected a divisor of 4, the number of attention heads; for example "
        "tensor_parallel = 1");
  CHECK(complaint([](Scenario& x) { x.gpus.count = x.gpus.pipeline_parallel = 3; }) ==
        "compute.pipeline_parallel: got 3; expected at most the model's 2 layers; for example "
        "pipeline_parallel = 1");
  CHECK(complaint([](Scenario& x) { x.gpus.count = x.gpus.expert_parallel = 8; }) ==
        "compute.expert_parallel: got 8; expected a divisor of 4, the number of experts that a site holds in "
        "each layer; for example expert_parallel = 1");
}

TEST_CASE("one pass of fomoe-train in bf16: the fuller of two moments; several passes: sums in fp32") {
  Scenario scenario = tests::ideal_scenario("ddp", 2);
  scenario.workload.global_batch_sequences = 6;
  const double whole = memory_per_gpu(scenario, 3).activations, all = parameters(scenario);
  StepProfile profile;
  profile.model = scenario.model;
  profile.dtype = "bf16";
  profile.points = {{3, scenario.model.experts, false, 0, {{1, 1, 1}}}};
  scenario.compute = ProfiledCompute{profile, 3};
  MemoryBytes memory = memory_per_gpu(scenario);
  CHECK(memory.gradients == 2 * all);
  constexpr double kCublas = 64 << 20;  // for two threads on a Hopper GPU
  CHECK(memory.workspaces == kCublas);
  // Few tokens: the end of the backward pass is the fuller one.
  CHECK(memory.total() == 16 * all + whole / L + kCublas);
  // Many tokens: at the end of the forward pass, 14 B per parameter, all activations, and the gradient of the
  // unembedding; its logits are 3,000 · 10 · 100 · 2 B, less than a chunk.
  scenario.workload.global_batch_sequences = 6000;
  std::get<ProfiledCompute>(scenario.compute).micro_batch_sequences = 3000;
  CHECK(memory_per_gpu(scenario).total() ==
        doctest::Approx(14 * all + 1000 * whole + 2 * V * d + kCublas).epsilon(1e-12));
  // Two passes: the sums of the gradients have 4 B, and all exist when the second pass begins.
  std::get<ProfiledCompute>(scenario.compute).micro_batch_sequences = 1500;
  memory = memory_per_gpu(scenario);
  CHECK(memory.gradients == 4 * all);
  CHECK(memory.activations == doctest::Approx(500 * whole).epsilon(1e-12));
  // GPUs that share the weights process the same sequences.
  Scenario shared = scenario;
  shared.gpus.count = shared.gpus.tensor_parallel = 2;
  CHECK(counts_of(shared).at(0).load.gradient_bytes == 4);
  // A replica has no larger micro-batch than its part of the batch.
  Scenario half = scenario, replicas = scenario;
  half.workload.global_batch_sequences = 3000;
  replicas.gpus.count = 2;  // with 1,500 sequences each, as the one GPU of `half`
  std::get<ProfiledCompute>(replicas.compute).micro_batch_sequences = 3000;
  CHECK(memory_per_gpu(replicas).activations == memory_per_gpu(half).activations);
  // A site that trains the whole batch needs two passes where each of two sites needs one.
  std::get<ProfiledCompute>(scenario.compute).micro_batch_sequences = 3000;
  CHECK(counts_of(scenario).at(0).load.gradient_bytes == 2);
  Scenario alone = scenario;
  alone.strategy.method = find_method("centralised");
  CHECK(counts_of(alone).at(0).load.gradient_bytes == 4);
  Scenario uneven = scenario;
  uneven.workload.batch_shares = {2, 1};
  CHECK(counts_of(uneven).at(0).load.gradient_bytes == 4);
  CHECK(counts_of(uneven).at(1).load.gradient_bytes == 2);
  // Other programs, and fp32, keep gradients in 4 B.
  std::get<ProfiledCompute>(scenario.compute).micro_batch_sequences = 3000;
  std::get<ProfiledCompute>(scenario.compute).profile.dtype = "fp32";
  CHECK(memory_per_gpu(scenario).gradients == 4 * all);
}
