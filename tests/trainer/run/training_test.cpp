// Tests the effect of the methods on a model: equalities that hold for any data, in fp64 throughout.
#include <cmath>

#include "tests/trainer/run/training_case.hpp"

using namespace fomoe::trainer;
using namespace fomoe::trainer::testing;
namespace costmodel = fomoe::costmodel;

TEST_CASE("one site, outer rate 1 and momentum 0: DiLoCo is plain training") {
  TrainingOptions options = exact_options();
  options.outer.learning_rate = 1;
  options.outer.momentum = 0;
  Training diloco(training_scenario("diloco", 1), options);
  Training plain(training_scenario("centralised", 1), options);
  diloco.run();
  plain.run();
  CHECK(plain.plan.rounds == 12);
  CHECK(diloco.plan.rounds == 3);
  // θ_before − (θ_before − θ) equals θ up to one rounding of each element.
  CHECK(farthest_weights(diloco, plain) < 1e-12);
  Training fresh(training_scenario("centralised", 1), options);
  CHECK(farthest_weights(fresh, plain) > 1e-3);  // the training has changed the weights
}

TEST_CASE("DDP over sites is one site with the global batch, also where sites have unequal shares") {
  for (const int sites : {2, 3, 4}) {
    for (const auto collective : {costmodel::Collective::direct, costmodel::Collective::ring}) {
      CAPTURE(sites);
      costmodel::Scenario scenario = training_scenario("ddp", sites);
      scenario.strategy.collective = collective;
      Training ddp(scenario, exact_options());
      Training one(training_scenario("centralised", sites), exact_options());
      ddp.run();
      one.run();
      CHECK(farthest_weights(ddp, one) < 1e-10);
      for (int node = 1; node < sites; ++node) CHECK(at::equal(ddp.weights(node), ddp.weights(0)));
    }
  }
}

TEST_CASE("micro-batches add up to the batch") {
  TrainingOptions options = exact_options();
  Training whole(training_scenario("centralised", 1), options);
  options.micro_batch_sequences = 3;  // 8 = 3 + 3 + 2
  Training parts(training_scenario("centralised", 1), options);
  whole.run();
  parts.run();
  CHECK(farthest_weights(parts, whole) < 1e-10);
}

TEST_CASE("sites that differ have micro-batches of their own") {
  costmodel::Scenario scenario = training_scenario("diloco", 2);
  costmodel::SiteCompute site;
  site.compute = scenario.compute;
  scenario.site_compute.assign(2, site);
  scenario.site_compute[1].gpus.micro_batch_sequences = 1;
  Training differing(scenario, exact_options()), alike(training_scenario("diloco", 2), exact_options());
  CHECK(differing.executor.micro_batch_of(0) == 0);  // the whole batch
  CHECK(differing.executor.micro_batch_of(1) == 1);
  differing.run(1);
  alike.run(1);
  CHECK(farthest_weights(differing, alike) < 1e-10);
}

TEST_CASE("the first Nesterov step moves the weights by lr·(1 + mu) times the mean difference") {
  const TrainingOptions options = exact_options();  // lr 0.7, mu 0.9
  Training diloco(training_scenario("diloco", 4), options);
  Training average(training_scenario("local_sgd", 4), options);
  const at::Tensor start = diloco.weights(0).clone();
  diloco.run(1);
  average.run(1);
  const at::Tensor difference = start - average.weights(0);
  const at::Tensor expected = start - 0.7 * (1 + 0.9) * difference;
  CHECK(largest_difference(diloco.weights(3), expected) < 1e-13);
  CHECK(difference.abs().max().item<double>() > 1e-3);
}

TEST_CASE("outer Adam and Yogi: the first step by hand") {
  for (const auto kind : {costmodel::OuterOptimizer::adam, costmodel::OuterOptimizer::yogi}) {
    TrainingOptions options = exact_options();
    options.outer.kind = kind;
    options.outer.learning_rate = 0.1;
    costmodel::Scenario scenario = training_scenario("diloco", 2);
    scenario.strategy.outer_optimizer = kind;
    Training fed(scenario, options);
    Training average(training_scenario("local_sgd", 2), options);
    const at::Tensor start = fed.weights(0).clone();
    fed.run(1);
    average.run(1);
    const at::Tensor d = start - average.weights(0);
    const at::Tensor m = 0.1 * d, v = 0.01 * d * d;  // yogi's first v is −(1 − β2)·d²·sign(0 − d²)
    CHECK(largest_difference(fed.weights(1), start - 0.1 * m / (v.sqrt() + 1e-3)) < 1e-13);
  }
}

TEST_CASE("LocalAdamW: all sites have the mean of parameters and moments, and go on from there") {
  Training training(training_scenario("local_adamw", 4), exact_options());
  Training apart(training_scenario("local_sgd", 4), exact_options());  // the same local steps
  training.run(1);
  apart.run(1);
  CHECK(largest_difference(training.weights(0), apart.weights(0)) < 1e-14);
  for (const char* name : {"layers.0.up.moment1", "embedding.moment2"}) {
    at::Tensor mean = at::zeros_like(apart.tensor(0, name));
    for (int node = 0; node < 4; ++node) mean += apart.tensor(node, name) / 4;
    for (int node = 0; node < 4; ++node) CHECK(largest_difference(training.tensor(node, name), mean) < 1e-15);
    CHECK(largest_difference(apart.tensor(0, name), mean) > 1e-6);
  }
}

TEST_CASE("one site with local_adamw, or local_sgd, is plain training") {
  for (const char* method : {"local_adamw", "local_sgd"}) {
    Training local(training_scenario(method, 1), exact_options());
    Training plain(training_scenario("centralised", 1), exact_options());
    local.run();
    plain.run();
    CHECK(at::equal(local.weights(0), plain.weights(0)));
  }
}

TEST_CASE("fomoe where every site holds every expert is diloco: bit-equal direct, 1e-12 by ring") {
  for (const auto placement : {costmodel::PlacementKind::fixed, costmodel::PlacementKind::random}) {
    costmodel::Scenario scenario = training_scenario("fomoe", 4, /*overlap=*/4);
    scenario.strategy.placement = placement;
    Training diloco(training_scenario("diloco", 4), real_options());
    diloco.run();
    Training direct(scenario, real_options());
    direct.run();
    for (int node = 0; node < 4; ++node) CHECK(at::equal(direct.weights(node), diloco.weights(node)));

    scenario.strategy.collective = costmodel::Collective::ring;
    Training ring(scenario, exact_options());
    Training exact(training_scenario("diloco", 4), exact_options());
    ring.run();
    exact.run();
    CHECK(farthest_weights(ring, exact) < 1e-12);
  }
}

TEST_CASE("the server of fedavg averages as diloco's sites do among themselves") {
  TrainingOptions options = exact_options();
  Training fedavg(training_scenario("fedavg", 4), options);
  Training diloco(training_scenario("diloco", 4), options);
  fedavg.run();
  diloco.run();
  for (int node = 0; node < 4; ++node)
    CHECK(largest_difference(fedavg.weights(node), diloco.weights(0)) < 1e-12);
}

TEST_CASE("a transfer of what another one brings waits for it: a server that passes on the mean") {
  costmodel::Scenario scenario = training_scenario("fedavg", 4);
  costmodel::Plan plan = costmodel::make_plan(scenario);
  // Sends parameters to the server and back, with nothing to compute between the two transfers.
  plan.round = [fedavg = plan.round](std::int64_t index) {
    costmodel::RoundPlan round = fedavg(index);
    round.ops.erase(round.ops.begin() + 2);  // removes the server's outer step
    for (const std::size_t op : {1, 2}) {
      for (auto& exchange : std::get<costmodel::Transfer>(round.ops[op].what).exchanges) {
        for (costmodel::Payload& payload : exchange.payloads) payload.content = costmodel::Content::parameter;
      }
      round.ops[op].after = {static_cast<costmodel::OpId>(op) - 1};
    }
    return round;
  };
  Training average(training_scenario("local_sgd", 4), exact_options());
  InProcessTransport transport(plan.nodes);
  Executor executor(scenario, plan, transport, average.batches, exact_options());
  executor.run_round(0);
  average.run(1);
  for (int node = 0; node < 4; ++node) {
    for (std::size_t i = 0; i < average.executor.worker(0).model().parameters().size(); ++i) {
      const at::Tensor& passed_on = executor.worker(node).model().parameters()[i].master;
      CHECK(largest_difference(passed_on, average.parameter(0, i)) < 1e-12);
    }
  }
}

TEST_CASE("streaming in one fragment that nothing overlaps is diloco") {
  Training streaming(training_scenario("streaming_diloco", 3), real_options());
  Training diloco(training_scenario("diloco", 3), real_options());
  streaming.run();
  diloco.run();
  for (int node = 0; node < 3; ++node)
    CHECK(largest_difference(streaming.weights(node), diloco.weights(0)) < 1e-6);
}

TEST_CASE("a fragment that travels while sites train on is merged with what they trained meanwhile") {
  costmodel::Scenario scenario = training_scenario("streaming_diloco", 2);
  scenario.strategy.fragments = 2;      // layer 0, sent at step 2 of 4; layer 1 and the embedding, at step 4
  scenario.strategy.overlap_steps = 2;  // layer 0 is merged at step 4, the others at step 2 of the next round
  Training streaming(scenario, exact_options());
  const std::vector<std::size_t> first = {parameter_index(0, Role::qkv), parameter_index(0, Role::up)};
  std::vector<at::Tensor> start;
  for (const std::size_t index : first) start.push_back(streaming.parameter(0, index).clone());
  streaming.run(1);

  // The means of the sites' weights after 2 and 4 local steps, from methods that average them at those steps.
  costmodel::Scenario two_steps = training_scenario("local_sgd", 2), four_steps = two_steps;
  two_steps.strategy.local_steps = 2;
  Training after_2(two_steps, exact_options()), after_4(four_steps, exact_options());
  after_2.run(1);
  after_4.run(1);
  for (std::size_t i = 0; i < first.size(); ++i) {
    const at::Tensor sent = start[i] - after_2.parameter(0, first[i]);
    const at::Tensor merged = start[i] - 0.7 * 1.9 * sent;
    const at::Tensor mean = (streaming.parameter(0, first[i]) + streaming.parameter(1, first[i])) / 2;
    CHECK(largest_difference(mean, 0.5 * after_4.parameter(0, first[i]) + 0.5 * merged) < 1e-13);
    CHECK(largest_difference(streaming.parameter(0, first[i]), streaming.parameter(1, first[i])) > 1e-6);
  }
  for (const char* name : {"layers.0.qkv.anchor", "layers.0.up.anchor"})
    CHECK(at::equal(streaming.tensor(0, name), streaming.tensor(1, name)));
  // The other fragment is under way: no site has merged anything of it.
  CHECK(largest_difference(streaming.tensor(0, "embedding.anchor"),
                           Training(scenario, exact_options()).tensor(0, "embedding")) == 0);

  streaming.run();
  streaming.executor.finish();
  Training again(scenario, exact_options());
  again.run();
  again.executor.finish();
  // the result does not depend on the speed of the transfers
  CHECK(at::equal(streaming.weights(1), again.weights(1)));
  CHECK(streaming.transport.traffic(0).total_sent() == again.transport.traffic(0).total_sent());
}

TEST_CASE("DES-LOC: moments are averaged in their own rounds only") {
  costmodel::Scenario scenario = training_scenario("des_loc", 2);
  scenario.strategy.moment1_period = 2;
  scenario.strategy.moment2_period = 3;
  Training training(scenario, exact_options());
  const auto alike = [&](const char* name) {
    return at::equal(training.tensor(0, name), training.tensor(1, name));
  };
  for (int round = 1; round <= 3; ++round) {
    training.run(1);
    CHECK(alike("layers.1.down"));
    CHECK(alike("layers.1.down.moment1") == (round == 2));
    CHECK(alike("layers.1.down.moment2") == (round == 3));
  }
}

TEST_CASE("the same seed gives the same bits, another seed others, for every core method") {
  for (const char* method :
       {"ddp", "centralised", "local_sgd", "diloco", "local_adamw", "streaming_diloco", "fomoe"}) {
    CAPTURE(method);
    costmodel::Scenario scenario = training_scenario(method, 4, std::string(method) == "fomoe" ? 2 : 0);
    if (std::string(method) == "fomoe") scenario.strategy.placement = costmodel::PlacementKind::random;
    Training a(scenario, real_options()), b(scenario, real_options());
    a.run();
    b.run();
    CHECK(at::equal(a.weights(0), b.weights(0)));
    scenario.seed = 7;
    Training c(scenario, real_options());
    c.run();
    CHECK(!at::equal(a.weights(0), c.weights(0)));
  }
}

TEST_CASE("warm-up, clipping and the load-balancing loss change the training as they say") {
  std::vector<double> rates;
  TrainingOptions options = exact_options();
  options.rate.warmup_steps = 4;
  Training training(training_scenario("centralised", 1), options);
  training.executor.on_step = [&](const StepRecord& step) { rates.push_back(step.learning_rate); };
  training.run();
  REQUIRE(rates.size() == 12);
  CHECK(rates[0] == doctest::Approx(0.0025));
  CHECK(rates[3] == doctest::Approx(0.01));
  CHECK(rates[11] == doctest::Approx(0.01));

  // Gradients that are a thousand times smaller do not change Adam's first step, except through epsilon; the
  // moments show them.
  TrainingOptions clipped = exact_options();
  clipped.clip_norm = 1e-3;
  Training tight(training_scenario("centralised", 1), clipped);
  tight.run(1);
  double square = 0;
  for (const auto& [name, tensor] : tight.executor.worker(0).state()) {
    if (name.ends_with(".moment1")) square += tensor.square().sum().item<double>();
  }
  CHECK(std::sqrt(square) == doctest::Approx(0.1 * 1e-3).epsilon(1e-3));  // (1 − β1)·g

  TrainingOptions balanced = exact_options();
  balanced.balance_weight = 0.1;
  Training even(training_scenario("centralised", 1), balanced),
      plain(training_scenario("centralised", 1), exact_options());
  even.run(1);
  plain.run(1);
  CHECK(!at::equal(even.tensor(0, "layers.0.router"), plain.tensor(0, "layers.0.router")));
}
