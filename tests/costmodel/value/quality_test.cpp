// Tests of the quality models: their answers, and that they answer "unknown" outside of their data.
#include "costmodel/value/quality.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "costmodel/formula/closed_form.hpp"
#include "costmodel/methods/all.hpp"
#include "tests/scenarios.hpp"

using namespace fomoe;
using namespace fomoe::costmodel;

namespace {

QualityTable table_for(const Scenario& scenario) {
  return {"a test",
          {{"parameters", static_cast<double>(count_parameters(scenario.model).total())},
           {"tokens", static_cast<double>(scenario.workload.tokens)}},
          {{"diloco", 5, "fixed", 4, 4, 20.0, 0.5, ""},
           {"diloco", 5, "fixed", 4, 2, 22.0, -1, "with a remark"},
           {"diloco", 5, "random", 4, 2, 23.0, 1.5, ""},
           {"diloco", 10, "fixed", 4, 4, 25.0, 1.5, ""}}};
}

Quality ask(const Scenario& scenario) { return *closed_form(scenario).quality; }

// A dense model of N = 35.7M parameters, trained on 20 tokens per parameter.
Scenario dense_scenario(const std::string& method, int sites) {
  Scenario scenario = tests::ideal_scenario(method, sites);
  ModelShape& shape = scenario.model;
  shape = {"dense", 512, 6, 8, 1, 1, 2048, 32768, 2048};
  scenario.strategy.local_steps = 30;
  scenario.workload.global_batch_sequences = 48;  // within a factor of 2 of the best batches, 26 to 51
  scenario.workload.tokens = 20 * count_parameters(shape).total();
  scenario.quality = DilocoScalingLaw{};
  return scenario;
}

}  // namespace

TEST_CASE("quality table: how often placements were drawn counts only where they are drawn again") {
  const auto known = [](int overlap, PlacementKind placement, std::int64_t rounds) {
    Scenario scenario = tests::ideal_scenario("fomoe", 4, overlap);
    QualityTable table = table_for(scenario);
    table.scope.emplace_back("reshuffle_rounds", 2);
    table.rows.push_back({"diloco", 5, "random", 4, 4, 20.0, 1.5, ""});
    scenario.quality = table;
    scenario.strategy.placement = placement;
    scenario.strategy.reshuffle_rounds = rounds;
    return ask(scenario).known;
  };
  CHECK(known(2, PlacementKind::random, 2));
  CHECK_FALSE(known(2, PlacementKind::random, 3));
  CHECK(known(2, PlacementKind::fixed, 3));
  CHECK(known(4, PlacementKind::random, 3));  // every site holds all experts, wherever they are placed
}

TEST_CASE("quality table: a row that matches is the answer, with its ± and its remark") {
  Scenario scenario = tests::ideal_scenario("diloco", 4);
  scenario.quality = table_for(scenario);
  const Quality quality = ask(scenario);
  CHECK(quality.known);
  CHECK(quality.perplexity == 20);
  CHECK(*quality.plus_minus == 0.5);
  CHECK(quality.source == "a test; runs of 12 rounds, which say little of runs with more");

  Scenario partial = tests::ideal_scenario("fomoe", 4, 2);  // its outer optimiser is DiLoCo's
  partial.quality = table_for(partial);
  CHECK(ask(partial).perplexity == 22);
  CHECK_FALSE(ask(partial).plus_minus.has_value());
  CHECK(ask(partial).source ==
        "a test (with a remark); runs of 12 rounds, which say little of runs with more");
  partial.strategy.placement = PlacementKind::random;
  CHECK(ask(partial).perplexity == 23);

  // The optimiser decides which rows match: the table has no run of LocalAdamW.
  partial.strategy.outer_optimizer = OuterOptimizer::local_adamw;
  CHECK_FALSE(ask(partial).known);
  std::get<QualityTable>(*partial.quality).rows.push_back({"local_adamw", 5, "random", 4, 2, 31, -1, ""});
  CHECK(ask(partial).perplexity == 31);
  partial.strategy.method = costmodel::find_method("gossip");
  CHECK_FALSE(ask(partial).known);
}

TEST_CASE("quality table: interpolated in log K and O_e when asked, marked, with its neighbours") {
  Scenario scenario = tests::ideal_scenario("fomoe", 4, 2);
  scenario.model.experts = 8;
  QualityTable table = table_for(scenario);
  table.rows = {{"diloco", 4, "fixed", 4, 1, 30, 1, ""},
                {"diloco", 16, "fixed", 4, 1, 40, 2, ""},
                {"diloco", 4, "fixed", 4, 4, 20, 1, ""},
                {"diloco", 16, "fixed", 4, 4, 25, 3, ""},
                {"diloco", 4, "random", 4, 1, 99, 1, ""}};
  scenario.strategy.local_steps = 8;  // half-way in log K
  scenario.workload.tokens = 64LL * 4 * 10;
  table.scope[1].second = static_cast<double>(scenario.workload.tokens);
  scenario.quality = table;
  CHECK_FALSE(ask(scenario).known);

  table.interpolate = true;
  scenario.quality = table;
  scenario.strategy.expert_overlap = 1;
  CHECK(ask(scenario).perplexity == doctest::Approx(std::sqrt(30.0 * 40.0)).epsilon(1e-12));
  CHECK(ask(scenario).interpolated);
  CHECK(*ask(scenario).plus_minus == 2);
  CHECK(ask(scenario).source.find("30 (K = 4, O_e = 1), 40 (K = 16, O_e = 1), a spread of 10") !=
        std::string::npos);
  // O_e = 2 of 1 and 4: a third of the way.
  scenario.strategy.expert_overlap = 2;
  const double at_1 = std::log(std::sqrt(30.0 * 40.0)), at_4 = std::log(std::sqrt(20.0 * 25.0));
  CHECK(ask(scenario).perplexity == doctest::Approx(std::exp(at_1 + (at_4 - at_1) / 3)).epsilon(1e-12));
  CHECK(*ask(scenario).plus_minus == 3);
  // A measured row is the answer itself, and nothing is extrapolated.
  scenario.strategy.local_steps = 4;
  scenario.strategy.expert_overlap = 4;
  CHECK(ask(scenario).perplexity == 20);
  CHECK_FALSE(ask(scenario).interpolated);
  scenario.strategy.local_steps = 32;
  CHECK_FALSE(ask(scenario).known);
  scenario.strategy.local_steps = 8;
  scenario.strategy.placement = PlacementKind::random;
  scenario.strategy.expert_overlap = 2;
  CHECK_FALSE(ask(scenario).known);  // no neighbour at K = 16
}

TEST_CASE(
    "an assumed penalty holds for methods that do not synchronise in each step, and is marked as assumed") {
  for (const auto& [method, factor] : {std::pair{"ddp", 1.0}, {"diloco", 1.3}, {"fomoe", 1.3}}) {
    Scenario scenario = tests::ideal_scenario(method, 4);
    scenario.quality = AssumedPenalty{1.3};
    const RunReport report = closed_form(scenario);
    CHECK_FALSE(report.quality->known);
    CHECK(*report.quality->equal_loss_factor == factor);
    const auto stated =
        std::find_if(report.provenance.begin(), report.provenance.end(),
                     [](const Provenance& row) { return row.what == "time and cost to equal loss"; });
    REQUIRE(stated != report.provenance.end());
    CHECK(stated->origin == Origin::assumed);
  }
}

TEST_CASE("quality is unknown for payloads and outer optimisers that were not measured") {
  const auto reason = [](Scenario scenario, const auto& change) {
    change(scenario);
    const Quality quality = ask(scenario);
    CHECK_FALSE(quality.known);
    return quality.reason;
  };
  Scenario table = tests::ideal_scenario("diloco", 4), law = dense_scenario("diloco", 4);
  table.quality = table_for(table);
  REQUIRE(ask(table).known);
  REQUIRE(ask(law).known);
  for (const Scenario& scenario : {table, law}) {
    CHECK(reason(scenario, [](Scenario& s) {
            s.strategy.wire = plain_format(ElementType::int8);
          }).starts_with("int8 on the wire"));
    CHECK(reason(scenario, [](Scenario& s) {
            s.strategy.wire = top_k_format(ElementType::bf16, 0.001, 12);
          }).starts_with("top-k on the wire"));
    Scenario fp32 = scenario;
    fp32.strategy.wire = plain_format(ElementType::fp32);
    CHECK(ask(fp32).known);
  }
  CHECK(reason(law, [](Scenario& s) { s.strategy.outer_optimizer = OuterOptimizer::average; }) ==
        "outer_optimizer average; the law covers nesterov");
  Scenario partial = tests::ideal_scenario("fomoe", 4, 2);
  partial.quality = table_for(partial);
  REQUIRE(ask(partial).known);
  (void)reason(partial, [](Scenario& s) { s.strategy.outer_optimizer = OuterOptimizer::adam; });
}

TEST_CASE("a note offers LocalAdamW as the outer step where the table has a lower perplexity with it") {
  Scenario scenario = tests::ideal_scenario("fomoe", 4, 2);
  QualityTable table = table_for(scenario);
  table.rows.push_back({"local_adamw", 5, "fixed", 4, 2, 21, -1, ""});
  scenario.quality = table;
  const auto offered = [&] {
    const RunReport report = closed_form(scenario);
    return std::any_of(report.notes.begin(), report.notes.end(), [](const std::string& note) {
      return note.find("perplexity of 21 instead of 22") != std::string::npos;
    });
  };
  CHECK(offered());
  scenario.strategy.outer_optimizer = OuterOptimizer::local_adamw;
  CHECK_FALSE(offered());
  scenario.strategy.outer_optimizer = OuterOptimizer::nesterov;
  for (const double not_lower : {22, 23}) {
    std::get<QualityTable>(*scenario.quality).rows.back().perplexity = not_lower;
    const RunReport report = closed_form(scenario);
    CHECK(std::none_of(report.notes.begin(), report.notes.end(), [](const std::string& note) {
      return note.find("instead of 22") != std::string::npos;
    }));
  }
}

TEST_CASE("quality table: outside of it the answer is unknown, and it names the key that no row matches") {
  const auto reason = [](const auto& change) {
    Scenario scenario = tests::ideal_scenario("diloco", 4);
    scenario.quality = table_for(scenario);
    change(scenario);
    const Quality quality = ask(scenario);
    CHECK_FALSE(quality.known);
    return quality.reason;
  };
  CHECK(reason([](Scenario& s) { s.strategy.local_steps = 7; }) == "local_steps 7; the table has 5, 10");
  CHECK(reason([](Scenario& s) { s.strategy.method = costmodel::find_method("ddp"); }) ==
        "method ddp; the table has diloco");
  CHECK(reason([](Scenario& s) { s.platform = platforms::uniform(2, 1e9, 1e9, 0); }) ==
        "2 sites; the table has 4");
  CHECK(reason([](Scenario& s) {
          s.strategy.method = costmodel::find_method("fomoe");
          s.strategy.expert_overlap = 1;
        }) == "expert_overlap 1; the table has 2, 4");
  CHECK(reason([](Scenario& s) { s.workload.tokens *= 2; }) == "tokens 4800 differs from the table's 2400");
  CHECK(reason([](Scenario& s) { s.strategy.skip_token = true; }) == "the table has no runs with skip_token");
  CHECK(reason([](Scenario& s) { s.model.vocabulary *= 100; }).starts_with("parameters "));
}

TEST_CASE("quality table: runs with payloads of few bits answer for this format alone") {
  Scenario scenario = tests::ideal_scenario("diloco", 4);
  scenario.quality = table_for(scenario);
  scenario.strategy.wire = plain_format(ElementType::int8);
  CHECK(ask(scenario).reason.find("INTELLECT-1") != std::string::npos);  // what a paper says, without numbers
  CHECK_FALSE(ask(scenario).known);
  std::get<QualityTable>(*scenario.quality).payload_dtype = ElementType::int8;
  CHECK(ask(scenario).perplexity == 20);
  for (const ElementType other : {ElementType::bf16, ElementType::int4, ElementType::fp8}) {
    scenario.strategy.wire = plain_format(other);
    CHECK_FALSE(ask(scenario).known);
  }
}

TEST_CASE("quality table: an answer says how few rounds the measured runs had") {
  const auto source = [](std::int64_t rounds) {
    Scenario scenario = tests::ideal_scenario("diloco", 4);
    scenario.workload.tokens =
        scenario.workload.global_batch_sequences * scenario.model.sequence_length * 5 * rounds;
    scenario.quality = table_for(scenario);
    REQUIRE(ask(scenario).known);
    return ask(scenario).source;
  };
  CHECK(source(20) == "a test; runs of 20 rounds, which say little of runs with more");
  CHECK(source(1) == "a test; runs of 1 round, which say little of runs with more");
  CHECK(source(21) == "a test");
}

TEST_CASE("without a quality model the report has no quality") {
  CHECK_FALSE(closed_form(tests::ideal_scenario("diloco", 4)).quality.has_value());
}

TEST_CASE("DiLoCo scaling law: the coefficients give the paper's losses within the error of its fit") {
  // Charles et al. 2025, Table 4, losses at N = 2.4B. Table 11 gives the residuals of fits without this size,
  // about 0.012 in log(loss); the fits of Table 7 include it.
  const struct {
    int replicas;
    double loss;
  } printed[] = {{0, 2.326}, {1, 2.317}, {2, 2.323}, {4, 2.332}, {8, 2.351}};
  for (const auto& row : printed) {
    CAPTURE(row.replicas);
    CHECK(std::abs(std::log(loss_of(diloco_loss_law(row.replicas), 2.4e9) / row.loss)) < 0.012);
    if (row.replicas > 0) CHECK(std::abs(std::log(diloco_joint_loss(2.4e9, row.replicas) / row.loss)) < 0.02);
  }
  // Table 5: models of 10B, a size that no fit includes.
  CHECK(std::abs(std::log(loss_of(diloco_loss_law(0), 10e9) / 2.090)) < 0.05);
  CHECK(std::abs(std::log(loss_of(diloco_loss_law(4), 10e9) / 2.096)) < 0.05);
}

TEST_CASE(
    "DiLoCo scaling law: perplexity is exp(A · N^α), and tokens to equal loss are those of the same model") {
  const Scenario scenario = dense_scenario("diloco", 8);
  const auto n = static_cast<double>(count_parameters(scenario.model).total());
  const RunReport report = closed_form(scenario);
  const Quality& quality = *report.quality;
  CHECK(quality.known);
  CHECK(quality.perplexity == doctest::Approx(std::exp(21.051 * std::pow(n, -0.1018))).epsilon(1e-12));
  // (1 + p)·L(N, r·D) = L(N, D), with p from the two fits and two laws L: the factor is a range.
  CHECK_FALSE(quality.equal_loss_factor.has_value());
  REQUIRE(quality.equal_loss_range.has_value());
  const double p = 21.051 * std::pow(n, -0.1018) / (18.129 * std::pow(n, -0.0953)) - 1;
  const auto d = static_cast<double>(report.tokens);  // of whole steps
  const auto loss = [&](const TokenLaw& law, double tokens) {
    return law.e + law.a / std::pow(n, law.alpha) + law.b / std::pow(tokens, law.beta);
  };
  const double factors[] = {*tokens_factor(kTokenLaws[0], n, d, 100 * p),
                            *tokens_factor(kTokenLaws[1], n, d, 100 * p)};
  for (std::size_t i = 0; i < 2; ++i)
    CHECK((1 + p) * loss(kTokenLaws[i], factors[i] * d) ==
          doctest::Approx(loss(kTokenLaws[i], d)).epsilon(1e-12));
  CHECK(quality.equal_loss_range->low == doctest::Approx(std::min(factors[0], factors[1])).epsilon(1e-12));
  CHECK(quality.equal_loss_range->high == doctest::Approx(std::max(factors[0], factors[1])).epsilon(1e-12));
  CHECK(quality.equal_loss_range->low > 1);  // eight replicas have a higher loss than data parallelism
  CHECK(*quality.equal_loss_centre() == doctest::Approx(std::sqrt(factors[0] * factors[1])).epsilon(1e-12));
  CHECK(*ask(dense_scenario("ddp", 3)).equal_loss_factor == 1);
}

TEST_CASE("DiLoCo scaling law: models above the largest of the fits have no ratio of laws") {
  // 9.6B, M = 4: the laws' ratio is 0.97 times the loss of data-parallel training; Table 5 has 1.0029 times.
  Scenario scenario = dense_scenario("diloco", 4);
  scenario.model.d_model = 4096;
  scenario.model.d_expert = 16384;
  scenario.model.layers = 46;
  scenario.workload.tokens = 20 * count_parameters(scenario.model).total();
  scenario.workload.global_batch_sequences = 1000;
  REQUIRE(count_parameters(scenario.model).total() > 9'000'000'000);
  const Quality quality = ask(scenario);
  CHECK_FALSE(quality.known);
  CHECK_FALSE(quality.equal_loss_range.has_value());
  CHECK(quality.reason.find("the law was fitted to models from 3.5e+07 to 2.4e+09") != std::string::npos);
}

TEST_CASE("DiLoCo scaling law: quality is unknown outside of the fitted range") {
  const auto reason = [](const auto& change) {
    Scenario scenario = dense_scenario("diloco", 4);
    change(scenario);
    const Quality quality = ask(scenario);
    CHECK_FALSE(quality.known);
    return quality.reason;
  };
  CHECK(reason([](Scenario& s) { s.strategy.local_steps = 32; }) == "local_steps 32; the law covers 30");
  CHECK(reason([](Scenario& s) { s.strategy.method = costmodel::find_method("local_adamw"); }) ==
        "method local_adamw; the law covers ddp and diloco");
  CHECK(reason([](Scenario& s) {
          s.workload.tokens *= 2;
        }).ends_with(" tokens per parameter; the law covers 20"));
  CHECK(reason([](Scenario& s) { s.model.experts = 8; }) == "a sparse model; the law covers dense models");
  CHECK(reason([](Scenario& s) { s.platform = platforms::uniform(16, 1e9, 1e9, 0); }) ==
        "16 sites; the law covers 1, 2, 4, 8");
  CHECK(reason([](Scenario& s) { s.model.vocabulary = 50'000; }) == "vocabulary 50000; the law covers 32768");
  CHECK(reason([](Scenario& s) { s.model.sequence_length = 1024; }) ==
        "sequence_length 1024; the law covers 2048");
  for (const std::int64_t batch : {16, 96})
    CHECK(reason([&](Scenario& s) { s.workload.global_batch_sequences = batch; }) ==
          "global_batch_sequences " + std::to_string(batch) +
              "; the law holds for the best batch, about 38 sequences within a factor of 2");
}
