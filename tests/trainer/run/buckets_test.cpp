// Tests ddp with buckets: gradients are sent while the backward pass continues, and nothing else changes.
#include <cmath>

#include "tests/trainer/run/mailbox.hpp"
#include "trainer/step/gradient_pass.hpp"

using namespace fomoe::trainer;
using namespace fomoe::trainer::testing;
namespace costmodel = fomoe::costmodel;

namespace {

costmodel::Scenario deep_scenario(int sites, std::int64_t buckets) {
  costmodel::Scenario scenario = training_scenario("ddp", sites);
  scenario.model.layers = 6;
  scenario.strategy.fragments = static_cast<int>(buckets);
  scenario.workload.tokens = 4 * 8 * scenario.model.sequence_length;  // 4 steps
  return scenario;
}

double seconds_of(const Site& site, const std::string& operation, std::int64_t round) {
  double sum = 0;
  const costmodel::RoundPlan plan = site.plan.round(round);
  for (const costmodel::Interval& interval : site.executor.intervals()) {
    if (interval.round == round && interval.activity == costmodel::Activity::compute &&
        plan.ops[static_cast<std::size_t>(interval.op)].name == operation)
      sum += interval.end_s - interval.start_s;
  }
  return sum;
}

}  // namespace

TEST_CASE("a backward pass that stops between layers gives the bits of one that does not") {
  costmodel::ModelShape shape = tiny_shape();
  shape.layers = 5;
  Batches batches(Corpus::synthetic(shape.vocabulary, 5'000, 1), shape.sequence_length, 8, 0, 1);
  for (const std::int64_t micro_batch : {0, 3, 4}) {
    for (const double balance_weight : {0.0, 0.1}) {
      Model at_once(shape, {}), in_parts(shape, {});
      AdamW optimizers[2] = {AdamW(at_once, {}), AdamW(in_parts, {})};
      RecordedStep::Options step_options;
      step_options.balance_weight = balance_weight;
      RecordedStep steps[2] = {RecordedStep(at_once, optimizers[0], step_options),
                               RecordedStep(in_parts, optimizers[1], step_options)};
      Routing routing[2];
      for (Routing& one : routing) one.wants_balance = balance_weight > 0;
      const GradientPass::Part part{/*step=*/3, /*first=*/1, /*count=*/7, micro_batch};
      GradientPass whole(steps[0], batches, routing[0], part);
      whole.micro_batches();
      GradientPass parts(steps[1], batches, routing[1], part);
      parts.micro_batches(/*but_the_last=*/true);
      parts.forward({4, 1});
      const auto& last = in_parts.parameters()[parameter_index(4, Role::up)].compute;
      const auto& first = in_parts.parameters()[parameter_index(0, Role::up)].compute;
      const auto& embedding = in_parts.parameters().front().compute;
      const bool one_pass = micro_batch == 0;  // otherwise earlier micro-batches have left gradients
      if (one_pass) CHECK(!last.grad().defined());
      parts.backward(4);
      CHECK(last.grad().defined());
      if (one_pass) CHECK(!first.grad().defined());
      parts.backward(1);
      if (one_pass) CHECK(!embedding.grad().defined());
      parts.backward(0);
      CHECK(at::equal(parts.loss(), whole.loss()));
      for (std::size_t i = 0; i < at_once.parameters().size(); ++i) {
        CAPTURE(at_once.parameters()[i].spec.name());
        CHECK(at::equal(in_parts.parameters()[i].compute.grad(), at_once.parameters()[i].compute.grad()));
      }
      for (std::size_t layer = 0; layer < 5; ++layer)
        CHECK(at::equal(routing[0].counts[layer], routing[1].counts[layer]));
    }
  }
}

TEST_CASE("ddp in buckets is ddp: bit-equal under direct exchange, 1e-10 by other sums") {
  for (const int sites : {2, 3, 4}) {
    for (const int buckets : {2, 3, 6}) {
      CAPTURE(sites);
      CAPTURE(buckets);
      TrainingOptions options = real_options();
      options.micro_batch_sequences = buckets == 3 ? 1 : 0;
      options.clip_norm = 0.5;
      Training whole(deep_scenario(sites, 1), options), cut(deep_scenario(sites, buckets), options);
      whole.run();
      cut.run();
      for (int node = 0; node < sites; ++node) CHECK(at::equal(cut.weights(node), whole.weights(node)));
    }
  }
  using costmodel::Collective;
  for (const Collective collective : {Collective::ring, Collective::recursive, Collective::hierarchical}) {
    costmodel::Scenario scenario = deep_scenario(4, 3);
    scenario.strategy.collective = collective;
    scenario.strategy.regions = 2;
    Training whole(deep_scenario(4, 1), exact_options()), cut(scenario, exact_options());
    whole.run();
    cut.run();
    CHECK(farthest_weights(cut, whole) < 1e-10);
    for (int node = 1; node < 4; ++node) CHECK(at::equal(cut.weights(node), cut.weights(0)));
  }
}

TEST_CASE("buckets: each site sends what the plan says, by class and to whom, whatever its micro-batches") {
  // only the last micro-batch's backward pass can hide transfers
  for (const std::int64_t micro_batch : {0, 1}) {
    costmodel::Scenario scenario = deep_scenario(3, 3);
    scenario.gpus.micro_batch_sequences = micro_batch;
    Training training(scenario, real_options());
    training.run();
    const std::vector<Traffic> planned = planned_traffic(training.plan);
    for (int node = 0; node < 3; ++node)
      check_traffic(training.transport.traffic(node), planned[static_cast<std::size_t>(node)]);
    CHECK(training.transport.traffic(0).sent[1] > 0);
  }
}

TEST_CASE("a bucket is under way while the backward pass goes on; the record says what was exposed") {
  constexpr int kBuckets = 3;
  for (const auto collective : {costmodel::Collective::direct, costmodel::Collective::hierarchical}) {
    costmodel::Scenario scenario = deep_scenario(4, kBuckets);
    scenario.strategy.collective = collective;
    scenario.strategy.regions = 2;
    const int calls = collective == costmodel::Collective::hierarchical ? 3 : 1;  // transfers per bucket
    Mailbox mailbox;
    // by site: backward passes that have reached the first layer
    std::map<int, std::int64_t> backward_passes;
    // Nothing of a step's first two buckets arrives before the step's backward pass has reached the first
    // layer.
    mailbox.opens = [&](int site, int channel) {
      const std::int64_t bucket = channel / calls % kBuckets, step = channel / calls / kBuckets;
      return bucket == kBuckets - 1 || backward_passes[site] > step;
    };
    const Sites sites = sites_of(scenario, real_options(), mailbox);
    for (const auto& site : sites) {
      const Model& model = site->executor.worker(site->node).model();
      model.parameters()[parameter_index(0, Role::qkv)].compute.register_hook(
          [&mailbox, &backward_passes, node = site->node](const at::Tensor& gradient) {
            mailbox.changed([&] { ++backward_passes[node]; });
            return gradient;
          });
    }
    run(sites);
    check_as_in_turn(sites, scenario);
    for (const auto& site : sites) {
      REQUIRE(site->transfers.size() == static_cast<std::size_t>(4 * kBuckets * calls));
      for (const TransferRecord& record : site->transfers) {
        CAPTURE(record.operation);
        const double hidden_s = record.end_s - record.start_s - record.exposed_s;
        if (record.operation == "average bucket 0")
          CHECK(hidden_s >= seconds_of(*site, "backward of bucket 1", record.round) * (1 - 1e-9));
        // The last bucket is sent when the backward pass has ended, so that nothing can hide it.
        if (record.operation.starts_with("average bucket 2")) CHECK(std::abs(hidden_s) < 1e-9);
      }
    }
  }
}
