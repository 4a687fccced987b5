// Tests of data parallelism with one all-reduce of all gradients, and with buckets that overlap the backward
// pass.
#include <doctest/doctest.h>

#include <algorithm>

#include "costmodel/compose/check.hpp"
#include "costmodel/compose/composition.hpp"
#include "costmodel/formula/closed_form.hpp"
#include "costmodel/methods/all.hpp"
#include "costmodel/model/flops.hpp"
#include "costmodel/model/summary_inputs.hpp"
#include "costmodel/plan/method.hpp"
#include "platforms/support/input_error.hpp"
#include "tests/plan_bytes.hpp"
#include "tests/scenarios.hpp"

using namespace fomoe;
using namespace fomoe::costmodel;

namespace {

// 4 layers in 4 buckets, 2 sites, ring: a site sends 2(M−1)/M = 1 times the size of the gradients.
Scenario bucketed(int buckets = 4) {
  Scenario scenario = tests::ideal_scenario("ddp", 2);
  scenario.model.layers = 4;
  scenario.strategy.fragments = buckets;
  return scenario;
}

// Share of the unembedding in the FLOPs of a pass.
double head(const Scenario& scenario) {
  return unembedding_flops(scenario.model) / flops_per_token(scenario).total();
}

double backward_share(const RoundPlan& round) {
  double share = 0;
  for (const Op& op : round.ops) {
    const auto* compute = std::get_if<Compute>(&op.what);
    if (compute != nullptr && compute->work == Work::backward) share += compute->share;
  }
  return share;
}

}  // namespace

TEST_CASE("ddp in buckets: the bytes do not depend on the number of buckets") {
  const double whole = tests::sent_in_round(tests::plan_of(bucketed(1)), 2, 0).total();
  for (const int buckets : {2, 3, 4}) {
    const Plan plan = tests::plan_of(bucketed(buckets));
    CHECK(tests::sent_in_round(plan, 2, 0).total() == doctest::Approx(whole).epsilon(1e-14));
    CHECK(backward_share(plan.round(0)) == doctest::Approx(1).epsilon(1e-14));
  }
}

TEST_CASE("ddp in buckets: buckets go from the last layer to the first, one after the other") {
  const Plan plan = tests::plan_of(bucketed(2));
  const RoundPlan round = plan.round(0);
  REQUIRE(round.ops.size() == 6);  // forward; backward and average, twice; optimiser
  const auto groups = [&](std::size_t op) {
    return std::get<Transfer>(round.ops[op].what).exchanges[0].payloads[0].groups;
  };
  const auto layers = [&](GroupId id) { return plan.groups[static_cast<std::size_t>(id)].layer_begin; };
  CHECK(layers(groups(2).front()) == 2);
  CHECK(layers(groups(2).back()) == 3);
  CHECK(groups(4).front() == 0);  // the embedding tables, then layers 0 and 1
  CHECK(layers(groups(4).back()) == 1);
  CHECK(round.ops[4].after == std::vector<OpId>{3, 2});  // its own gradients and the previous bucket
  CHECK(round.ops[5].after == std::vector<OpId>{4});
}

TEST_CASE(
    "ddp in buckets by hand: the last bucket is exposed, and so are others that outlast the backward pass") {
  Scenario scenario = bucketed();  // a step takes 1 s: forward 1/3 s, backward 4 · 1/6 s
  scenario.model.vocabulary = 1;
  const ParameterCounts counts = count_parameters(scenario.model);
  const double all = 2.0 * static_cast<double>(counts.total());  // bf16
  const auto step_s = [&](double seconds_of_all) {
    const double rate = all / seconds_of_all;
    scenario.platform = platforms::uniform(2, rate, rate, 0);
    const RunReport report = closed_form(scenario);
    return report.round.duration_s;
  };
  // The last bucket has a quarter of the layers' elements, half of the norms outside the layers, and the
  // embedding tables.
  const Plan plan = tests::plan_of(scenario);
  const RoundPlan round = plan.round(0);
  double last = 0;
  for (const Payload& payload :
       std::get<Transfer>(round.ops[round.ops.size() - 2].what).exchanges[0].payloads)
    last += 2.0 * static_cast<double>(payload.elements);
  const double last_share = last / all;
  CHECK(last_share == doctest::Approx(0.25).epsilon(1e-2));
  // On slow links the network is always busy once the first bucket is sent, after the forward pass and the
  // unembedding's backward pass, and a quarter of that of the layers.
  const double h = head(scenario);
  CHECK(step_s(4) == doctest::Approx(1.0 / 3 + 2.0 / 3 * (h + (1 - h) / 4) + 4).epsilon(1e-12));
  // On fast links only the last bucket is exposed.
  CHECK(step_s(0.4) == doctest::Approx(1 + 0.4 * last_share).epsilon(1e-12));
}

TEST_CASE(
    "ddp in buckets: with several micro-batches, only the last one's backward pass hides communication") {
  Scenario scenario = bucketed();
  scenario.workload.global_batch_sequences = 16;  // 8 per site
  scenario.gpus.micro_batch_sequences = 2;
  const RoundPlan round = tests::plan_of(scenario).round(0);
  CHECK(std::get<Compute>(round.ops[0].what).work == Work::gradients);
  CHECK(std::get<Compute>(round.ops[0].what).share == doctest::Approx(0.75));
  CHECK(backward_share(round) == doctest::Approx(0.25));
  const auto hidden = [&] {
    return summarise(*find_method("ddp"), axes_of(scenario), fixed_of(scenario)).stages[1].hidden_backwards;
  };
  const double layers = 1 - head(scenario);
  CHECK(hidden() == doctest::Approx(0.25 * layers * 3 / 4).epsilon(1e-12));
  scenario.gpus.micro_batch_sequences = 0;  // the micro-batch is not given
  CHECK(hidden() == doctest::Approx(layers * 3 / 4).epsilon(1e-12));
  const std::vector<std::string> notes = tests::plan_of(scenario).notes;
  CHECK(std::count_if(notes.begin(), notes.end(), [](const std::string& note) {
          return note.find("compute.micro_batch_sequences") != std::string::npos;
        }) == 1);
}

TEST_CASE("ddp in buckets: the last micro-batch may be a small one, of the fullest replica of a site") {
  Scenario scenario = bucketed();
  const auto last = [&](std::int64_t batch, std::int64_t micro_batch, int gpus) {
    scenario.workload.global_batch_sequences = batch;
    scenario.gpus.micro_batch_sequences = micro_batch;
    scenario.gpus.count = gpus;
    CHECK(backward_share(tests::plan_of(scenario).round(0)) ==
          doctest::Approx(fixed_of(scenario).passes.last_share).epsilon(1e-14));
    return fixed_of(scenario).passes.last_share;
  };
  CHECK(last(10, 4, 1) == doctest::Approx(1.0 / 5));  // 5 sequences of a site: 4 and 1
  CHECK(last(10, 5, 1) == 1);
  CHECK(last(10, 8, 1) == 1);
  CHECK(last(10, 2, 2) == doctest::Approx(1.0 / 3));  // 3 sequences of the fullest replica: 2 and 1
  CHECK(last(8, 2, 2) == 1);
}

TEST_CASE("ddp in buckets: no layer's gradient is ready before the unembedding's backward pass") {
  Scenario scenario = bucketed();
  scenario.model.vocabulary = 30000;
  for (const bool again : {false, true}) {
    scenario.gpus.activation_checkpointing = again;
    // Forward passes of layers are repeated in the backward pass, that of the unembedding is not.
    const double h = head(scenario), of_backward = again ? 2 * h / (2 * h + 3 * (1 - h)) : h;
    CHECK(h > 0.2);
    for (const Op& op : tests::plan_of(scenario).round(0).ops) {
      const auto* compute = std::get_if<Compute>(&op.what);
      if (compute == nullptr || compute->work != Work::backward) continue;
      const bool first = op.name == "backward of bucket 0";
      CHECK(compute->share ==
            doctest::Approx((first ? of_backward : 0) + (1 - of_backward) / 4).epsilon(1e-12));
    }
    CHECK(fixed_of(scenario).head_of_backward == doctest::Approx(of_backward).epsilon(1e-12));
  }
}

TEST_CASE("ddp in buckets: at most one bucket per layer, and secure aggregation allows one sum per round") {
  Scenario scenario = bucketed(5);
  CHECK_THROWS_WITH_AS(
      check(scenario),
      doctest::Contains("got 5; expected at most one fragment for each of the 4 layers; for example"),
      InputError);
  scenario = bucketed(4);
  scenario.strategy.secure_aggregation = true;
  CHECK_THROWS_AS(check_composition(scenario), InputError);
  scenario.strategy.fragments = 1;
  CHECK_NOTHROW(check_composition(scenario));
}

TEST_CASE("ddp in buckets: an untied unembedding is sent first, a tied one last") {
  for (const bool tied : {false, true}) {
    Scenario scenario = tests::ideal_scenario("ddp", 4);
    scenario.model.tied_embeddings = tied;
    scenario.model.vocabulary = 4000;
    scenario.strategy.fragments = 2;
    const Plan plan = tests::plan_of(scenario);
    const ParameterCounts counts = count_parameters(scenario.model);
    const std::int64_t table = 4000 * 6720, half = (counts.total() - counts.embedding) / 2;
    std::vector<std::int64_t> elements;
    for (const Op& op : plan.round(0).ops) {
      const auto* transfer = std::get_if<Transfer>(&op.what);
      if (transfer == nullptr) continue;
      std::int64_t sum = 0;
      for (const Payload& payload : transfer->exchanges[0].payloads) sum += payload.elements;
      elements.push_back(sum);
    }
    REQUIRE(elements.size() == 2);
    CHECK(std::abs(elements[0] - (half + (tied ? 0 : table))) <=
          6720);  // half of the norms outside the layers
    CHECK(std::abs(elements[1] - (half + table)) <= 6720);
    CHECK(elements[0] + elements[1] == counts.total());

    // The step: the first bucket's transfer starts half-way through the layers' backward pass.
    const double rate = 1e9, payload = 2.0 * 1.5;  // bf16, 2(M−1)/M
    const double first_s = payload * static_cast<double>(elements[0]) / rate,
                 last_s = payload * static_cast<double>(elements[1]) / rate;
    CHECK(closed_form(scenario).round.duration_s ==
          doctest::Approx(1 + std::max(0.0, first_s - (1 - head(scenario)) / 3) + last_s).epsilon(1e-9));
  }
}
