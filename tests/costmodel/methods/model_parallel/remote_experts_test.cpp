// Tests of remote experts (Learning@home): sites send requests to the experts of other sites and do not
// synchronise them.
#include <doctest/doctest.h>

#include "costmodel/compose/check.hpp"
#include "costmodel/compose/make_plan.hpp"
#include "costmodel/methods/all.hpp"
#include "costmodel/model/summary_inputs.hpp"
#include "costmodel/plan/method.hpp"
#include "platforms/support/input_error.hpp"
#include "tests/plan_bytes.hpp"
#include "tests/scenarios.hpp"

using namespace fomoe;
using namespace fomoe::costmodel;

TEST_CASE("remote experts: 5·L · tokens·k·d·bytes·(M−1)/M, with a separate request for each expert") {
  // The backward request has the activation and the gradient (Learning@home, section 3: experts keep no
  // state).
  const Scenario scenario = tests::ideal_scenario("remote_experts", 4);
  const Plan plan = find_method("remote_experts")->plan(scenario);
  const SentBytes sent = tests::sent_in_round(plan, scenario.sites(), 0);
  CHECK(sent.activations == doctest::Approx(5.0 * 2 * 10 * 2 * 6720 * 2 * 3 / 4).epsilon(1e-13));
  CHECK(sent.expert_sync == 0);
  int transfers = 0;
  for (const Op& op : plan.round(0).ops) {
    const auto* transfer = std::get_if<Transfer>(&op.what);
    if (transfer == nullptr || transfer->pattern != Pattern::point_to_point) continue;
    ++transfers;
    CHECK(transfer->exchanges.size() == 4 * 3);  // ordered pairs of sites
  }
  CHECK(transfers == 4 * 2);  // out and back, forward and backward, in each of two layers
}

TEST_CASE("remote experts run their forward pass again: 8 instead of 6 FLOPs per parameter") {
  const Scenario scenario = tests::ideal_scenario("remote_experts", 4);
  const double experts = fixed_of(scenario).expert_compute_share;
  CHECK(summarise(scenario).compute_factor == doctest::Approx(1 + experts / 3).epsilon(1e-13));
  const Plan plan = find_method("remote_experts")->plan(scenario);
  double forward = 0, backward = 0;
  for (const Op& op : plan.round(0).ops) {
    const auto* compute = std::get_if<Compute>(&op.what);
    if (compute == nullptr || op.name.find("experts") != 0) continue;
    (compute->work == Work::forward ? forward : backward) += compute->share;
  }
  CHECK(forward == doctest::Approx(2 * experts).epsilon(1e-13));
  CHECK(backward == doctest::Approx(experts).epsilon(1e-13));
}

TEST_CASE("remote experts have no buffers to pad, so a capacity factor is refused") {
  Scenario scenario = tests::ideal_scenario("remote_experts", 4);
  scenario.strategy.capacity_factor = 1.25;
  CHECK_THROWS_AS(check(scenario), InputError);
}
