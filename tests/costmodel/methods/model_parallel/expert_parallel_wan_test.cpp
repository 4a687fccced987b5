// Tests of expert parallelism across sites: every step sends activations to the experts of other sites.
#include <doctest/doctest.h>

#include "costmodel/compose/check.hpp"
#include "costmodel/compose/make_plan.hpp"
#include "costmodel/counts/memory.hpp"
#include "costmodel/formula/closed_form.hpp"
#include "costmodel/formula/resolved.hpp"
#include "costmodel/model/summary_inputs.hpp"
#include "costmodel/plan/method.hpp"
#include "platforms/support/input_error.hpp"
#include "tests/memory_of.hpp"
#include "tests/plan_bytes.hpp"
#include "tests/scenarios.hpp"

using namespace fomoe;
using namespace fomoe::costmodel;

namespace {

// The ideal scenario: 2 layers, k = 2, d = 6720, bf16, and one sequence of 10 tokens per site.
constexpr double kLayers = 2, kActive = 2, kWidth = 6720, kTokens = 10, kBytes = 2;

double activation_bytes(const Scenario& scenario) {
  return tests::sent_in_round(tests::plan_of(scenario), scenario.sites(), 0).activations;
}

}  // namespace

TEST_CASE("expert parallelism: 4 all-to-alls per layer, tokens·k·d·bytes·(M−1)/M each") {
  for (const int sites : {2, 4, 8}) {
    const Scenario scenario = tests::ideal_scenario("expert_parallel_wan", sites);
    const double remote = (sites - 1.0) / sites;
    CHECK(activation_bytes(scenario) ==
          doctest::Approx(4 * kLayers * kTokens * kActive * kWidth * kBytes * remote).epsilon(1e-13));
  }
}

TEST_CASE("activation checkpointing repeats dispatch and combine: 6 all-to-alls per layer instead of 4") {
  Scenario scenario = tests::ideal_scenario("expert_parallel_wan", 4);
  const double without = activation_bytes(scenario);
  scenario.gpus.activation_checkpointing = true;
  CHECK(activation_bytes(scenario) == doctest::Approx(without * 6 / 4).epsilon(1e-13));
  CHECK(summarise(scenario).sent.activations == doctest::Approx(without * 6 / 4).epsilon(1e-13));
}

TEST_CASE("at most m sites per token: no limit above the number of sites means more copies than sites") {
  Scenario scenario = tests::ideal_scenario("expert_parallel_wan", 2);
  scenario.model.active_experts = 4;
  scenario.strategy.max_sites_per_token = 2;
  const double two = activation_bytes(scenario);
  for (const int limit : {3, 4}) {
    scenario.strategy.max_sites_per_token = limit;
    CHECK(activation_bytes(scenario) == two);
    CHECK(summarise(scenario).sent.activations == doctest::Approx(two).epsilon(1e-13));
  }
  scenario.strategy.max_sites_per_token = 0;  // a copy for each expert
  CHECK(activation_bytes(scenario) == doctest::Approx(2 * two).epsilon(1e-13));
}

TEST_CASE("a capacity factor pads bytes and FLOPs; at most m sites per token bound its copies at min(k, m)") {
  Scenario scenario = tests::ideal_scenario("expert_parallel_wan", 4);
  const double without = activation_bytes(scenario);
  scenario.strategy.capacity_factor = 1.25;
  CHECK(activation_bytes(scenario) == doctest::Approx(1.25 * without).epsilon(1e-13));
  CHECK(summarise(scenario).sent.activations == doctest::Approx(1.25 * without).epsilon(1e-13));

  scenario.strategy.capacity_factor = 0;
  scenario.strategy.max_sites_per_token = 1;  // both experts of a token (k = 2) are on one site
  CHECK(activation_bytes(scenario) == doctest::Approx(without / 2).epsilon(1e-13));
  CHECK(summarise(scenario).sent.activations == doctest::Approx(without / 2).epsilon(1e-13));
  scenario.strategy.max_sites_per_token = 3;
  CHECK(activation_bytes(scenario) == doctest::Approx(without).epsilon(1e-13));
}

TEST_CASE("padding is computed: a step takes longer by the padding's share of the executed FLOPs") {
  Scenario scenario = tests::ideal_scenario("expert_parallel_wan", 4);
  scenario.model.vocabulary =
      100000;  // so that the unembedding, which no pass repeats, is a third of the FLOPs
  scenario.strategy.capacity_factor = 1.25;
  const double d = kWidth, experts = 6 * 2 * d * 16 * kActive * kLayers, unembedding = 6 * d * 100000,
               others = 6 * kLayers * (4 * d * d + d * 8) + 12 * kLayers * d * kTokens;  // d_expert 16, N_e 8
  CHECK(summarise(scenario).compute_factor ==
        doctest::Approx(1 + 0.25 * experts / (experts + unembedding + others)).epsilon(1e-12));
  // Activation checkpointing executes a third of the layers' FLOPs again, and the padding among them.
  scenario.gpus.activation_checkpointing = true;
  CHECK(summarise(scenario).compute_factor ==
        doctest::Approx(1 + 0.25 * experts * 4 / 3 / (unembedding + (experts + others) * 4 / 3))
            .epsilon(1e-12));
}

TEST_CASE(
    "the closed form says that it approximates where measured passes divide a step otherwise than FLOPs") {
  Scenario scenario = tests::ideal_scenario("expert_parallel_wan", 4),
           remote = tests::ideal_scenario("remote_experts", 4);
  CHECK(summarise(remote).approximate == false);
  scenario.compute = remote.compute = ProfiledCompute{};
  CHECK(summarise(remote).approximate == true);  // a forward pass more, whose length it takes from the FLOPs
  // Padding lengthens both passes alike, unless one of them repeats a forward pass.
  scenario.strategy.capacity_factor = 1.25;
  CHECK(summarise(scenario).approximate == false);
  scenario.gpus.activation_checkpointing = true;
  CHECK(summarise(scenario).approximate == true);
  scenario.strategy.capacity_factor = 0;
  CHECK(summarise(scenario).approximate == false);
}

TEST_CASE("expert parallelism: dense gradients and the router's are averaged in every step, experts' never") {
  const Scenario scenario = tests::ideal_scenario("expert_parallel_wan", 4);
  const ParameterCounts counts = count_parameters(scenario.model);
  const SentBytes sent = tests::sent_in_round(tests::plan_of(scenario), scenario.sites(), 0);
  CHECK(sent.dense ==
        doctest::Approx(2.0 * 3 / 4 * kBytes * static_cast<double>(counts.total() - counts.expert))
            .epsilon(1e-13));
  CHECK(sent.expert_sync == 0);
}

TEST_CASE(
    "expert parallelism by hand: M = 2, 1 GB/s, 10 ms: a step adds 4·L latencies and each layer's bytes") {
  Scenario scenario = tests::ideal_scenario("expert_parallel_wan", 2);
  scenario.platform = platforms::uniform(2, 1e9, 1e9, 0.010);
  const ParameterCounts counts = count_parameters(scenario.model);
  const double exchange_s = 0.010 + kTokens * kActive * kWidth * kBytes / 2 / 1e9;
  const double gradients_s =
      2 * (0.010 + kBytes * static_cast<double>(counts.total() - counts.expert) / 2 / 1e9);
  CHECK(closed_form(scenario).round.duration_s ==
        doctest::Approx(1.0 + 4 * kLayers * exchange_s + gradients_s).epsilon(1e-12));
}

TEST_CASE("measured routing counts: the busiest site sets the time, and the mean over sites sets the bytes") {
  Scenario scenario = tests::ideal_scenario("expert_parallel_wan", 2);
  const double mean_bytes = activation_bytes(scenario);
  scenario.strategy.routing_counts = make_routing_counts(2, 8, 1);
  for (int layer = 0; layer < 2; ++layer) {
    for (int expert = 0; expert < 8; ++expert)
      scenario.strategy.routing_counts.at(layer, expert, 0) =
          expert < 4 ? 3 : 1;  // site 0 has 3/4 of the rows
  }
  const PlanSummary summary = summarise(scenario);
  CHECK(activation_bytes(scenario) == doctest::Approx(mean_bytes).epsilon(1e-9));
  CHECK(summary.sent.activations == doctest::Approx(mean_bytes).epsilon(1e-13));
  CHECK(summary.stages[0].bytes ==
        doctest::Approx(1.5 * kTokens * kActive * kWidth * kBytes / 2).epsilon(1e-13));  // bytes into site 0
  CHECK(summary.compute_factor == doctest::Approx(1));
  CHECK(summary.idle_factor == doctest::Approx(0.5 * fixed_of(scenario).expert_compute_share));
}

TEST_CASE("expert parallelism: each site keeps all dense parameters and 1/M of the experts") {
  const Scenario scenario = tests::ideal_scenario("expert_parallel_wan", 4);
  const ParameterCounts counts = count_parameters(scenario.model);
  CHECK(parameters_per_site(scenario) == counts.total() - counts.expert + counts.expert / 4);
}

TEST_CASE("experts that do not divide among the sites are refused with the nearest number of sites") {
  try {
    check(tests::ideal_scenario("expert_parallel_wan", 3));
    FAIL("8 experts on 3 sites");
  } catch (const InputError& error) {
    CHECK(error.key() == "platform.sites");
    CHECK(std::string(error.what()).ends_with("for example 2"));
  }
}

TEST_CASE("fp8 dispatch: two of four transfers have 1 B and a scale per 128 values, the combines have 2 B") {
  Scenario scenario = tests::ideal_scenario("expert_parallel_wan", 4);
  scenario.model.d_model = 6720;
  const double bf16 = activation_bytes(scenario);
  scenario.strategy.dispatch_dtype = ElementType::fp8;
  // DeepSeek-V3, section 3.3.2: (1 + 4/128) B instead of 2 B.
  const double expected = bf16 / 2 + bf16 / 2 * (1 + 4.0 / 128) / 2;
  CHECK(activation_bytes(scenario) == doctest::Approx(expected).epsilon(1e-3));
  CHECK(summarise(scenario).sent.activations == doctest::Approx(activation_bytes(scenario)).epsilon(1e-3));
  scenario.gpus.activation_checkpointing = true;
  CHECK(activation_bytes(scenario) == doctest::Approx(expected * 1.5).epsilon(1e-3));
}

TEST_CASE("the capacity factor pads the activations that experts keep") {
  Scenario scenario = tests::ideal_scenario("expert_parallel_wan", 4);
  const auto kept = [&](double factor) {
    scenario.strategy.capacity_factor = factor;
    return memory_per_gpu(scenario, 1).activations;
  };
  const double without = kept(0), of_experts = kept(2) - kept(1);
  CHECK(kept(1) == without);
  CHECK(of_experts > 0);
  CHECK(kept(1.25) - without == doctest::Approx(0.25 * of_experts).epsilon(1e-9));
}

TEST_CASE("expert parallelism: two halves send the same bytes, and need two sequences per site") {
  Scenario scenario = tests::ideal_scenario("expert_parallel_wan", 4);
  scenario.workload.global_batch_sequences = 8;
  const double without = activation_bytes(scenario);
  scenario.strategy.overlap_dispatch = true;
  CHECK(activation_bytes(scenario) == doctest::Approx(without).epsilon(1e-13));
  CHECK(summarise(scenario).sent.activations == doctest::Approx(without).epsilon(1e-13));
  CHECK(resolve(scenario).plan.lower_bound);
  CHECK_NOTHROW(check(scenario));  // two sequences for each site
  scenario.workload.global_batch_sequences = 7;
  CHECK_THROWS_AS(check(scenario), InputError);
}

TEST_CASE("experts that a site's GPUs divide: AdamW's share follows what a GPU updates") {
  Scenario scenario = tests::ideal_scenario("expert_parallel_wan", 4);
  const ParameterCounts counts = count_parameters(scenario.model);
  const auto experts = static_cast<double>(counts.expert);
  const double dense = static_cast<double>(counts.total()) - experts;
  for (const int degree : {1, 2}) {
    scenario.gpus.count = scenario.gpus.expert_parallel = degree;
    // Of the replica's dense part and experts ÷ degree, a GPU keeps the dense part and a quarter of the
    // experts.
    const double share = (dense + experts / degree / 4) / (dense + experts / degree);
    CHECK(summarise(scenario).optimizer_factor == doctest::Approx(share).epsilon(1e-12));
    const RoundPlan round = tests::plan_of(scenario).round(0);
    CHECK(std::get<Compute>(round.ops.back().what).share == doctest::Approx(share).epsilon(1e-12));
  }
}
