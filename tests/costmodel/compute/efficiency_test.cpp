// Tests of step times that follow from a share of the peak rate, and of the shares that reports state.
#include <doctest/doctest.h>

#include "costmodel/compute/compute_times.hpp"
#include "costmodel/formula/closed_form.hpp"
#include "costmodel/formula/outcome.hpp"
#include "costmodel/model/flops.hpp"
#include "tests/scenarios.hpp"

using namespace fomoe::costmodel;
using doctest::Approx;
using fomoe::tests::ideal_scenario;

namespace {

constexpr double kPeak = 1e12;

// 8 GPUs in each of two sites, with recomputation and communication inside a site.
Scenario parallel_site(AssumedDevice device) {
  Scenario scenario = ideal_scenario("diloco", 2);
  scenario.workload.global_batch_sequences = 64;
  scenario.workload.tokens *= 32;
  scenario.compute = device;
  scenario.peak_flops = kPeak;
  scenario.gpus.count = 8;
  scenario.gpus.sharded = 4;
  scenario.gpus.tensor_parallel = 2;
  scenario.gpus.intra_site_bytes_per_s = 50e9;
  scenario.gpus.micro_batch_sequences = 1;
  scenario.gpus.activation_checkpointing = true;
  return scenario;
}

/// Per token: 6·(d + d) FLOPs in each layer for each later token of the sequence, of which there are (s −
/// 1)/2.
double masked_flops(const ModelShape& shape) {
  return 6.0 * 2 * static_cast<double>(shape.d_model * shape.layers * (shape.sequence_length - 1)) / 2;
}

double model_flops_per_s(const Scenario& scenario) {
  return full_replica_flops(scenario.model).total() * 10 * 32;  // tokens of a sequence, sequences of a site
}

}  // namespace

TEST_CASE("an MFU of 40 % is one of 40 %, whatever happens inside the step") {
  const Scenario scenario = parallel_site({kPeak, 0.4, 0});
  const ComputeTimes times = compute_times(scenario, 32);
  CHECK(times.step_s() == Approx(model_flops_per_s(scenario) / (0.4 * 8 * kPeak)).epsilon(1e-12));
  CHECK(step_efficiency(scenario, 32, compute_times(scenario, 32))->mfu == Approx(0.4).epsilon(1e-12));
  // How much of the step is communication is not known.
  CHECK_FALSE(step_efficiency(scenario, 32, compute_times(scenario, 32))->kernel_efficiency.has_value());
  const RunReport report = closed_form(scenario);
  CHECK(report.efficiency->mfu == Approx(0.4).epsilon(1e-12));
  CHECK(report.efficiency->run_mfu == Approx(0.4 * report.compute_utilization).epsilon(1e-9));
  CHECK(report.flops_per_token == full_replica_flops(scenario.model).total());
}

TEST_CASE("with a kernel efficiency, recomputation and communication come on top") {
  const Scenario scenario = parallel_site({kPeak, 0, 0.4});
  const ComputeTimes times = compute_times(scenario, 32);
  // All layers run their forward pass twice, which is a third of their FLOPs; the unembedding of 100 · 6720
  // does not.
  const double whole = full_replica_flops(scenario.model).total(), masked = masked_flops(scenario.model);
  const double repeated = (whole - masked + (whole - masked - 6.0 * 100 * 6720) / 3) / whole;
  const double kernels_s = repeated * model_flops_per_s(scenario) / (0.4 * 8 * kPeak);
  CHECK(times.intra_site.before_optimizer() > 0);
  CHECK(times.gradients_s == Approx(kernels_s + times.intra_site.before_optimizer()).epsilon(1e-12));
  const auto efficiency = step_efficiency(scenario, 32, compute_times(scenario, 32));
  CHECK(*efficiency->kernel_efficiency == Approx(0.4).epsilon(1e-12));
  CHECK(efficiency->mfu == Approx(0.4 / repeated * kernels_s / times.step_s()).epsilon(1e-12));
  CHECK(efficiency->mfu < 0.3);

  // Without recomputation and with one GPU the two shares are one.
  Scenario plain = ideal_scenario("diloco", 2);
  plain.peak_flops = kPeak;
  plain.compute = AssumedDevice{kPeak, 0, 0.4};
  const double executed = 1 - masked_flops(plain.model) / full_replica_flops(plain.model).total();
  CHECK(step_efficiency(plain, 1, compute_times(plain, 1))->mfu == Approx(0.4 / executed).epsilon(1e-12));
}

TEST_CASE("recomputation of a small model with a large vocabulary: the unembedding runs once") {
  Scenario scenario = parallel_site({kPeak, 0, 0.4});
  scenario.model = *find_preset("small");
  const double flops = full_replica_flops(scenario.model).total();
  const double unembedding = 6.0 * 200'019 * 256;
  CHECK(unembedding / flops > 0.5);
  const double executed = flops - masked_flops(scenario.model);
  CHECK(compute_times(scenario, 1).step.counted_per_model_flops() ==
        Approx((executed + (executed - unembedding) / 3) / flops).epsilon(1e-12));
  scenario.gpus.activation_checkpointing = false;
  CHECK(compute_times(scenario, 1).step.counted_per_model_flops() == Approx(executed / flops).epsilon(1e-12));
  scenario.compute = AssumedDevice{kPeak, 0.4, 0};
  CHECK(compute_times(scenario, 1).step.counted_per_model_flops() == 1);
}

TEST_CASE("causal masking leaves of attention the pairs of a token with itself and those before it") {
  ModelShape shape = parallel_site({kPeak, 0, 0.4}).model;
  shape.sequence_length = 10;
  const double pairs =
      6.0 * 2 * 6720 * static_cast<double>(shape.layers);  // FLOPs for each token that a token sees
  const FlopsPerToken counted = full_replica_flops(shape);
  CHECK(counted.attention == Approx(10 * pairs).epsilon(1e-12));
  CHECK(causal_flops(shape, counted).attention == Approx(5.5 * pairs).epsilon(1e-12));
  CHECK(causal_flops(shape, counted).dense == counted.dense);
  // A window of 4: tokens see 1, 2, 3, and then 4 tokens each, 34 of the 40 that are counted.
  shape.window_layers = shape.layers;
  shape.window_tokens = 4;
  CHECK(causal_flops(shape, full_replica_flops(shape)).attention == Approx(3.4 * pairs).epsilon(1e-12));
  // Chunks of 4, 4 and 2 tokens, in which they see 1, 2, … of them: 10 + 10 + 3 pairs.
  shape.chunked = true;
  CHECK(causal_flops(shape, full_replica_flops(shape)).attention == Approx(2.3 * pairs).epsilon(1e-12));
  shape.window_tokens = 10;  // one chunk of the whole sequence
  CHECK(causal_flops(shape, full_replica_flops(shape)).attention == Approx(5.5 * pairs).epsilon(1e-12));
}

TEST_CASE("an indexer scores the tokens before each token, of which attention sees the best") {
  ModelShape shape = parallel_site({kPeak, 0, 0.4}).model;
  shape.sequence_length = 10;
  const double pairs = 6.0 * 2 * 6720 * static_cast<double>(shape.layers);
  const auto causal = [&](std::int64_t top_k) {
    shape.indexer = SparseIndexer{3, 8, top_k};
    return causal_flops(shape, full_replica_flops(shape)).attention;
  };
  const double scores = 6.0 * 3 * 8 * static_cast<double>(shape.layers) * 5.5;  // 55 pairs of 10 tokens
  // The best 4: as with a window of 4. The best 10 or 100 are all.
  CHECK(causal(4) == Approx(3.4 * pairs + scores).epsilon(1e-12));
  CHECK(causal(10) == Approx(5.5 * pairs + scores).epsilon(1e-12));
  CHECK(causal(100) == Approx(5.5 * pairs + scores).epsilon(1e-12));
}

TEST_CASE("a sweep by formula has the step times and the FLOPs per token of a single scenario") {
  for (const AssumedDevice device : {AssumedDevice{kPeak, 0.4, 0}, AssumedDevice{kPeak, 0, 0.4}}) {
    const Scenario scenario = parallel_site(device);
    const Outcome outcome = outcome_of(resolve(scenario));
    const RunReport report = closed_form(scenario);
    CHECK(outcome.wall_clock_s == Approx(report.wall_clock_s).epsilon(1e-9));
    CHECK(outcome.flops_per_token == Approx(report.flops_per_token).epsilon(1e-12));
  }
}

TEST_CASE("imported steps of several GPUs with activation checkpointing are charged for neither again") {
  Scenario scenario = parallel_site({});
  ProfiledCompute compute;
  compute.micro_batch_sequences = 4;
  compute.profile.model = scenario.model;
  compute.profile.origin = ProfileOrigin{};
  compute.profile.origin->gpus = 8;
  compute.profile.origin->recomputation = Recomputation::full;
  compute.profile.points = {{4, scenario.model.experts, false, 0, {{1, 3, 0.5}}}};
  scenario.compute = compute;
  const ComputeTimes times = compute_times(scenario, 32);  // 4 sequences for each GPU
  CHECK(times.gradients_s == 4);
  CHECK(times.optimizer_s == 0.5);

  // One GPU was timed without recomputation: all of it comes on top, a forward pass of 1 s without the
  // unembedding's share of its FLOPs.
  const double again_s = 1 - 6.0 * 100 * 6720 / full_replica_flops(scenario.model).total();
  auto& origin = std::get<ProfiledCompute>(scenario.compute).profile.origin;
  origin->gpus = 1;
  origin->recomputation = Recomputation::none;
  const ComputeTimes more = compute_times(scenario, 32);
  CHECK(more.gradients_s == Approx(4 + again_s + more.intra_site.before_optimizer()).epsilon(1e-12));
  CHECK(more.optimizer_s == Approx(0.5 / 8 + more.intra_site.updated_weights).epsilon(1e-12));
}
