// Tests how sites find out that they are about to train different things, or hold different weights.
#include "trainer/run/agreement.hpp"

#include "tests/trainer/run/training_case.hpp"

using namespace fomoe::trainer;
using namespace fomoe::trainer::testing;
namespace costmodel = fomoe::costmodel;

TEST_CASE("the first difference is named with both values, also if an entry is missing") {
  const Digest digest = {{"seed", "42"}, {"model.layers", "4"}};
  CHECK(!first_difference(digest, digest));
  CHECK(first_difference(digest, {{"seed", "42"}, {"model.layers", "2"}}) == "model.layers (2 instead of 4)");
  CHECK(first_difference(digest, {{"seed", "42"}}) == "model.layers (nothing instead of 4)");
  CHECK(first_difference({{"seed", "42"}}, digest) == "model.layers (4 instead of nothing)");
  CHECK(digest_from_json(to_json(digest)) == digest);
}

TEST_CASE("what determines the weights: not prices, links or tokens, but everything that is trained with") {
  RunRequest request;
  request.scenario = training_scenario("diloco", 3);
  const Corpus corpus = Corpus::synthetic(request.scenario.model.vocabulary, 5'000, 1);
  const auto digest = [&](const RunRequest& of, const TrainingOptions& options, const Corpus& data) {
    return determines_weights(of, costmodel::make_plan(of.scenario), options, hash_of(data));
  };
  const Digest usual = digest(request, {}, corpus);
  const auto same_after = [&](const auto& change) {
    RunRequest other = request;
    change(other);
    return !first_difference(usual, digest(other, {}, corpus));
  };
  CHECK(same_after([](RunRequest& r) { r.scenario.platform.sites[1].uplink_bytes_per_s = 5; }));
  CHECK(same_after([](RunRequest& r) { r.scenario.workload.tokens *= 3; }));
  CHECK(same_after([](RunRequest& r) { r.settings.timeout_s = 5; }));
  CHECK(!same_after([](RunRequest& r) { r.scenario.seed = 5; }));
  CHECK(!same_after([](RunRequest& r) { r.scenario.model.d_expert *= 2; }));
  CHECK(!same_after([](RunRequest& r) { r.scenario.strategy.local_steps = 2; }));
  CHECK(!same_after([](RunRequest& r) { r.scenario.strategy.collective = costmodel::Collective::ring; }));
  CHECK(!same_after([](RunRequest& r) { r.scenario.workload.global_batch_sequences *= 2; }));
  CHECK(!same_after([](RunRequest& r) { r.settings.learning_rate = 0.5; }));
  TrainingOptions bf16;
  bf16.dtype = at::kBFloat16;
  CHECK(first_difference(usual, digest(request, bf16, corpus)) ==
        "trainer.dtype (BFloat16 instead of Float)");
  // The text differs far from its beginning.
  CHECK(first_difference(usual,
                         digest(request, {}, Corpus::synthetic(request.scenario.model.vocabulary, 5'000, 2)))
            .has_value());
}

TEST_CASE("a run may go on with other latencies and tokens, which change the order of sums and later rates") {
  RunRequest request;
  request.scenario = training_scenario("diloco", 4);
  request.scenario.strategy.collective = costmodel::Collective::ring;
  request.scenario.strategy.ring_order = costmodel::RingOrder::best;
  request.settings.schedule = "cosine";
  RunRequest other = request;
  for (int from = 0; from < 4; ++from) {  // so that the best ring is 0 2 1 3
    for (int to = 0; to < 4; ++to)
      other.scenario.platform.set_latency(from, to, (from < 2) == (to < 2) ? 0.5 : 0.001);
  }
  other.scenario.workload.tokens *= 2;
  const Corpus corpus = Corpus::synthetic(request.scenario.model.vocabulary, 5'000, 1);
  const auto digests = [&](const RunRequest& of) {
    const costmodel::Plan plan = costmodel::make_plan(of.scenario);
    const Digest weights = determines_weights(of, plan, {}, hash_of(corpus));
    return std::pair(weights, shared_by_processes(of, plan, weights));
  };
  const auto [before, shared_before] = digests(request);
  const auto [after, shared_after] = digests(other);
  CHECK(!first_difference(before, after));
  CHECK(first_difference(shared_before, shared_after).value_or("").starts_with("the order of transfers ("));
  // Other sites that average with each other are another method.
  RunRequest fewer = request;
  fewer.scenario.strategy.method = costmodel::find_method("hierarchical_diloco");
  CHECK(first_difference(before, digests(fewer).first));
}

TEST_CASE("processes with different weights are named, with the parameters in which they differ") {
  // Two processes with one site each are emulated by two trainings of all sites.
  const costmodel::Scenario scenario = training_scenario("fomoe", 4, 2);
  Training one(scenario, real_options()), two(scenario, real_options());
  const std::vector<std::string> names = {"paris", "tokyo"};
  const auto compared = [&] {
    return disagreement({weight_hashes(one.executor), weight_hashes(two.executor)}, names);
  };
  CHECK(compared().empty());
  const at::NoGradGuard no_grad;
  const auto index = parameter_index(1, Role::up);
  at::Tensor up = two.parameter(3, index);
  const int expert = local_experts(scenario.model, two.executor.worker(3).model().options().experts, 1).at(1);
  const float kept = up[1][0][0].item<float>();
  up[1][0][0] = kept + 1e-7F;
  CHECK(compared() == "tokyo differs from paris in expert " + std::to_string(expert) + " of layer 1");
  up[1][0][0] = kept;
  CHECK(compared().empty());
  two.parameter(3, 0)[0][0] += 1e-7;
  CHECK(compared() == "tokyo differs from paris in the dense parameters");
}
