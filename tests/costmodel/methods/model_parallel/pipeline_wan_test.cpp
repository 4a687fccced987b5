// Tests of a pipeline whose stages are sites.
#include <doctest/doctest.h>

#include "costmodel/compose/check.hpp"
#include "costmodel/compose/make_plan.hpp"
#include "costmodel/counts/memory.hpp"
#include "costmodel/formula/closed_form.hpp"
#include "costmodel/model/site_model.hpp"
#include "costmodel/plan/method.hpp"
#include "platforms/support/input_error.hpp"
#include "tests/memory_of.hpp"
#include "tests/plan_bytes.hpp"
#include "tests/scenarios.hpp"

using namespace fomoe;
using namespace fomoe::costmodel;

namespace {

Scenario pipeline(int sites, int micro_batches, double bytes_per_s, double latency_s = 0) {
  Scenario scenario = tests::ideal_scenario("pipeline_wan", sites);
  scenario.model.layers = 8;
  scenario.workload.global_batch_sequences = 8;
  scenario.workload.tokens = 60 * 8 * 10;
  scenario.strategy.micro_batches = micro_batches;
  scenario.platform = platforms::uniform(sites, bytes_per_s, bytes_per_s, latency_s);
  return scenario;
}

}  // namespace

TEST_CASE("pipeline: the batch's activations cross every boundary once forward and once backward") {
  for (const int sites : {2, 4, 8}) {
    const Scenario scenario = pipeline(sites, 4, 1e9);
    const SentBytes sent = tests::sent_in_round(tests::plan_of(scenario), scenario.sites(), 0);
    const double batch = 8.0 * 10 * 6720 * 2;  // B_g·s·d in bf16
    CHECK(sent.activations == doctest::Approx(2 * (sites - 1) * batch / sites).epsilon(1e-13));
    // The tied embedding's gradient: the first and the last stage send V·d each.
    CHECK(sent.dense == doctest::Approx(2 * 100.0 * 6720 * 2 / sites).epsilon(1e-13));
    CHECK(sent.expert_sync == 0);
  }
}

TEST_CASE("pipeline: on fast links only the bubble (M−1)/n remains") {
  for (const int sites : {2, 4, 8}) {
    for (const int n : {1, 2, 8}) {
      const RunReport report = closed_form(pipeline(sites, n, 1e18));
      CHECK(report.round.duration_s == doctest::Approx(1 + (sites - 1.0) / n).epsilon(1e-9));
      CHECK(report.compute_utilization == doctest::Approx(1 / (1 + (sites - 1.0) / n)).epsilon(1e-9));
    }
  }
}

TEST_CASE("pipeline by hand: M(f+b) + 2(M−1)(l+w) + (n−1)[max(f,w) + max(b,w)] + embedding") {
  // f = 1/12 s and b = 2/12 s; a micro-batch of 2 sequences is 268,800 bytes.
  for (const double l : {0.0, 0.07, 2.0}) {
    for (const double w : {0.01, 0.1, 0.5}) {  // shorter than f and b, between them, longer than both
      const double f = 1.0 / 12, b = 2.0 / 12;
      const double bytes_per_s = 2 * 10 * 6720 * 2 / w;
      // All-reduce of two sites: S in each direction, in two steps.
      const double embedding_s = 2 * l + 100 * 6720 * 2 / bytes_per_s;
      const double expected =
          4 * (f + b) + 2 * 3 * (l + w) + 3 * (std::max(f, w) + std::max(b, w)) + embedding_s;
      CHECK(closed_form(pipeline(4, 4, bytes_per_s, l)).round.duration_s ==
            doctest::Approx(expected).epsilon(1e-12));
    }
  }
}

TEST_CASE("pipeline: more stages than layers, and more micro-batches than sequences, are refused") {
  Scenario scenario = pipeline(4, 4, 1e9);
  scenario.model.layers = 3;
  CHECK_THROWS_AS(check(scenario), InputError);
  CHECK_THROWS_AS(check(pipeline(4, 9, 1e9)), InputError);
  CHECK_NOTHROW(check(pipeline(4, 8, 1e9)));
}

TEST_CASE(
    "pipeline memory: L/M layers, an embedding table at each end, activations of the micro-batches in "
    "flight") {
  // 8 layers over 4 sites of one GPU, 8 sequences in n micro-batches.
  const auto memory = [](int n, PipelineSchedule schedule) {
    Scenario scenario = pipeline(4, n, 1e9);
    scenario.strategy.schedule = schedule;
    return memory_per_gpu(scenario);
  };
  const Scenario scenario = pipeline(4, 4, 1e9);
  const ParameterCounts counts = count_parameters(scenario.model);
  const double stage = static_cast<double>(counts.total() - counts.embedding) / 4 + 100.0 * 6720;
  const MemoryBytes gpipe = memory(4, PipelineSchedule::gpipe);
  CHECK(gpipe.total() - gpipe.activations == doctest::Approx(18 * stage).epsilon(1e-12));
  CHECK(parameters_per_site(scenario) == static_cast<std::int64_t>(stage));

  // GPipe keeps the activations of the whole batch in a quarter of the layers, however many micro-batches.
  Scenario whole = tests::ideal_scenario("ddp", 4);
  whole.model = scenario.model;
  const SiteModel site = site_model(whole);
  const double logits = 8 * 10 * (site.outer_norm_bytes_per_token + site.logit_bytes_per_token);
  const double layers = memory_per_gpu(whole, 8).activations - logits;
  const double per_sequence = logits / 8;
  for (const int n : {1, 4, 8})
    CHECK(memory(n, PipelineSchedule::gpipe).activations ==
          doctest::Approx(layers / 4 + 8.0 / n * per_sequence).epsilon(1e-9));
  // 1F1B: the first stage keeps min(n, 4) micro-batches of 8/n sequences; with 8 micro-batches half of
  // GPipe's.
  CHECK(memory(8, PipelineSchedule::one_f_one_b).activations ==
        doctest::Approx(layers / 4 / 2).epsilon(1e-9));
  CHECK(memory(2, PipelineSchedule::one_f_one_b).activations == doctest::Approx(layers / 4).epsilon(1e-9));
}

TEST_CASE("pipelines side by side: activations of each, and the gradients of each stage among its sites") {
  for (const bool tied : {true, false}) {
    for (const int stage_sites : {1, 2, 4, 8}) {
      Scenario scenario = pipeline(8, 2, 1e9);
      scenario.workload.global_batch_sequences = 16;
      scenario.model.tied_embeddings = tied;
      scenario.strategy.stage_sites = stage_sites;
      CAPTURE(tied);
      CAPTURE(stage_sites);
      const Plan plan = tests::plan_of(scenario);
      const SentBytes sent = tests::sent_in_round(plan, 8, 0), formula = summarise(scenario).sent;
      const int stages = 8 / stage_sites, w = stage_sites;
      // The whole batch crosses each boundary between stages twice.
      CHECK(sent.activations == doctest::Approx(2.0 * (stages - 1) * 16 * 10 * 6720 * 2 / 8).epsilon(1e-13));
      const ParameterCounts counts = count_parameters(scenario.model);
      const double table = 100.0 * 6720, body = static_cast<double>(counts.total() - counts.embedding);
      const double ring = w > 1 ? 2.0 * (w - 1) / w : 0;
      double all = ring * 2 * (body + (tied ? 0 : 2 * table)) * w;  // of the w sites of each stage
      if (tied) {
        const double n = std::min(2 * w, 8);
        all += 2 * (n - 1) / n * 2 * table * n;
      }
      CHECK(sent.dense + sent.expert_sync == doctest::Approx(all / 8).epsilon(1e-12));
      CHECK(formula.activations == doctest::Approx(sent.activations).epsilon(1e-12));
      CHECK(formula.dense == doctest::Approx(sent.dense).epsilon(1e-12));
      CHECK(formula.expert_sync == doctest::Approx(sent.expert_sync).epsilon(1e-12));
    }
  }
}

TEST_CASE("pipelines side by side: a site of P stages keeps 1/P of the layers, and its part of the batch") {
  Scenario four = pipeline(4, 2, 1e9), eight = pipeline(8, 2, 1e9);
  eight.strategy.stage_sites = 2;
  eight.workload.global_batch_sequences = 16;  // as much for each pipeline
  four.gpus.micro_batch_sequences = eight.gpus.micro_batch_sequences = 1;
  CHECK(memory_per_site(eight).total() == memory_per_site(four).total());
  CHECK(parameters_per_site(eight) == parameters_per_site(four));
  eight.strategy.stage_sites = 3;
  CHECK_THROWS_AS(check(eight), InputError);
  eight.strategy.stage_sites = 2;
  eight.strategy.micro_batches = 9;  // a pipeline has 8 sequences
  CHECK_THROWS_AS(check(eight), InputError);
}
