// Tests the norms of updates: of the inner optimiser's steps and of the outer optimiser's.
#include <cmath>

#include "tests/trainer/run/training_case.hpp"
#include "trainer/record/last_norms.hpp"

using namespace fomoe::trainer;
using namespace fomoe::trainer::testing;
namespace costmodel = fomoe::costmodel;

TEST_CASE("the norm of an update is that of the parameters' change") {
  TrainingOptions options = exact_options();
  options.norms = true;
  Training training(training_scenario("local_sgd", 1), options);
  at::Tensor before = training.weights(0).clone();
  int steps = 0;
  training.executor.on_step = [&](const StepRecord& step) {
    const at::Tensor after = training.weights(0).clone();
    CHECK(step.update_norm.item<double>() ==
          doctest::Approx((after - before).norm().item<double>()).epsilon(1e-12));
    CHECK(step.gradient_norm.item<double>() > 0);
    before = after;
    ++steps;
  };
  training.run(1);
  CHECK(steps == 4);
}

TEST_CASE("the norms of an outer step: averaged difference, and change of the synchronised parameters") {
  TrainingOptions options = exact_options();
  options.norms = true;
  options.outer.learning_rate = 0.7;
  options.outer.momentum = 0.9;
  Training training(training_scenario("diloco", 2), options);
  const at::Tensor start = training.weights(0).clone();
  std::vector<OuterRecord> seen;
  training.executor.on_outer_step = [&](const OuterRecord& step) { seen.push_back(step); };
  training.run(1);
  REQUIRE(seen.size() == 2);  // one of each site
  const double moved = (training.weights(0) - start).norm().item<double>();
  for (const OuterRecord& step : seen) {
    CHECK(step.norms.update.item<double>() == doctest::Approx(moved).epsilon(1e-9));
    // The first Nesterov step is η·(1 + μ)·d.
    CHECK(moved / step.norms.difference.item<double>() == doctest::Approx(0.7 * 1.9).epsilon(1e-9));
  }
}

TEST_CASE("norms are not measured unless they are wanted, and do not change the weights") {
  Training plain(training_scenario("diloco", 2), exact_options());
  plain.executor.on_step = [](const StepRecord& step) { CHECK(!step.update_norm.defined()); };
  plain.executor.on_outer_step = [](const OuterRecord&) { FAIL("an outer step was measured"); };
  plain.run();
  TrainingOptions options = exact_options();
  options.norms = true;
  Training measured(training_scenario("diloco", 2), options);
  measured.run();
  CHECK(at::equal(plain.weights(1), measured.weights(1)));
}

TEST_CASE("the last norms are those of the outer steps and of each site's last step") {
  for (const char* method : {"diloco", "streaming_diloco"}) {
    CAPTURE(method);
    costmodel::Scenario scenario = training_scenario(method, 2);
    if (std::string(method) == "streaming_diloco")
      scenario.strategy.fragments = 2;  // steps in two operations
    Training training(scenario, exact_options());
    training.executor.want_last_norms();
    std::map<int, std::vector<bool>> measured;
    int outer_steps = 0;
    training.executor.on_step = [&](const StepRecord& step) {
      measured[step.node].push_back(step.update_norm.defined());
    };
    training.executor.on_outer_step = [&](const OuterRecord&) { ++outer_steps; };
    training.run(1);
    REQUIRE(measured.size() == 2);
    for (const auto& [node, steps] : measured) {
      REQUIRE(steps.size() > 1);
      CHECK(std::count(steps.begin(), steps.end(), true) == 1);
      CHECK(steps.back());
    }
    CHECK(outer_steps >= 2);
  }
}

TEST_CASE("norms of the last step, and means of outer steps, by node") {
  LastNorms norms;
  const auto step = [&](int node, double gradient, bool skipped) {
    StepRecord record;
    record.node = node;
    record.gradient_norm = at::full({}, gradient, at::kDouble);
    record.skipped = skipped;
    norms.step(record);
  };
  step(0, 1, false);
  step(0, 4, false);
  step(0, 1e9, true);  // its gradients were not finite
  step(1, 7, false);
  norms.outer_step({1, 0, {at::full({}, 2.0, at::kDouble), at::full({}, 3.0, at::kDouble)}});
  CHECK(norms.of(0).gradient == 4);
  CHECK(!norms.of(0).update);
  CHECK(!norms.of(0).outer_update);
  CHECK(norms.of(1).gradient == 7);
  CHECK(norms.of(1).outer_difference == 2);
  CHECK(norms.of(1).outer_update == 3);
  CHECK(!norms.of(2).gradient);
  norms.clear();
  CHECK(!norms.of(0).gradient);
}
