// Tests of what published runs say of the loss: against the answers of the reference implementation, the
// refusals, and the constants that follow from the table.
#include "experiments/files/published/published_quality.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "costmodel/published/statistics.hpp"
#include "tests/experiments/run_fomoe.hpp"

using namespace fomoe;
using namespace fomoe::tests;
using costmodel::LossEstimate;
using costmodel::LossSetting;
using nlohmann::json;

namespace {

const costmodel::PublishedLosses& losses() { return *scenario::published_losses(); }

// Both implementations compute in doubles; they sum in another order.
bool agree(double a, double b) { return std::abs(a - b) <= 1e-9 * std::max({1.0, std::abs(a), std::abs(b)}); }

LossSetting setting_of(const json& at) {
  LossSetting setting;
  setting.parameters = at["parameters"];
  setting.tokens = at["tokens"];
  setting.replicas = at["replicas"];
  setting.local_steps = at["local_steps"];
  setting.steps = at["steps"];
  setting.method = at["method"];
  setting.mixture = at["architecture"] == "mixture";
  setting.refuse_mixtures = at["mixtures"] == "refuse";
  setting.inner_optimizer = at["inner_optimizer"];
  setting.wire_bits = at["wire_bits"];
  setting.density = at["density"];
  setting.expert_overlap = at["expert_overlap"];
  setting.same_data = at["same_data"];
  return setting;
}

void compare(const LossEstimate& found, const json& expected) {
  CAPTURE(expected.dump());
  CHECK(agree(found.points, expected["points"]));
  CHECK(agree(found.half, expected["half"]));
  CHECK(found.rows == expected["rows"].get<std::vector<std::string>>());
  CHECK(found.studies == expected["studies"].get<int>());
  CHECK(found.reasons == expected["reasons"].get<std::vector<std::string>>());
  CHECK(found.notes == expected["notes"].get<std::vector<std::string>>());
  if (!expected.contains("equal")) return;  // refused, or data-parallel training
  CHECK(found.equal() == expected["equal"].get<bool>());
  CHECK(agree(found.probability_above_0(), expected["probability_above_0"]));
}

LossSetting usual() {
  LossSetting setting;
  setting.parameters = 1e9;
  setting.tokens = 2e10;
  setting.replicas = 4;
  setting.local_steps = 30;
  setting.steps = 40000;
  return setting;
}

template <class Change>
LossSetting changed(const Change& change) {
  LossSetting setting = usual();
  change(setting);
  return setting;
}

}  // namespace

TEST_CASE("published losses: answers to drawn settings are those of the reference implementation") {
  std::istringstream lines(read_all(source_dir() + "/tests/reference/published_quality_vectors.jsonl"));
  int count = 0, levels = 0, contrasts = 0;
  for (std::string line; std::getline(lines, line); ++count) {
    const json vector = json::parse(line);
    const LossSetting setting = setting_of(vector["setting"]), other = setting_of(vector["other"]);
    const LossEstimate level = losses().level(setting);
    compare(level, vector["level"]);
    compare(losses().contrast(setting, other), vector["difference"]);
    CHECK(losses().nearest(setting) == vector["nearest"].get<std::vector<std::string>>());
    for (const costmodel::TokenLaw& law : costmodel::kTokenLaws) {
      if (!vector["tokens"].contains(law.name)) continue;
      const double ends[] = {level.low(), level.points, level.high()};
      for (std::size_t i = 0; i < 3; ++i) {
        const json& expected = vector["tokens"][law.name][i];
        const auto found = costmodel::tokens_factor(law, setting.parameters, setting.tokens, ends[i]);
        REQUIRE(found.has_value() == !expected.is_null());
        if (found) CHECK(agree(*found, expected));
      }
    }
    levels += level.half > 0 ? 1 : 0;
    contrasts += vector["difference"]["half"] > 0 ? 1 : 0;
  }
  CHECK(count == 100);
  CHECK(levels > 30);
  CHECK(contrasts > 30);
}

TEST_CASE("published losses: each refusal has its limit") {
  REQUIRE(losses().level(usual()).known());
  const auto reason = [](const auto& change) {
    const LossEstimate level = losses().level(changed(change));
    CHECK(level.reasons.size() == 1);
    CHECK(level.half == 0);
    return level.reasons.empty() ? "" : level.reasons.front();
  };
  CHECK(reason([](LossSetting& s) { s.method = "async_diloco"; }) ==
        "method async_diloco; the rows cover ddp, diloco, streaming_diloco, eager_diloco");
  CHECK(reason([](LossSetting& s) { s.mixture = s.refuse_mixtures = true; }) ==
        "a mixture of experts; the rows are of dense models");
  CHECK(losses().level(changed([](LossSetting& s) { s.mixture = true; })).notes ==
        std::vector<std::string>{"the rows are of dense models, taken at equal active parameters"});
  CHECK(reason([](LossSetting& s) { s.inner_optimizer = "muon"; }) ==
        "inner optimizer muon; the rows have adamw");
  CHECK(reason([](LossSetting& s) { s.expert_overlap = 2; }) ==
        "2 of 4 sites hold an expert; in the rows all sites hold the whole model");
  CHECK(reason([](LossSetting& s) { s.same_data = false; }) ==
        "sites with different data; the rows are of sites that draw from one distribution");
  CHECK(reason([](LossSetting& s) { s.wire_bits = 2; }) == "2 bits on the wire; at least 4 are covered");
  CHECK(reason([](LossSetting& s) { s.density = 0.01; }) ==
        "a share of 0.01 of the values on the wire; only all of them are covered");
  CHECK(reason([](LossSetting& s) { s.replicas = 9; }) == "9 replicas; at most 8 are covered");
  CHECK(reason([](LossSetting& s) { s.tokens = 10e9; }) ==
        "10 tokens per active parameter; the level is covered from 15 to 340");
  CHECK(reason([](LossSetting& s) { s.steps = 570; }) ==
        "19 rounds; at least 20 are covered (16 rounds cost +6.2 % in forgather-34M-1x-M2-K500)");
  CHECK(reason([](LossSetting& s) { s.local_steps = 101; }) ==
        "local_steps 101; runs of at least half this size reach 100 (noloco-1300M-Reddit-M8-PP2-diloco)");
  const auto size = [](double parameters) {
    return changed([&](LossSetting& s) {
      s.parameters = parameters;
      s.tokens = 20 * parameters;
    });
  };
  CHECK(losses().level(size(1.02e10)).reasons ==
        std::vector<std::string>{"1.02e+10 active parameters; the level is covered from 3.4e+07 to 1e+10"});
  CHECK(losses().level(size(1.009e10)).known());  // the tolerance: norms that are counted or not
  CHECK(losses().level(size(3.3e7)).reasons.size() == 1);
}

TEST_CASE("published losses: differences are refused for two models, and for other sites at a large K") {
  const LossSetting base = usual();
  CHECK(losses().contrast(base, changed([](LossSetting& s) { s.tokens = 2.2e10; })).reasons ==
        std::vector<std::string>{
            "two models or numbers of tokens; a difference is covered for the same model and tokens"});
  const auto small = [](std::int64_t replicas) {
    return changed([&](LossSetting& s) {
      s.parameters = 1e8;
      s.tokens = 2e9;
      s.local_steps = 200;
      s.replicas = replicas;
    });
  };
  CHECK(losses().contrast(small(4), small(4)).known());
  CHECK(losses().contrast(small(4), small(8)).reasons ==
        std::vector<std::string>{
            "other numbers of replicas at local_steps 200; covered up to 100 (at 500, 8 replicas "
            "cost more than the rows at 30 say: distrain-162M-M8-K500)"});
  // A size at which no level is covered has differences, with a note.
  const LossSetting large = changed([](LossSetting& s) {
    s.parameters = 2.5e10;
    s.tokens = 5e11;
  });
  LossSetting other = large;
  other.replicas = 2;
  CHECK_FALSE(losses().level(large).known());
  CHECK(losses().contrast(large, other).notes ==
        std::vector<std::string>{"the surface of 1e+10 active parameters is kept above this size"});
}

TEST_CASE("published losses: the constants that the table implies") {
  // Of tests/reference/published_quality_left_out.py constants. A new row changes them.
  CHECK(agree(losses().slope(), 0.7977445627));
  CHECK(agree(losses().slope_half(), 0.8308977119));
  CHECK(agree(losses().level_half(), 0.7957621439));
  CHECK(agree(losses().replica_half(), 1.1094462270));
  CHECK(agree(losses().run_deviation(), 0.2758609238));
  REQUIRE(losses().slopes().size() == 4);
  const double slopes[] = {0.7695314729, 1.3543738682, 0.8229392622, 0.2441336477};
  const std::size_t rows[] = {10, 3, 3, 1};
  for (std::size_t i = 0; i < 4; ++i) {
    CHECK(agree(losses().slopes()[i].value, slopes[i]));
    CHECK(losses().slopes()[i].rows.size() == rows[i]);
  }
  CHECK(losses().runs().size() == 314);
}

TEST_CASE("published losses: a level by hand, where a row of the paper stands") {
  // Charles et al., Table 5, 10B and M = 4: 2.096 against 2.090.
  const LossSetting setting = changed([](LossSetting& s) {
    s.parameters = 1e10;
    s.tokens = 2e11;
  });
  const LossEstimate level = losses().level(setting);
  CHECK(agree(level.points, 100 * (2.096 / 2.090 - 1)));
  CHECK(level.studies == 2);
  // One doubling of K above 30 adds the slope, and the interval of a study that is not among the four.
  LossSetting twice = setting;
  twice.local_steps = 60;
  const LossEstimate higher = losses().level(twice);
  CHECK(agree(higher.points - level.points, losses().slope()));
  CHECK(agree(higher.half, std::hypot(losses().level_half(), losses().slope_half())));
  CHECK(higher.studies == 4);
  // Against data-parallel training, a difference is the level, with its sign.
  LossSetting ddp = setting;
  ddp.method = "ddp";
  CHECK(losses().contrast(ddp, setting).points == level.points);
  CHECK(losses().contrast(setting, ddp).points == -level.points);
}

TEST_CASE("Student's t: quantiles and probabilities agree, and the exact cases hold") {
  for (int degrees = 1; degrees <= costmodel::kMostDegrees; ++degrees)
    CHECK(agree(costmodel::student_cdf(costmodel::t_90(degrees), degrees), 0.9));
  CHECK(costmodel::t_90(11) == costmodel::t_90(10));
  CHECK(agree(costmodel::student_cdf(1, 1), 0.75));                      // Cauchy
  CHECK(agree(costmodel::student_cdf(1, 2), 0.5 + 0.5 / std::sqrt(3)));  // 1/2 + t/(2·√(2 + t²))
}
