// Tests of DiLoCo with two periods: fast inside regions, slow between them.
#include <doctest/doctest.h>

#include "costmodel/compose/check.hpp"
#include "costmodel/compose/make_plan.hpp"
#include "costmodel/formula/closed_form.hpp"
#include "costmodel/methods/all.hpp"
#include "costmodel/plan/method.hpp"
#include "platforms/support/input_error.hpp"
#include "tests/plan_bytes.hpp"
#include "tests/scenarios.hpp"

using namespace fomoe;
using namespace fomoe::costmodel;

TEST_CASE("hierarchical_diloco: regional averages, and a global one in every G-th round") {
  Scenario scenario = tests::ideal_scenario("hierarchical_diloco", 6);  // 12 rounds
  scenario.strategy.regions = 2;
  scenario.strategy.global_period = 4;
  scenario.strategy.wire = plain_format(ElementType::int8);  // of pseudo-gradients; parameters are bf16
  const Plan plan = tests::plan_of(scenario);
  const auto elements = static_cast<double>(count_parameters(scenario.model).total());
  const double regional = 2.0 * 2 / 3 * 2 * elements;
  const double global = 2.0 * 5 / 6 * plain_format(ElementType::int8).bytes_per_element() * elements;
  for (std::int64_t index = 0; index < 12; ++index) {
    const bool is_global = index % 4 == 3;
    CHECK(tests::sent_in_round(plan, 6, index).total() ==
          doctest::Approx(is_global ? global : regional).epsilon(1e-6));
    CHECK(tests::count_named(plan.round(index), "outer step (nesterov)") == (is_global ? 1 : 0));
    for (const Op& op : plan.round(index).ops) {
      const auto* transfer = std::get_if<Transfer>(&op.what);
      if (transfer == nullptr) continue;
      CHECK(transfer->exchanges.size() == (is_global ? 1 : 2));
      if (!is_global) CHECK(transfer->exchanges[1].nodes == std::vector<NodeId>{3, 4, 5});
    }
  }
  // Three global rounds of twelve; no latency, and 1 GB/s.
  CHECK(closed_form(scenario).wall_clock_s ==
        doctest::Approx(60 + (9 * regional + 3 * global) / 1e9).epsilon(1e-6));
}

TEST_CASE("hierarchical_diloco: one region is diloco in global rounds, and a site alone sends nothing else") {
  Scenario scenario = tests::ideal_scenario("hierarchical_diloco", 4);
  scenario.strategy.regions = 4;
  scenario.strategy.global_period = 3;
  const double all = tests::sent_in_round(tests::plan_of(scenario), 4, 2).total();
  CHECK(tests::sent_in_round(tests::plan_of(scenario), 4, 0).total() == 0);
  CHECK(tests::plan_of(scenario).round(0).ops.size() ==
        1);  // the local steps, and no exchange of a site with itself
  CHECK(all == tests::sent_in_round(tests::plan_of(tests::ideal_scenario("diloco", 4)), 4, 0).total());
  scenario.strategy.regions = 3;
  CHECK_THROWS_AS(scenario.strategy.method->check(scenario), InputError);
  scenario.strategy.regions = 4;
  scenario.strategy.secure_aggregation = true;
  CHECK_THROWS_AS(scenario.strategy.method->check(scenario), InputError);
}

TEST_CASE("hierarchical_diloco: the regions are those that the platform names, and the answer says which") {
  Scenario scenario = tests::ideal_scenario("hierarchical_diloco", 4);
  scenario.strategy.regions = 2;
  const auto members = [&] {
    std::vector<std::vector<NodeId>> groups;
    for (const Op& op : tests::plan_of(scenario).round(0).ops)
      if (const auto* transfer = std::get_if<Transfer>(&op.what))
        for (const Exchange& exchange : transfer->exchanges) groups.push_back(exchange.nodes);
    return groups;
  };
  using Groups = std::vector<std::vector<NodeId>>;
  CHECK(members() == Groups{{0, 1}, {2, 3}});
  CHECK(tests::plan_of(scenario).notes.back().find("consecutive sites, since the platform gives no region") !=
        std::string::npos);
  for (std::size_t i = 0; i < 4; ++i) scenario.platform.sites[i].region = i % 2 == 0 ? "eu" : "asia";
  CHECK(members() == Groups{{0, 2}, {1, 3}});
  CHECK(
      tests::plan_of(scenario).notes.back() ==
      "hierarchical_diloco: the 2 regions are site-0, site-2; site-1, site-3: those that the platform gives");
  scenario.platform.sites[3].region = "eu";  // 3 and 1 sites
  CHECK(members() == Groups{{0, 1}, {2, 3}});
  scenario.platform.sites[3].region = "asia";
  scenario.strategy.method = find_method("diloco");
  scenario.strategy.collective = Collective::hierarchical;
  const Plan plan = costmodel::make_plan(scenario);
  const RoundPlan round = plan.round(0);  // outlives the reference
  const auto& scatter = std::get<Transfer>(round.ops[1].what);
  CHECK(scatter.exchanges[0].nodes == std::vector<NodeId>{0, 2});
}
