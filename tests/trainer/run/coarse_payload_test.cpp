// Tests error feedback with lossy wire formats: what a payload leaves out is kept and sent later.
#include <algorithm>
#include <cmath>

#include "tests/trainer/moe_case.hpp"
#include "tests/trainer/run/training_case.hpp"
#include "trainer/kernels/route/route.hpp"

using namespace fomoe::trainer;
using namespace fomoe::trainer::testing;
namespace costmodel = fomoe::costmodel;

TEST_CASE("top-k with error feedback: sites read what is sent less what is kept for the next payload") {
  costmodel::Scenario scenario = training_scenario("sparse_loco", 2);
  scenario.strategy.wire = costmodel::top_k_format(costmodel::ElementType::fp32, 0.25, 12);
  TrainingOptions options = exact_options();
  options.exact_wire = false;
  options.outer.keeps_momentum = false;  // error feedback stands in its place
  options.residual_decay = 0.5;
  Training sparse(scenario, options);
  for (const auto& [name, tensor] : sparse.executor.worker(0).state()) CHECK(!name.ends_with(".outer1"));
  // the same local steps, sent completely
  Training whole(training_scenario("local_sgd", 2), exact_options());
  const at::Tensor start = sparse.weights(0).clone();
  sparse.run(1);
  whole.run(1);
  std::vector<at::Tensor> kept;
  for (int node = 0; node < 2; ++node) {
    std::vector<at::Tensor> parts;
    for (const auto& [name, tensor] : sparse.executor.worker(node).state()) {
      if (name.ends_with(".residual")) parts.push_back(tensor.reshape({-1}));
    }
    kept.push_back(at::cat(parts));
    const auto all = static_cast<double>(kept.back().numel());
    const at::Tensor size = kept.back().abs();  // a kept value still has the rounding error of fp32
    const double share = size.gt(1e-6 * size.max()).sum().item<double>() / all;
    CHECK(share > 0.5);  // three quarters of the values that are not zero anyway
    CHECK(share < 0.76);
  }
  const at::Tensor mean = start - whole.weights(0);
  const at::Tensor expected = start - 0.7 * (mean - (kept[0] + kept[1]) / 2);
  CHECK(largest_difference(sparse.weights(0), expected) < 1e-7);  // values travel as fp32
  CHECK(at::equal(sparse.weights(0), sparse.weights(1)));

  // After the outer step the difference is zero, so the next payload would consist of half of the residual.
  const costmodel::RoundPlan round = sparse.plan.round(0);
  for (const costmodel::Op& op : round.ops) {
    const auto* transfer = std::get_if<costmodel::Transfer>(&op.what);
    if (transfer == nullptr) continue;
    double sum = 0;
    for (const costmodel::Payload& payload : transfer->exchanges[0].payloads)
      sum += sparse.executor.worker(1).read(payload).square().sum().item<double>();
    CHECK(sum == doctest::Approx(0.25 * kept[1].square().sum().item<double>()));
  }
}

TEST_CASE("int8 and int4 payloads train, all sites alike") {
  for (const auto type : {costmodel::ElementType::int8, costmodel::ElementType::int4}) {
    for (const auto collective : {costmodel::Collective::direct, costmodel::Collective::ring}) {
      costmodel::Scenario scenario = training_scenario("diloco", 3);
      scenario.strategy.wire = costmodel::plain_format(type);
      scenario.strategy.collective = collective;
      Training coarse(scenario, real_options());
      Training fine(training_scenario("diloco", 3), real_options());
      const at::Tensor start = coarse.weights(0).clone();
      coarse.run(1);
      fine.run(1);
      for (int node = 1; node < 3; ++node) CHECK(at::equal(coarse.weights(node), coarse.weights(0)));
      // The error is half a step of a block's largest value, once or a few times.
      const double error = (coarse.weights(0) - fine.weights(0)).norm().item<double>();
      const double moved = (fine.weights(0) - start).norm().item<double>();
      CHECK(error < (type == costmodel::ElementType::int8 ? 0.02 : 0.35) * moved);
      CHECK(error > 0);
    }
  }
}

TEST_CASE("error feedback keeps what all encodings of an all-reduce took from the mean, and nothing else") {
  for (const auto type :
       {costmodel::ElementType::int8, costmodel::ElementType::int4, costmodel::ElementType::fp8}) {
    for (const auto collective :
         {costmodel::Collective::direct, costmodel::Collective::ring, costmodel::Collective::recursive}) {
      constexpr int kSites = 4;
      costmodel::Scenario scenario = training_scenario("diloco", kSites);
      scenario.strategy.wire = costmodel::plain_format(type);
      scenario.strategy.collective = collective;
      TrainingOptions options = real_options();
      options.outer.learning_rate = 1;
      options.outer.keeps_momentum = false;
      Training coarse(scenario, options);
      Training whole(training_scenario("local_sgd", kSites), real_options());
      const at::Tensor start = coarse.weights(0).clone();
      coarse.run(1);
      whole.run(1);
      at::Tensor kept = at::zeros_like(start);
      for (int node = 0; node < kSites; ++node) {
        std::vector<at::Tensor> parts;
        for (const auto& [name, tensor] : coarse.executor.worker(node).state())
          if (name.ends_with(".residual")) parts.push_back(tensor.reshape({-1}));
        kept += at::cat(parts) / kSites;
      }
      const at::Tensor missing = coarse.weights(0) - whole.weights(0);
      CAPTURE(static_cast<int>(type));
      CAPTURE(static_cast<int>(collective));
      CHECK(missing.norm().item<double>() > 0.001 * (start - whole.weights(0)).norm().item<double>());
      CHECK((missing - kept).norm().item<double>() < 1e-4 * missing.norm().item<double>());
    }
  }
}

TEST_CASE("fp8 payloads train with small learning rates, whose differences fp8 would round to zeros") {
  // A round of 4 steps moves a weight by at most 4e-4, and the smallest value of fp8 is 2^-9 = 2e-3.
  costmodel::Scenario scenario = training_scenario("diloco", 2);
  scenario.workload.tokens *= 20;
  TrainingOptions options = real_options();
  options.inner.learning_rate = 1e-4;
  options.inner.complete_p = false;  // the same rate for all parameters
  Training fine(scenario, options);
  scenario.strategy.wire = costmodel::plain_format(costmodel::ElementType::fp8);
  Training coarse(scenario, options);
  const at::Tensor start = fine.weights(0).clone();
  fine.run();
  coarse.run();
  CHECK(at::equal(coarse.weights(0), coarse.weights(1)));
  const at::Tensor moved = coarse.weights(0) - start, expected = fine.weights(0) - start;
  const double cosine =
      (moved * expected).sum().item<double>() / (moved.norm() * expected.norm()).item<double>();
  CHECK(cosine > 0.5);  // near 0 if movements of so many weights had nothing in common
  CHECK(moved.norm().item<double>() == doctest::Approx(expected.norm().item<double>()).epsilon(0.2));
}

TEST_CASE("a top-k that keeps all values sends them as the plain format does") {
  costmodel::Scenario scenario = training_scenario("diloco", 2);
  scenario.strategy.wire = costmodel::plain_format(costmodel::ElementType::bf16);
  Training plain(scenario, real_options());
  scenario.strategy.wire.index_bits = 12;
  Training kept(scenario, real_options());
  plain.run(1);
  kept.run(1);
  CHECK(at::equal(kept.weights(1), plain.weights(1)));
  CHECK(kept.transport.traffic(0).total_sent() == plain.transport.traffic(0).total_sent());
}

TEST_CASE("hierarchical_diloco: regions average among themselves, and a global round brings all together") {
  costmodel::Scenario scenario = training_scenario("hierarchical_diloco", 4);
  scenario.strategy.regions = 2;
  scenario.strategy.global_period = 2;
  TrainingOptions options = exact_options();
  options.outer.learning_rate = 1;
  options.outer.keeps_momentum = false;
  Training training(scenario, options);
  training.run(1);
  CHECK(largest_difference(training.weights(0), training.weights(1)) < 1e-12);
  CHECK(largest_difference(training.weights(2), training.weights(3)) < 1e-12);
  CHECK(largest_difference(training.weights(0), training.weights(2)) > 1e-4);
  training.run(1);
  for (int node = 1; node < 4; ++node)
    CHECK(largest_difference(training.weights(0), training.weights(node)) < 1e-12);
}

TEST_CASE("hierarchical_diloco: a run that ends before its first global round has the state of longer ones") {
  costmodel::Scenario scenario = training_scenario("hierarchical_diloco", 4);
  scenario.strategy.regions = 2;
  scenario.strategy.global_period = 4;  // the run has 3 rounds
  const auto names = [&] {
    Training training(scenario, real_options());
    std::vector<std::string> all;
    for (const auto& [name, tensor] : training.executor.worker(0).state()) all.push_back(name);
    return all;
  };
  const std::vector<std::string> shorter = names();
  scenario.workload.tokens *= 2;
  CHECK(shorter == names());
  CHECK(std::find(shorter.begin(), shorter.end(), "embedding.anchor") != shorter.end());
}

TEST_CASE("skip-token: rows that experts execute are the slots that chose a local one") {
  MoeCase one(/*tokens=*/30, /*d=*/8, /*d_expert=*/4, /*chosen=*/2, /*local_index=*/{0, -1, 1, -1, -1},
              /*local=*/2);
  RouterUse use;
  use.counts = at::zeros({5}, at::kLong);
  (void)moe_forward(one.x, one.layer, &use);
  const at::Tensor chosen = std::get<1>(at::mm(one.x, one.layer.router).topk(2, 1)).flatten();
  for (int expert = 0; expert < 5; ++expert)
    CHECK(use.counts[expert].item<std::int64_t>() == chosen.eq(expert).sum().item<std::int64_t>());
  const std::int64_t local = (use.counts[0] + use.counts[2]).item<std::int64_t>();
  const Route sorted = route(one.layer.local_index.index_select(0, chosen), 2);
  CHECK(sorted.ends[1].item<int>() == local);  // the number of rows of local experts
  CHECK(local > 0);
  CHECK(local < 60);
}

TEST_SUITE("slow") {
  TEST_CASE("learning rates transfer: the best of seven, factors of 2 apart, is the same at widths 1 to 3") {
    std::vector<std::size_t> best;
    const std::vector<double> rates = {0.000125, 0.00025, 0.0005, 0.001, 0.002, 0.004, 0.008};
    for (const std::int64_t width : {48, 144}) {
      std::vector<double> losses;
      for (const double rate : rates) {
        costmodel::Scenario scenario = training_scenario("centralised", 1);
        scenario.model.d_model = width;
        scenario.model.heads = width / 16;
        scenario.model.d_expert = 16;
        scenario.model.vocabulary = 64;
        scenario.model.sequence_length = 32;
        scenario.workload = {/*tokens=*/90 * 16 * 32, /*global_batch_sequences=*/16};
        TrainingOptions options = real_options();
        options.inner.learning_rate = rate;
        options.rate.warmup_steps = 20;
        Training training(scenario, options);
        double last = 0;
        training.executor.on_step = [&](const StepRecord& step) {
          if (step.step >= 80) last += step.loss.item<double>() / 10;
        };
        training.run();
        losses.push_back(std::isfinite(last) ? last : 1e9);
      }
      best.push_back(
          static_cast<std::size_t>(std::min_element(losses.begin(), losses.end()) - losses.begin()));
      MESSAGE("width " << width << ": " << at::tensor(losses));
    }
    CHECK(best[0] == best[1]);
    CHECK(best[0] > 0);  // the best rate lies inside the grid, at neither end
    CHECK(best[0] + 1 < rates.size());
  }
}
