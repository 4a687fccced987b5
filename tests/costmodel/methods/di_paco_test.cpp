// Tests of DiPaCo: sites train paths that share modules.
#include <doctest/doctest.h>

#include <set>

#include "costmodel/compose/check.hpp"
#include "costmodel/compose/make_plan.hpp"
#include "costmodel/methods/all.hpp"
#include "costmodel/plan/method.hpp"
#include "platforms/support/input_error.hpp"
#include "tests/plan_bytes.hpp"
#include "tests/scenarios.hpp"

using namespace fomoe;
using namespace fomoe::costmodel;

namespace {

Scenario modular(int sites, int levels, int choices) {
  Scenario scenario = tests::ideal_scenario("di_paco", sites);
  scenario.strategy.module_levels = levels;
  scenario.strategy.module_choices = choices;
  return scenario;
}

SentBytes sent_by(const Scenario& scenario) {
  return tests::sent_in_round(tests::plan_of(scenario), scenario.sites(), 0);
}

}  // namespace

TEST_CASE("di_paco: B = 2(M−1)/M·S_embedding + 2(g−1)/g·(S − S_embedding), g = M/C sites per module") {
  for (const int choices : {1, 2, 4, 8}) {
    for (const int levels : {1, 2}) {
      const Scenario scenario = modular(8, levels, choices);
      const ParameterCounts counts = count_parameters(scenario.model);
      const double g = 8.0 / choices;
      const double embedding = 2.0 * static_cast<double>(counts.embedding);
      const double modules = 2.0 * static_cast<double>(counts.total() - counts.embedding);
      const SentBytes sent = sent_by(scenario);
      CHECK(sent.total() ==
            doctest::Approx(2 * 7.0 / 8 * embedding + 2 * (g - 1) / g * modules).epsilon(1e-13));
      const SentBytes formula = summarise(scenario).sent;
      CHECK(formula.dense == doctest::Approx(sent.dense).epsilon(1e-13));
      CHECK(formula.expert_sync == doctest::Approx(sent.expert_sync).epsilon(1e-13));
    }
  }
}

TEST_CASE("di_paco with one choice equals diloco") {
  CHECK(sent_by(modular(4, 2, 1)).total() ==
        doctest::Approx(sent_by(tests::ideal_scenario("diloco", 4)).total()).epsilon(1e-14));
}

TEST_CASE("di_paco with 4 sites, 2 levels of 2 choices: 4 different paths, and two paths share each module") {
  const Scenario scenario = modular(4, 2, 2);
  const Plan plan = find_method("di_paco")->plan(scenario);
  const RoundPlan round = plan.round(0);
  const auto& exchanges = std::get<Transfer>(round.ops[1].what).exchanges;
  REQUIRE(exchanges.size() == 1 + 2 * 2);
  CHECK(exchanges[0].nodes == std::vector<NodeId>{0, 1, 2, 3});  // the embedding
  CHECK(exchanges[1].nodes == std::vector<NodeId>{0, 2});
  CHECK(exchanges[2].nodes == std::vector<NodeId>{1, 3});
  CHECK(exchanges[3].nodes == std::vector<NodeId>{0, 1});
  CHECK(exchanges[4].nodes == std::vector<NodeId>{2, 3});
  std::int64_t elements = 0;
  for (const TensorGroup& group : plan.groups) elements += group.elements;
  CHECK(elements == count_parameters(scenario.model).total());  // every parameter is in exactly one module
}

TEST_CASE("di_paco refuses numbers of choices that do not divide the number of sites") {
  CHECK_THROWS_AS(check(modular(4, 1, 3)), InputError);
  CHECK_THROWS_AS(check(modular(4, 3, 2)), InputError);  // 2 layers cannot have 3 levels
  CHECK_NOTHROW(check(modular(4, 2, 2)));
}
