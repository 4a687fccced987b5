// Tests of DEPT, which averages all parameters but the embedding.
#include <doctest/doctest.h>

#include "costmodel/counts/memory.hpp"
#include "costmodel/formula/closed_form.hpp"
#include "costmodel/plan/method.hpp"
#include "tests/memory_of.hpp"
#include "tests/plan_bytes.hpp"
#include "tests/scenarios.hpp"

using namespace fomoe;
using namespace fomoe::costmodel;

TEST_CASE("dept: 2(M−1)/M·(S − S_embedding) per round") {
  const Scenario scenario = tests::ideal_scenario("dept", 4);
  const ParameterCounts counts = count_parameters(scenario.model);
  const double sent = tests::sent_in_round(tests::plan_of(scenario), 4, 0).total();
  CHECK(sent == doctest::Approx(2.0 * 3 / 4 * 2.0 * static_cast<double>(counts.total() - counts.embedding))
                    .epsilon(1e-14));
}

TEST_CASE("dept: no outer state for the embedding, which each site keeps for itself") {
  Scenario scenario = tests::ideal_scenario("dept", 4);
  const ParameterCounts counts = count_parameters(scenario.model);
  const auto averaged = static_cast<double>(counts.total() - counts.embedding);
  CHECK(memory_per_site(scenario).outer_state == doctest::Approx(8 * averaged).epsilon(1e-13));
  CHECK(memory_per_site(scenario).moments ==
        doctest::Approx(8.0 * static_cast<double>(counts.total())).epsilon(1e-13));
  scenario.gpus.outer_state_on = OuterStateOn::host;
  CHECK(host_bytes_per_site(scenario) == doctest::Approx(8 * averaged).epsilon(1e-13));
}

TEST_CASE("groups by layer cover the whole model once, also where layers differ") {
  Scenario scenario = tests::ideal_scenario("dept", 4);
  for (const std::int64_t layers : {1, 2, 3, 7}) {
    for (const bool skip_token : {false, true}) {
      scenario.model.layers = layers;
      scenario.strategy.skip_token = skip_token;
      std::int64_t elements = 0;
      for (const TensorGroup& group : tests::plan_of(scenario).groups) elements += group.elements;
      CHECK(elements == count_parameters(scenario.model).total());
    }
  }
}

TEST_CASE("dept: the parameters that the paper's variants send per step (DEPT, table 9, the Pile)") {
  // A body of 86.4M parameters and tied tables of width 768: GLOB has 50,257 rows, a site's own vocabulary
  // has 45,554. Every 500 steps, the paper counts each parameter once: 0.25M, 0.24M and 0.17M per step.
  const auto parameters_per_step = [](const char* method, std::int64_t vocabulary) {
    Scenario scenario = tests::ideal_scenario(method, 2);
    ModelShape& shape = scenario.model;
    shape = {"gpt", 768, 12, 12, 1, 1, 3072, vocabulary, 2048};
    shape.tied_embeddings = true;
    const ParameterCounts counts = count_parameters(shape);
    CHECK(static_cast<double>(counts.total() - counts.embedding) == doctest::Approx(86.4e6).epsilon(0.03));
    scenario.strategy.local_steps = 500;
    scenario.workload.tokens = 500 * scenario.workload.global_batch_sequences * shape.sequence_length;
    // Two sites send each bf16 value once.
    return tests::sent_in_round(tests::plan_of(scenario), 2, 0).total() / 2 / 500;
  };
  CHECK(parameters_per_step("diloco", 50257) == doctest::Approx(0.25e6).epsilon(0.03));  // GLOB
  CHECK(parameters_per_step("diloco", 45554) == doctest::Approx(0.24e6).epsilon(0.03));  // TRIM
  CHECK(parameters_per_step("dept", 45554) == doctest::Approx(0.17e6).epsilon(0.03));    // SPEC
}
