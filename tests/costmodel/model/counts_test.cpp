// Tests of parameter counts, FLOPs and memory against integers that can be checked by hand.
#include <doctest/doctest.h>

#include "costmodel/compose/check.hpp"
#include "costmodel/counts/memory.hpp"
#include "costmodel/inputs/model_shape.hpp"
#include "costmodel/methods/all.hpp"
#include "costmodel/model/flops.hpp"
#include "costmodel/plan/site_shares.hpp"
#include "platforms/support/input_error.hpp"
#include "tests/memory_of.hpp"
#include "tests/scenarios.hpp"

using namespace fomoe;
using namespace fomoe::costmodel;

TEST_CASE("presets have the parameter counts of the paper's table, to the integer") {
  struct Row {
    const char* name;
    std::int64_t embedding, attention, router, expert, total_without_norm;
  };
  const Row table[] = {
      {"small", 51'204'864, 1'048'576, 8'192, 2'097'152, 54'358'784},
      {"medium", 102'409'728, 16'777'216, 131'072, 33'554'432, 152'872'448},
      {"large", 204'819'456, 536'870'912, 4'194'304, 1'073'741'824, 1'819'626'496},
      {"xl", 409'638'912, 4'294'967'296, 33'554'432, 8'589'934'592, 13'328'095'232},
      {"xxl", 819'277'824, 34'359'738'368, 268'435'456, 68'719'476'736, 104'166'928'384},
  };
  for (const Row& row : table) {
    CAPTURE(row.name);
    const ModelShape* shape = find_preset(row.name);
    REQUIRE(shape != nullptr);
    const ParameterCounts counts = count_parameters(*shape);
    CHECK(counts.embedding == row.embedding);
    CHECK(counts.attention == row.attention);
    CHECK(counts.router == row.router);
    CHECK(counts.expert == row.expert);
    CHECK(counts.total() - counts.norm == row.total_without_norm);
    CHECK(counts.norm == shape->d_model * (4 * shape->layers + 2));
  }
  CHECK(find_preset("huge") == nullptr);
}

TEST_CASE("FLOPs per token: 6 per matrix parameter, under both accountings") {
  ModelShape shape = tests::divisible_shape();  // d 6720, L 2, N_e 8, k 2, d_expert 16, V 100, s 10
  const double d = 6720, layers = 2;
  const double expert = 6 * 2 * d * 16 * layers;  // one expert in each layer
  const double gate = 6 * d * 8 * layers;
  const FlopsPerToken full = flops_per_token(shape, 8, false, FlopsAccounting::mechanism);
  CHECK(full.dense == 6 * (100 * d + layers * 4 * d * d));
  CHECK(full.attention == 12 * layers * d * 10);
  CHECK(full.expert == 2 * expert);
  CHECK(full.router == gate);
  // One of eight experts is local. Without skip-token, one of the k = 2 chosen experts runs, and an eighth of
  // the router.
  const FlopsPerToken partial = flops_per_token(shape, 1, false, FlopsAccounting::mechanism);
  CHECK(partial.expert == expert);
  CHECK(partial.router == gate / 8);
  // With skip-token, an eighth of the k = 2 chosen experts are local on average, and the router scores all
  // experts.
  const FlopsPerToken skip = flops_per_token(shape, 1, true, FlopsAccounting::mechanism);
  CHECK(skip.expert == 2 * expert / 8);
  CHECK(skip.router == gate);
  // The paper multiplies by min(k, N_le)/k a second time and scores an eighth of the router.
  const FlopsPerToken paper = flops_per_token(shape, 1, true, FlopsAccounting::paper);
  CHECK(paper.expert == 2 * expert / 8 / 2);
  CHECK(paper.router == gate / 8);
}

TEST_CASE("memory: 18 B per held parameter, and 8 B more with outer state") {
  Scenario scenario = tests::ideal_scenario("fomoe", 4, 1);
  const ParameterCounts counts = count_parameters(scenario.model);
  const std::int64_t held =
      counts.embedding + counts.attention + counts.norm + counts.router / 4 + counts.expert / 4;
  CHECK(parameters_per_site(scenario) == held);
  CHECK(memory_per_site(scenario).total() == 26.0 * static_cast<double>(held));
  scenario.strategy.skip_token = true;  // each site holds the whole router
  CHECK(parameters_per_site(scenario) == held + counts.router * 3 / 4);
  scenario = tests::ideal_scenario("local_adamw", 4);
  CHECK(memory_per_site(scenario).total() == 18.0 * static_cast<double>(counts.total()));
}

TEST_CASE("impossible combinations are refused, and the message names the nearest possible ones") {
  Scenario scenario = tests::ideal_scenario("fomoe", 8, 9);
  scenario.model.experts = 12;
  CHECK_THROWS_WITH_AS(check(scenario),
                       "strategy.expert_overlap: got 9; expected 1 to 8 sites; for example 8", InputError);
  scenario.model.experts = scenario.model.active_experts = 3;
  scenario.strategy.expert_overlap = 2;
  CHECK_THROWS_WITH_AS(check(scenario),
                       "strategy.expert_overlap: got 2; expected 3 to 8 sites, so that each of the 8 sites "
                       "holds at least one of the 3 experts of a layer; for example 3",
                       InputError);
  scenario.strategy.expert_overlap = 3;  // 9 copies of 3 experts: a site holds one or two
  CHECK_NOTHROW(check(scenario));
  scenario.model.experts = 12;
  for (int overlap = 1; overlap <= 8; ++overlap) {
    scenario.strategy.expert_overlap = overlap;
    CHECK_NOTHROW(check(scenario));
  }
  scenario.strategy.expert_overlap = 4;
  CHECK_NOTHROW(check(scenario));
  scenario.workload.global_batch_sequences = 7;
  CHECK_THROWS_AS(check(scenario), InputError);
  scenario.strategy.method = costmodel::find_method("diloco");
  scenario.workload.global_batch_sequences = 8;
  scenario.strategy.expert_overlap = 3;  // methods with full replicas ignore O_e
  CHECK_NOTHROW(check(scenario));
  CHECK(effective_overlap(scenario) == 8);
}
