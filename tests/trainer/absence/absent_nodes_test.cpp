// Tests of training without some of the nodes, and of who brings the state to a node that comes back.
#include <set>

#include "costmodel/plan/absences.hpp"
#include "costmodel/plan/method.hpp"
#include "experiments/scenario/scenario_reader.hpp"
#include "experiments/scenario/trainer_section.hpp"
#include "platforms/support/input_error.hpp"
#include "tests/trainer/run/training_case.hpp"
#include "trainer/run/absent_sites.hpp"
#include "trainer/run/rejoining.hpp"
#include "trainer/run/starting_point.hpp"

using namespace fomoe::trainer;
using namespace fomoe::trainer::testing;
namespace costmodel = fomoe::costmodel;

namespace {

/// A training in which only these nodes take part.
struct WithOnly : Training {
  WithOnly(const costmodel::Scenario& what, const std::vector<int>& present)
      : Training(what, exact_options()) {
    AbsentSites(plan, present).leave_out_of(plan);
  }
};

}  // namespace

TEST_CASE("the nodes that are present average what each of them has trained alone") {
  for (const char* method : {"local_adamw", "fomoe"}) {
    CAPTURE(std::string(method));
    costmodel::Scenario scenario = training_scenario(method, 4);
    scenario.strategy.outer_optimizer = costmodel::OuterOptimizer::local_adamw;
    scenario.strategy.placement = costmodel::PlacementKind::fixed;
    WithOnly three(scenario, {0, 1, 3});
    const at::Tensor initial = three.weights(2).clone();
    three.run(1);
    at::Tensor mean = at::zeros_like(initial);
    for (const int node : {0, 1, 3}) {
      WithOnly alone(scenario, {node});
      alone.run(1);
      mean += alone.weights(node) / 3;
    }
    for (const int node : {0, 1, 3}) CHECK(largest_difference(three.weights(node), mean) < 1e-12);
    CHECK(at::equal(three.weights(2), initial));
    CHECK(largest_difference(mean, initial) > 1e-3);
  }
}

TEST_CASE("a node gets its state from one node, and its experts from their owners") {
  costmodel::Scenario scenario = training_scenario("fomoe", 4, 2);  // pairs of owners: 0 and 1, 2 and 3
  scenario.strategy.placement = costmodel::PlacementKind::fixed;
  const costmodel::Plan plan = costmodel::make_plan(scenario);
  using Nodes = std::vector<costmodel::NodeId>;
  CHECK(donors_of(plan, 1, 3, {true, true, true, false}) == Nodes{0, 2});
  CHECK(donors_of(plan, 1, 1, {true, false, true, true}) == Nodes{0});
  CHECK(donors_of(plan, 1, 0, {false, false, true, true}) == Nodes{2});  // node 1 is lost too
  const costmodel::Plan full = costmodel::make_plan(training_scenario("diloco", 4));
  CHECK(donors_of(full, 1, 3, {false, true, true, false}) == Nodes{1});
}

TEST_CASE("a run goes on from the last round that all sites have which took part in it") {
  const std::string all = R"({"7":[],"8":[],"9":[]})", without_two = R"({"8":[],"9":[2],"10":[2]})";
  CHECK(common_state({all, all, R"({"7":[],"8":[]})"}).rounds == 8);
  CHECK(common_state({all, all, "{}"}).rounds == 0);
  CHECK(common_state({"idle", all, "idle"}).rounds == 9);
  CHECK_THROWS_AS(common_state({all, "none it is of another run"}), fomoe::FileError);

  const CommonState back = common_state({without_two, without_two, R"({"3":[],"4":[]})"}, /*drops=*/true);
  CHECK(back.rounds == 10);
  CHECK(back.lacking == std::vector<bool>{false, false, true});
  // Site 1 was still writing its last checkpoint when it was killed.
  const CommonState late = common_state({without_two, R"({"8":[],"9":[2]})", R"({"8":[]})"}, true);
  CHECK(late.rounds == 9);
  CHECK(late.lacking == std::vector<bool>{false, false, true});
  // Site 2 is still lost, or has lost its disk.
  CHECK(common_state({without_two, without_two, ""}, true).lacking == std::vector<bool>{false, false, false});
  CHECK(common_state({all, all, "{}"}, true).lacking == std::vector<bool>{false, false, true});
  const std::string first = R"({"1":[]})";
  CHECK(common_state({first, first, "{}"}, true).lacking == std::vector<bool>{false, false, true});
  // The first site decides, since it takes part in all rounds.
  CHECK(common_state({"{}", all, all}, true).rounds == 0);
}

TEST_CASE("plans and runs that cannot go on without a site are refused, with what would do") {
  const auto said = [](const costmodel::Scenario& scenario, const std::vector<int>& processes,
                       const std::string& transport) -> std::string {
    try {
      check_drops(*scenario.strategy.method, costmodel::make_plan(scenario), processes, transport);
    } catch (const fomoe::UsageError& error) {
      return error.what();
    }
    return "";
  };
  costmodel::Scenario scenario = training_scenario("fomoe", 4, 2);
  scenario.strategy.placement = costmodel::PlacementKind::fixed;
  CHECK(said(scenario, {1, 1, 1, 1}, "gloo").empty());
  CHECK(said(scenario, {1, 2, 1, 1}, "gloo").find("several processes") != std::string::npos);
  CHECK(said(scenario, {1, 1, 1, 1}, "auto").find("trainer.transport=gloo") != std::string::npos);
  scenario.strategy.placement = costmodel::PlacementKind::random;
  CHECK(said(scenario, {1, 1, 1, 1}, "gloo").find("strategy.placement=fixed") != std::string::npos);
  scenario = training_scenario("diloco", 4);
  scenario.strategy.collective = costmodel::Collective::recursive;
  CHECK(said(scenario, {1, 1, 1, 1}, "gloo").find("needs all sites") != std::string::npos);
  CHECK(said(training_scenario("dept", 4), {1, 1, 1, 1}, "gloo").find("embeddings of their own") !=
        std::string::npos);
}

TEST_CASE(
    "what a run does about a lost site is what the scenario's failures say, unless [trainer] says "
    "something") {
  using Overrides = std::vector<std::string>;
  const auto settings = [](const Overrides& overrides) {
    const std::string path = FOMOE_SOURCE_DIR "/experiments/scenarios/tiny-training.toml";
    fomoe::scenario::ReadOptions how;
    how.overrides = overrides;
    how.compute_required = false;
    return fomoe::scenario::read_trainer_settings(path, how, fomoe::scenario::read_scenario(path, how));
  };
  CHECK(settings({}).on_lost_site.empty());
  Overrides planned = {"failures.site_mtbf=7d", "failures.checkpoint_cost=1s"};
  CHECK(settings(planned).on_lost_site == "wait");
  CHECK(settings(planned).drop_after_s == 60);
  planned.insert(planned.end(), {"failures.policy=drop", "failures.timeout=20s"});
  CHECK(settings(planned).on_lost_site == "drop");
  CHECK_FALSE(settings(planned).on_lost_site_given);
  CHECK(settings(planned).drop_after_s == 20);
  planned.insert(planned.end(), {"trainer.on_lost_site=stop", "trainer.drop_after=3s"});
  CHECK(settings(planned).on_lost_site == "stop");
  CHECK(settings(planned).on_lost_site_given);
  CHECK(settings(planned).drop_after_s == 3);
}

TEST_CASE("the share of the batch that is trained without some sites, which have unequal parts of it") {
  costmodel::Scenario scenario = training_scenario("diloco", 4);
  scenario.workload.global_batch_sequences = 10;  // 3, 3, 2 and 2
  const Training training(scenario, exact_options());
  CHECK(AbsentSites(training.plan).trained_share(training.plan) == 1);
  CHECK(AbsentSites(training.plan, {0, 1}).trained_share(training.plan) == doctest::Approx(0.6));
  CHECK(AbsentSites(training.plan, {1, 2, 3}).trained_share(training.plan) == doctest::Approx(0.7));
  CHECK(AbsentSites(training.plan, {2}).trained_share(training.plan) == doctest::Approx(0.2));
}
